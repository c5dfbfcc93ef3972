package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/terminal"
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

// Style is the style of a report.
type Style struct {
	terminal.Style
	Verbose bool // list each object and each rule that was not evaluated, and the standing notes
	Short   bool // without the lines below the findings: impact, diagnose, action
}

// Table writes the report as text: the worst finding in words, the account, what was measured, then the findings (worst
// first), the pending alerts, and the rules that were not evaluated for a reason that the user can change.
func Table(w io.Writer, r Report, s Style) error {
	var text strings.Builder
	text.WriteString(r.formatLead(s))
	if len(r.Findings)+len(r.Pending) > 0 {
		text.WriteString(r.formatFindings(s))
	}
	notes := r.Notes()
	if s.Verbose {
		notes = slices.Concat(r.explainTerms(), notes, r.Standing())
	}
	for _, note := range notes {
		fmt.Fprintf(&text, "\n%s.\n", s.Wrap(words.OneLine(note), noteIndent))
	}
	if s.Verbose {
		text.WriteString(r.formatObjects())
	}
	text.WriteString(r.formatGaps(s))
	return writeText(w, text.String(), "report")
}

const (
	labelIndent = 10 // of the text beside "critical" and "diagnose:"
	noteIndent  = 2  // of the second line of a sentence
)

// inks are the colours of verdicts and severities.
var inks = map[string]terminal.Ink{
	severityCritical: terminal.Red, severityWarning: terminal.Yellow, severityInfo: terminal.Cyan,
	verdictOK: terminal.Green, headlineWatching: terminal.Yellow, verdictUnknown: terminal.Yellow,
}

// formatLead returns the lines that say what is wrong, on how many objects, and on which data that is based.
func (r *Report) formatLead(s Style) string {
	host, word := words.OneLine(words.HostName(r.Host))+": ", words.OneLine(r.HeadlineWord())
	lead := s.Wrap(host+words.OneLine(r.formatConclusion()), noteIndent)
	if strings.HasPrefix(lead, host+word) {
		lead = host + s.Paint(inks[cmp.Or(r.Headline, r.Verdict)], word) + lead[len(host+word):]
	}
	lines := []string{lead}
	add := func(line string, ink terminal.Ink) {
		if line != "" {
			lines = append(lines, s.Paint(ink, s.Wrap(words.OneLine(line), noteIndent)))
		}
	}
	add(r.Account(), "")
	for _, n := range r.Notices() {
		add(n, "")
	}
	if r.Error == "" {
		add(r.Measured()+".", "")
		if s.Verbose && len(r.Objects) > 0 {
			add(r.Coverage()+".", "")
		}
	}
	if r.Replay != "" {
		add("Replay of "+r.Replay+".", terminal.Grey)
	}
	return strings.Join(lines, "\n") + "\n"
}

// Account returns the number of findings and pending alerts, and of the objects in each class, as a sentence; empty if
// the first line has them.
func (r *Report) Account() string {
	if r.Worst() == "" || r.Error != "" || r.Incomplete || r.ExitCode == ExitUnknown {
		return ""
	}
	return words.Join("; ", r.countFindings(), account.Line(r.Objects), r.summarise()) + "."
}

// formatFindings returns a block for each finding and pending alert, with what it explains and the advice.
func (r *Report) formatFindings(s Style) string {
	var text strings.Builder
	block := func(label string, ink, of terminal.Ink, prose string) {
		text.WriteString(s.block(label, ink, of, prose))
	}
	action := "" // of the previous finding: printed once
	for i, f := range slices.Concat(r.Findings, r.Pending) {
		if i == 0 || !s.Short {
			text.WriteByte('\n')
		}
		block(f.Severity, inks[f.Severity], "", r.sentence(f))
		block("", "", terminal.Grey, r.describeState(f, i < len(r.Findings), s.Short))
		for _, l := range f.Lost() {
			block("lost:", "", "", l)
		}
		for _, e := range f.Explains {
			block("explains:", "", terminal.Grey, e.Alert+" "+Where(e.Labels)+": "+words.Spaced(e.Reason)+
				": told by "+f.Alert+", no alert of its own")
		}
		if s.Short {
			continue
		}
		if impact := f.describeImpact(); impact != "" {
			block("impact:", "", "", impact)
		}
		text.WriteString(formatCommands(f.Diagnose, s))
		if f.Action != "" && f.Action != action {
			block("action:", "", "", f.Action)
		}
		action = f.Action
	}
	return text.String()
}

// block returns prose beside a label, both painted.
func (s Style) block(label string, ink, of terminal.Ink, prose string) string {
	label = words.OneLine(label)
	beside := strings.Repeat(" ", max(0, labelIndent-terminal.Width(label)))
	lines := s.Paint(of, s.Wrap(words.OneLine(prose), labelIndent))
	return strings.TrimRight(s.Paint(ink, label)+beside+lines, " ") + "\n"
}

