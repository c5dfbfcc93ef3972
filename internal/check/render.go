package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"rdma_exporter/internal/alerting"
)

// JSON writes the report as one indented object with a final newline.
func JSON(w io.Writer, r Report) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write report as JSON: %w", err)
	}
	return nil
}

// Style is the style of a table.
type Style struct {
	Colour  bool
	Verbose bool // list each alert that was not evaluated, not only their number
	Short   bool // only the table, without diagnose and action
}

// Table writes the report as text: the verdict, the findings worst first, and what was not evaluated.
func Table(w io.Writer, r Report, s Style) error {
	var text strings.Builder
	fmt.Fprintln(&text, oneLine(verdictLine(r)))
	if r.Maintenance != nil {
		fmt.Fprintln(&text, oneLine(r.Maintenance.String()))
	}
	if len(r.Findings) > 0 {
		fmt.Fprintln(&text)
		text.WriteString(r.table(s))
	}
	for _, note := range r.Notes() {
		fmt.Fprintf(&text, "\n%s.\n", oneLine(note))
	}
	if len(r.NotEvaluated) > 0 {
		fmt.Fprintf(&text, "\nNot evaluated (%s):\n", count(len(r.NotEvaluated), "rule"))
		text.WriteString(columns(r.notEvaluatedRows(s.Verbose), "  "))
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// table has a row for each finding and each suppressed fault, and the advice below.
func (r *Report) table(s Style) string {
	rows := [][]string{{"SEVERITY", "STATE", "SINCE", "ALERT", "OBJECT", "SUMMARY"}}
	advice := map[int][]string{} // by the row above it
	action := ""                 // of the finding before: printed once
	for _, f := range r.Findings {
		rows = append(rows, []string{f.Severity, f.State, since(r.Time, f.Since), f.Alert, Where(f.Labels), f.Summary})
		for _, s := range f.Suspects {
			rows = append(rows, []string{"", "suppressed", "", s.Alert, Where(s.Labels), ""})
		}
		if !s.Short {
			advice[len(rows)-1] = f.advice(action)
			action = f.Action
		}
	}
	var text strings.Builder
	i := 0
	for line := range strings.Lines(coloured(columns(rows, ""), s)) {
		text.WriteString(line)
		for _, a := range advice[i] {
			fmt.Fprintf(&text, "  %s\n", a)
		}
		i++
	}
	return text.String()
}

// advice are the lines diagnose and action of a finding. An action equal to the one before is left out.
func (f Finding) advice(before string) (out []string) {
	for _, line := range []Fact{{"diagnose", f.Diagnose}, {"action", f.Action}} {
		if line.Value != "" && (line.Name != "action" || line.Value != before) {
			out = append(out, fmt.Sprintf("%-9s %s", line.Name+":", oneLine(line.Value)))
		}
	}
	return out
}

// columns aligns rows.
func columns(rows [][]string, indent string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = oneLine(row[i])
		}
		fmt.Fprintln(w, indent+strings.Join(row, "\t"))
	}
	w.Flush() // a strings.Builder does not fail
	return text.String()
}

// colours of the severities (ECMA-48, SGR).
var colours = map[string]string{severityCritical: "\x1b[1;31m", severityWarning: "\x1b[33m", severityInfo: "\x1b[36m"}

// coloured colours the severities at the beginning of lines.
func coloured(table string, s Style) string {
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

func verdictLine(r Report) string {
	host := alerting.HostName(r.Host)
	if r.Replay != "" {
		host += " (replay of " + r.Replay + ")"
	}
	switch {
	case r.Error != "":
		return fmt.Sprintf("%s: unknown: %s", host, r.Error)
	case r.Incomplete:
		return fmt.Sprintf("%s: unknown (--strict): no findings, but supported rules were not evaluated: %s", host, r.Coverage())
	case r.ExitCode == ExitUnknown && len(r.Evaluated) == 0 && len(r.NotEvaluated)+len(r.NotApplicable) > 0:
		return fmt.Sprintf("%s: unknown: %s", host, r.Coverage())
	case r.ExitCode == ExitUnknown:
		return fmt.Sprintf("%s: unknown: no RDMA device, or none readable", host)
	case len(r.Findings) == 0:
		what := "ok"
		if r.Severity != "" && r.Severity != severityInfo {
			what = "no finding of severity " + r.Severity + " or above"
		}
		if w := r.watching(); w != "" {
			what = headlineWatching + ": " + w
		}
		return fmt.Sprintf("%s: %s, %s", host, what, r.Coverage())
	default:
		word := cmp.Or(r.Headline, r.Verdict) // missing in reports of earlier versions
		if w := r.watching(); w != "" && r.Headline != headlineWatching {
			word += ", " + w
		} else if w != "" {
			word += ": " + w
		}
		return fmt.Sprintf("%s: %s, %s, %s", host, word, count(len(r.Findings), "finding"), r.Coverage())
	}
}

// Coverage is what the verdict is based on: "42 rules evaluated over 10m, 22 not evaluated, 3 not applicable".
func (r *Report) Coverage() string {
	s := count(len(r.Evaluated), "rule") + " evaluated"
	if d := time.Duration(r.ObservedSeconds * float64(time.Second)); d >= time.Second {
		s += " over " + short(d)
	}
	if n := len(r.NotEvaluated); n > 0 {
		s += fmt.Sprintf(", %d not evaluated", n)
	}
	if n := len(r.NotApplicable); n > 0 {
		s += fmt.Sprintf(", %d not applicable", n)
	}
	return s
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func since(now, t time.Time) string {
	if d := now.Sub(t); d >= time.Second {
		return short(d)
	}
	return "now"
}

// Where names the object on the host, from the most general label to the narrowest.
func Where(labels map[string]string) string {
	var parts []string
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
	for _, name := range []string{"lane", "priority", "direction"} {
		if v := labels[name]; v != "" {
			parts = append(parts, name+" "+v)
		}
	}
	if len(parts) == 0 {
		return "host"
	}
	return strings.Join(parts, " ")
}

// oneLine removes line breaks.
func oneLine(s string) string { return Plain(strings.Join(strings.Fields(s), " ")) }

// Plain removes control characters that a terminal would interpret: escapes, carriage returns, marks of text direction. Names of devices, jobs
// and modules are set by others, and a report may come from another process.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || r == '\n' || r == '\t' {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
