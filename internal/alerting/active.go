package alerting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
)

// forStateMetric is what Prometheus restores from: the time since when an alert is active, in seconds since 1970.
const forStateMetric = "ALERTS_FOR_STATE"

// Active is an alert that waits or fires, as it is kept for the next run.
type Active struct {
	Labels   map[string]string `json:"labels"` // alertname included
	ActiveAt time.Time         `json:"active_at"`
	SeenAt   time.Time         `json:"seen_at"` // in the last evaluation
}

// Active lists the alerts that have something to lose by a restart: those whose rule has a `for`.
func (e *Engine) Active() []Active {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []Active
	for _, m := range e.meta {
		if m.rule.HoldDuration() == 0 {
			continue
		}
		for _, a := range sortedActive(m.rule) {
			out = append(out, Active{Labels: a.Labels.Map(), ActiveAt: a.ActiveAt, SeenAt: e.lastEval})
		}
	}
	return out
}

// remind gives the store what it lacks of the alerts of an earlier run, before the first round of this one. ts is of that round. What was seen in the future,
// by a clock that has been set back since, was seen just now.
func (e *Engine) remind(ts time.Time) error {
	if len(e.opts.Known) == 0 {
		return nil
	}
	app := e.store.Appender(context.Background())
	for _, a := range e.opts.Known {
		if ahead := a.SeenAt.Sub(ts); ahead >= 0 {
			back := -ahead - e.opts.Interval
			a.SeenAt, a.ActiveAt = a.SeenAt.Add(back), a.ActiveAt.Add(back)
		}
		if !a.SeenAt.After(e.to) || ts.Sub(a.SeenAt) > outageTolerance {
			continue
		}
		b := labels.NewBuilder(labels.FromMap(a.Labels))
		b.Set(model.MetricNameLabel, forStateMetric)
		_, err := app.Append(0, b.Labels(), a.SeenAt.UnixMilli(), float64(a.ActiveAt.Unix()))
		if err != nil && !errors.Is(err, storage.ErrOutOfOrderSample) && !errors.Is(err, storage.ErrOutOfBounds) && !errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
			return errors.Join(fmt.Errorf("remind of %v: %w", a.Labels, err), app.Rollback())
		}
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// MoveTo goes on in a folder that was not to be had at the start, with the samples that are there and with what its alerts had waited, as
// a restart does; known are those alerts. What this run has seen before is forgotten.
func (e *Engine) MoveTo(dir string, known []Active) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.store.moveTo(dir)
	e.forget()
	e.from, e.to = e.store.span()
	e.opts.Known, e.restored = known, false
	for _, m := range e.meta {
		m.rule.SetRestored(false)
	}
	for i, g := range e.groups {
		e.groups[i] = e.unseen(g)
	}
	e.gone = nil
}

// unseen is a group with the same rules that knows no series: one that does would mark those stale that wait for what is restored.
func (e *Engine) unseen(g *rules.Group) *rules.Group {
	offset := g.QueryOffset()
	return rules.NewGroup(rules.GroupOptions{
		Name: g.Name(), File: g.File(), Interval: g.Interval(), Limit: g.Limit(), QueryOffset: &offset, Rules: g.Rules(), Opts: e.ruleOpts,
	})
}

// skip leaves time in which nothing was seen out of what alerts have waited: a clock was set forward, or the machine was suspended.
func (e *Engine) skip(unseen time.Duration) {
	for _, m := range e.meta {
		m.rule.ForEachActiveAlert(func(a *rules.Alert) {
			if a.State == rules.StatePending {
				a.ActiveAt = a.ActiveAt.Add(unseen)
			}
			if !a.KeepFiringSince.IsZero() {
				a.KeepFiringSince = a.KeepFiringSince.Add(unseen)
			}
		})
	}
}

// shift moves all times of the alerts with a clock that has been set, so that they have waited as long as before.
func (e *Engine) shift(by time.Duration) {
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	for _, m := range e.meta {
		m.rule.ForEachActiveAlert(func(a *rules.Alert) {
			for _, t := range []*time.Time{&a.ActiveAt, &a.FiredAt, &a.ResolvedAt, &a.LastSentAt, &a.ValidUntil, &a.KeepFiringSince} {
				move(t)
			}
		})
	}
}
