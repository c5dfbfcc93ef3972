package check

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
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

// Table writes the report for people: the verdict, the findings worst first, and what could not be judged.
func Table(w io.Writer, r Report) error {
	var text strings.Builder
	fmt.Fprintln(&text, verdictLine(r))
	if len(r.Findings) > 0 {
		fmt.Fprintln(&text)
		columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		fmt.Fprintln(columns, "SEVERITY\tSTATE\tSINCE\tALERT\tWHERE\tWHAT")
		for _, f := range r.Findings {
			fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\n",
				f.Severity, f.State, since(r.Time, f.Since), f.Alert, where(f.Labels), oneLine(f.Annotations["summary"]))
		}
		if err := columns.Flush(); err != nil {
			return fmt.Errorf("write findings: %w", err)
		}
	}
	if len(r.NotJudged) > 0 {
		fmt.Fprintln(&text, "\nNot judged:")
		columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, n := range r.NotJudged {
			fmt.Fprintf(columns, "  %s\t%s\n", n.Alert, oneLine(n.Detail))
		}
		if err := columns.Flush(); err != nil {
			return fmt.Errorf("write what was not judged: %w", err)
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func verdictLine(r Report) string {
	switch {
	case r.Error != "":
		return fmt.Sprintf("%s: could not judge: %s", r.Host, oneLine(r.Error))
	case r.ExitCode == ExitUnknown:
		return fmt.Sprintf("%s: could not judge: no RDMA device, or none that could be read", r.Host)
	case len(r.Findings) == 0:
		return fmt.Sprintf("%s: all ok, %s", r.Host, coverage(r))
	default:
		return fmt.Sprintf("%s: %s, %s, %s", r.Host, r.Verdict, count(len(r.Findings), "finding"), coverage(r))
	}
}

// coverage keeps "ok" from being read as more than was looked at.
func coverage(r Report) string {
	s := count(r.Judged, "alert") + " judged"
	if n := len(r.NotJudged); n > 0 {
		s += fmt.Sprintf(", %d not", n)
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

// where names the part of the host, from the most general label to the narrowest.
func where(labels map[string]string) string {
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
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
