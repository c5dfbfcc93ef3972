package rounds

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/collector"
)

// maxLabel bounds a label value that comes from hardware, in bytes.
const maxLabel = 128

// sink turns samples into metric families. It keeps the labels of series between rounds, so that a steady state allocates
// little, and drops and counts a sample that is invalid, undeclared or there twice.
type sink struct {
	families map[*collector.Desc]*family
	order    []*family
	dropped  map[string]int // by reason: invalid, duplicate, undeclared
	key      []byte
}

// family is one metric family of a round.
type family struct {
	desc   *collector.Desc
	sorted []int // indices of desc.Labels in the order of their names
	mf     *dto.MetricFamily
	before map[string][]*dto.LabelPair // labels of the series of the round before
	series map[string][]*dto.LabelPair // and of this one
}

// sample is a metric and its value in one piece of memory.
type sample struct {
	metric  dto.Metric
	counter dto.Counter
	gauge   dto.Gauge
	untyped dto.Untyped
	value   float64
}

func newSink(descs []*collector.Desc) *sink {
	s := &sink{families: make(map[*collector.Desc]*family, len(descs)), dropped: map[string]int{}}
	for _, d := range descs {
		f := &family{desc: d, sorted: make([]int, len(d.Labels)), series: map[string][]*dto.LabelPair{}}
		for i := range f.sorted {
			f.sorted[i] = i
		}
		slices.SortFunc(f.sorted, func(a, b int) int { return strings.Compare(d.Labels[a], d.Labels[b]) })
		s.families[d] = f
		s.order = append(s.order, f)
	}
	return s
}

// begin starts a round.
func (s *sink) begin() {
	clear(s.dropped)
	for _, f := range s.order {
		t := dtoType(f.desc.Type)
		f.before, f.series = f.series, make(map[string][]*dto.LabelPair, len(f.series))
		f.mf = &dto.MetricFamily{Name: &f.desc.Name, Help: &f.desc.Help, Type: &t, Metric: make([]*dto.Metric, 0, len(f.before))}
	}
}

// end returns the families that have samples.
func (s *sink) end() []*dto.MetricFamily {
	var out []*dto.MetricFamily
	for _, f := range s.order {
		f.before = nil
		if len(f.mf.Metric) > 0 {
			out = append(out, f.mf)
		}
	}
	return out
}

// Emit adds a sample.
func (s *sink) Emit(d *collector.Desc, value float64, labels ...string) {
	f := s.families[d]
	switch {
	case f == nil:
		s.dropped["undeclared"]++
		return
	case len(labels) != len(d.Labels), math.IsNaN(value), math.IsInf(value, 0), d.Type == collector.Counter && value < 0:
		s.dropped["invalid"]++
		return
	}
	s.key = s.key[:0]
	for _, l := range labels {
		s.key = append(append(s.key, l...), 0xff)
	}
	pairs, known := f.before[string(s.key)]
	if !known {
		pairs = f.pairs(labels)
	}
	key := string(s.key)
	if _, twice := f.series[key]; twice {
		s.dropped["duplicate"]++
		return
	}
	f.series[key] = pairs
	m := &sample{value: value}
	m.metric.Label = pairs
	switch d.Type {
	case collector.Counter:
		m.counter.Value, m.metric.Counter = &m.value, &m.counter
	case collector.Gauge:
		m.gauge.Value, m.metric.Gauge = &m.value, &m.gauge
	default:
		m.untyped.Value, m.metric.Untyped = &m.value, &m.untyped
	}
	f.mf.Metric = append(f.mf.Metric, &m.metric)
}

// pairs makes the labels of a new series. An empty value is no label, as in PromQL.
func (f *family) pairs(labels []string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, 0, len(labels))
	for _, i := range f.sorted {
		if v := validLabel(labels[i]); v != "" {
			out = append(out, &dto.LabelPair{Name: &f.desc.Labels[i], Value: &v})
		}
	}
	return out
}

// validLabel makes a string from hardware valid: UTF-8, no control characters, no blanks around, at most maxLabel bytes.
func validLabel(s string) string {
	plain := len(s) <= maxLabel
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] > ' ' && s[i] < 0x7f
	}
	if plain {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) && r != utf8.RuneError {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
	s = strings.TrimSpace(s)
	if len(s) > maxLabel {
		s = s[:maxLabel]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return s
}

func dtoType(t collector.Type) dto.MetricType {
	switch t {
	case collector.Counter:
		return dto.MetricType_COUNTER
	case collector.Gauge:
		return dto.MetricType_GAUGE
	}
	return dto.MetricType_UNTYPED
}
