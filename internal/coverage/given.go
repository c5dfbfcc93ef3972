package coverage

import (
	"slices"
	"strings"
)

// WithLabel returns n for samples to which rules add a label with a constant value (label_replace). It replaces the
// earlier value of the label.
func (n Need) WithLabel(name, value string) Need {
	return n.rebuild(func(leaf Need) (Need, bool) {
		leaf.Given = append(slices.DeleteFunc(slices.Clone(leaf.Given), func(g string) bool {
			return strings.HasPrefix(g, name+"=")
		}), name+"="+value)
		slices.Sort(leaf.Given)
		return leaf, true
	})
}

// Matching returns the part of n that is required for samples with a matching label. It is false if rules add the label
// with another value everywhere in n. Metrics to which no rule adds the label remain.
func (n Need) Matching(name string, matches func(value string) bool) (Need, bool) {
	if !n.hasGiven() {
		return n, true
	}
	out := n.rebuild(func(leaf Need) (Need, bool) {
		return leaf, !slices.ContainsFunc(leaf.Given, func(g string) bool {
			label, value, _ := strings.Cut(g, "=")
			return label == name && !matches(value)
		})
	})
	return out, n.isEmpty() || !out.isEmpty()
}

// WithoutGiven returns n without the labels that rules add, except labels to keep.
func (n Need) WithoutGiven(keep func(name string) bool) Need {
	if !n.hasGiven() {
		return n
	}
	return n.rebuild(func(leaf Need) (Need, bool) {
		leaf.Given = slices.DeleteFunc(slices.Clone(leaf.Given), func(g string) bool {
			name, _, _ := strings.Cut(g, "=")
			return !keep(name)
		})
		return leaf, true
	})
}

func (n Need) hasGiven() bool {
	return slices.ContainsFunc(n.Leaves(), func(leaf Need) bool { return len(leaf.Given) > 0 })
}

// rebuild returns n with each single metric replaced. A metric for which replace returns false is removed with the
// needs that require it.
func (n Need) rebuild(replace func(leaf Need) (Need, bool)) Need {
	if n.Metric != "" {
		if leaf, ok := replace(n); ok {
			return leaf
		}
		return Need{}
	}
	var any, all []Need
	for _, part := range n.Any {
		if part = part.rebuild(replace); !part.isEmpty() {
			any = append(any, part)
		}
	}
	for _, part := range n.All {
		if part = part.rebuild(replace); part.isEmpty() {
			return Need{}
		}
		all = append(all, part)
	}
	return All(Any(any...), All(all...))
}
