package coverage

import (
	"cmp"
	"slices"
	"strings"

	"rdma_exporter/internal/exposition"
)

// Metric is a metric that rules may read.
type Metric struct {
	Desc       *exposition.Desc
	Collectors []string // which expose it; none: the exporter itself
}

// tree is a Need with its metrics resolved.
type tree struct {
	leaf     int // index in Detector.leaves; -1: it has parts
	all, any []tree
}

// required is a required metric, with or without labels.
type required struct {
	metric int
	labels []string
	state  string
	states []string // the keys of Desc.Unknown
	asks   string   // its source; empty: unknown
}

// metric is a metric and its descriptions.
type metric struct {
	name             string
	collectors       []string
	of, never, other selector // as in its Desc; other is Desc.Beside
	unknown          map[string][]selector
	ofLeaf           int  // leaf of the metric in of; -1: none, or the metric itself
	ofDevices        bool // it has a series for each device
}

// selector is a metric, or its samples with one value of a label.
type selector struct {
	metric       int // -1: nothing is selected
	label, value string
	text         string
}

// compile precomputes everything that does not depend on a round.
func (d *Detector) compile(given []Metric) {
	descs := map[string]*exposition.Desc{}
	collectors := map[string][]string{}
	for _, m := range given {
		descs[m.Desc.Name] = m.Desc
		collectors[m.Desc.Name] = append(collectors[m.Desc.Name], m.Collectors...)
	}
	for _, a := range d.alerts {
		for _, name := range a.Need.Metrics() {
			if descs[name] == nil {
				descs[name] = &exposition.Desc{Name: name}
			}
		}
	}
	for name := range descs {
		d.metrics = append(d.metrics, metric{name: name, collectors: collectors[name], ofLeaf: -1})
	}
	slices.SortFunc(d.metrics, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	for i := range d.metrics {
		m, desc := &d.metrics[i], descs[d.metrics[i].name]
		m.ofDevices = subjectOf(&exposition.Desc{Scope: desc.Scope}) == "rdma_device_info"
		m.of, m.never, m.other = d.parseSelector(subjectOf(desc)), d.parseSelector(desc.Never), d.parseSelector(desc.Beside)
		m.unknown = map[string][]selector{}
		for state, selectors := range desc.Unknown {
			for _, text := range selectors {
				m.unknown[state] = append(m.unknown[state], d.parseSelector(text))
			}
		}
	}
	for i := range d.metrics {
		if of := d.metrics[i].of.metric; of >= 0 && of != i {
			d.metrics[i].ofLeaf = d.findLeaf(of, descs[d.metrics[of].name], nil, "")
		}
	}
	for _, a := range d.alerts {
		d.trees = append(d.trees, d.newTree(a.Need, descs))
	}
}

// subjectOf returns the metric that shows whether the host has what desc is about: Desc.Of, or by default one chosen by
// scope.
func subjectOf(d *exposition.Desc) string {
	switch d.Scope {
	case exposition.ScopeDevice, exposition.ScopePort, exposition.ScopeFunction, exposition.ScopeBond:
		return cmp.Or(d.Of, "rdma_device_info")
	case exposition.ScopeGPU:
		return cmp.Or(d.Of, "rdma_gpu_info")
	}
	return d.Of
}

func (d *Detector) newTree(n Need, descs map[string]*exposition.Desc) tree {
	t := tree{leaf: -1}
	if n.Metric != "" {
		t.leaf = d.findLeaf(d.findIndex(n.Metric), descs[n.Metric], n.Labels, n.State)
		d.needed++
	}
	for _, part := range n.All {
		t.all = append(t.all, d.newTree(part, descs))
	}
	for _, part := range n.Any {
		t.any = append(t.any, d.newTree(part, descs))
	}
	return t
}

// findLeaf returns the index of a leaf, which is added if it is new.
func (d *Detector) findLeaf(group int, desc *exposition.Desc, labels []string, state string) int {
	i := slices.IndexFunc(d.leaves,
		func(l required) bool { return l.metric == group && l.state == state && slices.Equal(l.labels, labels) })
	if i >= 0 {
		return i
	}
	states := slices.Compact(append([]string{""}, strings.Split(state, "|")...))
	d.leaves = append(d.leaves, required{group, labels, state, states, Need{Labels: labels}.Asks(desc)})
	return len(d.leaves) - 1
}

// parseSelector parses NAME or NAME{label="value"}.
func (d *Detector) parseSelector(text string) selector {
	name, matcher, _ := strings.Cut(strings.TrimSuffix(text, `"}`), "{")
	label, value, _ := strings.Cut(matcher, `="`)
	return selector{d.findIndex(name), label, value, text}
}

// findIndex returns the index of a metric; -1: unknown.
func (d *Detector) findIndex(name string) int {
	i, ok := slices.BinarySearchFunc(d.metrics, name,
		func(m metric, name string) int { return strings.Compare(m.name, name) })
	if !ok {
		return -1
	}
	return i
}

// findFamilies returns the family of each metric in a round, nil if there is none. Both lists are sorted.
func (d *Detector) findFamilies(families []exposition.Family) []*exposition.Family {
	out := make([]*exposition.Family, len(d.metrics))
	i := 0
	for j := range families {
		name := families[j].Head.Desc.Name
		for i < len(d.metrics) && d.metrics[i].name < name {
			i++
		}
		if i < len(d.metrics) && d.metrics[i].name == name {
			out[i] = &families[j]
		}
	}
	return out
}
