// Package exposition holds samples in exposition format. A series keeps its text between rounds, so that a scrape
// formats only numbers. A test compares the output with that of Prometheus' own encoder byte for byte.
package exposition

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/words"
)

// maxLabel limits a label value from hardware, in bytes.
const maxLabel = 128

// Sink converts samples into families. It drops and counts samples that are invalid, undeclared or duplicate.
type Sink struct {
	descs   map[*Desc]*table
	order   []*table
	round   uint64
	dropped map[string]int
	key     []byte
	omit    func(device, metric string) bool // nil: nothing
	calls   []*table                         // of the samples of the previous round, in their order
	next    int                              // index of the next sample
}

// table is a Desc with its series.
type table struct {
	head   *Head
	device int                // index of the label device; -1: none
	series map[string]*Series // by raw label values; of label sets with the same text only the first
	texts  map[string]*Series // by text: different raw label sets may become equal when made valid
	points []Point
	last   []Point // of the previous round
}

// Head describes a family.
type Head struct {
	Desc   *Desc
	sorted []int // indices of Desc.Labels, sorted by name
	place  int   // among the families of all sinks made together, sorted by name

	textOnce, openMOnce   sync.Once
	textLines, openMLines string // of text and openM
}

// Series is a label set of a family and its text. It is immutable.
type Series struct {
	values []string // raw label values
	text   string   // name{label="value"} and a blank
	hist   *histogramText
	round  uint64 // of the Sink, of the last Emit
}

// Point is a sample.
type Point struct {
	Series  *Series
	Value   float64  // of a histogram: the sum
	buckets *buckets // of a histogram
}

// buckets are cumulative; the last is +Inf.
type buckets []*dto.Bucket

// Samples returns the number of Prometheus series of the point.
func (p Point) Samples() int {
	if p.buckets == nil {
		return 1
	}
	return len(*p.buckets) + 2
}

// Family is a metric family of one round. It is immutable.
type Family struct {
	Head   *Head
	Points []Point
}

// Compare returns the order of Merge.
func (f Family) Compare(other Family) int { return f.Head.place - other.Head.place }

// SameSeries reports whether two lists of families have the same series in the same order.
func SameSeries(a, b []Family) bool {
	return slices.EqualFunc(a, b, func(x, y Family) bool {
		return x.Head == y.Head && slices.EqualFunc(x.Points, y.Points, func(p, q Point) bool { return p.Series == q.Series })
	})
}

// Has reports whether a sample has this value of a label.
func (f Family) Has(label, value string) bool {
	i := slices.Index(f.Head.Desc.Labels, label)
	return i >= 0 && slices.ContainsFunc(f.Points, func(p Point) bool { return p.Series.values[i] == value })
}

// Count returns the number of samples that have a label with a value; of all samples if label is empty.
func (f Family) Count(label, value string) (n int) {
	i := slices.Index(f.Head.Desc.Labels, label)
	for _, p := range f.Points {
		if label == "" || i >= 0 && p.Series.values[i] == value {
			n++
		}
	}
	return n
}

// HasOther reports whether a sample has a different value of a label, or lacks it.
func (f Family) HasOther(label, value string) bool {
	i := slices.Index(f.Head.Desc.Labels, label)
	return slices.ContainsFunc(f.Points, func(p Point) bool { return i < 0 || p.Series.values[i] != value })
}

// CountBy adds the number of Prometheus series by the value of a label.
func (f Family) CountBy(label string, n map[string]int) {
	if i := slices.Index(f.Head.Desc.Labels, label); i >= 0 {
		for _, p := range f.Points {
			n[p.Series.values[i]] += p.Samples()
		}
	}
}

// Without returns the family without the samples whose label has one of the values.
func (f Family) Without(label string, values map[string]bool) Family {
	i := slices.Index(f.Head.Desc.Labels, label)
	if i < 0 {
		return f
	}
	f.Points = slices.DeleteFunc(slices.Clone(f.Points), func(p Point) bool { return values[p.Series.values[i]] })
	return f
}

// Samples iterates over the samples: raw label values in the order of the Desc, and the value.
func (f Family) Samples() iter.Seq2[[]string, float64] {
	return func(yield func([]string, float64) bool) {
		for _, p := range f.Points {
			if !yield(p.Series.values, p.Value) {
				return
			}
		}
	}
}

// HasLabels reports whether a sample has a value for each of the labels.
func (f Family) HasLabels(labels ...string) bool {
	at := make([]int, 0, len(labels))
	for _, l := range labels {
		i := slices.Index(f.Head.Desc.Labels, l)
		if i < 0 {
			return false
		}
		at = append(at, i)
	}
	return slices.ContainsFunc(f.Points, func(p Point) bool {
		return !slices.ContainsFunc(at, func(i int) bool { return p.Series.values[i] == "" })
	})
}

// NewSink returns a sink for the samples of some Descs.
func NewSink(descs []*Desc) *Sink { return NewSinks(descs)[0] }

