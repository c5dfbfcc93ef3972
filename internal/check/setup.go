package check

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/traits"
	"rdma_exporter/internal/words"
)

// SetupVersion is the version of the JSON schema of check --setup. It changes when a field is removed or changes its
// meaning.
const SetupVersion = 1

// Setup is the result of check --setup. Its JSON form is a contract: docs/check.md.
type Setup struct {
	Version  int                 `json:"version"`
	Exporter string              `json:"exporter"`
	Replay   string              `json:"replay,omitempty"`
	Host     string              `json:"host"`
	Time     time.Time           `json:"time"`
	Verdict  string              `json:"verdict"` // ok, warning, unknown: info differences are ok
	ExitCode int                 `json:"exit_code"`
	Settings []hostdata.SetupRow `json:"settings"` // by domain
	// Kind and traits are what the host is compared by: rdma_exporter compare.
	Kind   string         `json:"kind"`
	Traits []traits.Trait `json:"traits"`
	// Virtual is the number of RDMA devices if all are virtual functions of a guest, to which no setting applies.
	Virtual int `json:"virtual_functions,omitempty"`
	// Unknown are the objects that jobs use and whose state is unknown, so that their settings may be missing. The
	// verdict is then not ok.
	Unknown []account.Object `json:"unknown_objects,omitempty"`
}

// NewSetup returns the report of rows. Without rows the host has no RDMA device whose settings could be compared, or
// only virtual functions, whose settings are those of the hypervisor. With strict, settings that could not be read make
// the verdict unknown, as unknown objects that jobs use always do.
func NewSetup(rows []hostdata.SetupRow, objects []account.Object, virtual int, strict bool) Setup {
	s := Setup{
		Version: SetupVersion, Settings: []hostdata.SetupRow{}, Verdict: verdictOK, ExitCode: ExitOK,
		Unknown: account.Unknowns(objects),
	}
	if len(rows) == 0 {
		s.Virtual = virtual
	}
	unknown := len(rows) == 0 && virtual == 0 || len(s.Unknown) > 0
	for _, r := range rows {
		x := ShownSetting(r)
		s.Settings = append(s.Settings, x)
		if x.Severity == severityWarning {
			s.Verdict, s.ExitCode = severityWarning, ExitWarning
		}
		unknown = unknown || strict && r.State == hostdata.SetupUnknown
	}
	if unknown && s.ExitCode == ExitOK {
		s.Verdict, s.ExitCode = verdictUnknown, ExitUnknown
	}
	return s
}

// ShownSetting returns a row as it is shown: only a difference has a severity and an alert.
func ShownSetting(r hostdata.SetupRow) hostdata.SetupRow {
	if r.State != hostdata.SetupDiffers {
		r.Severity, r.Alert = "", ""
	}
	return r
}

// SetupJSON writes the report as JSON.
func SetupJSON(w io.Writer, s Setup) error { return writeJSON(w, s, "settings") }

// SetupTable writes the report as text: differences with their remedies, worst first, then unknown settings; with
// style.Verbose all settings.
func SetupTable(w io.Writer, s Setup, rows []hostdata.SetupRow, style Style) error {
	var text strings.Builder
	fmt.Fprintln(&text, s.formatHeadline(rows))
	differ := setup.Deviations(rows, hostdata.SetupDiffers)
	slices.SortStableFunc(differ, func(a, b setup.Deviation) int {
		return severityRank(a.Row.Severity) - severityRank(b.Row.Severity)
	})
	text.WriteString(setupDifferences(differ, style))
	list := func(state hostdata.SetupState, head []string, last func(hostdata.SetupRow) []string) {
		table := [][]string{head}
		for _, d := range setup.Deviations(rows, state) {
			table = append(table, append([]string{d.Row.Setting, SetupObjects(d)}, last(d.Row)...))
		}
		if len(table) > 1 {
			fmt.Fprintf(&text, "\n%s", alignColumns(table, ""))
		}
	}
	list(hostdata.SetupUnknown, []string{"UNKNOWN", "OBJECT", "WANTED", "REASON"},
		func(r hostdata.SetupRow) []string { return []string{r.Wanted, r.Evidence} })
	if style.Verbose {
		list(hostdata.SetupOK, []string{"AS WANTED", "OBJECT", "FOUND", "BASIS"},
			func(r hostdata.SetupRow) []string { return []string{r.Found, SetupBasis(r)} })
	}
	return writeText(w, text.String(), "settings")
}

