package alerting

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

// loadGroups reads rule files, in their order.
func (e *Engine) loadGroups(files fs.FS, names []string) ([]*rules.Group, error) {
	e.loader.files = files
	external := labels.FromMap(e.opts.ExternalLabels)
	var groups []*rules.Group
	for _, file := range names {
		// One file at a time, since LoadGroups answers with a map; the order within a file comes from its text.
		byKey, errs := e.manager.LoadGroups(e.opts.Interval, external, e.opts.ExternalURL, nil, false, file)
		if len(errs) > 0 {
			return nil, fmt.Errorf("load rules %s: %w", file, errors.Join(errs...))
		}
		inOrder, err := groupNames(files, file)
		if err != nil {
			return nil, err
		}
		for _, name := range inOrder {
			groups = append(groups, byKey[rules.GroupKey(file, name)])
		}
	}
	return groups, nil
}

// Prepare reads rules that are to take the place of those in force. apply puts them there: an alert whose rule stays goes on. What is
// refused changes nothing.
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
		before[rules.GroupKey(g.File(), g.Name())] = g
	}
	for _, g := range groups {
		if old := before[rules.GroupKey(g.File(), g.Name())]; old != nil {
			g.CopyState(old)
		}
		for _, r := range g.AlertingRules() {
			r.SetRestored(e.restored) // else its samples wait for that
		}
	}
	e.groups, e.meta = groups, describe(groups)
}
