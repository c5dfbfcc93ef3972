package alerting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"rdma_exporter/internal/alerting/store"
)

// PastSeries is a series of another Prometheus, with all its labels.
type PastSeries struct {
	labels labels.Labels
	ref    storage.SeriesRef
}

// NewPastSeries returns a series with all its labels, __name__ included.
func NewPastSeries(all map[string]string) *PastSeries {
	return &PastSeries{labels: labels.FromMap(all)}
}

// PastSample is the value of a series at a time. Gone: the series has ended.
type PastSample struct {
	Series *PastSeries
	Value  float64
	Gone   bool
}

// AppendPast stores samples of any hosts at ts. Eval evaluates them, as after Append.
func (e *Engine) AppendPast(ts time.Time, samples []PastSample) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.store.IsOpen() {
		return store.ErrFailed
	}
	app := e.store.Appender(context.Background())
	for _, s := range samples {
		v := s.Value
		if s.Gone {
			v = stale()
		}
		if err := s.Series.append(app, ts.UnixMilli(), v); err != nil {
			return errors.Join(err, app.Rollback())
		}
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("commit samples of %s: %w: %w", stamp(ts), store.ErrFailed, err)
	}
	if e.to.IsZero() || ts.Sub(e.to) > max(lookback, 2*e.opts.Interval) {
		e.from = ts
	}
	e.to = ts
	return e.store.Tidy(ts)
}

// Past evaluates the rules over history. Each rule is evaluated for all times at once by a range query, at a tenth of
// the cost of single evaluations, after the rules whose results it reads. Rules that read their own results are
// evaluated time by time. A rule that reads a later one, as some read ALERTS, therefore sees the result of the same
// time and not of the previous round.
type Past struct {
	e     *Engine
	order [][]*pastRule // those of one element read each other
	step  time.Duration
}

// pastRule is a rule with its result at the previous time.
type pastRule struct {
	rule   rules.Rule
	alert  *rules.AlertingRule // nil: a recording rule
	loops  bool                // reads its own results
	given  map[string]*givenSeries
	active map[string]*activePast
}

// givenSeries is a series of results, and whether it has a value at the time.
type givenSeries struct {
	*PastSeries
	at int64
}

// activePast is an alert between its first sample and its end.
type activePast struct {
	labels        labels.Labels
	since         int64 // milliseconds, as all times here
	firing        bool
	keptSince     int64
	pending, fire *PastSeries
}

// Firing is called for each time at which an alert fires, in order of time for each label set.
type Firing func(rule int, names map[string]string, at time.Time)

// Past prepares an evaluation with the given step.
func (e *Engine) Past(step time.Duration) *Past {
	p := &Past{e: e, step: step}
	var all []*pastRule
	for _, g := range e.groups {
		for _, r := range g.Rules() {
			x := &pastRule{rule: r, given: map[string]*givenSeries{}, active: map[string]*activePast{}}
			if a, ok := r.(*rules.AlertingRule); ok {
				x.alert = a
			}
			all = append(all, x)
		}
	}
	p.order = ordered(all)
	return p
}

// reads reports whether a rule reads results of another.
func (r *pastRule) reads(other *pastRule) (yes bool) {
	parser.Inspect(exprOf(r.rule), func(node parser.Node, _ []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok || yes {
			return nil
		}
		name := metricName(s)
		if other.alert == nil {
			yes = name == other.rule.Name()
			return nil
		}
		if name != alertsMetric && name != forStateMetric {
			return nil
		}
		own := labels.NewBuilder(other.alert.Labels()).Set(model.AlertNameLabel, other.alert.Name()).Labels()
		yes = !slices.ContainsFunc(s.LabelMatchers,
			func(m *labels.Matcher) bool { return own.Has(m.Name) && !m.Matches(own.Get(m.Name)) })
		return nil
	})
	return yes
}

// ordered sorts rules after those that they read, and groups those that read each other. A rule needs more rules than
// each one that it reads and that does not read it, directly or by way of others.
func ordered(all []*pastRule) (out [][]*pastRule) {
	reads := map[*pastRule][]*pastRule{}
	for _, r := range all {
		for _, other := range all {
			if r.reads(other) {
				reads[r] = append(reads[r], other)
				r.loops = r.loops || r == other
			}
		}
	}
	needs := map[*pastRule]map[*pastRule]bool{} // each also itself
	for _, r := range all {
		needs[r] = map[*pastRule]bool{}
		for queue := []*pastRule{r}; len(queue) > 0; queue = queue[1:] {
			if next := queue[0]; !needs[r][next] {
				needs[r][next] = true
				queue = append(queue, reads[next]...)
			}
		}
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *pastRule) int { return len(needs[a]) - len(needs[b]) })
	for _, r := range sorted {
		together := slices.DeleteFunc(slices.Clone(all), func(o *pastRule) bool { return !needs[r][o] || !needs[o][r] })
		if together[0] == r {
			out = append(out, together)
		}
	}
	return out
}

// Eval evaluates all rules at times steps beginning with from; AppendPast has stored the samples. Errors are returned
// by the name of the rule; the other rules are evaluated nevertheless.
func (p *Past) Eval(ctx context.Context, from time.Time, times int, firing Firing) (map[string]error, error) {
	failed := map[string]error{}
	for _, component := range p.order {
		span := times
		if len(component) > 1 || component[0].loops {
			span = 1
		}
		for n := 0; n < times; n += span {
			for _, r := range component {
				err := p.evalRule(ctx, r, from.Add(p.step*time.Duration(n)), span, firing)
				switch {
				case ctx.Err() != nil:
					return nil, ctx.Err()
				case errors.Is(err, store.ErrFailed):
					return nil, err
				case err != nil:
					failed[r.rule.Name()] = err
				}
			}
		}
	}
	return failed, nil
}

