package alerting_test

import (
	"slices"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/alerting"
)

const instance = "gpu-1:10879"

// t0 returns the time of the first round; nothing depends on the wall clock.
func t0() time.Time { return time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC) }

func timeAt(d time.Duration) time.Time { return t0().Add(d) }

// openEngine starts an engine on one rule file with this text.
func openEngine(t testing.TB, dir, text string) *alerting.Engine {
	t.Helper()
	e, err := alerting.New(alerting.Options{
		Dir: dir, Instance: instance,
		Rules: fstest.MapFS{"r.yml": {Data: []byte(text)}}, Files: []string{"r.yml"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newTestEngine(t testing.TB, text string) *alerting.Engine {
	t.Helper()
	e := openEngine(t, t.TempDir(), text)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// stepTo appends and evaluates one round.
func stepTo(t testing.TB, e *alerting.Engine, ts time.Time, families ...*dto.MetricFamily) {
	t.Helper()
	if err := e.Append(ts, slices.Values(families)); err != nil {
		t.Fatal(err)
	}
	if err := e.Eval(t.Context(), ts); err != nil {
		t.Fatal(err)
	}
}

// gauge returns a family with one sample; pairs are label names and values in turn.
func gauge(name string, value float64, pairs ...string) *dto.MetricFamily {
	kind := dto.MetricType_GAUGE
	return &dto.MetricFamily{Name: &name, Type: &kind, Metric: []*dto.Metric{
		{Label: labelPairs(pairs), Gauge: &dto.Gauge{Value: &value}},
	}}
}

func counter(name string, value float64, pairs ...string) *dto.MetricFamily {
	kind := dto.MetricType_COUNTER
	return &dto.MetricFamily{Name: &name, Type: &kind, Metric: []*dto.Metric{
		{Label: labelPairs(pairs), Counter: &dto.Counter{Value: &value}},
	}}
}

func labelPairs(pairs []string) []*dto.LabelPair {
	var out []*dto.LabelPair
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, &dto.LabelPair{Name: &pairs[i], Value: &pairs[i+1]})
	}
	return out
}

func queryAt(t testing.TB, e *alerting.Engine, q string, ts time.Time) []alerting.Sample {
	t.Helper()
	out, err := e.Query(t.Context(), q, ts)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// hostClock are the clocks of a host.
type hostClock struct{ alerting.Clock }

func newHostClock() *hostClock {
	return &hostClock{alerting.Clock{Wall: timeAt(0), Boot: "first", Up: 100 * time.Hour, Ran: 90 * time.Hour}}
}

func (c *hostClock) read() alerting.Clock { return c.Clock }

func (c *hostClock) run(d time.Duration) {
	c.suspend(d)
	c.Ran += d
}

func (c *hostClock) suspend(d time.Duration) {
	c.set(d)
	c.Up += d
}

func (c *hostClock) set(d time.Duration) { c.Wall = c.Wall.Add(d) }

func (c *hostClock) boot() { c.Boot, c.Up, c.Ran = "second", time.Minute, time.Minute }
