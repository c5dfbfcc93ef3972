package alerting

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"rdma_exporter/internal/alerting/store"
)

// earlier are the series in the store that had not ended when an earlier run did. Without a restart the next round
// writes each of them anew or ends it: what ended in between would go on for the lookback otherwise, and hold alerts.
type earlier struct {
	exporter map[string]labels.Labels       // of rounds, by labels, and of rules that no longer exist
	rules    map[rules.Rule][]labels.Labels // of rules of this run
}

// resume finds the series of the earlier run before the first round, which is at ts. Recording rules end theirs as soon
// as they are evaluated without them; those of alerts are needed until their pending times are restored.
func (e *Engine) resume(ts time.Time) error {
	if e.resumed {
		return nil
	}
	live, err := e.store.Live(ts.Add(-lookback), ts)
	if err != nil {
		return fmt.Errorf("read series of the earlier run: %w: %w", store.ErrFailed, err)
	}
	if e.from.Equal(e.to) { // none of this instance
		e.from = ts
	}
	e.earlier = earlier{map[string]labels.Labels{}, map[rules.Rule][]labels.Labels{}}
	owner := e.owners()
	for _, s := range live {
		if r := owner(s); r != nil {
			e.earlier.rules[r] = append(e.earlier.rules[r], s)
			continue
		}
		e.earlier.exporter[string(s.Bytes(nil))] = s
	}
	for _, g := range e.groups {
		e.seed(g, false)
		if e.restored {
			e.seed(g, true)
		}
	}
	e.resumed = true
	return nil
}

// owners returns the function that finds the rule of a stored series; nil: it is of the exporter. Of several rules the
// last one ends it, after the others had the chance to record it.
func (e *Engine) owners() func(labels.Labels) rules.Rule {
	recorded, alerts := map[string][]rules.Rule{}, map[string][]rules.Rule{}
	for _, g := range e.groups {
		for _, r := range g.Rules() {
			of := recorded
			if isAlert(r) {
				of = alerts
			}
			of[r.Name()] = append(of[r.Name()], r)
		}
	}
	return func(s labels.Labels) rules.Rule {
		candidates := recorded[s.Get(model.MetricNameLabel)]
		if name := s.Get(model.MetricNameLabel); name == alertsMetric || name == forStateMetric {
			candidates = alerts[s.Get(model.AlertNameLabel)]
		}
		for _, r := range slices.Backward(candidates) {
			if hasLabels(s, r.Labels()) {
				return r
			}
		}
		return nil
	}
}

func isAlert(r rules.Rule) bool {
	_, ok := r.(*rules.AlertingRule)
	return ok
}

// hasLabels reports whether a series may have been recorded by a rule with these labels. Those of alerts may be
// templates.
func hasLabels(s, own labels.Labels) bool {
	all := true
	own.Range(func(l labels.Label) {
		all = all && (s.Get(l.Name) == l.Value || strings.Contains(l.Value, "{{"))
	})
	return all
}

// seed makes a group end what its rules (alerts, or recording rules) have recorded in the earlier run, as if that was
// the result of their previous evaluation.
func (e *Engine) seed(g *rules.Group, alerts bool) {
	var before []rules.Rule
	found := false
	for _, r := range g.Rules() {
		if isAlert(r) != alerts {
			continue
		}
		// All rules of the kind, since CopyState matches those with the same name and labels in order.
		before = append(before, earlierRule{rules.NewRecordingRule(r.Name(), r.Query(), r.Labels()), e.earlier.rules[r]})
		found = found || len(e.earlier.rules[r]) > 0
	}
	if !found {
		return
	}
	opts := *e.ruleOpts
	opts.Appendable = nowhere{}
	past := rules.NewGroup(rules.GroupOptions{
		Name: g.Name(), File: g.File(), Interval: g.Interval(), Rules: before, Opts: &opts,
	})
	past.Eval(context.Background(), e.to)
	g.CopyState(past)
}

// endAlerts ends the stored series of alerts that are not active in the first round, once their pending times were
// restored. Those of the others go on until the next round writes them.
func (e *Engine) endAlerts(g *rules.Group, ts time.Time) error {
	if len(e.earlier.rules) == 0 {
		return nil
	}
	app := e.store.Appender(context.Background())
	for _, r := range g.AlertingRules() {
		stored := e.earlier.rules[r]
		if len(stored) == 0 || r.Health() == rules.HealthBad {
			continue
		}
		active := map[string]bool{}
		r.ForEachActiveAlert(func(a *rules.Alert) { active[string(a.Labels.Bytes(nil))] = true })
		var left []labels.Labels
		for _, s := range stored {
			if active[string(labels.NewBuilder(s).Del(model.MetricNameLabel, "alertstate").Labels().Bytes(nil))] {
				left = append(left, s)
			} else if _, err := app.Append(0, s, ts.UnixMilli(), stale()); err != nil {
				return fmt.Errorf("end %s of the earlier run: %w", s, err)
			}
		}
		e.earlier.rules[r] = left
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("end alerts of the earlier run: %w: %w", store.ErrFailed, err)
	}
	e.seed(g, true)
	return nil
}

// end ends the series of the earlier run that a round no longer has, and returns those that it leaves: of metrics that
// this run has not read yet. These end with the lookback.
func (r *roundAppender) end(of earlier, unread map[string]bool) (left map[string]labels.Labels, err error) {
	if len(of.exporter) == 0 {
		return nil, nil
	}
	written := map[string]bool{}
	for _, s := range r.entries {
		if s.round == r.round {
			written[string(s.labels.Bytes(nil))] = true
		}
	}
	left = map[string]labels.Labels{}
	for key, s := range of.exporter {
		switch {
		case written[key]:
		case isUnread(unread, s.Get(model.MetricNameLabel)):
			left[key] = s
		default:
			if _, err := r.app.Append(0, s, r.millis, stale()); err != nil {
				return nil, fmt.Errorf("end %s of the earlier run: %w", s, err)
			}
		}
	}
	return left, nil
}

// isUnread reports whether a series is of a metric in unread, also those of a histogram or summary.
func isUnread(unread map[string]bool, name string) bool {
	for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && unread[base] {
			return true
		}
	}
	return false
}

// earlierRule has the series of the earlier run as its result.
type earlierRule struct {
	rules.Rule
	series []labels.Labels
}

func (r earlierRule) Eval(
	_ context.Context, _ time.Duration, ts time.Time, _ rules.QueryFunc, _ *url.URL, _ int,
) (out promql.Vector, err error) {
	for _, s := range r.series {
		out = append(out, promql.Sample{Metric: s, T: ts.UnixMilli()})
	}
	return out, nil
}

// nowhere stores nothing.
type nowhere struct{}

func (nowhere) Appender(context.Context) storage.Appender { return discard{} }

// discard has what a group calls for results that are no histograms.
type discard struct{ storage.Appender }

func (discard) SetOptions(*storage.AppendOptions) {}

func (discard) Append(storage.SeriesRef, labels.Labels, int64, float64) (storage.SeriesRef, error) {
	return 0, nil
}

func (discard) Commit() error { return nil }
