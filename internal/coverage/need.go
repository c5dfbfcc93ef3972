// Package coverage says which alerts cannot be judged on a host, and why: it holds what their rules read against the metrics of a
// round. What does not apply to a host, as GPUs where there are none, is no blindness.
package coverage

import (
	"slices"
	"strings"

	"rdma_exporter/internal/exposition"
)

// Need is what an expression needs so that it can have a result, whatever the values are. The zero Need is nothing.
type Need struct {
	Metric string   // has to have a sample,
	Labels []string // with a value for each of these, sorted,
	State  string   // and this one for the label state; empty: any

	All []Need // all of these have to be
	Any []Need // one of these has to be
}

// Alert is an alert and what the rules of its name need.
type Alert struct {
	Name string
	Need Need
}

// All needs each of some needs, without those that another holds already.
func All(needs ...Need) Need {
	var flat []Need
	for _, n := range needs {
		switch {
		case n.nothing():
		case len(n.All) > 0:
			flat = append(flat, n.All...)
		default:
			flat = append(flat, n)
		}
	}
	flat = distinct(flat)
	// One of several is not needed beside all that is needed, if it is among that.
	flat = slices.DeleteFunc(flat, func(n Need) bool {
		return slices.ContainsFunc(n.Any, func(part Need) bool { return contains(flat, part) })
	})
	if len(flat) < 2 {
		return first(flat)
	}
	return Need{All: flat}
}

// Any needs one of some needs: nothing, if one of them is nothing.
func Any(needs ...Need) Need {
	var flat []Need
	for _, n := range needs {
		switch {
		case n.nothing():
			return Need{}
		case len(n.Any) > 0:
			flat = append(flat, n.Any...)
		default:
			flat = append(flat, n)
		}
	}
	flat = distinct(flat)
	// Where all of one need are among those of another, the other is never the one that suffices.
	out := slices.DeleteFunc(slices.Clone(flat), func(n Need) bool {
		return slices.ContainsFunc(flat, func(less Need) bool { return less.key() != n.key() && n.includes(less) })
	})
	if len(out) < 2 {
		return first(out)
	}
	return Need{Any: out}
}

// Metrics lists the metrics that a need names, sorted.
func (n Need) Metrics() []string {
	var out []string
	for _, leaf := range n.Leaves() {
		out = append(out, leaf.Metric)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Leaves lists the needs of single metrics that a need is made of.
func (n Need) Leaves() (out []Need) {
	if n.Metric != "" {
		return []Need{n}
	}
	for _, part := range slices.Concat(n.All, n.Any) {
		out = append(out, part.Leaves()...)
	}
	return out
}

// Asks is the source that a single metric is asked of, host.Source by its name; empty if the Desc does not say, or only of labels that are
// not needed.
func (n Need) Asks(d *exposition.Desc) string {
	needed := func(label string) bool { return slices.Contains(n.Labels, label) }
	if len(d.AskedLabels) > 0 && !slices.ContainsFunc(d.AskedLabels, needed) {
		return ""
	}
	return d.Asks
}

func (n Need) nothing() bool { return n.Metric == "" && len(n.All) == 0 && len(n.Any) == 0 }

// includes says whether all that less needs is among what n needs.
func (n Need) includes(less Need) bool {
	for _, part := range less.parts() {
		if !contains(n.parts(), part) {
			return false
		}
	}
	return true
}

// parts are the needs that have to be met together.
func (n Need) parts() []Need {
	if len(n.All) > 0 {
		return n.All
	}
	return []Need{n}
}

// key is the need as text: metric{label,…}, (a & b), (a | b).
func (n Need) key() string {
	switch {
	case n.State != "":
		return n.Metric + "{" + strings.Join(n.Labels, ",") + "=" + n.State + "}"
	case len(n.Labels) > 0:
		return n.Metric + "{" + strings.Join(n.Labels, ",") + "}"
	case n.Metric != "":
		return n.Metric
	case len(n.Any) > 0:
		return "(" + keys(n.Any, " | ") + ")"
	}
	return "(" + keys(n.All, " & ") + ")"
}

func (n Need) String() string { return n.key() }

func keys(needs []Need, between string) string {
	out := make([]string, len(needs))
	for i, n := range needs {
		out[i] = n.key()
	}
	return strings.Join(out, between)
}

// distinct sorts needs and leaves each once.
func distinct(needs []Need) []Need {
	slices.SortFunc(needs, func(a, b Need) int { return strings.Compare(a.key(), b.key()) })
	return slices.CompactFunc(needs, func(a, b Need) bool { return a.key() == b.key() })
}

func contains(needs []Need, n Need) bool {
	return slices.ContainsFunc(needs, func(x Need) bool { return x.key() == n.key() })
}

func first(needs []Need) Need {
	if len(needs) == 0 {
		return Need{}
	}
	return needs[0]
}