// sentence returns the summary of a finding without the name of the host, which the first line has.
func (r *Report) sentence(f Finding) string {
	host := words.HostName(r.Host)
	return strings.TrimPrefix(strings.TrimPrefix(f.Summary, host+" "), host+": ")
}

// Worst returns the worst finding in words, or else the worst pending alert; empty if there is none.
func (r *Report) Worst() string {
	for _, f := range r.Findings {
		if f.Severity != severityInfo {
			return r.sentence(f)
		}
	}
	if w := r.Pending; len(w) > 0 && w[0].Severity != severityInfo {
		return r.sentence(w[0])
	}
	return ""
}

// describeState returns alert, object and state of a finding: "RDMAPortDown mlx5_0/1, firing for 4m15s".
func (r *Report) describeState(f Finding, finding, short bool) string {
	state := fmt.Sprintf("%s %s, %s for %s", f.Alert, Where(f.Labels), f.State, f.formatLasted(r.Time))
	if pending := f.describePending(finding); pending != "" && !short {
		state += ". " + pending
	}
	return state
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

// describePending returns whether a pending alert counts as a finding; empty for a firing alert.
func (f Finding) describePending(finding bool) string {
	counts := "Reported now, since the host was observed for less than that"
	switch {
	case f.State != string(alerting.StatePending):
		return ""
	case !finding:
		counts = "Until then: no finding, exit code unchanged"
	case f.Waits && f.Severity == severityCritical:
		counts = "Until then: a warning"
	case f.Waits:
		counts = "Counts as a finding already"
	}
	return counts
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

// formatGaps returns the sentences on the rules that were not evaluated for a reason that the user can change. If
// verbose it returns all, with a row for each rule.
func (r *Report) formatGaps(s Style) string {
	var text strings.Builder
	for _, g := range r.Gaps() {
		if g.Stands && !s.Verbose {
			continue
		}
		if text.Len() == 0 || s.Verbose {
			fmt.Fprintln(&text)
		}
		fmt.Fprintf(&text, "%s.\n", s.Wrap(words.OneLine(g.describe()), noteIndent))
		if s.Verbose {
			text.WriteString(alignColumns(g.listRows(), "  "))
		}
	}
	if text.Len() > 0 && !s.Verbose {
		fmt.Fprintln(&text, "Details: rdma_exporter check --verbose.")
	}
	return text.String()
}

// alignColumns aligns rows of plain text.
func alignColumns(rows [][]string, indent string) string {
	for _, row := range rows {
		for i := range row {
			row[i] = words.OneLine(row[i])
		}
	}
	return terminal.Align(rows, indent)
}

// formatConclusion returns the verdict with its reason: "ok: nothing is wrong: 8 NICs, 8 compute ports healthy".
func (r *Report) formatConclusion() string {
	word := r.HeadlineWord()
	switch counts := words.Join(", ", r.countFindings(), r.summarise()); {
	case r.Error != "", r.ExitCode == ExitUnknown && !r.Incomplete:
		word = verdictUnknown
	case r.Incomplete:
		return words.Join(", ",
			"unknown (ok without --strict): rules that this host supports were not evaluated or are pending", counts)
	case word == verdictOK && counts == "" && r.Severity != "" && r.Severity != severityInfo:
		return "no finding of severity " + strings.Join(Severities()[:severityRank(r.Severity)+1], " or ")
	}
	if word == verdictOK && len(r.Objects) == 0 && r.Fabric == nil {
		return words.Join(", ", word, r.Lead())
	}
	return words.Join(": ", word, r.Lead())
}

// Lead returns the reason of the verdict: the worst finding, why the state is unknown, or what is healthy.
func (r *Report) Lead() string {
	counts := words.Join(", ", r.countFindings(), r.summarise())
	switch ok := cmp.Or(r.Headline, r.Verdict) == verdictOK; {
	case r.Error != "":
		return r.Error
	case r.ExitCode == ExitUnknown && r.NoDevice != nil:
		return words.Join(", ", r.Why(), r.countFindings())
	case r.ExitCode == ExitUnknown:
		return words.Join(", ", r.Why(), counts)
	case r.Worst() != "":
		return r.Worst()
	case ok && len(r.Objects) > 0 && counts == "":
		return "nothing is wrong: " + account.Line(r.Objects)
	case ok && len(r.Objects) > 0:
		return words.Join(", ", account.Line(r.Objects), counts)
	case ok && r.Fabric != nil && counts == "" && len(r.Notes()) == 0:
		return "nothing is wrong: " + r.Fabric.summarise()
	case ok && r.Fabric != nil:
		return words.Join(", ", r.Fabric.summarise(), counts)
	}
	return counts
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
	{"by highest rate seen", "as this link has been before"},
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
