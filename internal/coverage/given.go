package coverage

import (
	"slices"
	"strings"
)

// WithLabel returns n where rules give its samples a label of a constant value (label_replace). It replaces what they
// gave the label before.
func (n Need) WithLabel(name, value string) Need {
	return n.rebuild(func(leaf Need) (Need, bool) {
		leaf.Given = append(slices.DeleteFunc(slices.Clone(leaf.Given), func(g string) bool {
			return strings.HasPrefix(g, name+"=")
		}), name+"="+value)
		slices.Sort(leaf.Given)
		return leaf, true
	})
}

// Matching returns what of n is required for samples whose label is matched. It is false if rules give the label
// another value in all of n. A metric of which no rule gives the label remains.
func (n Need) Matching(name string, matches func(value string) bool) (Need, bool) {
	if !n.given() {
		return n, true
	}
	out := n.rebuild(func(leaf Need) (Need, bool) {
		return leaf, !slices.ContainsFunc(leaf.Given, func(g string) bool {
			label, value, _ := strings.Cut(g, "=")
			return label == name && !matches(value)
		})
	})
	return out, n.nothing() || !out.nothing()
}

// WithoutGiven returns n as if no rule gave a label, except labels that are kept.
func (n Need) WithoutGiven(keep func(name string) bool) Need {
	if !n.given() {
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

func (n Need) given() bool {
	return slices.ContainsFunc(n.Leaves(), func(leaf Need) bool { return len(leaf.Given) > 0 })
}

// rebuild returns n with each single metric replaced, or without it, and without what requires it.
func (n Need) rebuild(replace func(leaf Need) (Need, bool)) Need {
	if n.Metric != "" {
		if leaf, ok := replace(n); ok {
			return leaf
		}
		return Need{}
	}
	var any, all []Need
	for _, part := range n.Any {
		if part = part.rebuild(replace); !part.nothing() {
			any = append(any, part)
		}
	}
	for _, part := range n.All {
		if part = part.rebuild(replace); part.nothing() {
			return Need{}
		}
		all = append(all, part)
	}
	return All(Any(any...), All(all...))
}
