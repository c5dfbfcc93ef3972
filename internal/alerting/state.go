package alerting

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
)

// State is the state of an alert, as in Prometheus.
type State string

// An alert is pending until its condition has held for the rule's `for`.
const (
	StatePending State = "pending"
	StateFiring  State = "firing"
)

// Alert is one active alert after the last evaluation.
type Alert struct {
	Name            string
	Rule            int // its index in Rules
	State           State
	Labels          map[string]string // alertname included
	Annotations     map[string]string // expanded
	Value           float64           // of the expression, at the last time when the condition held
	ActiveAt        time.Time         // since when the condition has held
	FiredAt         time.Time         // zero while pending
	KeepFiringSince time.Time         // when the condition ended, if the alert is kept by keep_firing_for; otherwise zero
}

// Alerts lists pending and firing alerts, in the order of the rules, then by labels.
func (e *Engine) Alerts() []Alert { return e.Judgement().Alerts }

func (e *Engine) alerts() []Alert {
	var out []Alert
	for r := range e.alertingRules() {
		for _, a := range sortedActive(r) {
			state := StatePending
			if a.State == rules.StateFiring {
				state = StateFiring
			}
			out = append(out, Alert{
				Name: r.Name(), Rule: e.detection(r, a.Labels), State: state,
				Labels: a.Labels.Map(), Annotations: e.annotations(a).Map(), Value: a.Value,
				ActiveAt: a.ActiveAt, FiredAt: a.FiredAt, KeepFiringSince: a.KeepFiringSince,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Alert) int { return a.Rule - b.Rule })
	return out
}

func sortedActive(r *rules.AlertingRule) []*rules.Alert {
	active := r.ActiveAlerts()
	slices.SortFunc(active, func(a, b *rules.Alert) int { return labels.Compare(a.Labels, b.Labels) })
	return active
}

// Reason is why a rule was not evaluated.
type Reason string

// The reasons, in order of precedence.
const (
	ReasonNotEvaluated Reason = "not_evaluated"     // no evaluation yet
	ReasonFailed       Reason = "evaluation_failed" // see Rule.Err
	ReasonTooShort     Reason = "observed_too_short"
)

// Rule is one alerting rule and its last evaluation, or a symptom whose faults it alerts on. Several may share a name;
// the label reason then says which fault it is.
type Rule struct {
	Name          string
	File, Group   string
	Expr          string
	Labels        map[string]string
	Annotations   map[string]string // templates
	For           time.Duration
	KeepFiringFor time.Duration

	Metrics []string      // metrics that the expression reads, recording rules resolved; sorted
	Range   time.Duration // range of the expression into the past, subqueries and offsets included; 0 for the present

	Evaluated bool   // subject to missing metrics, see internal/coverage
	Reason    Reason // set if not evaluated
	Err       error
}

// Rules lists the alerting rules in file order.
func (e *Engine) Rules() []Rule { return e.Judgement().Rules }

func (e *Engine) rules() []Rule {
	out := make([]Rule, 0, len(e.meta))
	for _, m := range e.meta {
		r := Rule{
			Name: m.rule.Name(), File: m.group.File(), Group: m.group.Name(), Expr: m.expr.String(),
			Labels: m.labels, Annotations: m.rule.Annotations().Map(),
			For: m.rule.HoldDuration(), KeepFiringFor: m.rule.KeepFiringFor(),
			Metrics: m.metrics, Range: m.reach,
		}
		switch health := m.rule.Health(); {
		case health == rules.HealthUnknown:
			r.Reason = ReasonNotEvaluated
		case health == rules.HealthBad:
			r.Reason, r.Err = ReasonFailed, m.rule.LastError()
		case e.observed() < m.reach:
			r.Reason = ReasonTooShort
		default:
			r.Evaluated = true
		}
		out = append(out, r)
	}
	return out
}

// Judgement is the result of the last evaluation. Its rules are those of its alerts, even after a reload.
type Judgement struct {
	From, To time.Time // observation span, see Observed
	Alerts   []Alert
	Rules    []Rule
}

// Judgement returns the result of the last evaluation.
func (e *Engine) Judgement() Judgement {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Judgement{From: e.to.Add(-e.observed()), To: e.to, Alerts: e.alerts(), Rules: e.rules()}
}

// observed returns the length of the history without a pause. e.mu is held.
func (e *Engine) observed() time.Duration { return min(e.to.Sub(e.from), e.opts.Retention) }

// History returns the maximum observation span: the retention of the store.
func (e *Engine) History() time.Duration { return e.opts.Retention }

// Recording is one recording rule.
type Recording struct {
	Name, File, Group, Expr string
	Labels                  map[string]string // that it sets
}

// RecordingRules lists the recording rules in file order.
func (e *Engine) RecordingRules() []Recording {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []Recording
	for _, g := range e.groups {
		for _, r := range g.Rules() {
			if rec, ok := r.(*rules.RecordingRule); ok {
				out = append(out, Recording{rec.Name(), g.File(), g.Name(), rec.Query().String(), rec.Labels().Map()})
			}
		}
	}
	return out
}

// Sample is one element of a query's result.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query evaluates an instant query at ts, sorted by labels.
func (e *Engine) Query(ctx context.Context, query string, ts time.Time) ([]Sample, error) {
	vector, err := rules.EngineQueryFunc(e.engine, e.store)(ctx, query, ts)
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", query, err)
	}
	slices.SortFunc(vector, func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) })
	out := make([]Sample, 0, len(vector))
	for _, s := range vector {
		out = append(out, Sample{Labels: s.Metric.Map(), Value: s.F})
	}
	return out, nil
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Series is one element of a range query's result.
type Series struct {
	Labels map[string]string
	Points []Point // sorted by time; times without a value are omitted
}

// Range evaluates a range query, sorted by labels.
func (e *Engine) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]Series, error) {
	q, err := e.engine.NewRangeQuery(ctx, e.store, nil, query, from, to, step)
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", query, err)
	}
	defer q.Close()
	matrix, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", query, err)
	}
	slices.SortFunc(matrix, func(a, b promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
	out := make([]Series, 0, len(matrix))
	for _, s := range matrix {
		points := make([]Point, len(s.Floats))
		for i, p := range s.Floats {
			points[i] = Point{time.UnixMilli(p.T), p.F}
		}
		out = append(out, Series{s.Metric.Map(), points})
	}
	return out, nil
}
