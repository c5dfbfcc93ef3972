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
	"rdma_exporter/internal/terminal"
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
// style.Verbose all settings, and why each matters.
func SetupTable(w io.Writer, s Setup, rows []hostdata.SetupRow, style Style) error {
	var text strings.Builder
	host := words.OneLine(s.Host)
	lead := style.Wrap(words.OneLine(s.formatHeadline(rows)), noteIndent)
	if rest, ok := strings.CutPrefix(lead, host+": "+s.Verdict); ok {
		lead = host + ": " + style.Paint(inks[s.Verdict], s.Verdict) + rest
	}
	fmt.Fprintln(&text, lead)
	if s.Replay != "" {
		fmt.Fprintln(&text, style.Paint(terminal.Grey, style.Wrap(words.OneLine("Replay of "+s.Replay+"."), noteIndent)))
	}
	differ := setup.Deviations(rows, hostdata.SetupDiffers)
	slices.SortStableFunc(differ, func(a, b setup.Deviation) int {
		return severityRank(a.Row.Severity) - severityRank(b.Row.Severity)
	})
	for i, d := range differ {
		if i == 0 || !style.Short {
			fmt.Fprintln(&text)
		}
		text.WriteString(formatDifference(d, style))
	}
	list := func(state hostdata.SetupState, label string, of func(hostdata.SetupRow) string) {
		for i, d := range setup.Deviations(rows, state) {
			if i == 0 {
				fmt.Fprintln(&text)
			}
			text.WriteString(style.block(label, "", "", d.Row.Setting+", "+SetupObjects(d)+": "+of(d.Row)))
		}
	}
	list(hostdata.SetupUnknown, string(hostdata.SetupUnknown), func(r hostdata.SetupRow) string {
		return words.Join(", ", prefixed("wanted ", r.Wanted), r.Evidence)
	})
	if style.Verbose {
		list(hostdata.SetupOK, string(hostdata.SetupOK), func(r hostdata.SetupRow) string {
			return r.Found + " (" + SetupBasis(r) + ")"
		})
	}
	return writeText(w, text.String(), "settings")
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// formatDifference returns a difference, with the commands that set it. A recommendation has its reason, evidence and
// source only if verbose.
func formatDifference(d setup.Deviation, style Style) string {
	r := d.Row
	text := style.block(r.Severity, inks[r.Severity], "", fmt.Sprintf("%s, %s: %s, wanted %s (%s)",
		r.Setting, SetupObjects(d), r.Found, r.Wanted, SetupBasis(r)))
	if style.Short {
		return text
	}
	if style.Verbose || r.Severity == severityWarning {
		for _, f := range []Fact{{"why", r.Why}, {"evidence", r.Evidence}} {
			if f.Value != "" {
				text += style.block(f.Name+":", "", "", f.Value)
			}
		}
	}
	if r.Before != "" {
		text += style.block("before:", "", "", r.Before)
	}
	label := "set:"
	for _, command := range joinCommands(d.Remedies) {
		text += terminal.Pad(label, labelIndent) + words.OneLine(command) + "\n"
		label = ""
	}
	if style.Verbose {
		text += style.block("source:", "", terminal.Grey, r.Source)
	}
	return text
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
