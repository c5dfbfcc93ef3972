package alerting_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
)

const pastRules = `
groups:
  - name: g
    rules:
      - record: a:x:kept
        expr: x > 1 or (a:x:kept and on (instance) y == 1)
      - alert: A
        expr: a:x:kept > 2
        for: 3m
        keep_firing_for: 4m
        labels: {severity: warning}
      - alert: A
        expr: a:x:kept > 3 unless on (instance) ALERTS{alertname="A",alertstate="firing",severity="warning"}
        labels: {severity: info}
        annotations: {summary: "{{ $value }}"}
      - alert: B
        expr: y == 1 unless on (instance) ALERTS{alertname="A",alertstate="firing"}
        keep_firing_for: 1m
      - record: b:x:sum
        expr: sum by (instance) (sum_over_time(a:x:kept[5m])) + on (instance) count by (instance) (ALERTS)
        labels: {kind: sum}
      - record: b:x:late
        expr: b:x:sum offset 3m
  - name: h
    rules:
      - record: c:x:many
        expr: count(b:x:sum > 5)
`

// TestPast: evaluation over history, rule by rule, has the same result as round by round, with gaps and ends of series.
func TestPast(t *testing.T) {
	const times, step = 240, time.Minute
	open := func() *alerting.Engine {
		return opened(t, alerting.Options{
			Dir: t.TempDir(), Instance: instance, Rules: fstest.MapFS{"r.yml": {Data: []byte(pastRules)}},
			Files: []string{"r.yml"}, Interval: step, Retention: 12 * time.Hour, Fleet: true,
		})
	}
	rounds, past := open(), open()
	p := past.Past(step)
	random := rand.New(rand.NewPCG(1, 2))
	type host struct{ x, y [2]*alerting.PastSeries } // of each engine
	hosts := make([]host, 3)
	value := make([]float64, len(hosts))
	here := make([]bool, len(hosts))
	for i, name := range []string{"a", "b", "c"} {
		for n := range 2 {
			hosts[i].x[n] = alerting.NewPastSeries(map[string]string{"__name__": "x", "instance": name})
			hosts[i].y[n] = alerting.NewPastSeries(map[string]string{"__name__": "y", "instance": name})
		}
	}
	type fired struct {
		rule int
		host string
		at   time.Time
	}
	got, want := map[fired]bool{}, map[fired]bool{}
	for n := range times {
		var samples [2][]alerting.PastSample
		for i, h := range hosts {
			if random.IntN(5) == 0 {
				value[i] = float64(random.IntN(5))
			}
			y, gone := float64(random.IntN(2)), random.IntN(10) == 0
			for k := range 2 {
				if !gone || here[i] {
					samples[k] = append(samples[k], alerting.PastSample{Series: h.x[k], Value: value[i], Gone: gone})
				}
				samples[k] = append(samples[k], alerting.PastSample{Series: h.y[k], Value: y})
			}
			here[i] = !gone
		}
		ts := timeAt(time.Duration(n) * step)
		for k, e := range []*alerting.Engine{rounds, past} {
			if err := e.AppendPast(ts, samples[k]); err != nil {
				t.Fatal(err)
			}
		}
		if err := rounds.Eval(t.Context(), ts); err != nil {
			t.Fatal(err)
		}
		for _, a := range rounds.Alerts() {
			if a.State == alerting.StateFiring {
				want[fired{a.Rule, a.Labels["instance"], ts}] = true
			}
		}
		if n%20 == 19 {
			failed, err := p.Eval(t.Context(), ts.Add(-19*step), 20, func(rule int, names map[string]string, at time.Time) {
				got[fired{rule, names["instance"], at.UTC()}] = true
			})
			if err != nil || len(failed) > 0 {
				t.Fatal(err, failed)
			}
		}
	}
	if !reflect.DeepEqual(got, want) || len(want) < 100 {
		t.Errorf("fired %d times, want %d", len(got), len(want))
	}
	for _, metric := range []string{"ALERTS", "a:x:kept", "b:x:sum", "b:x:late", "c:x:many"} {
		var both [2][]alerting.Series
		for k, e := range []*alerting.Engine{rounds, past} {
			found, err := e.Range(t.Context(), metric, t0(), timeAt(times*step), step)
			if err != nil {
				t.Fatal(err)
			}
			both[k] = found
		}
		if !reflect.DeepEqual(both[0], both[1]) || len(both[0]) == 0 {
			t.Errorf("%s: %v\nwant %v", metric, both[1], both[0])
		}
	}
}

// TestPastFails: a failed rule is named, the others are evaluated.
func TestPastFails(t *testing.T) {
	e := newTestEngine(t, "groups:\n  - name: g\n    rules:\n      - record: a:x:y\n        expr: x + on (a) x\n      - record: b:x:y\n        expr: x * 2\n")
	for _, b := range []string{"1", "2"} {
		series := alerting.NewPastSeries(map[string]string{"__name__": "x", "a": "1", "b": b})
		if err := e.AppendPast(t0(), []alerting.PastSample{{Series: series, Value: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	failed, err := e.Past(time.Minute).Eval(t.Context(), t0(), 1, nil)
	if err != nil || len(failed) != 1 || failed["a:x:y"] == nil {
		t.Error(err, failed)
	}
	if got := queryAt(t, e, "b:x:y", t0()); len(got) != 2 {
		t.Errorf("%v", got)
	}
}
