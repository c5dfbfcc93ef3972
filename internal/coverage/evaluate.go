package coverage

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/exposition"
)

type needState uint8

const (
	stateSeen    needState = iota
	stateMissing           // it applies and is missing
	stateIdle              // it does not apply
)

// verdict is the state of a requirement.
type verdict struct {
	state  needState
	reason Reason // for being missing
	partly bool   // present only for a part of the host
}

// evaluation is a Detector applied to one round.
type evaluation struct {
	*Detector
	round    Round
	families []*exposition.Family // by metric
	seen     []verdict            // by leaf; zero: not evaluated yet
	known    []bool
}

func (l *evaluation) evaluateTree(t *tree) verdict {
	switch {
	case t.leaf >= 0:
		return l.evaluateLeaf(t.leaf)
	case len(t.any) > 0:
		return l.best(t.any)
	default:
		return l.worst(t.all)
	}
}

// worst returns the verdict on a requirement of all parts. If one part does not apply, the whole does not apply. A part
// that is not supported outranks a missing permission.
func (l *evaluation) worst(all []tree) (out verdict) {
	for i := range all {
		switch v := l.evaluateTree(&all[i]); {
		case v.state == stateIdle:
			return v
		case v.state == stateMissing && out.state == stateMissing:
			out.partly = out.partly && v.partly
			out.reason = harderReason(out.reason, v.reason)
		case v.state == stateMissing:
			out = v
		}
	}
	return out
}

// best returns the verdict on a requirement of any part. If one is present and another could not be read, the
// contribution of the latter is unknown.
func (l *evaluation) best(all []tree) verdict {
	out, seen := verdict{state: stateIdle}, false
	for i := range all {
		switch v := l.evaluateTree(&all[i]); {
		case v.state == stateSeen:
			seen = true
		case v.state == stateMissing && out.state == stateMissing:
			out.partly = out.partly && v.partly
			if out.reason == harderReason(out.reason, v.reason) {
				out.reason = v.reason
			}
		case v.state == stateMissing:
			out = v
		}
	}
	switch {
	case !seen:
		return out
	case out.state == stateMissing && (out.reason == Failed || out.reason == Limit):
		out.partly = true
		return out
	}
	return verdict{}
}

// harderReason returns the reason that is harder to remedy.
func harderReason(a, b Reason) Reason {
	if slices.Index(reasons[:], b) > slices.Index(reasons[:], a) {
		return b
	}
	return a
}

func (l *evaluation) evaluateLeaf(i int) verdict {
	if !l.known[i] {
		v := l.evaluateMetric(&l.leaves[i])
		if v.state == stateSeen && l.round.LeftOut && l.metrics[l.leaves[i].metric].ofDevices {
			v = verdict{state: stateMissing, reason: Limit, partly: true}
		}
		l.seen[i], l.known[i] = v, true
	}
	return l.seen[i]
}

// evaluateMetric determines whether a metric is present, and if not, the reason.
func (l *evaluation) evaluateMetric(n *required) verdict {
	m, f := &l.metrics[n.metric], l.families[n.metric]
	exposed := f != nil && (len(n.labels) == 0 || f.HasLabels(n.labels...))
	if l.findUnknown(n) != "" {
		return verdict{state: stateMissing, reason: Unknown, partly: f != nil && l.knownInPart(n, f)}
	}
	partly := l.has(m.never)
	if exposed && !partly {
		return verdict{}
	}
	if m.ofLeaf >= 0 && !partly && !l.has(m.of) {
		if v := l.evaluateLeaf(m.ofLeaf); v.state == stateMissing {
			return v
		}
		return verdict{state: stateIdle}
	}
	if r, _ := l.findDisabled(m); r != "" {
		return verdict{state: stateMissing, reason: r}
	}
	var asked Reason
	if n.asks != "" {
		asked = l.round.Source(n.asks)
	}
	switch {
	case !exposed && asked != "":
		return verdict{state: stateMissing, reason: asked}
	case partly:
		return verdict{state: stateMissing, reason: NotSupported, partly: f != nil}
	case f != nil, l.has(m.other): // nothing has that label, or it is normal
		return verdict{}
	case m.of.metric == n.metric:
		return verdict{state: stateIdle}
	}
	return verdict{state: stateMissing, reason: NotSupported}
}

// findUnknown returns the selector of a sample that means that the fact of a leaf could not be read; empty if there is
// none.
func (l *evaluation) findUnknown(n *required) string {
	for _, state := range n.states {
		of := l.metrics[n.metric].unknown[state]
		if i := slices.IndexFunc(of, l.has); i >= 0 {
			return of[i].text
		}
	}
	return ""
}

// knownInPart reports whether a family has information in addition to the unknown part: another state, or without a
// state more samples than unknown ones.
func (l *evaluation) knownInPart(n *required, f *exposition.Family) bool {
	if slices.Contains(f.Head.Desc.Labels, "state") {
		return f.HasOther("state", "unknown")
	}
	unread := 0
	for _, state := range n.states {
		for _, s := range l.metrics[n.metric].unknown[state] {
			if s.metric >= 0 && l.families[s.metric] != nil {
				unread += l.families[s.metric].Count(s.label, s.value)
			}
		}
	}
	return len(f.Points) > unread
}

// explain adds to a gap the missing metrics, and the source or collector.
func (l *evaluation) explain(t *tree, g *Gap) {
	if t.leaf >= 0 && l.evaluateLeaf(t.leaf).state == stateMissing {
		l.explainLeaf(&l.leaves[t.leaf], l.evaluateLeaf(t.leaf), g)
	}
	for i := range t.all {
		l.explain(&t.all[i], g)
	}
	for i := range t.any {
		l.explain(&t.any[i], g)
	}
}

// explainLeaf adds a missing metric to a gap, or the metric that it is about if that one is missing.
func (l *evaluation) explainLeaf(n *required, v verdict, g *Gap) {
	m := &l.metrics[n.metric]
	if m.ofLeaf >= 0 && !l.has(m.never) && !l.has(m.of) {
		l.explainLeaf(&l.leaves[m.ofLeaf], v, g)
		return
	}
	g.Metrics = append(g.Metrics, cmp.Or(l.findUnknown(n), m.name))
	if v.reason != g.Reason {
		return
	}
	reason, collector := l.findDisabled(m)
	switch {
	case reason != "":
		g.Collector = collector
	case v.reason == Permission || v.reason == NotReadYet:
		g.Source = n.asks
	}
}

// findDisabled returns a collector of a metric without a result, with the reason; empty if one of them has a result.
func (l *evaluation) findDisabled(m *metric) (why Reason, collector string) {
	for _, collector = range m.collectors {
		if why = l.round.Collector(collector); why == "" {
			return "", ""
		}
	}
	return why, collector
}

func (l *evaluation) has(s selector) bool {
	if s.metric < 0 {
		return false
	}
	f := l.families[s.metric]
	return f != nil && (s.label == "" || f.Has(s.label, s.value))
}
