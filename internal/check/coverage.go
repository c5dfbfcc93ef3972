package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/gdr/transport"
)

// Evaluated is an alert whose rules were evaluated.
type Evaluated struct {
	Alert    string `json:"alert"`
	Fault    string `json:"fault,omitempty"` // which of its faults: its label reason
	Severity string `json:"severity"`        // the worst of its rules
}

// NotEvaluated is an alert whose rules were not evaluated, or only for a part of the host.
type NotEvaluated struct {
	Alert    string   `json:"alert"`
	Fault    string   `json:"fault,omitempty"`
	Severity string   `json:"severity"` // the worst of its rules
	Reason   string   `json:"reason"`   // one of coverage.Reason, or a reason below
	Detail   string   `json:"detail"`
	Needs    string   `json:"needs,omitempty"`   // the missing permission, flag or time
	Metrics  []string `json:"metrics,omitempty"` // that are missing
	Partly   bool     `json:"partly,omitempty"`  // evaluated only for a part of the host
}

// Reasons besides those of coverage.
const (
	reasonNotEvaluated = string(alerting.ReasonNotEvaluated)
	reasonFailed       = string(alerting.ReasonFailed)
	reasonTooShort     = string(alerting.ReasonTooShort)
	reasonHistory      = "history_too_short" // exceeds the retention of the exporter
	reasonPending      = "pending"           // the condition of a rule with a range is true, but not yet for its `for`
)

// detection holds the rules of an alert, or of one of its faults.
type detection struct {
	name     string // of the alert
	fault    string
	severity string // the worst
	rules    []alerting.Rule
}

