package page

import (
	"slices"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
)

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
