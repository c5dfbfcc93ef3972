// Package coverage determines which alerts cannot be evaluated on a host, with the reason: it compares the metrics that
// their rules read with the metrics of a round. An alert that does not apply to the host (GPU alerts without GPUs) is
// not a gap.
package coverage

import (
	"maps"
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
	there := keysOf(flat)
	flat = slices.DeleteFunc(flat, func(n Need) bool {
		return slices.ContainsFunc(n.Any, func(part Need) bool { return there[part.key()] })
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
	parts := make([][]string, len(flat))
	for i, n := range flat {
		for _, part := range n.parts() {
			parts[i] = append(parts[i], part.key())
		}
	}
	var out []Need
	for i, n := range flat {
		if len(parts[i]) < 2 || !includesAnother(parts, i) {
			out = append(out, n)
		}
	}
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

// includesAnother reports whether one need requires everything that another one requires; both by the keys of parts.
func includesAnother(parts [][]string, i int) bool {
	own := map[string]bool{}
	for _, key := range parts[i] {
		own[key] = true
	}
	for j, other := range parts {
		if j != i && !slices.ContainsFunc(other, func(key string) bool { return !own[key] }) {
			return true
		}
	}
	return false
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
	byKey := map[string]Need{}
	for _, n := range needs {
		byKey[n.key()] = n
	}
	out := make([]Need, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		out = append(out, byKey[key])
	}
	return out
}

func keysOf(needs []Need) map[string]bool {
	out := make(map[string]bool, len(needs))
	for _, n := range needs {
		out[n.key()] = true
	}
	return out
}

func first(needs []Need) Need {
	if len(needs) == 0 {
		return Need{}
	}
	return needs[0]
}