// groupRules groups the rules by alert and fault, sorted. Watchdogs are left out.
func groupRules(rules []alerting.Rule) []detection {
	var out []detection
	for _, r := range rules {
		severity := r.Labels["severity"]
		if severity == severityNone {
			continue
		}
		of := detection{name: r.Name, fault: r.Labels["reason"], severity: severity}
		i := slices.IndexFunc(out, func(d detection) bool { return d.String() == of.String() })
		if i < 0 {
			i, out = len(out), append(out, of)
		}
		out[i].rules = append(out[i].rules, r)
		if severityRank(severity) < severityRank(out[i].severity) {
			out[i].severity = severity
		}
	}
	slices.SortFunc(out, func(a, b detection) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// cover lists the alerts that were evaluated and those that were not. machine is true if an evaluated alert is about
// the machine: a healthy exporter does not mean a healthy fabric.
func (r *Report) cover(in Input) (machine bool) {
	for _, d := range groupRules(in.Rules) {
		found := slices.ContainsFunc(r.Findings, func(f Finding) bool { return d.matches(f.Alert, f.Labels) })
		i := slices.IndexFunc(in.Coverage.Gaps, func(g coverage.Gap) bool {
			return g.Alert == d.name && g.Fault == d.fault
		})
		var gap coverage.Gap
		switch {
		case i >= 0:
			gap = in.Coverage.Gaps[i]
			r.NotEvaluated = append(r.NotEvaluated, d.newGap(gap, in))
		case slices.Contains(in.Coverage.Idle, d.String()) && !found:
			r.NotApplicable = append(r.NotApplicable, d.String())
			continue
		}
		evaluated := false
		if n, ok := d.pendingEntry(in); ok && !found {
			r.NotEvaluated = append(r.NotEvaluated, n)
			continue
		}
		if i < 0 || gap.Partly {
			evaluated = d.isEvaluated()
			if n, ok := d.newNotEvaluated(in); ok && i < 0 && !found {
				r.NotEvaluated = append(r.NotEvaluated, n)
			}
		}
		if evaluated || found {
			r.Evaluated = append(r.Evaluated, Evaluated{Alert: d.name, Fault: d.fault, Severity: d.severity})
			machine = machine ||
				!slices.ContainsFunc(d.rules[0].Metrics, isAboutExporter) && slices.ContainsFunc(d.rules[0].Metrics, isAboutRDMA)
		}
	}
	return machine
}

// isAboutExporter reports whether a metric is about the exporter itself.
func isAboutExporter(metric string) bool {
	return slices.ContainsFunc(
		[]string{"rdma_scrape_", "rdma_exporter_", "rdma_state_", "rdma_alerting_", "rdma_config_", "rdma_incident_"},
		func(prefix string) bool { return strings.HasPrefix(metric, prefix) })
}

// isAboutRDMA reports whether a metric is about RDMA devices, as opposed to GPUs or the host.
func isAboutRDMA(metric string) bool {
	return !slices.ContainsFunc([]string{"rdma_gpu_", "rdma_gdr_", "rdma_driver_", "rdma_kernel_", "rdma_host_"},
		func(prefix string) bool { return strings.HasPrefix(metric, prefix) })
}

// pendingEntry returns the entry of an alert that is pending on a rule with a range, so that it is not a finding yet.
func (d detection) pendingEntry(in Input) (n NotEvaluated, ok bool) {
	for _, a := range in.Alerts {
		if rule := in.Rules[a.Rule]; d.matches(a.Name, a.Labels) && a.State == alerting.StatePending && rule.Range > 0 {
			return NotEvaluated{
				Alert: d.name, Fault: d.fault, Severity: d.severity, Reason: reasonPending, Needs: formatDuration(rule.For),
				Detail: fmt.Sprintf("pending (see pending[]): condition true for %s, fires when true for %s",
					formatDuration(in.To.Sub(a.ActiveAt)), formatDuration(rule.For)),
			}, true
		}
	}
	return n, false
}

func (d detection) String() string { return coverage.Named(d.name, d.fault) }

// matches reports whether an alert belongs to the detection.
func (d detection) matches(alert string, labels map[string]string) bool {
	return alert == d.name && (d.fault == "" || labels["reason"] == d.fault)
}

// isEvaluated reports whether a rule was evaluated.
func (d detection) isEvaluated() bool {
	return slices.ContainsFunc(d.rules, func(r alerting.Rule) bool { return r.Evaluated })
}

// newGap returns the entry for an alert whose metrics are missing.
func (d detection) newGap(g coverage.Gap, in Input) NotEvaluated {
	n := NotEvaluated{
		Alert: d.name, Fault: d.fault, Severity: d.severity, Reason: string(g.Reason), Metrics: g.Metrics, Partly: g.Partly,
	}
	what := "missing metrics: " + strings.Join(g.Metrics, ", ")
	switch g.Reason {
	case coverage.Paused:
		n.Detail = pausedText
		if in.GPUsReleased != nil {
			n.Detail = in.GPUsReleased.String()
		}
	case coverage.CollectorDisabled:
		n.Needs = "--collector." + g.Collector
		n.Detail = fmt.Sprintf("collector %s is disabled", g.Collector)
	case coverage.Limit:
		n.Detail = "device limit: not evaluated for devices beyond --limit.devices or --limit.series"
	case coverage.Permission:
		n.Needs = in.Needs[g.Source]
		n.Detail = fmt.Sprintf("no permission to read %s, %s", g.Source, what)
	case coverage.Failed, coverage.NotReadYet:
		n.Detail = what
		if g.Collector != "" {
			n.Detail = fmt.Sprintf("no data from collector %s", g.Collector)
		}
	case coverage.Unknown:
		n.Detail = "state unknown: " + strings.Join(g.Metrics, ", ")
		if remedy := remedyOf(g.Metrics); remedy != "" {
			n.Detail += ": " + remedy
		}
	default:
		n.Detail = what
		if g.Partly {
			n.Detail = "missing on some ports: " + strings.Join(g.Metrics, ", ")
		}
	}
	return n
}

// newNotEvaluated returns the entry of the rule with the most urgent reason.
func (d detection) newNotEvaluated(in Input) (NotEvaluated, bool) {
	worst := slices.MinFunc(d.rules, func(a, b alerting.Rule) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), cmp.Compare(b.Range, a.Range))
	})
	if worst.Evaluated {
		return NotEvaluated{}, false
	}
	n := NotEvaluated{Alert: d.name, Fault: d.fault, Severity: d.severity, Reason: string(worst.Reason)}
	switch worst.Reason {
	case alerting.ReasonTooShort:
		n.Detail = fmt.Sprintf(
			"requires %s of history, observed %s",
			formatDuration(worst.Range),
			formatDuration(in.To.Sub(in.From)),
		)
		n.Needs = formatDuration(worst.Range)
		if in.History > 0 && worst.Range > in.History {
			n.Reason = reasonHistory
		}
	case alerting.ReasonFailed:
		n.Detail = fmt.Sprint(worst.Err)
	default:
		n.Detail = "no evaluation has finished"
	}
	return n, true
}

// urgency orders the reasons of alerting; evaluated rules are last.
func urgency(r alerting.Rule) int {
	if r.Evaluated {
		return 3
	}
	return slices.Index(
		[]alerting.Reason{alerting.ReasonFailed, alerting.ReasonNotEvaluated, alerting.ReasonTooShort}, r.Reason)
}

// formatDuration formats a duration without the units that are zero: 5m, 1h30m, 45s.
func formatDuration(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	s := d.Truncate(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// remedyOf returns the remedy of the first selector whose reason (package transport) has one:
// metric{reason="dmabuf_unseen"}.
func remedyOf(selectors []string) string {
	for _, s := range selectors {
		_, after, _ := strings.Cut(s, `reason="`)
		reason, _, _ := strings.Cut(after, `"`)
		if remedy := transport.Reason(reason).Remedy(); remedy != "" {
			return remedy
		}
	}
	return ""
}
