package page

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/words"
)

// finding is an alert. The template cuts its texts.
type finding struct {
	check.Finding
	Row          Health // of the frame: that of a pending finding is amber
	Health       Health
	Pending      bool
	Where, Since string
	Runbook      string
	ID           string
	Follows      []string // what it explains
}

// held is an alert that is not yet a finding.
type held struct {
	Row, Health                  Health
	Alert, Where, Since, Summary string
}

// listed are the findings of a report, the alerts that are pending and no findings, and the rules that are not
// evaluated, as of the time of a round.
func listed(r *check.Report, pending []Waiting, at time.Time) (findings []finding, holds []held, gaps []gap) {
	if r != nil {
		for _, f := range r.Findings[:min(len(r.Findings), maxFindings)] {
			findings = append(findings, findingOf(at, f))
		}
		for _, g := range r.Gaps() {
			gaps = append(gaps, gapOf(g))
		}
	}
	for _, w := range pending[:min(len(pending), maxFindings)] {
		holds = append(holds,
			held{pendingRow(Health(w.Severity)), Health(w.Severity), w.Alert, w.Where, ago(at.Sub(w.Since)), w.Summary})
	}
	return findings, holds, gaps
}

func findingOf(at time.Time, f check.Finding) finding {
	out := finding{
		Finding: f, ID: findingID(f), Health: Health(f.Severity), Where: short(check.Where(f.Labels), maxText),
		Since: ago(at.Sub(f.Since)), Runbook: cmp.Or(runbookPath(f.Alert), short(f.RunbookURL, maxText)),
	}
	out.Row, out.Pending = out.Health, f.State == string(alerting.StatePending)
	if out.Pending {
		out.Row = pendingRow(out.Health)
	}
	for _, e := range f.Explains[:min(len(f.Explains), maxFindings)] {
		out.Follows = append(out.Follows, short(e.Alert+" "+check.Where(e.Labels)+", "+words.Spaced(e.Reason), maxText))
	}
	return out
}

// pendingRow is amber for what may become critical or a warning.
func pendingRow(severity Health) Health {
	if severity == Critical || severity == Warning {
		return Watching
	}
	return severity
}

// findingID is the same for the same alert each time, so that the script finds opened details.
func findingID(f check.Finding) string {
	h := fnv.New64a()
	fmt.Fprint(h, f.Alert, f.Severity, check.Where(f.Labels))
	return fmt.Sprintf("d-%x", h.Sum64())
}

// Waiting is an alert whose condition holds, and not for long enough to be a finding.
type Waiting struct {
	Alert    string    `json:"alert"`
	Severity string    `json:"severity"`
	Where    string    `json:"where"`
	Since    time.Time `json:"since"`
	Summary  string    `json:"summary"`
}

// waiting are the alerts that are pending and not among the findings, the worst first.
func waiting(alerts []alerting.Alert, r *check.Report) []Waiting {
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
