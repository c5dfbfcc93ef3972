package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/coverage"
)

// Evaluated is an alert that could be judged.
type Evaluated struct {
	Alert    string `json:"alert"`
	Severity string `json:"severity"` // the worst of its rules
}

// NotEvaluated is an alert that nothing can be said about, or not for all of the host.
type NotEvaluated struct {
	Alert    string   `json:"alert"`
	Severity string   `json:"severity"` // the worst of its rules
	Reason   string   `json:"reason"`   // one of coverage.Reason, or a reason below
	Detail   string   `json:"detail"`
	Needs    string   `json:"needs,omitempty"`   // the permission, flag or time that would help
	Metrics  []string `json:"metrics,omitempty"` // that it lacks
	Partly   bool     `json:"partly,omitempty"`  // it is judged for a part of the host
}

// Reasons besides those of coverage.
const (
	reasonNotEvaluated = string(alerting.ReasonNotEvaluated)
	reasonFailed       = string(alerting.ReasonFailed)
	reasonTooShort     = string(alerting.ReasonTooShort)
	reasonHistory      = "history_too_short" // more is needed than the exporter keeps
	reasonPending      = "pending"           // what looks back holds, not yet for as long as the rule waits
)

// detection is the rules of one name.
type detection struct {
	name     string
	severity string // the worst
	rules    []alerting.Rule
}

// detections groups the rules by name, sorted. Signs of life are none.
func detections(rules []alerting.Rule) []detection {
	var out []detection
	for _, r := range rules {
		severity := r.Labels["severity"]
		if severity == severityNone {
			continue
		}
		i := slices.IndexFunc(out, func(d detection) bool { return d.name == r.Name })
		if i < 0 {
			i, out = len(out), append(out, detection{name: r.Name, severity: severity})
		}
		out[i].rules = append(out[i].rules, r)
		if rank(severity) < rank(out[i].severity) {
			out[i].severity = severity
		}
	}
	slices.SortFunc(out, func(a, b detection) int { return strings.Compare(a.name, b.name) })
	return out
}

// cover lists what was judged and what was not. machine says whether any of the former speaks of the machine: that the exporter itself
// is well says nothing about the fabric.
func (r *Report) cover(in Input) (machine bool) {
	for _, d := range detections(in.Rules) {
		found := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Alert == d.name })
		i := slices.IndexFunc(in.Coverage.Gaps, func(g coverage.Gap) bool { return g.Alert == d.name })
		var gap coverage.Gap
		switch {
		case i >= 0:
			gap = in.Coverage.Gaps[i]
			r.NotEvaluated = append(r.NotEvaluated, d.gap(gap, in.Needs))
		case slices.Contains(in.Coverage.Idle, d.name) && !found:
			r.NotApplicable = append(r.NotApplicable, d.name)
			continue
		}
		judged := false
		if n, ok := d.waiting(in); ok && !found {
			r.NotEvaluated = append(r.NotEvaluated, n)
			continue
		}
		if i < 0 || gap.Partly {
			judged = d.judged()
			if n, ok := d.unjudged(in); ok && i < 0 && !found {
				r.NotEvaluated = append(r.NotEvaluated, n)
			}
		}
		if judged || found {
			r.Evaluated = append(r.Evaluated, Evaluated{Alert: d.name, Severity: d.severity})
			machine = machine || !slices.ContainsFunc(d.rules[0].Metrics, ofExporter) && slices.ContainsFunc(d.rules[0].Metrics, ofFabric)
		}
	}
	return machine
}

// ofExporter says whether a metric tells of the exporter's own work: that it does well says nothing about the machine.
func ofExporter(metric string) bool {
	return slices.ContainsFunc([]string{"rdma_scrape_", "rdma_exporter_", "rdma_state_", "rdma_alerting_", "rdma_config_", "rdma_incident_"},
		func(prefix string) bool { return strings.HasPrefix(metric, prefix) })
}

// ofFabric says whether a metric tells of RDMA devices: that GPUs are well says nothing about them.
func ofFabric(metric string) bool {
	return !slices.ContainsFunc([]string{"rdma_gpu_", "rdma_gdr_", "rdma_driver_", "rdma_kernel_", "rdma_host_"},
		func(prefix string) bool { return strings.HasPrefix(metric, prefix) })
}

// waiting tells of an alert that is pending on a rule that looks back: no finding yet, and not well.
func (d detection) waiting(in Input) (n NotEvaluated, ok bool) {
	for _, a := range in.Alerts {
		if rule := in.Rules[a.Rule]; a.Name == d.name && a.State == alerting.StatePending && rule.Range > 0 {
			return NotEvaluated{
				Alert: d.name, Severity: d.severity, Reason: reasonPending, Needs: short(rule.For),
				Detail: fmt.Sprintf("holds for %s of the %s that it has to", short(in.To.Sub(a.ActiveAt)), short(rule.For)),
			}, true
		}
	}
	return n, false
}

func (d detection) judged() bool {
	return slices.ContainsFunc(d.rules, func(r alerting.Rule) bool { return r.Evaluated })
}

// gap is the entry of an alert whose metrics are missing. needs is Input.Needs.
func (d detection) gap(g coverage.Gap, needs map[string]string) NotEvaluated {
	n := NotEvaluated{Alert: d.name, Severity: d.severity, Reason: string(g.Reason), Metrics: g.Metrics, Partly: g.Partly}
	what := "no " + strings.Join(g.Metrics, ", ")
	switch g.Reason {
	case coverage.CollectorDisabled:
		n.Needs = "--collector." + g.Collector
		n.Detail = fmt.Sprintf("collector %s is off", g.Collector)
	case coverage.Permission:
		n.Needs = needs[g.Source]
		n.Detail = fmt.Sprintf("%s: this process may not read %s", what, g.Source)
	case coverage.Failed, coverage.NotReadYet:
		n.Detail = what
		if g.Collector != "" {
			n.Detail = fmt.Sprintf("collector %s has given nothing", g.Collector)
		}
	case coverage.Unknown:
		n.Detail = "the fact that decides could not be read: " + strings.Join(g.Metrics, ", ")
	default:
		n.Detail = what
		if g.Partly {
			n.Detail = "not for all ports: " + strings.Join(g.Metrics, ", ")
		}
	}
	return n
}

// unjudged tells of the rule that could be judged least.
func (d detection) unjudged(in Input) (NotEvaluated, bool) {
	worst := slices.MinFunc(d.rules, func(a, b alerting.Rule) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), cmp.Compare(b.Range, a.Range))
	})
	if worst.Evaluated {
		return NotEvaluated{}, false
	}
	n := NotEvaluated{Alert: d.name, Severity: d.severity, Reason: string(worst.Reason)}
	switch worst.Reason {
	case alerting.ReasonTooShort:
		n.Detail = fmt.Sprintf("looks back %s, observed %s", short(worst.Range), short(in.To.Sub(in.From)))
		n.Needs = short(worst.Range)
		if in.History > 0 && worst.Range > in.History {
			n.Reason = reasonHistory
		}
	case alerting.ReasonFailed:
		n.Detail = fmt.Sprint(worst.Err)
	default:
		n.Detail = "the rules have not been evaluated"
	}
	return n, true
}

// urgency orders the reasons of alerting; what was judged comes last.
func urgency(r alerting.Rule) int {
	if r.Evaluated {
		return 3
	}
	return slices.Index([]alerting.Reason{alerting.ReasonFailed, alerting.ReasonNotEvaluated, alerting.ReasonTooShort}, r.Reason)
}

// short writes a duration without the units that are zero: 5m, 1h30m, 45s.
func short(d time.Duration) string {
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
