package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/words"
)

// JSON writes the report as one indented object with a final newline.
func JSON(w io.Writer, r Report) error { return writeJSON(w, r, "report") }

func writeJSON(w io.Writer, v any, what string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write %s as JSON: %w", what, err)
	}
	return nil
}

func writeText(w io.Writer, text, what string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// Style is the style of a table.
type Style struct {
	Colour  bool
	Verbose bool // list each object and each rule that was not evaluated, not only their numbers
	Short   bool // without the lines below the rows: pending, impact, diagnose, action
}

// Table writes the report as text: the verdict and its basis, the findings (worst first), the pending alerts, and the
// rules that were not evaluated.
func Table(w io.Writer, r Report, s Style) error {
	var text strings.Builder
	fmt.Fprintln(&text, words.OneLine(r.formatHeadline()))
	for _, n := range r.Notices() {
		fmt.Fprintln(&text, words.OneLine(n))
	}
	if r.Error == "" {
		fmt.Fprintf(&text, "%s.\n", r.Coverage())
	}
	if len(r.Findings)+len(r.Pending) > 0 {
		fmt.Fprintln(&text)
		text.WriteString(r.formatTable(s))
	}
	for _, note := range append(r.explainTerms(), r.Notes()...) {
		fmt.Fprintf(&text, "\n%s.\n", words.OneLine(note))
	}
	if s.Verbose {
		text.WriteString(r.formatObjects())
	}
	text.WriteString(r.formatGaps(s.Verbose))
	return writeText(w, text.String(), "report")
}

// formatTable returns a row for each finding, explained symptom and pending alert, with the advice below.
func (r *Report) formatTable(s Style) string {
	rows := [][]string{{"SEVERITY", "STATE", "FOR", "ALERT", "OBJECT", "SUMMARY"}}
	advice := map[int][]string{} // by the row above it
	action := ""                 // action of the previous finding: printed once
	for i, f := range slices.Concat(r.Findings, r.Pending) {
		rows = append(rows, []string{f.Severity, f.State, f.formatLasted(r.Time), f.Alert, Where(f.Labels), f.Summary})
		for _, e := range f.Explains {
			why := words.Spaced(e.Reason) + ": told by " + f.Alert + ", no alert of its own"
			rows = append(rows, []string{"", "explained", "", e.Alert, Where(e.Labels), why})
		}
		if !s.Short {
			advice[len(rows)-1] = f.listAdvice(f.describePending(i < len(r.Findings)), action)
			action = f.Action
		}
	}
	var text strings.Builder
	i := 0
	for line := range strings.Lines(colourSeverities(alignColumns(rows, ""), s)) {
		text.WriteString(line)
		for _, a := range advice[i] {
			fmt.Fprintf(&text, "  %s\n", a)
		}
		i++
	}
	return text.String()
}

// formatLasted returns the time since the condition became true: "4m15s", for a pending alert with its `for`: "30s of
// 15m".
func (f Finding) formatLasted(now time.Time) string {
	s := formatDuration(now.Sub(f.Since))
	if f.ForSeconds > 0 {
		s += " of " + formatDuration(f.pendingTime())
	}
	return s
}

func (f Finding) pendingTime() time.Duration {
	return time.Duration(f.ForSeconds * float64(time.Second))
}

// describePending returns when a pending alert fires and whether it counts as a finding; empty for a firing alert.
func (f Finding) describePending(finding bool) string {
	counts := "Reported now, since the host was observed for less than that."
	switch {
	case f.State != string(alerting.StatePending):
		return ""
	case !finding:
		counts = "Until then: no finding, exit code unchanged."
	case f.Waits && f.Severity == severityCritical:
		counts = "Until then: a warning."
	case f.Waits:
		counts = "Counts as a finding already."
	}
	return fmt.Sprintf("fires once the condition is true for %s. %s", formatDuration(f.pendingTime()), counts)
}

// listAdvice returns the lines pending, impact, diagnose and action of a finding. An action equal to the one before is
// left out.
func (f Finding) listAdvice(pending, before string) (out []string) {
	for _, line := range []Fact{
		{"pending", pending}, {"impact", f.describeImpact()}, {"diagnose", f.Diagnose}, {"action", f.Action},
	} {
		if line.Value != "" && (line.Name != "action" || line.Value != before) {
			out = append(out, fmt.Sprintf("%-9s %s", line.Name+":", words.OneLine(line.Value)))
		}
	}
	return out
}

// describeImpact returns the workloads that use the object, as in the evidence.
func (f Finding) describeImpact() string {
	var out []string
	for _, line := range f.Evidence {
		if line.Name == "Impact" {
			out = append(out, line.Value)
		}
	}
	return strings.Join(out, " ")
}

// formatObjects returns a row for each object; empty if there are none.
func (r *Report) formatObjects() string {
	if len(r.Objects) == 0 {
		return ""
	}
	rows := [][]string{{"OBJECT", "NAME", "CLASS", "REASON"}}
	for i := range r.Objects {
		o := &r.Objects[i]
		row := []string{o.Noun(), o.Name, o.Class.Text(), o.Reason}
		if o.Reason == "" {
			row = row[:3]
		}
		rows = append(rows, row)
	}
	return "\n" + alignColumns(rows, "")
}

// formatGaps returns the sentences on the rules that were not evaluated, with a row for each if verbose.
func (r *Report) formatGaps(verbose bool) string {
	var text strings.Builder
	for i, g := range r.Gaps() {
		if i == 0 || verbose {
			fmt.Fprintln(&text)
		}
		fmt.Fprintf(&text, "%s.\n", words.OneLine(g.describe()))
		if verbose {
			text.WriteString(alignColumns(g.listRows(), "  "))
		}
	}
	if text.Len() > 0 && !verbose {
		fmt.Fprintln(&text, "Details: rdma_exporter check --verbose.")
	}
	return text.String()
}

// alignColumns aligns rows.
func alignColumns(rows [][]string, indent string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = words.OneLine(row[i])
		}
		fmt.Fprintln(w, indent+strings.Join(row, "\t"))
	}
	w.Flush() // a strings.Builder does not fail
	return text.String()
}

