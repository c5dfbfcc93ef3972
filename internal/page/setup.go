package page

import (
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

// setupView is the settings of the host on the page.
type setupView struct {
	Differ  []difference
	OK      int
	Unknown []difference // with the reason as evidence
}

// difference is a setting with its objects.
type difference struct {
	snapshot.SetupRow
	Health  Health
	Objects string
	Sets    []string // commands
	Basis   string   // where the wanted value comes from, for people
}

// setupOf is the section of the page; nil if the settings were not read.
func setupOf(n *snapshot.Node) *setupView {
	if n == nil || n.Setup == nil || len(n.Setup.Rows) == 0 {
		return nil
	}
	rows := n.Setup.Rows
	v := &setupView{Differ: differences(rows, snapshot.SetupDiffers), Unknown: differences(rows, snapshot.SetupUnknown)}
	for _, r := range rows {
		if r.State == snapshot.SetupOK {
			v.OK++
		}
	}
	return v
}

func differences(rows []snapshot.SetupRow, state snapshot.SetupState) (out []difference) {
	for _, d := range setup.Deviations(rows, state) {
		x := difference{
			SetupRow: check.ShownSetting(d.Row), Health: Info, Objects: short(check.SetupObjects(d), maxText),
			Basis: check.SetupBasis(d.Row),
		}
		if x.Severity == "warning" {
			x.Health = Warning
		}
		x.Sets = words.Of(d.Remedies, func(r string) string { return short(r, maxText) })
		out = append(out, x)
	}
	return out
}
