package alerting

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

// loadGroups loads rule files, in order.
func (e *Engine) loadGroups(files fs.FS, names []string) ([]*rules.Group, error) {
	e.loader.files = files
	external := labels.FromMap(e.opts.ExternalLabels)
	var groups []*rules.Group
	for _, file := range names {
		// One file at a time, since LoadGroups returns a map; the order within a file is that of its text.
		byKey, errs := e.manager.LoadGroups(e.opts.Interval, external, e.opts.ExternalURL, nil, false, file)
		if len(errs) > 0 {
			return nil, fmt.Errorf("load rules %s: %w", file, errors.Join(errs...))
		}
		for _, name := range e.loader.groups {
			groups = append(groups, byKey[rules.GroupKey(file, name)])
		}
	}
	return groups, nil
}

// Prepare loads a new set of rules. apply puts it into use: alerts whose rule is unchanged continue. If an error is
// returned nothing has changed.
func (e *Engine) Prepare(files fs.FS, names []string) (apply func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	groups, err := e.loadGroups(files, names)
	if err != nil {
		return nil, err
	}
	return func() { e.replaceGroups(groups) }, nil
}

func (e *Engine) replaceGroups(groups []*rules.Group) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := map[string]*rules.Group{}
	for _, g := range e.groups {
		before[groupKey(g)] = g
	}
	for _, g := range groups {
		if old := before[groupKey(g)]; old != nil {
			g.CopyState(old)
			keepHealth(g, old)
			delete(before, groupKey(g))
		}
		for _, r := range g.AlertingRules() {
			r.SetRestored(e.restored) // otherwise its samples would wait for restoration
		}
	}
	for _, old := range before {
		// A group without rules marks all its former series as stale when it is evaluated.
		g := rules.NewGroup(rules.GroupOptions{
			Name: old.Name(), File: old.File(), Interval: e.opts.Interval, Opts: e.ruleOpts,
		})
		g.CopyState(old)
		e.gone = append(e.gone, g)
	}
	e.groups, e.meta = groups, describe(groups)
	e.parser.keep(groups)
}

// keepHealth keeps the health of unchanged rules until the next evaluation.
func keepHealth(g, old *rules.Group) {
	before := map[string]rules.Rule{}
	for _, r := range old.Rules() {
		before[r.String()] = r
	}
	for _, r := range g.Rules() {
		if same := before[r.String()]; same != nil {
			r.SetHealth(same.Health())
			r.SetLastError(same.LastError())
			r.SetEvaluationTimestamp(same.GetEvaluationTimestamp())
			r.SetEvaluationDuration(same.GetEvaluationDuration())
		}
	}
}

// groupKey identifies a group across reloads. An operator's file replaces the embedded one of the same base name; base
// names are unique.
func groupKey(g *rules.Group) string { return rules.GroupKey(path.Base(g.File()), g.Name()) }