// setupDifferences returns a row for each difference, with the explanation below.
func setupDifferences(differ []setup.Deviation, style Style) string {
	if len(differ) == 0 {
		return ""
	}
	table := [][]string{{"SEVERITY", "SETTING", "OBJECT", "FOUND", "WANTED", "BASIS"}}
	for _, d := range differ {
		table = append(table,
			[]string{d.Row.Severity, d.Row.Setting, SetupObjects(d), d.Row.Found, d.Row.Wanted, SetupBasis(d.Row)})
	}
	var text strings.Builder
	text.WriteString("\n")
	i := -1
	for line := range strings.Lines(alignColumns(table, "")) {
		text.WriteString(line)
		if i++; i == 0 || style.Short {
			continue
		}
		r := differ[i-1].Row
		for _, f := range []Fact{
			{"why", r.Why},
			{"evidence", r.Evidence},
			{"before", r.Before},
			{"set", strings.Join(differ[i-1].Remedies, "\n            ")},
			{"source", r.Source},
		} {
			if f.Value != "" {
				fmt.Fprintf(&text, "  %-9s %s\n", f.Name+":", f.Value)
			}
		}
	}
	return text.String()
}

// SetupObjects returns the names of the objects of a difference.
func SetupObjects(d setup.Deviation) string {
	if d.Object == "all" {
		return fmt.Sprintf("all %d", len(d.Objects))
	}
	return d.Object
}

// SetupBasis returns the source of a wanted value.
func SetupBasis(r hostdata.SetupRow) string {
	switch r.Basis {
	case hostdata.SetupSite:
		return "site configuration"
	case hostdata.SetupMachine:
		return "this host"
	}
	return "recommendation"
}

// formatHeadline returns the verdict with the number of rows in each state: a setting with one value on several objects
// is one row, as in the tables below.
func (s *Setup) formatHeadline(rows []hostdata.SetupRow) string {
	host := s.Host
	if s.Replay != "" {
		host += " (replay of " + s.Replay + ")"
	}
	switch {
	case s.Virtual > 0:
		return fmt.Sprintf("%s: %s: no setting applies to %s: run check --setup on the hypervisor%s",
			host, s.Verdict, words.Count(s.Virtual, "virtual function"), s.describeUnknown())
	case len(s.Settings) == 0:
		return host + ": unknown: no RDMA device in /sys/class/infiniband, or none readable"
	}
	n := map[string]int{
		string(hostdata.SetupOK):      len(setup.Deviations(rows, hostdata.SetupOK)),
		string(hostdata.SetupUnknown): len(setup.Deviations(rows, hostdata.SetupUnknown)),
	}
	for _, d := range setup.Deviations(rows, hostdata.SetupDiffers) {
		n[d.Row.Severity]++
	}
	var parts []string
	for _, p := range []struct{ key, one, several string }{
		{severityWarning, "contradicts the traffic or a job", "contradict the traffic or a job"},
		{severityInfo, "differs from recommendations or siblings", "differ from recommendations or siblings"},
		{string(hostdata.SetupOK), "as wanted", "as wanted"},
		{string(hostdata.SetupUnknown), "unknown", "unknown"},
	} {
		switch {
		case n[p.key] == 1:
			parts = append(parts, "1 "+p.one)
		case n[p.key] > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n[p.key], p.several))
		}
	}
	return fmt.Sprintf("%s: %s: settings: %s%s", host, s.Verdict, strings.Join(parts, ", "), s.describeUnknown())
}

// describeUnknown returns the numbers of unknown objects of the host, after a semicolon; empty if there are none.
func (s *Setup) describeUnknown() string {
	if len(s.Unknown) == 0 {
		return ""
	}
	return "; " + account.Line(s.Unknown) + ", see rdma_exporter check"
}
