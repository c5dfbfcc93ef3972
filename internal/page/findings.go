package page

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
)

// finding is an alert.
type finding struct {
	Row                     Health // of the frame: that of a pending finding is amber
	Health                  Health
	Pending                 bool
	Alert, Where, Since     string
	State, Summary, Runbook string
	ID                      string
	Description             string // what was measured, and the impact
	Diagnose, Action        string // a command, and what to do
	Drain, DrainReason      string // no, cordon, evict, and why
	Evidence                []fact
	Follows                 []string // what it explains
}

// held is an alert that is not yet a finding.
type held struct {
	Row, Health                  Health
	Alert, Where, Since, Summary string
}

// fact is a line of evidence: "Neighbour: leaf-3 port 12".
type fact struct{ Name, Text string }

func findingOf(in Input, f check.Finding) finding {
	out := finding{
		ID: findingID(f), Health: Health(f.Severity), Alert: short(f.Alert, maxText),
		Where: short(check.Where(f.Labels), maxText), State: f.State,
		Since: ago(in.Read.Sub(f.Since)), Summary: short(f.Summary, maxText),
		Runbook:     cmp.Or(runbookPath(f.Alert), short(f.RunbookURL, maxText)),
		Description: short(f.Description, maxText), Diagnose: short(f.Diagnose, maxText), Action: short(f.Action, maxText),
		Drain: f.Drain, DrainReason: short(f.DrainReason, maxText),
	}
	out.Row, out.Pending = out.Health, f.State == string(alerting.StatePending)
	if out.Pending {
		out.Row = pendingRow(out.Health)
	}
	for _, e := range f.Evidence {
		out.Evidence = append(out.Evidence, fact{short(e.Name, maxText), short(e.Value, maxText)})
	}
	for _, s := range f.Suspects[:min(len(f.Suspects), maxFindings)] {
		out.Follows = append(out.Follows, short(s.Alert+" "+check.Where(s.Labels), maxText))
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
