// Package exposition holds samples as they are served. A series keeps its text between rounds, so that a scrape formats
// numbers only; a test holds the output equal to that of Prometheus' own encoder, byte for byte.
package exposition

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
)

// maxLabel bounds a label value that comes from hardware, in bytes.
const maxLabel = 128

// Sink turns samples into families. It drops and counts a sample that is invalid, undeclared or there twice.
type Sink struct {
	descs   map[*Desc]*table
	order   []*table
	round   uint64
	dropped map[string]int
	key     []byte
}

// table is what a Sink knows about one Desc.
type table struct {
	head   *Head
	series map[string]*Series // by label values as they come from hardware, of those that were the first with their text
	texts  map[string]*Series // by text: label sets may become one when they are made valid
	points []Point
	last   []Point // of the round before
}

// Head describes a family.
type Head struct {
	Desc        *Desc
	text, openM string // comment lines in both formats
	sorted      []int  // indices of Desc.Labels in the order of their names
}

// Series is a label set of a family and its text. It does not change.
type Series struct {
	values []string // of the labels as they came from hardware
	text   string   // name{label="value"} and a blank
	hist   *histogramText
	round  uint64 // of the Sink, when it was emitted last
}

// Point is a sample.
type Point struct {
	Series  *Series
	Value   float64  // of a histogram, the sum
	buckets *buckets // of a histogram
}

// buckets are cumulative, the last without end.
type buckets []*dto.Bucket

// Samples is how many series a Prometheus makes of the point.
func (p Point) Samples() int {
	if p.buckets == nil {
		return 1
	}
	return len(*p.buckets) + 2
}

// Family is a metric family of one round. It does not change.
type Family struct {
	Head   *Head
	Points []Point
}

// Has says whether a sample has this value of a label.
func (f Family) Has(label, value string) bool {
	i := slices.Index(f.Head.Desc.Labels, label)
	return i >= 0 && slices.ContainsFunc(f.Points, func(p Point) bool { return p.Series.values[i] == value })
}

// Count is how many samples have a label with a value; all where the label is empty.
func (f Family) Count(label, value string) (n int) {
	i := slices.Index(f.Head.Desc.Labels, label)
	for _, p := range f.Points {
		if label == "" || i >= 0 && p.Series.values[i] == value {
			n++
		}
	}
	return n
}

// HasOther says whether a sample has another value of a label; also where it has no such label.
func (f Family) HasOther(label, value string) bool {
	i := slices.Index(f.Head.Desc.Labels, label)
	return slices.ContainsFunc(f.Points, func(p Point) bool { return i < 0 || p.Series.values[i] != value })
}

// Samples lists the samples: the values of the labels in the order of the Desc, as they came from hardware, and the value.
func (f Family) Samples() iter.Seq2[[]string, float64] {
	return func(yield func([]string, float64) bool) {
		for _, p := range f.Points {
			if !yield(p.Series.values, p.Value) {
				return
			}
		}
	}
}

// Tells says whether one sample has a value for each of some labels.
func (f Family) Tells(labels ...string) bool {
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

// NewSink makes a sink for the samples of some Descs.
func NewSink(descs []*Desc) *Sink {
	s := &Sink{descs: make(map[*Desc]*table, len(descs)), dropped: map[string]int{}}
	for _, d := range descs {
		t := &table{head: newHead(d), series: map[string]*Series{}, texts: map[string]*Series{}}
		s.descs[d] = t
		s.order = append(s.order, t)
	}
	return s
}

// Begin starts a round.
func (s *Sink) Begin() {
	clear(s.dropped)
	s.round++
	for _, t := range s.order {
		t.points = make([]Point, 0, len(t.series))
	}
}

// End returns the families that have samples, and forgets series that are gone.
func (s *Sink) End() []Family {
	out := make([]Family, 0, len(s.order))
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

// Dropped counts the samples of this round that were dropped, by reason: bad_value, duplicate, undeclared.
func (s *Sink) Dropped() map[string]int { return s.dropped }

// Emit adds a sample.
func (s *Sink) Emit(d *Desc, value float64, labels ...string) {
	t := s.descs[d]
	switch {
	case t == nil:
		s.dropped["undeclared"]++
		return
	case len(labels) != len(d.Labels), math.IsNaN(value), math.IsInf(value, 0), d.Type == Counter && value < 0, d.Type == Histogram:
		s.dropped["bad_value"]++
		return
	}
	s.add(t, Point{Value: value}, labels)
}

// add puts a point to its series, if it is the first of this round.
func (s *Sink) add(t *table, p Point, labels []string) {
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
		return t.last[n].Series // rounds are alike
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

// newSeries makes the text of a series.
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

// labels are the labels of a series in the order of their names, made valid. An empty value is no label, as in PromQL.
func (h *Head) labels(values []string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, i := range h.sorted {
			if v := ValidLabel(values[i]); v != "" && !yield(h.Desc.Labels[i], v) {
				return
			}
		}
	}
}

// ValidLabel makes a string from hardware valid: UTF-8, no control characters, no blanks around, at most maxLabel bytes.
func ValidLabel(s string) string {
	plain := len(s) <= maxLabel
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] > ' ' && s[i] < 0x7f
	}
	if plain {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != utf8.RuneError {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
	if len(s) > maxLabel {
		s = s[:maxLabel]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return strings.TrimSpace(s)
}
