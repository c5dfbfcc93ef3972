package alerting_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/alerting"
)

type family = dto.MetricFamily

func ptr[T any](v T) *T { return &v }

func textsOf(samples []alerting.Sample) []string {
	var out []string
	for _, s := range samples {
		delete(s.Labels, "instance")
		delete(s.Labels, "job")
		out = append(out, fmt.Sprintf("%v %g", s.Labels, s.Value))
	}
	return out
}

func TestAppendKinds(t *testing.T) {
	e := newTestEngine(t, "groups: []")
	stepTo(t, e, timeAt(0),
		counter("c_total", 7, "device", "a"),
		&family{
			Name: ptr("u"), Type: ptr(dto.MetricType_UNTYPED), Metric: []*dto.Metric{{Untyped: &dto.Untyped{Value: ptr(3.0)}}},
		},
		&family{Name: ptr("h"), Type: ptr(dto.MetricType_HISTOGRAM), Metric: []*dto.Metric{{Histogram: &dto.Histogram{
			SampleCount: ptr[uint64](5), SampleSum: ptr(2.5),
			Bucket: []*dto.Bucket{
				{UpperBound: ptr(0.5), CumulativeCount: ptr[uint64](2)},
				{UpperBound: ptr(1.0), CumulativeCount: ptr[uint64](4)},
			},
		}}}},
		&family{Name: ptr("s"), Type: ptr(dto.MetricType_SUMMARY), Metric: []*dto.Metric{{Summary: &dto.Summary{
			SampleCount: ptr[uint64](5), SampleSum: ptr(2.5),
			Quantile: []*dto.Quantile{{Quantile: ptr(0.9), Value: ptr(0.4)}},
		}}}},
		gauge("g", 1, "job", "theirs", "empty", ""),
	)
	got := textsOf(queryAt(t, e, `{__name__=~".+"}`, timeAt(0)))
	want := []string{
		"map[__name__:c_total device:a] 7",
		"map[__name__:g exported_job:theirs] 1",
		"map[__name__:h_bucket le:+Inf] 5",
		"map[__name__:h_bucket le:0.5] 2",
		"map[__name__:h_bucket le:1.0] 4",
		"map[__name__:h_count] 5",
		"map[__name__:h_sum] 2.5",
		"map[__name__:s quantile:0.9] 0.4",
		"map[__name__:s_count] 5",
		"map[__name__:s_sum] 2.5",
		"map[__name__:u] 3",
		"map[__name__:up] 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestStaleness(t *testing.T) {
	e := newTestEngine(t, "groups: []")
	a, b := gauge("g", 1, "device", "a"), gauge("g", 2, "device", "b")
	stepTo(t, e, timeAt(0), a, b)
	stepTo(t, e, timeAt(15*time.Second), a)
	got := textsOf(queryAt(t, e, "g", timeAt(15*time.Second)))
	if !slices.Equal(got, []string{"map[__name__:g device:a] 1"}) {
		t.Errorf("after b went: %q", got)
	}
	stepTo(t, e, timeAt(30*time.Second), a, b)
	if got := queryAt(t, e, "g", timeAt(30*time.Second)); len(got) != 2 {
		t.Errorf("after b came back: %v", got)
	}
	stepTo(t, e, timeAt(45*time.Second))
	if got := queryAt(t, e, "g", timeAt(45*time.Second)); len(got) != 0 {
		t.Errorf("after both went: %v", got)
	}
}

func TestDuplicateSampleIsDropped(t *testing.T) {
	e := newTestEngine(t, "groups: []")
	for i := range 3 {
		stepTo(t, e, timeAt(time.Duration(i)*time.Second), gauge("g", 1, "device", "a"),
			gauge("g", 2, "device", "a"), gauge("g2", 1))
	}
	got := textsOf(queryAt(t, e, "g", timeAt(2*time.Second)))
	if !slices.Equal(got, []string{"map[__name__:g device:a] 1"}) {
		t.Errorf("got %q", got)
	}
	if got := queryAt(t, e, "g2", timeAt(2*time.Second)); len(got) != 1 {
		t.Errorf("other series of the round: %v", got)
	}
}

// A cleared counter is a reset, not a decrease.
func TestCounterReset(t *testing.T) {
	e := newTestEngine(t, `
groups:
  - name: g
    rules:
      - {alert: Errors, expr: 'increase(c_total[5m]) > 100'}
`)
	value := 0.0
	for i := range 41 {
		if i == 30 {
			value = 0
		}
		stepTo(t, e, timeAt(time.Duration(i)*15*time.Second), counter("c_total", value))
		value += 2
	}
	if alerts := e.Alerts(); len(alerts) != 0 {
		t.Errorf("alerts %+v", alerts)
	}
	got := queryAt(t, e, "increase(c_total[5m])", timeAt(10*time.Minute))
	if len(got) != 1 || got[0].Value < 36 || got[0].Value > 42 {
		t.Errorf("increase over a reset: %v", got)
	}
}

// History continues across block boundaries.
func TestBlocksAndRetention(t *testing.T) {
	e := newTestEngine(t, "groups: []")
	for now := time.Duration(0); now <= 100*time.Minute; now += 30 * time.Second {
		stepTo(t, e, timeAt(now), gauge("g", now.Minutes()))
	}
	got := queryAt(t, e, "min_over_time(g[95m])", timeAt(100*time.Minute))
	if len(got) != 1 || got[0].Value > 5.5 {
		t.Errorf("got %v", got)
	}
}