// NewSinks returns a sink for each list of Descs. Merge joins the families of all of them.
func NewSinks(lists ...[]*Desc) (out []*Sink) {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b *Desc) int { return strings.Compare(a.Name, b.Name) })
	places := make(map[*Desc]int, len(all))
	for _, d := range all {
		if _, again := places[d]; !again {
			places[d] = len(places)
		}
	}
	for _, descs := range lists {
		s := &Sink{descs: make(map[*Desc]*table, len(descs)), dropped: map[string]int{}}
		for _, d := range descs {
			t := &table{
				head: newHead(d), device: slices.Index(d.Labels, "device"), series: map[string]*Series{},
				texts: map[string]*Series{},
			}
			t.head.place = places[d]
			s.descs[d] = t
			s.order = append(s.order, t)
		}
		out = append(out, s)
	}
	return out
}

// Omit makes the present round leave out metrics of devices, by the label device.
func (s *Sink) Omit(of func(device, metric string) bool) { s.omit = of }

// omits reports whether a sample is left out.
func (s *Sink) omits(t *table, labels []string) bool {
	return s.omit != nil && t.device >= 0 && s.omit(labels[t.device], t.head.Desc.Name)
}

// Begin starts a round.
func (s *Sink) Begin() {
	s.omit, s.next = nil, 0
	clear(s.dropped)
	s.round++
	n := 0
	for _, t := range s.order {
		n += len(t.series)
	}
	points := make([]Point, n) // of all families, which are kept and discarded together
	for _, t := range s.order {
		n := len(t.series)
		t.points, points = points[:0:n], points[n:]
	}
}

// End returns the families with samples, and discards series without one.
func (s *Sink) End() []Family {
	n := 0
	for _, t := range s.order {
		n += min(len(t.points), 1)
	}
	out := make([]Family, 0, n)
	for _, t := range s.order {
		if len(t.points) < len(t.series) {
			for k, x := range t.series {
				if x.round != s.round {
					delete(t.series, k)
					delete(t.texts, x.text)
				}
			}
		}
		if len(t.points) > 0 {
			out = append(out, Family{t.head, t.points})
		}
		t.points, t.last = nil, t.points
	}
	return out
}

// Dropped counts the dropped samples of this round by reason: bad_value, duplicate, undeclared.
func (s *Sink) Dropped() map[string]int { return s.dropped }

// Emit adds a sample.
func (s *Sink) Emit(d *Desc, value float64, labels ...string) {
	t := s.tableOf(d)
	switch {
	case t == nil:
		s.dropped["undeclared"]++
		return
	case len(labels) != len(d.Labels), math.IsNaN(value), math.IsInf(value, 0), d.Type == Counter && value < 0,
		d.Type == Histogram:
		s.dropped["bad_value"]++
		return
	}
	s.add(t, Point{Value: value}, labels)
}

// tableOf returns the table of a Desc; nil: undeclared. Successive rounds have the same order.
func (s *Sink) tableOf(d *Desc) *table {
	i := s.next
	if i < len(s.calls) && s.calls[i].head.Desc == d {
		s.next++
		return s.calls[i]
	}
	t := s.descs[d]
	if t != nil {
		s.calls, s.next = append(s.calls[:i], t), i+1
	}
	return t
}

// add adds a point to its series, if it is the first in this round.
func (s *Sink) add(t *table, p Point, labels []string) {
	if s.omits(t, labels) {
		return
	}
	x := s.seriesOf(t, labels)
	if x.round == s.round {
		s.dropped["duplicate"]++
		return
	}
	x.round = s.round
	p.Series = x
	t.points = append(t.points, p)
}

func (s *Sink) seriesOf(t *table, labels []string) *Series {
	if n := len(t.points); n < len(t.last) && slices.Equal(t.last[n].Series.values, labels) {
		return t.last[n].Series // successive rounds have the same order
	}
	s.key = s.key[:0]
	for _, l := range labels {
		s.key = append(binary.AppendUvarint(s.key, uint64(len(l))), l...)
	}
	if x := t.series[string(s.key)]; x != nil {
		return x
	}
	x := t.newSeries(labels)
	x.values = slices.Clone(labels)
	if same := t.texts[x.text]; same != nil {
		return same
	}
	if t.head.Desc.Type == Histogram {
		x.hist = newHistogramText(t.head.Desc, x.text)
	}
	t.series[string(s.key)], t.texts[x.text] = x, x
	return x
}

// newSeries builds the text of a series.
func (t *table) newSeries(labels []string) *Series {
	var b strings.Builder
	b.WriteString(t.head.Desc.Name)
	before := byte('{')
	for name, v := range t.head.labels(labels) {
		b.WriteByte(before)
		b.WriteString(name + `="` + escapeValue(v) + `"`)
		before = ','
	}
	if before == ',' {
		b.WriteByte('}')
	}
	b.WriteByte(' ')
	return &Series{text: b.String()}
}

// labels returns the valid labels of a series, sorted by name. Empty values are omitted, as in PromQL.
func (h *Head) labels(values []string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, i := range h.sorted {
			if v := ValidLabel(values[i]); v != "" && !yield(h.Desc.Labels[i], v) {
				return
			}
		}
	}
}

// ValidLabel returns a text through the gate for foreign ones (words.Foreign), without surrounding blanks, at most
// maxLabel bytes.
func ValidLabel(s string) string {
	plain := len(s) <= maxLabel
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] > ' ' && s[i] < 0x7f
	}
	if plain {
		return s
	}
	return strings.TrimSpace(words.Cut(words.Foreign(strings.TrimSpace(s)), maxLabel))
}
