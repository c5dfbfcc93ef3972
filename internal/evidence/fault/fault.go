// Package fault has what the texts of all faults are made of: the alert with the series of its host, the names of parts
// of a host, and figures in words.
package fault

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/rules"
)

// Sample is a series with its value.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query evaluates a PromQL expression on the samples of a host, at the time of the last evaluation. An expression that
// fails has no result.
type Query func(expr string) []Sample

// Text is what is said of a fault. Each part is without the name of the host where its name is the subject.
type Text struct {
	Summary     string // a headline
	Description string // what is measured, and what it does to jobs
	Evidence    []Line
	Measured    string // value that is compared, with its unit; empty: none
	Limit       string // its limit, with the same unit; empty: none
	Diagnose    string // read-only commands
	Action      string
	DrainReason string // why jobs are to leave the host, or need not
	Elsewhere   bool   // the action is not on the part: where several have the fault, nothing that they share comes first
}

// Line is a line of evidence: "Rate: 200 Gb/s on 4 lanes.".
type Line struct{ Name, Text string }

// Fault is an alert on an object of a host, and the series of that host.
type Fault struct {
	Labels map[string]string // of the alert
	Value  float64           // of its expression
	query  Query
}

// New returns the fault of an alert with these labels and the value of its expression.
func New(labels map[string]string, value float64, query Query) *Fault {
	return &Fault{labels, value, query}
}

// With returns a fault on the same host with other labels and another value.
func (f *Fault) With(labels map[string]string, value float64) *Fault {
	return &Fault{labels, value, f.query}
}

// Kind is a kind of fault: what an alert on it says.
type Kind struct {
	Write func(*Fault) Text
	// Measure is the measurement of the fault where its series have more labels than its part: netdev, direction,
	// priority, lane. Of several series the first counts. Empty: the part is enough.
	Measure string
	OfHost  bool // the text is about the host: it names all parts, and the value is their number
}

// Kinds are kinds of faults, by symptom and reason: "exporter_degraded/state".
type Kinds map[string]Kind

// Merge joins tables of kinds.
func Merge(tables ...Kinds) Kinds {
	out := Kinds{}
	for _, table := range tables {
		for name, kind := range table {
			if out[name].Write != nil {
				panic("two texts of " + name)
			}
			out[name] = kind
		}
	}
	return out
}

// ShownParts is how many parts of a fault have a line of their own.
const ShownParts = 16

// selectors are the matchers that an expression may name: those of the object and what it is a part of.
var selectors = []struct {
	name   string
	labels []string
}{
	{"$host", []string{"cluster", "instance", "job"}},
	{"$device", []string{"cluster", "instance", "job", "device"}},
	{"$port", []string{"cluster", "instance", "job", "device", "port"}},
	{"$netdev", []string{"cluster", "instance", "job", "device", "port", "netdev"}},
	{"$link", []string{"cluster", "instance", "job", "node_guid", "port"}},
	{"$switch", []string{"cluster", "instance", "job", "node_guid"}},
	{"$gpu", []string{"cluster", "instance", "job", "gpu", "UUID"}},
}

// limit returns a threshold, if there is one of that name: the value that the site records, or the default.
func (f *Fault) limit(name string) (float64, bool) {
	all := rules.Thresholds()
	i := slices.IndexFunc(all, func(t rules.Threshold) bool { return t.Name == name })
	if i < 0 {
		return 0, false
	}
	if r := f.query("max(" + rules.ThresholdMetric + "{name=" + strconv.Quote(name) + "})"); len(r) > 0 {
		return r[0].Value, true
	}
	return all[i].Default, true
}

// threshold is a threshold in a text: {flaps-per-hour}, {paused-ratio%} as a percentage, {flaps-per-hour-1} less one: a
// limit that is reached, not exceeded.
var threshold = regexp.MustCompile(`\{([a-z]+(?:-[a-z]+)+)(%|-1)?\}`)

// Limits replaces the thresholds in a text or an expression. Braces of others, in the name of a device, stay.
func (f *Fault) Limits(text string) string {
	return threshold.ReplaceAllStringFunc(text, func(s string) string {
		m := threshold.FindStringSubmatch(s)
		v, ok := f.limit(m[1])
		switch {
		case !ok:
			return s
		case m[2] == "%":
			return strconv.FormatFloat(v*100, 'g', 6, 64) + "%"
		case m[2] == "-1":
			return strconv.FormatFloat(v-1, 'g', 6, 64)
		default:
			return strconv.FormatFloat(v, 'g', 6, 64)
		}
	})
}

// expand replaces thresholds in an expression, and $host, $device, $port, $netdev and $gpu by the matchers of the
// object.
func (f *Fault) expand(expr string) string {
	expr = f.Limits(expr)
	for _, s := range selectors {
		if !strings.Contains(expr, s.name) {
			continue
		}
		var matchers []string
		for _, l := range s.labels {
			matchers = append(matchers, l+"="+strconv.Quote(f.Labels[l]))
		}
		expr = strings.ReplaceAll(expr, s.name, strings.Join(matchers, ","))
	}
	return expr
}

// Of returns the fault with the labels of a part of the host, for expressions with $device, $port or $gpu.
func (f *Fault) Of(part Sample) *Fault {
	l := maps.Clone(f.Labels)
	maps.Copy(l, part.Labels)
	return &Fault{l, f.Value, f.query}
}

// Rows returns the results of an expression, sorted by labels, the first one foremost.
func (f *Fault) Rows(expr string, by ...string) []Sample {
	out := f.query(f.expand(expr))
	slices.SortStableFunc(out, func(a, b Sample) int {
		for _, l := range by {
			if c := cmp.Compare(a.Labels[l], b.Labels[l]); c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

// Has reports whether an expression has a result.
func (f *Fault) Has(expr string) bool { return len(f.Rows(expr)) > 0 }

// Number returns the value of the first result of an expression; false: there is none.
func (f *Fault) Number(expr string) (float64, bool) {
	if r := f.Rows(expr); len(r) > 0 {
		return r[0].Value, true
	}
	return 0, false
}

// Text returns the value of the first result of an expression, in a format; without a result the other text.
func (f *Fault) Text(expr, format, otherwise string) string {
	if v, ok := f.Number(expr); ok {
		return fmt.Sprintf(format, v)
	}
	return otherwise
}

// LabelOf returns a label of the first result of an expression, sorted by that label; empty: there is none.
func (f *Fault) LabelOf(expr, name string) string {
	if r := f.Rows(expr, name); len(r) > 0 {
		return r[0].Labels[name]
	}
	return ""
}

// LabelsOf returns a label of all results of an expression, sorted.
func (f *Fault) LabelsOf(expr, name string) (out []string) {
	for _, r := range f.Rows(expr, name) {
		out = append(out, r.Labels[name])
	}
	return out
}
