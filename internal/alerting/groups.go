package alerting

import (
	"time"

	"github.com/prometheus/prometheus/rules"
)

// Group is a group of rules, as in the Prometheus API.
type Group struct {
	Name, File     string
	Interval       time.Duration
	EvaluationTime time.Duration // of all its rules, last evaluation
	LastEvaluation time.Time
	Rules          []GroupRule
}

// GroupRule is an alerting rule, or a recording one.
type GroupRule struct {
	Recording      bool
	Name, Query    string
	Labels         map[string]string
	Health         string // ok, err, unknown
	LastError      string
	EvaluationTime time.Duration
	LastEvaluation time.Time

	// Of an alerting rule.
	// The most severe state of its alerts: inactive, pending, firing; unknown before the first evaluation.
	State              string
	For, KeepFiringFor time.Duration
	Annotations        map[string]string // templates
	Alerts             []Alert
}

// Groups lists the rules in file order.
func (e *Engine) Groups() []Group {
	alerts := map[*rules.AlertingRule][]Alert{}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.alerts() {
		rule := e.meta[a.Rule].rule
		alerts[rule] = append(alerts[rule], a)
	}
	out := make([]Group, 0, len(e.groups))
	for _, g := range e.groups {
		group := Group{Name: g.Name(), File: g.File(), Interval: e.opts.Interval}
		for _, r := range g.Rules() {
			x := GroupRule{
				Name: r.Name(), Query: r.Query().String(), Labels: r.Labels().Map(), Health: string(r.Health()),
				EvaluationTime: r.GetEvaluationDuration(), LastEvaluation: r.GetEvaluationTimestamp(), Recording: true,
			}
			if err := r.LastError(); err != nil {
				x.LastError = err.Error()
			}
			if a, ok := r.(*rules.AlertingRule); ok {
				x.Recording, x.State = false, a.State().String()
				x.For, x.KeepFiringFor, x.Annotations, x.Alerts = a.HoldDuration(), a.KeepFiringFor(),
					a.Annotations().Map(), alerts[a]
			}
			group.EvaluationTime += x.EvaluationTime
			if x.LastEvaluation.After(group.LastEvaluation) {
				group.LastEvaluation = x.LastEvaluation
			}
			group.Rules = append(group.Rules, x)
		}
		out = append(out, group)
	}
	return out
}
