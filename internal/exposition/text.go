package exposition

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

var (
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

func escapeValue(s string) string { return valueEscapes.Replace(s) }

func newHead(d *Desc) *Head {
	sorted := make([]int, len(d.Labels))
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortFunc(sorted, func(a, b int) int { return strings.Compare(d.Labels[a], d.Labels[b]) })
	return &Head{Desc: d, sorted: sorted}
}

// text returns the comment lines of a family in the Prometheus text format. Most hosts have samples of a third of the
// families.
func (h *Head) text() string {
	h.textOnce.Do(func() {
		h.textLines = "# HELP " + h.Desc.Name + " " + helpEscapes.Replace(h.Desc.Help) + "\n# TYPE " + h.Desc.Name + " " +
			h.Desc.Type.String() + "\n"
	})
	return h.textLines
}

// openM returns the comment lines in OpenMetrics, which names the family of a counter without the suffix of its
// samples, and whose type untyped is unknown.
func (h *Head) openM() string {
	h.openMOnce.Do(func() {
		name, kind := h.Desc.Name, h.Desc.Type.String()
		if h.Desc.Type == Counter {
			name = strings.TrimSuffix(name, "_total")
		}
		if h.Desc.Type == Untyped {
			kind = "unknown"
		}
		h.openMLines = "# HELP " + name + " " + valueEscapes.Replace(h.Desc.Help) + "\n# TYPE " + name + " " + kind + "\n"
	})
	return h.openMLines
}

// AppendText writes families in the Prometheus text format, version 0.0.4.
func AppendText(b []byte, families []Family) []byte {
	for _, f := range families {
		b = append(b, f.Head.text()...)
		for _, p := range f.Points {
			if p.buckets != nil {
				b = p.appendHistogram(b)
				continue
			}
			b = append(b, p.Series.text...)
			b = append(appendFloat(b, p.Value), '\n')
		}
	}
	return b
}

// AppendOpenMetrics writes families in the OpenMetrics text format, without its closing line.
func AppendOpenMetrics(b []byte, families []Family) []byte {
	for _, f := range families {
		b = append(b, f.Head.openM()...)
		for _, p := range f.Points {
			if p.buckets != nil {
				b = p.appendOpenMetricsHistogram(b)
				continue
			}
			b = append(b, p.Series.text...)
			b = append(appendOpenMetricsFloat(b, p.Value), '\n')
		}
	}
	return b
}

// appendOpenMetricsFloat formats a finite number so that it does not look like an integer.
func appendOpenMetricsFloat(b []byte, v float64) []byte {
	start := len(b)
	b = appendFloat(b, v)
	if !slices.ContainsFunc(b[start:], func(c byte) bool { return c == '.' || c == 'e' }) {
		b = append(b, '.', '0')
	}
	return b
}

// appendFloat formats a finite number, with a fast path for the frequent small integers.
func appendFloat(b []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1e6 { // and 0 for -0, as Prometheus' encoder does
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// Merge sorts families of sinks that were made together by name, and joins those of the same Desc: some drivers expose
// in hw_counters what others expose in counters.
func Merge(families []Family) []Family {
	n := 0
	for _, f := range families {
		n = max(n, f.Head.place+1)
	}
	out := make([]Family, n)
	for _, f := range families {
		if o := &out[f.Head.place]; o.Head == nil {
			*o = f
		} else {
			o.Points = slices.Concat(o.Points, f.Points)
		}
	}
	return slices.DeleteFunc(out, func(f Family) bool { return f.Head == nil })
}

// DTO converts families to the type of the Prometheus client library, one at a time: together they are larger than the
// families.
func DTO(families []Family) iter.Seq[*dto.MetricFamily] {
	return func(yield func(*dto.MetricFamily) bool) {
		for _, f := range families {
			if !yield(f.dto()) {
				return
			}
		}
	}
}

func (f Family) dto() *dto.MetricFamily {
	d := f.Head.Desc
	out := &dto.MetricFamily{Name: &d.Name, Help: &d.Help}
	for _, p := range f.Points {
		m := &dto.Metric{}
		for name, v := range f.Head.labels(p.Series.values) {
			m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &v})
		}
		switch d.Type {
		case Counter:
			out.Type = dto.MetricType_COUNTER.Enum()
			m.Counter = &dto.Counter{Value: &p.Value}
		case Gauge:
			out.Type = dto.MetricType_GAUGE.Enum()
			m.Gauge = &dto.Gauge{Value: &p.Value}
		case Histogram:
			out.Type = dto.MetricType_HISTOGRAM.Enum()
			m.Histogram = p.histogram()
		default:
			out.Type = dto.MetricType_UNTYPED.Enum()
			m.Untyped = &dto.Untyped{Value: &p.Value}
		}
		out.Metric = append(out.Metric, m)
	}
	return out
}
