package alerting

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"rdma_exporter/internal/alerting/store"
)

// forStateMetric is what Prometheus restores `for` state from: the start of an active alert, in seconds since 1970.
const forStateMetric = "ALERTS_FOR_STATE"

// Active is a pending or firing alert, as stored for the next start.
type Active struct {
	Labels   map[string]string `json:"labels"` // alertname included
	ActiveAt time.Time         `json:"active_at"`
	SeenAt   time.Time         `json:"seen_at"` // in the last evaluation
	Pending  bool              `json:"pending,omitempty"`
}

// alertingRules returns the alerting rules of all groups, in file order.
func (e *Engine) alertingRules() iter.Seq[*rules.AlertingRule] {
	return func(yield func(*rules.AlertingRule) bool) {
		for _, g := range e.groups {
			for _, r := range g.Rules() {
				if a, ok := r.(*rules.AlertingRule); ok && !yield(a) {
					return
				}
			}
		}
	}
}

// Active lists the alerts whose state would be lost by a restart: those of rules with a `for`. Before the first round
// these are the stored ones.
func (e *Engine) Active() []Active {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.restored {
		return e.opts.Known
	}
	var out []Active
	for r := range e.alertingRules() {
		if r.HoldDuration() == 0 {
			continue
		}
		for _, a := range sortedActive(r) {
			out = append(out,
				Active{Labels: a.Labels.Map(), ActiveAt: a.ActiveAt, SeenAt: e.lastEval, Pending: a.State == rules.StatePending})
		}
	}
	return out
}

// restore appends the stored `for` state of alerts that the store lacks, before the first round; ts is the time of that
// round. A time in the future (the clock has been set back since) is moved to just before ts.
func (e *Engine) restore(ts time.Time) error {
	if len(e.opts.Known) == 0 {
		return nil
	}
	app, own := e.store.Appender(context.Background()), store.Target{Job: e.opts.Job, Instance: e.opts.Instance}
	for _, a := range e.opts.Known {
		if ahead := a.SeenAt.Sub(ts); ahead >= 0 {
			back := -ahead - e.opts.Interval
			a.SeenAt, a.ActiveAt = a.SeenAt.Add(back), a.ActiveAt.Add(back)
		}
		if !a.SeenAt.After(e.to) || ts.Sub(a.SeenAt) > outageTolerance || !own.Has(labels.FromMap(a.Labels)) {
			continue
		}
		b := labels.NewBuilder(labels.FromMap(a.Labels))
		b.Set(model.MetricNameLabel, forStateMetric)
		_, err := app.Append(0, b.Labels(), a.SeenAt.UnixMilli(), float64(a.ActiveAt.Unix()))
		if err != nil && !errors.Is(err, storage.ErrOutOfOrderSample) && !errors.Is(err, storage.ErrOutOfBounds) &&
			!errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
			return errors.Join(fmt.Errorf("restore alert state of %v: %w", a.Labels, err), app.Rollback())
		}
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrFailed, err)
	}
	return nil
}

// MoveTo switches to a directory that was not available at the start, with the samples in it. known are the stored
// alerts. As after a restart, pending times continue, and the samples of this run are discarded.
func (e *Engine) MoveTo(dir string, known []Active) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.store.MoveTo(dir)
	e.reopened()
	e.opts.Known, e.restored = known, false
	for r := range e.alertingRules() {
		r.SetRestored(false)
	}
	for i, g := range e.groups {
		e.groups[i] = e.unseen(g)
	}
	e.gone = nil
	e.clock = Clock{} // of the last round there
}

// SetDir sets a directory that could not be used at the start. The samples and alerts of this run are moved to it.
func (e *Engine) SetDir(dir string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.store.SetDir(dir)
}

// unseen returns a group with the same rules and no known series. Otherwise it would mark series as stale that are
// about to be restored.
func (e *Engine) unseen(g *rules.Group) *rules.Group {
	offset := g.QueryOffset()
	return rules.NewGroup(rules.GroupOptions{
		Name: g.Name(), File: g.File(), Interval: g.Interval(), Limit: g.Limit(), QueryOffset: &offset,
		Rules: g.Rules(), Opts: e.ruleOpts,
	})
}

// skip excludes a time without rounds from the pending times of alerts: the clock was set forward, or the machine was
// suspended.
func (e *Engine) skip(unseen time.Duration) {
	for r := range e.alertingRules() {
		r.ForEachActiveAlert(func(a *rules.Alert) {
			if a.State == rules.StatePending {
				a.ActiveAt = a.ActiveAt.Add(unseen)
			}
			if !a.KeepFiringSince.IsZero() {
				a.KeepFiringSince = a.KeepFiringSince.Add(unseen)
			}
		})
	}
}

// shift moves all times of the alerts with a clock that was set, so that their pending times stay the same. Stored
// alerts were stored by the same clock as the samples.
func (e *Engine) shift(by time.Duration) {
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	move(&e.lastEval)
	e.opts.Known = slices.Clone(e.opts.Known)
	for i := range e.opts.Known {
		move(&e.opts.Known[i].ActiveAt)
		move(&e.opts.Known[i].SeenAt)
	}
	for r := range e.alertingRules() {
		r.ForEachActiveAlert(func(a *rules.Alert) {
			for _, t := range []*time.Time{
				&a.ActiveAt, &a.FiredAt, &a.ResolvedAt, &a.LastSentAt, &a.ValidUntil, &a.KeepFiringSince,
			} {
				move(t)
			}
		})
	}
}