// colours of the severities (ECMA-48, SGR).
var colours = map[string]string{severityCritical: "\x1b[1;31m", severityWarning: "\x1b[33m", severityInfo: "\x1b[36m"}

// colourSeverities adds colours to the severities at the beginning of lines.
func colourSeverities(table string, s Style) string {
	if !s.Colour {
		return table
	}
	var out strings.Builder
	for line := range strings.Lines(table) {
		word, _, _ := strings.Cut(line, " ")
		if c, ok := colours[word]; ok {
			line = c + word + "\x1b[0m" + line[len(word):]
		}
		out.WriteString(line)
	}
	return out.String()
}

// formatHeadline returns the verdict with the number of findings and pending alerts: "gpu-1: critical: 2 critical, 1
// pending warning".
func (r *Report) formatHeadline() string {
	host := words.HostName(r.Host)
	if r.Replay != "" {
		host += " (replay of " + r.Replay + ")"
	}
	return host + ": " + r.formatConclusion()
}

func (r *Report) formatConclusion() string {
	word := cmp.Or(r.Headline, r.Verdict) // a report of an earlier version has no headline
	counts := words.Join(", ", r.countFindings(), r.summarise())
	switch {
	case r.Error != "":
		return "unknown: " + r.Error
	case r.Incomplete:
		return words.Join(", ",
			"unknown (ok without --strict): rules that this host supports were not evaluated or are pending", counts)
	case r.ExitCode == ExitUnknown && r.NoDevice != nil:
		return words.Join(", ", "unknown: "+r.Why(), r.countFindings())
	case r.ExitCode == ExitUnknown:
		return words.Join(", ", "unknown: "+r.Why(), counts)
	case word == verdictOK && counts == "" && r.Severity != "" && r.Severity != severityInfo:
		return "no finding of severity " + strings.Join(Severities()[:severityRank(r.Severity)+1], " or ")
	case word == verdictOK && len(r.Objects) > 0:
		return word + ": " + words.Join(", ", account.Line(r.Objects), counts)
	case word == verdictOK && r.Fabric != nil:
		return word + ": " + words.Join(", ", r.Fabric.summarise(), counts)
	case word == verdictOK:
		return words.Join(", ", word, counts)
	}
	return words.Join(": ", word, counts)
}

// countFindings returns the number of findings and pending alerts by severity: "2 critical, 1 pending warning, 1 info".
// A pending alert that counts as a finding is called pending only if it waits to fire.
func (r *Report) countFindings() string {
	waits := func(f Finding) bool { return f.Waits }
	counted := slices.DeleteFunc(slices.Clone(r.Findings), waits)
	pending := slices.Concat(
		slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !waits(f) }), r.Pending)
	var out []string
	for _, severity := range Severities() {
		out = append(out, Tally(counted, "%d %s", severity)...)
		out = append(out, Tally(pending, "%d pending %s", severity)...)
	}
	return strings.Join(out, ", ")
}

// Where returns the name of the object on the host, from the most general label to the most specific.
func Where(labels map[string]string) string {
	var parts []string
	switch ofFabric := strings.HasPrefix(labels["symptom"], "fabric_"); {
	case ofFabric && labels["scope"] != "fabric":
		parts = append(parts, labels["where"])
	case ofFabric, labels["symptom"] == "no_subnet_manager" && labels["reason"] == "fabric":
		parts = append(parts, "fabric")
	}
	if job := labels["job_id"]; job != "" {
		parts = append(parts, "job "+job)
	}
	if device := labels["device"]; device != "" {
		if port := labels["port"]; port != "" {
			device += "/" + port
		}
		parts = append(parts, device)
	}
	if gpu := labels["gpu"]; gpu != "" {
		parts = append(parts, "gpu "+gpu)
	}
	if netdev := labels["netdev"]; netdev != "" {
		parts = append(parts, netdev)
	}
	for _, name := range []string{"lane", "priority", "direction", "kind"} {
		if v := labels[name]; v != "" {
			parts = append(parts, name+" "+v)
		}
	}
	if len(parts) == 0 {
		return "host"
	}
	return strings.Join(parts, " ")
}

// terms explains the sources of expectations in summaries (expect.Source).
var terms = []struct{ text, meaning string }{
	{"by pin", "as set in --config.file"},
	{"by link modes", "the fastest rate that both ends of the link advertise"},
	{"by link partner", "what both ends of the link have enabled"},
	{"by siblings", "as most comparable ports of this host, which have the same role (for a rate also the same board)"},
	{"by high water mark", "the highest that this link has had"},
}

// explainTerms returns the meaning of each term in the summaries, once.
func (r *Report) explainTerms() (out []string) {
	for _, t := range terms {
		if slices.ContainsFunc(slices.Concat(r.Findings, r.Pending), func(f Finding) bool {
			return strings.Contains(f.Summary, t.text)
		}) {
			out = append(out, "Expected "+t.text+": "+t.meaning)
		}
	}
	return out
}
