package exposition

import (
	"math"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// HistogramValue is a sample of a histogram.
type HistogramValue struct {
	Counts []uint64 // per bucket, not cumulative; the last is +Inf
	Sum    float64
}

// histogramText is the lines of a histogram, each up to its value.
type histogramText struct {
	text, openM []string // of the buckets, in both formats
	sum, count  string
}

// newHistogramText builds the lines from the text of a series without suffix.
func newHistogramText(d *Desc, series string) *histogramText {
	labels := strings.TrimSuffix(strings.TrimPrefix(series, d.Name), " ")
	open := "{"
	if labels != "" {
		open = strings.TrimSuffix(labels, "}") + ","
	}
	h := &histogramText{sum: d.Name + "_sum" + labels + " ", count: d.Name + "_count" + labels + " "}
	for _, bound := range d.Bounds {
		h.text = append(h.text, d.Name+"_bucket"+open+`le="`+string(appendFloat(nil, bound))+`"} `)
		h.openM = append(h.openM, d.Name+"_bucket"+open+`le="`+string(appendOpenMetricsFloat(nil, bound))+`"} `)
	}
	last := d.Name + "_bucket" + open + `le="+Inf"} `
	h.text, h.openM = append(h.text, last), append(h.openM, last)
	return h
}

// EmitHistogram adds a sample of a histogram.
func (s *Sink) EmitHistogram(d *Desc, v HistogramValue, labels ...string) {
	t := s.descs[d]
	switch {
	case t == nil:
		s.dropped["undeclared"]++
		return
	case d.Type != Histogram, len(labels) != len(d.Labels), len(v.Counts) != len(d.Bounds)+1, math.IsNaN(v.Sum),
		math.IsInf(v.Sum, 0):
		s.dropped["bad_value"]++
		return
	}
	s.add(t, Point{Value: v.Sum, buckets: cumulate(d.Bounds, v.Counts)}, labels)
}

// cumulate returns cumulative buckets.
func cumulate(bounds []float64, counts []uint64) *buckets {
	total := uint64(0)
	out := make(buckets, len(counts))
	for i, n := range counts {
		total += n
		so, bound := total, math.Inf(1)
		if i < len(bounds) {
			bound = bounds[i]
		}
		out[i] = &dto.Bucket{CumulativeCount: &so, UpperBound: &bound}
	}
	return &out
}

// count returns the number of all observations.
func (b buckets) count() uint64 { return b[len(b)-1].GetCumulativeCount() }

// histogram omits the +Inf bucket, as the client library does.
func (p Point) histogram() *dto.Histogram {
	b := *p.buckets
	n := b.count()
	return &dto.Histogram{SampleCount: &n, SampleSum: &p.Value, Bucket: b[:len(b)-1]}
}

func (p Point) appendHistogram(b []byte) []byte {
	h := p.Series.hist
	for i, bucket := range *p.buckets {
		b = append(b, h.text[i]...)
		b = append(appendFloat(b, float64(bucket.GetCumulativeCount())), '\n')
	}
	b = append(b, h.sum...)
	b = append(appendFloat(b, p.Value), '\n')
	b = append(b, h.count...)
	return append(appendFloat(b, float64(p.buckets.count())), '\n')
}

func (p Point) appendOpenMetricsHistogram(b []byte) []byte {
	h := p.Series.hist
	for i, bucket := range *p.buckets {
		b = append(b, h.openM[i]...)
		b = append(strconv.AppendUint(b, bucket.GetCumulativeCount(), 10), '\n')
	}
	b = append(b, h.sum...)
	b = append(appendOpenMetricsFloat(b, p.Value), '\n')
	b = append(b, h.count...)
	return append(strconv.AppendUint(b, p.buckets.count(), 10), '\n')
}