func (p *Past) evalRule(ctx context.Context, r *pastRule, from time.Time, times int, firing Firing) error {
	to := from.Add(p.step * time.Duration(times-1))
	q, err := p.e.ruleEngine.NewRangeQuery(ctx, p.e.store, nil, r.rule.Query().String(), from, to, p.step)
	if err != nil {
		return err
	}
	defer q.Close()
	result, err := q.Exec(ctx).Matrix()
	if err != nil {
		return err
	}
	app := p.e.store.Appender(ctx)
	if r.alert == nil {
		err = p.record(app, r, result, from, times)
	} else {
		err = p.advance(app, r, result, from, times, firing)
	}
	if err != nil {
		return errors.Join(err, app.Rollback())
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("commit results of %s: %w: %w", r.rule.Name(), store.ErrFailed, err)
	}
	return nil
}

// labelsOf returns the labels of a result, with a new name.
func (r *pastRule) labelsOf(metric labels.Labels, name, as string) labels.Labels {
	b := labels.NewBuilder(metric)
	b.Set(name, as)
	r.rule.Labels().Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
	return b.Labels()
}

// record stores the results of a recording rule.
func (p *Past) record(app storage.Appender, r *pastRule, result promql.Matrix, from time.Time, times int) error {
	step, last := p.step.Milliseconds(), from.Add(p.step*time.Duration(times-1)).UnixMilli()
	for _, s := range result {
		all := r.labelsOf(s.Metric, model.MetricNameLabel, r.rule.Name())
		key := all.String()
		g := r.given[key]
		if g == nil {
			g = &givenSeries{&PastSeries{labels: all}, math.MinInt64}
			r.given[key] = g
		}
		for _, point := range s.Floats {
			if g.at != math.MinInt64 && g.at < point.T-step {
				if err := g.append(app, g.at+step, stale()); err != nil {
					return err
				}
			}
			if err := g.append(app, point.T, point.F); err != nil {
				return err
			}
			g.at = point.T
		}
	}
	for key, g := range r.given { // series that have ended
		if g.at < last {
			if err := g.append(app, g.at+step, stale()); err != nil {
				return err
			}
			delete(r.given, key)
		}
	}
	return nil
}

func stale() float64 { return math.Float64frombits(value.StaleNaN) }

func (s *PastSeries) append(app storage.Appender, at int64, v float64) error {
	ref, err := app.Append(s.ref, s.labels, at, v)
	if err != nil {
		return fmt.Errorf("append %s of %s: %w", s.labels, stamp(time.UnixMilli(at)), err)
	}
	s.ref = ref
	return nil
}

// advance updates the states of alerts, as Prometheus does in each evaluation.
func (p *Past) advance(
	app storage.Appender, r *pastRule, result promql.Matrix, from time.Time, times int, firing Firing,
) error {
	holds := map[string][]bool{} // by time
	for _, s := range result {
		all := r.labelsOf(labels.NewBuilder(s.Metric).Del(model.MetricNameLabel).Labels(),
			model.AlertNameLabel, r.alert.Name())
		key := all.String()
		if r.active[key] == nil {
			r.active[key] = &activePast{labels: all, since: -1}
		}
		if holds[key] == nil {
			holds[key] = make([]bool, times)
		}
		for _, point := range s.Floats {
			holds[key][(point.T-from.UnixMilli())/p.step.Milliseconds()] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.active)) {
		a := r.active[key]
		for n := range times {
			at := from.Add(p.step * time.Duration(n))
			if err := a.round(app, r.alert, at.UnixMilli(), holds[key] != nil && holds[key][n]); err != nil {
				return err
			}
			if a.firing {
				firing(p.e.detection(r.alert, a.labels), a.labels.Map(), at)
			}
		}
		if a.since < 0 {
			delete(r.active, key)
		}
	}
	return nil
}

// round is one evaluation of an alert.
func (a *activePast) round(app storage.Appender, rule *rules.AlertingRule, at int64, holds bool) error {
	was, wasFiring := a.since >= 0, a.firing
	switch {
	case holds:
		if !was {
			a.since = at
		}
		a.keptSince = 0
	case a.firing && rule.KeepFiringFor() > 0:
		a.keptSince = cmp.Or(a.keptSince, at)
		if at-a.keptSince >= rule.KeepFiringFor().Milliseconds() {
			a.since, a.firing, a.keptSince = -1, false, 0
		}
	default:
		a.since, a.firing = -1, false
	}
	if a.since >= 0 && at-a.since >= rule.HoldDuration().Milliseconds() {
		a.firing = true
	}
	if a.pending == nil {
		series := func(state string) *PastSeries {
			return &PastSeries{
				labels: labels.NewBuilder(a.labels).Set(model.MetricNameLabel, alertsMetric).Set("alertstate", state).Labels(),
			}
		}
		a.pending, a.fire = series(string(StatePending)), series(string(StateFiring))
	}
	for _, s := range []struct {
		*PastSeries
		before, now bool
	}{{a.pending, was && !wasFiring, a.since >= 0 && !a.firing}, {a.fire, wasFiring, a.firing}} {
		v := 1.0
		if !s.now {
			v = stale()
		}
		if s.now || s.before {
			if err := s.append(app, at, v); err != nil {
				return err
			}
		}
	}
	return nil
}
