// Package coverage determines which alerts cannot be evaluated on a host, with the reason: it compares the metrics that
// their rules read with the metrics of a round. An alert that does not apply to the host (GPU alerts without GPUs) is
// not a gap.
package coverage

import (
	"slices"
	"strings"

	"rdma_exporter/internal/exposition"
)

// Need is the set of metrics that an expression requires to have a result, whatever their values. The zero Need
// requires nothing.
type Need struct {
	Metric string   // requires a sample
	Labels []string // with a value for each of these, sorted,
	State  string   // and this one for the label state, or one of these, separated by |, for the label reason; empty: any
	Given  []string // as name=value, sorted: labels that rules add to its samples, by which other rules select them

	All []Need // all are required
	Any []Need // one is required
}

// Alert is an alert, or one of its faults (label reason), with the requirements of its rules.
type Alert struct {
	Name, Fault string
	Need        Need
}

// String returns the name: "RDMAPortDown", or "RDMAPortDown/plane".
func (a Alert) String() string { return Named(a.Name, a.Fault) }

// Named returns the name of an alert, or of one of its faults.
func Named(alert, fault string) string {
	if fault == "" {
		return alert
	}
	return alert + "/" + fault
}

// All requires each need, without those implied by others.
func All(needs ...Need) Need {
	var flat []Need
	for _, n := range needs {
		switch {
		case n.isEmpty():
		case len(n.All) > 0:
			flat = append(flat, n.All...)
		default:
			flat = append(flat, n)
		}
	}
	flat = sortUnique(flat)
	// An alternative that is required anyway makes the Any that contains it redundant.
	flat = slices.DeleteFunc(flat, func(n Need) bool {
		return slices.ContainsFunc(n.Any, func(part Need) bool { return contains(flat, part) })
	})
	if len(flat) < 2 {
		return first(flat)
	}
	return Need{All: flat}
}

// Any requires one of the needs; nothing if one of them is empty.
func Any(needs ...Need) Need {
	var flat []Need
	for _, n := range needs {
		switch {
		case n.isEmpty():
			return Need{}
		case len(n.Any) > 0:
			flat = append(flat, n.Any...)
		default:
			flat = append(flat, n)
		}
	}
	flat = sortUnique(flat)
	// A need that includes another alternative is redundant: whenever it is met, so is the other one.
	out := slices.DeleteFunc(slices.Clone(flat), func(n Need) bool {
		return slices.ContainsFunc(flat, func(less Need) bool { return less.key() != n.key() && n.includes(less) })
	})
	if len(out) < 2 {
		return first(out)
	}
	return Need{Any: out}
}

// Metrics returns the metrics in a need, sorted.
func (n Need) Metrics() []string {
	var out []string
	for _, leaf := range n.Leaves() {
		out = append(out, leaf.Metric)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Leaves returns the single metrics in a need.
func (n Need) Leaves() (out []Need) {
	if n.Metric != "" {
		return []Need{n}
	}
	for _, part := range slices.Concat(n.All, n.Any) {
		out = append(out, part.Leaves()...)
	}
	return out
}

// Asks returns the source of a single metric (a source.Source by name); empty if the Desc has none, or only for labels
// that are not required.
func (n Need) Asks(d *exposition.Desc) string {
	needed := func(label string) bool { return slices.Contains(n.Labels, label) }
	if len(d.AskedLabels) > 0 && !slices.ContainsFunc(d.AskedLabels, needed) {
		return ""
	}
	return d.Asks
}

func (n Need) isEmpty() bool { return n.Metric == "" && len(n.All) == 0 && len(n.Any) == 0 }

// includes reports whether n requires everything that less requires.
func (n Need) includes(less Need) bool {
	for _, part := range less.parts() {
		if !contains(n.parts(), part) {
			return false
		}
	}
	return true
}

// parts returns the needs that have to be met together.
func (n Need) parts() []Need {
	if len(n.All) > 0 {
		return n.All
	}
	return []Need{n}
}

// key returns the need as text: metric{label,…}[name=value], (a & b), (a | b).
func (n Need) key() string {
	switch {
	case len(n.Given) > 0:
		given := n.Given
		n.Given = nil
		return n.key() + "[" + strings.Join(given, ",") + "]"
	case n.State != "":
		return n.Metric + "{" + strings.Join(n.Labels, ",") + "=" + n.State + "}"
	case len(n.Labels) > 0:
		return n.Metric + "{" + strings.Join(n.Labels, ",") + "}"
	case n.Metric != "":
		return n.Metric
	case len(n.Any) > 0:
		return "(" + joinKeys(n.Any, " | ") + ")"
	}
	return "(" + joinKeys(n.All, " & ") + ")"
}

func (n Need) String() string { return n.key() }

func joinKeys(needs []Need, between string) string {
	out := make([]string, len(needs))
	for i, n := range needs {
		out[i] = n.key()
	}
	return strings.Join(out, between)
}

// sortUnique sorts needs and removes duplicates.
func sortUnique(needs []Need) []Need {
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
