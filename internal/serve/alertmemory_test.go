package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/alone"
	"rdma_exporter/test/disk"
	"rdma_exporter/test/locked"
)

// TestAlertMemoryWritesNews: the file is written when the alerts change, and otherwise once a minute; at exit it has
// the alerts of the last round.
func TestAlertMemoryWritesNews(t *testing.T) {
	dir, begin := t.TempDir(), time.Unix(1_700_000_000, 0)
	a := openAlertMemory(t.Context(), dir, slog.New(slog.DiscardHandler))
	round := func(seen time.Duration, devices ...string) (out []alerting.Active) {
		for _, d := range devices {
			out = append(out,
				alerting.Active{Labels: map[string]string{"alertname": "A", "device": d}, ActiveAt: begin, SeenAt: begin.Add(seen)})
		}
		return out
	}
	for _, c := range []struct {
		seen    time.Duration
		devices []string
		kept    time.Duration // -1: none
	}{
		{0, nil, -1},
		{15 * time.Second, []string{"0"}, 15 * time.Second},
		{30 * time.Second, []string{"0"}, 15 * time.Second},
		{45 * time.Second, []string{"0", "1"}, 45 * time.Second},
		{60 * time.Second, []string{"0", "1"}, 45 * time.Second},
		{105 * time.Second, []string{"0", "1"}, 105 * time.Second},
		{120 * time.Second, []string{"1"}, 120 * time.Second},
		{60 * time.Second, []string{"1"}, 60 * time.Second}, // the clock was set back
		{75 * time.Second, nil, -1},
		{90 * time.Second, []string{"0"}, 90 * time.Second},
		{100 * time.Second, []string{"0"}, 90 * time.Second},
	} {
		a.save(round(c.seen, c.devices...))
		var kept []alerting.Active
		if err := state.Read(t.Context(), dir, &kept); err != nil && c.kept >= 0 {
			t.Fatal(err)
		}
		got := time.Duration(-1)
		if len(kept) > 0 {
			got = kept[0].SeenAt.Sub(begin)
		}
		if got != c.kept {
			t.Errorf("%s: the file is of %s, want %s", c.seen, got, c.kept)
		}
	}
	a.close()
	var kept []alerting.Active
	must(t, state.Read(t.Context(), dir, &kept))
	if len(kept) != 1 || !kept[0].SeenAt.Equal(begin.Add(100*time.Second)) {
		t.Errorf("at the end: %+v", kept)
	}
}

// downRule has a `for` longer than the rounds of the tests.
const downRule = "groups: [{name: g, rules: [{alert: Down, expr: 'max by (device) (state) != 4', for: 30m}]}]"

// downEngine returns an engine with downRule.
func downEngine(t *testing.T, dir string, interval time.Duration, known []alerting.Active) *alerting.Engine {
	t.Helper()
	e, err := alerting.New(alerting.Options{
		Dir: dir, Scratch: t.TempDir(), Known: known, Instance: "gpu-1:10879", Interval: interval,
		Rules: fstest.MapFS{"r.yml": {Data: []byte(downRule)}}, Files: []string{"r.yml"},
	})
	must(t, err)
	return e
}

// downRound evaluates a round in which a device is down.
func downRound(t *testing.T, e *alerting.Engine, at time.Time) {
	t.Helper()
	name, device, value, kind := "state", "device", 1.0, dto.MetricType_GAUGE
	must(t, e.Append(at, slices.Values([]*dto.MetricFamily{{Name: &name, Type: &kind, Metric: []*dto.Metric{
		{Label: []*dto.LabelPair{{Name: &device, Value: &device}}, Gauge: &dto.Gauge{Value: &value}},
	}}})))
	must(t, e.Eval(t.Context(), at))
}

