package exposition

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
)

func histogramOf(bounds []float64, labels ...string) *Desc {
	d := descOf(Histogram, labels...)
	d.Bounds = bounds
	return d
}

func TestTextOfHistogramsIsThatOfPrometheus(t *testing.T) {
	for _, bounds := range [][]float64{nil, {1}, {0.01, 0.05, 0.1, 0.25, 0.5, 0.9}, {-1, 0, 1e-7, 2, 1e6, 1e21}} {
		for _, labels := range [][]string{nil, {"device"}, {"port", "device", "a"}} {
			d := histogramOf(bounds, labels...)
			s := NewSink([]*Desc{d})
			for round := range uint64(3) { // with new and cached series
				s.Begin()
				for i, v := range testValues() {
					counts := make([]uint64, len(bounds)+1)
					for j := range counts {
						counts[j] = (round + 1) * uint64(i*j)
					}
					counts[0] += round << 40
					l := []string{strings.Repeat("i", i+1), `quote "`, ""}
					s.EmitHistogram(d, HistogramValue{counts, v}, l[:len(labels)]...)
				}
				compare(t, s.End())
			}
		}
	}
}

// Prometheus reads the protobuf format too.
func TestHistogramsInProtobuf(t *testing.T) {
	d := histogramOf([]float64{0.5, 1}, "device")
	s := NewSink([]*Desc{d})
	s.Begin()
	s.EmitHistogram(d, HistogramValue{[]uint64{3, 0, 2}, 2.5}, "mlx5_0")
	families := s.End()
	h := families[0].dto().Metric[0].Histogram
	if h.GetSampleCount() != 5 || h.GetSampleSum() != 2.5 || len(h.Bucket) != 2 ||
		h.Bucket[0].GetCumulativeCount() != 3 || h.Bucket[1].GetCumulativeCount() != 3 || h.Bucket[1].GetUpperBound() != 1 {
		t.Error(h)
	}
	if n := families[0].Points[0].Samples(); n != 5 {
		t.Errorf("%d samples", n)
	}
	var b bytes.Buffer
	if err := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeProtoDelim)).Encode(families[0].dto()); err != nil ||
		b.Len() == 0 {
		t.Error(err)
	}
}

func TestSinkDropsBadHistograms(t *testing.T) {
	d, g := histogramOf([]float64{1}, "device"), descOf(Gauge, "device")
	good := HistogramValue{[]uint64{1, 2}, 3}
	s := NewSink([]*Desc{d, g})
	got := lines(s, func() {
		s.EmitHistogram(d, good, "mlx5_0")
		s.EmitHistogram(d, good, "mlx5_0")
		s.EmitHistogram(d, good)
		s.EmitHistogram(d, HistogramValue{[]uint64{1}, 3}, "mlx5_1")
		s.EmitHistogram(d, HistogramValue{[]uint64{1, 2}, math.NaN()}, "mlx5_1")
		s.EmitHistogram(g, good, "mlx5_1")
		s.EmitHistogram(histogramOf(nil), good)
		s.Emit(d, 1, "mlx5_1")
	})
	want := []string{
		`rdma_x_bucket{device="mlx5_0",le="1"} 1`, `rdma_x_bucket{device="mlx5_0",le="+Inf"} 3`,
		`rdma_x_sum{device="mlx5_0"} 3`, `rdma_x_count{device="mlx5_0"} 3`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got, want := s.Dropped(), map[string]int{"duplicate": 1, "bad_value": 5, "undeclared": 1}; !maps.Equal(got, want) {
		t.Errorf("dropped %v, want %v", got, want)
	}
}
