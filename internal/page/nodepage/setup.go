package nodepage

import (
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/words"
)

// setupView is the section on the settings of the host, and on what limits every verdict on it.
type setupView struct {
	Notes   []string
	Read    bool // the settings were
	Differ  []difference
	OK      int
	Unknown []difference // with the reason as evidence
}

// difference is a setting with its objects.
type difference struct {
	hostdata.SetupRow
	Health  page.Health
	Objects string
	Sets    []string // commands
	Basis   string   // where the wanted value comes from, for people
}

// newSetupView returns the section on the settings; nil if they were not read and there is no note.
func newSetupView(n *snapshot.Node, r *check.Report) *setupView {
	v := &setupView{Read: n != nil && n.Setup != nil && len(n.Setup.Rows) > 0}
	if r != nil {
		v.Notes = words.Map(r.Standing(), func(note string) string { return page.Shorten(note, page.MaxText) + "." })
	}
	if !v.Read && len(v.Notes) == 0 {
		return nil
	}
	if !v.Read {
		return v
	}
	rows := n.Setup.Rows
	v.Differ, v.Unknown = listDifferences(rows, hostdata.SetupDiffers), listDifferences(rows, hostdata.SetupUnknown)
	for _, r := range rows {
		if r.State == hostdata.SetupOK {
			v.OK++
		}
	}
	return v
}

// listDifferences returns the settings in a state, with their objects.
func listDifferences(rows []hostdata.SetupRow, state hostdata.SetupState) (out []difference) {
	for _, d := range setup.Deviations(rows, state) {
		x := difference{
			SetupRow: check.ShownSetting(d.Row), Health: page.Info, Objects: page.Shorten(check.SetupObjects(d), page.MaxText),
			Basis: check.SetupBasis(d.Row),
		}
		if x.Severity == "warning" {
			x.Health = page.Warning
		}
		x.Sets = words.Map(d.Remedies, func(r string) string { return page.Shorten(r, page.MaxText) })
		out = append(out, x)
	}
	return out
}