// TestPendingAfterKill: kill -9 costs an alert at most one round of its pending time, at every interval and in every
// state of the samples.
func TestPendingAfterKill(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 15 * time.Second, time.Minute, 2 * time.Minute} {
		for what, kept := range map[string]bool{"samples kept": true, "samples lost": false} {
			t.Run(interval.String()+" "+what, func(t *testing.T) {
				dir, killed := filepath.Join(t.TempDir(), "alerting"), filepath.Join(t.TempDir(), "alerting")
				log := slog.New(slog.DiscardHandler)
				a := openAlertMemory(t.Context(), dir, log)
				defer a.close()
				e := downEngine(t, a.samplesDir(), interval, nil)
				defer func() { must(t, e.Close()) }()
				begin := time.Unix(1_700_000_000, 0)
				now := begin
				for range 9 { // with a write once a minute, the file does not have the last round
					now = now.Add(interval)
					downRound(t, e, now)
					a.save(e.Active())
				}
				waited, kill := now.Sub(begin.Add(interval)), now.Add(interval-1)
				must(t, os.CopyFS(killed, os.DirFS(dir)))
				if !kept {
					must(t, os.RemoveAll(filepath.Join(killed, "store")))
				}
				must(t, os.RemoveAll(filepath.Join(killed, "store", "lock")))

				b := openAlertMemory(t.Context(), killed, log)
				defer b.close()
				b.save(downEngineBefore(t, b, interval)) // the first round fails
				after := downEngine(t, b.samplesDir(), interval, b.known)
				defer func() { must(t, after.Close()) }()
				first := kill.Add(10 * time.Second)
				downRound(t, after, first)
				lost := waited - first.Sub(after.Active()[0].ActiveAt) + kill.Sub(now)
				t.Logf("%s pending, %s of it lost", kill.Sub(begin.Add(interval)), lost)
				if lost < -time.Second || lost > interval+time.Second { // start times are stored in seconds
					t.Errorf("lost %s", lost)
				}
			})
		}
	}
}

// downEngineBefore returns the alerts that an engine saves before its first round.
func downEngineBefore(t *testing.T, b *alertMemory, interval time.Duration) []alerting.Active {
	t.Helper()
	e := downEngine(t, "", interval, b.known)
	defer func() { must(t, e.Close()) }()
	return e.Active()
}

// TestAlertDirectoryComesLater: a directory that cannot be used at the start is tried again, and gets the samples and
// alerts of this run.
func TestAlertDirectoryComesLater(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "state")
	put(t, parent, "in the way")
	log := &locked.Buffer{}
	a := openAlertMemory(t.Context(), filepath.Join(parent, "alerting"), slog.New(slog.NewTextHandler(log, nil)))
	defer a.close()
	e := downEngine(t, "", 15*time.Second, nil)
	defer func() { must(t, e.Close()) }()
	begin := time.Unix(1_700_000_000, 0)
	for i := range 20 {
		downRound(t, e, begin.Add(time.Duration(i)*15*time.Second))
		a.save(e.Active())
	}
	must(t, os.Remove(parent))
	if a.reopen() {
		t.Error("tried again within a minute")
	}
	a.tried = a.tried.Add(-StateRetry)
	if !a.reopen() {
		t.Fatalf("not tried again\n%s", log)
	}
	a.resume(e)
	now := begin.Add(5 * time.Minute)
	downRound(t, e, now)
	samples, err := e.Query(t.Context(), "count_over_time(state[1h])", now)
	must(t, err)
	if active := e.Active(); len(active) != 1 || !active[0].ActiveAt.Equal(begin) || len(samples) != 1 ||
		samples[0].Value != 21 || e.Stats().Degraded {
		t.Errorf("%+v, %+v, degraded: %v", active, samples, e.Stats().Degraded)
	}
	if _, err := os.Stat(filepath.Join(a.samplesDir(), "wal")); err != nil {
		t.Error(err)
	}
}

// TestAlertsThatCannotBeWritten: a failure is logged when it starts and when it ends, and the file is written once it
// can be.
func TestAlertsThatCannotBeWritten(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	for name, fault := range disk.Faults {
		t.Run(name, func(t *testing.T) {
			dir, log := filepath.Join(t.TempDir(), "alerting"), &locked.Buffer{}
			a := openAlertMemory(t.Context(), dir, slog.New(slog.NewTextHandler(log, nil)))
			begin := time.Unix(1_700_000_000, 0)
			round := func(n int) {
				a.save([]alerting.Active{
					{Labels: map[string]string{"alertname": "A"}, ActiveAt: begin, SeenAt: begin.Add(time.Duration(n) * time.Minute)},
				})
			}
			round(0)
			mend := fault(t, dir)
			for n := 1; n < 6; n++ {
				round(n)
			}
			mend()
			var kept []alerting.Active
			if must(t, state.Read(t.Context(), dir, &kept)); len(kept) != 1 || !kept[0].SeenAt.Equal(begin) {
				t.Errorf("meanwhile: %+v", kept)
			}
			round(6)
			if must(t, state.Read(t.Context(), dir, &kept)); !kept[0].SeenAt.Equal(begin.Add(6 * time.Minute)) {
				t.Errorf("afterwards: %+v", kept)
			}
			a.close()
			if l := log.String(); strings.Count(l, "\n") != 2 || !strings.Contains(l, "cannot write alert state") ||
				!strings.Contains(l, "writing alert state works again") {
				t.Errorf("log:\n%s", l)
			}
		})
	}
}
