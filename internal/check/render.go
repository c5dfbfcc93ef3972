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

// Style is how a table looks.
type Style struct {
	Colour  bool
	Verbose bool // each alert that could not be judged, not only how many
	Short   bool // the table alone, without what to do
}

// Table writes the report for people: the verdict, the findings worst first, and what could not be judged.
func Table(w io.Writer, r Report, s Style) error {
	var text strings.Builder
	fmt.Fprintln(&text, verdictLine(r))
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
		fmt.Fprintf(&text, "\nNot evaluated, %s:\n", count(len(r.NotEvaluated), "alert"))
		text.WriteString(columns(r.unjudged(s.Verbose), "  "))
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// table has a row for each finding and one for each suspect, and below the finding what to do.
func (r *Report) table(s Style) string {
	rows := [][]string{{"SEVERITY", "STATE", "SINCE", "ALERT", "WHERE", "WHAT"}}
	advice := map[int][]string{} // by the row above it
	action := ""                 // of the finding before: said once
	for _, f := range r.Findings {
		rows = append(rows, []string{f.Severity, f.State, since(r.Time, f.Since), f.Alert, Where(f.Labels), f.Summary})
		for _, s := range f.Suspects {
			rows = append(rows, []string{"", "follows", "", s.Alert, Where(s.Labels), ""})
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

// advice are the lines that say how to diagnose a finding, and what to do about it, unless that was said before.
func (f Finding) advice(before string) (out []string) {
	for _, line := range []Fact{{"diagnose", f.Diagnose}, {"action", f.Action}} {
		if line.Value != "" && (line.Name != "action" || line.Value != before) {
			out = append(out, fmt.Sprintf("%-9s %s", line.Name+":", oneLine(line.Value)))
		}
	}
	return out
}

// columns aligns rows, each of which stays one.
func columns(rows [][]string, indent string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = oneLine(row[i])
		}
		fmt.Fprintln(w, indent+strings.Join(row, "\t"))
	}
	w.Flush() // a strings.Builder takes all
	return text.String()
}

// colours of the severities (ECMA-48, SGR).
var colours = map[string]string{severityCritical: "\x1b[1;31m", severityWarning: "\x1b[33m", severityInfo: "\x1b[36m"}

// coloured gives the lines that begin with a severity its colour, there.
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
	host := oneLine(alerting.HostName(r.Host))
	if r.Replay != "" {
		host += " (replay of " + oneLine(r.Replay) + ")"
	}
	switch {
	case r.Error != "":
		return fmt.Sprintf("%s: unknown: %s", host, oneLine(r.Error))
	case r.Incomplete:
		return fmt.Sprintf("%s: unknown (--strict): nothing found, but not everything was evaluated: %s", host, r.Coverage())
	case r.ExitCode == ExitUnknown && len(r.Evaluated) == 0 && len(r.NotEvaluated)+len(r.NotApplicable) > 0:
		return fmt.Sprintf("%s: unknown: %s", host, r.Coverage())
	case r.ExitCode == ExitUnknown:
		return fmt.Sprintf("%s: unknown: no RDMA device, or none that can be read", host)
	case len(r.Findings) == 0:
		what := "all ok"
		if r.Severity != "" && r.Severity != severityInfo {
			what = "nothing of severity " + r.Severity
		}
		if w := r.watching(); w != "" {
			what = headlineWatching + ": " + w
		}
		return fmt.Sprintf("%s: %s, %s", host, what, r.Coverage())
	default:
		word := cmp.Or(r.Headline, r.Verdict) // a daemon of an earlier version gives no headline
		if w := r.watching(); w != "" && r.Headline != headlineWatching {
			word += ", " + w
		} else if w != "" {
			word += ": " + w
		}
		return fmt.Sprintf("%s: %s, %s, %s", host, word, count(len(r.Findings), "finding"), r.Coverage())
	}
}

// Coverage keeps "ok" from being read as more than was looked at.
func (r *Report) Coverage() string {
	s := count(len(r.Evaluated), "alert") + " evaluated"
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

// Where names the part of the host, from the most general label to the narrowest.
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

// oneLine keeps a table row a row.
func oneLine(s string) string { return Plain(strings.Join(strings.Fields(s), " ")) }

// Plain keeps what a terminal would obey out of a text: escapes, returns to the beginning of the line, marks that turn the direction of
// what follows. Names of devices, jobs and modules are chosen by others, and a report may come from another process.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || r == '\n' || r == '\t' {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
