package page

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/words"
)

// Finding is a finding as the page shows it. The template shortens its texts.
type Finding struct {
	check.Finding
	Row          Health // of the frame: that of a pending finding is amber
	Health       Health
	Pending      bool
	Where, Since string
	Runbook      string
	ID           string
	Follows      []string // what it explains
}

// Held is a pending alert that is not among the findings, as the page shows it.
type Held struct {
	Row, Health                  Health
	Alert, Where, Since, Summary string
}

// ListFindings returns the findings of a report, the pending alerts that are not among them, and the groups of rules
// that are not evaluated. Ages are as of the time of a round.
func ListFindings(r *check.Report, pending []Waiting, at time.Time) (findings []Finding, holds []Held, gaps []Gap) {
	if r != nil {
		for _, f := range r.Findings[:min(len(r.Findings), maxFindings)] {
			findings = append(findings, newFinding(at, f))
		}
		for _, g := range r.Gaps() {
			gaps = append(gaps, newGap(g))
		}
	}
	for _, w := range pending[:min(len(pending), maxFindings)] {
		holds = append(holds,
			Held{PendingHealth(Health(w.Severity)), Health(w.Severity), w.Alert, w.Where, FormatAge(at.Sub(w.Since)), w.Summary})
	}
	return findings, holds, gaps
}

// newFinding returns a finding of a report as the page shows it.
func newFinding(at time.Time, f check.Finding) Finding {
	out := Finding{
		Finding: f, ID: findingID(f), Health: Health(f.Severity), Where: Shorten(check.Where(f.Labels), MaxText),
		Since: FormatAge(at.Sub(f.Since)), Runbook: cmp.Or(runbookPath(f.Alert), Shorten(f.RunbookURL, MaxText)),
	}
	out.Row, out.Pending = out.Health, f.State == string(alerting.StatePending)
	if out.Pending {
		out.Row = PendingHealth(out.Health)
	}
	for _, e := range f.Explains[:min(len(f.Explains), maxFindings)] {
		out.Follows = append(out.Follows, Shorten(e.Alert+" "+check.Where(e.Labels)+", "+words.Spaced(e.Reason), MaxText))
	}
	return out
}

// PendingHealth returns the health shown for a pending alert: amber if it may become critical or a warning.
func PendingHealth(severity Health) Health {
	if severity == Critical || severity == Warning {
		return Watching
	}
	return severity
}

// findingID returns an id that is constant for an alert, so that the script finds opened details.
func findingID(f check.Finding) string {
	h := fnv.New64a()
	fmt.Fprint(h, f.Alert, f.Severity, check.Where(f.Labels))
	return fmt.Sprintf("d-%x", h.Sum64())
}

// Waiting is a pending alert that is not among the findings.
type Waiting struct {
	Alert    string    `json:"alert"`
	Severity string    `json:"severity"`
	Where    string    `json:"where"`
	Since    time.Time `json:"since"`
	Summary  string    `json:"summary"`
}

// ListWaiting returns the pending alerts that are not among the findings of a report, the worst first.
func ListWaiting(alerts []alerting.Alert, r *check.Report) []Waiting {
	out := []Waiting{}
	for _, a := range alerts {
		severity, where := a.Labels["severity"], check.Where(a.Labels)
		known := r != nil && slices.ContainsFunc(r.Findings,
			func(f check.Finding) bool { return f.Alert == a.Name && check.Where(f.Labels) == where })
		if a.State != alerting.StatePending || !slices.Contains(check.Severities(), severity) || known {
			continue
		}
		out = append(out,
			Waiting{Alert: a.Name, Severity: severity, Where: where, Since: a.ActiveAt.UTC(), Summary: a.Annotations["summary"]})
	}
	slices.SortStableFunc(out, func(a, b Waiting) int {
		return slices.Index(check.Severities(), a.Severity) - slices.Index(check.Severities(), b.Severity)
	})
	return out
}

// Gap is a group of rules that are not evaluated.
type Gap struct {
	Count  int
	Text   string
	Alerts string
}

// newGap returns a group of rules that are not evaluated as the page shows it.
func newGap(g check.ReasonGroup) Gap {
	names := words.Map(g.Alerts, check.NotEvaluated.Name)
	text := g.Reason
	if g.InPart {
		text = "evaluated in part: " + text
	}
	return Gap{len(g.Alerts), Shorten(text, MaxText), Shorten(strings.Join(names, ", "), 4*MaxText)}
}

// maxFindings limits the findings on a page.
const maxFindings = 50
