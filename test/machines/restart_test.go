//go:build !race

package machines

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/verdict"
)

var restartEvery = flag.Bool("restart-every", false, "restart on every recorded fault, not on a sample; make restarts")

// restartSample is the distance of the faults that make test plays.
const restartSample = 120

// resting are alerts that an exporter which ran throughout still has and a restarted one has not: the evidence is half
// of the rounds of 5m, and the counters of the recording step once in 2m, so that both rounds after a restart see a
// port at rest.
var resting = map[string]string{"gdr-staging-live": "RDMAGPUDirectStaging"}

// TestRestartOfMachines plays each recorded fault, stops the exporter before and after alerts fire, and starts it again
// while the fault lasts, and when the machine is repaired: when it is its base. From the second round on its findings
// are those of an exporter that ran throughout, without the alerts that only keep_firing_for holds there, and with
// those that began there while it was away: counters differ between a machine and its base. After 70 minutes, more than
// what a lookback and the mean of an hour see, they are those that a fresh one has too, and those of what is known from
// before: the restarted exporter keeps rates, devices, roles and baselines as the state directory does.
func TestRestartOfMachines(t *testing.T) {
	n := 0
	for _, name := range Names(t) {
		a := archive(t, name)
		if !a.IsVariant() || !firesIn(t, name) {
			continue
		}
		if n++; !*restartEvery && n%restartSample != 1 {
			continue
		}
		for _, hold := range []time.Duration{45 * time.Second, 12 * time.Minute} {
			for _, repaired := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/repaired=%t", name, hold, repaired), func(t *testing.T) {
					t.Parallel()
					after := name
					if repaired {
						after = a.Meta.Base
					}
					restartOf(t, name, after, hold)
				})
			}
		}
	}
}

// firesIn reports whether the golden of a variant lists an alert.
func firesIn(t *testing.T, name string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/metrics", name+".diff"))
	must(t, err)
	return len(text) > 9 && string(text[:9]) == "# fires: "
}

func restartOf(t *testing.T, before, after string, hold time.Duration) {
	dir := t.TempDir()
	first := startOn(t, dir, before, time.Time{}, nil)
	for _, at := range first.m.Player.Times() {
		first.round(at)
	}
	stop := first.m.Player.Last().Add(hold)
	step := 15 * time.Second
	if hold > time.Minute {
		step = time.Minute
	}
	for at := first.m.Player.Last().Add(step); !at.After(stop); at = at.Add(step) {
		first.round(at)
	}
	stores := map[time.Duration]string{}
	must(t, first.engine.Close())
	kept, err := json.Marshal(first.memory.Data())
	must(t, err)
	aways := []time.Duration{10 * time.Second, 4 * time.Minute, 70 * time.Minute}
	for _, away := range aways {
		stores[away] = t.TempDir()
		must(t, os.CopyFS(stores[away], os.DirFS(dir)))
	}

	throughout := startOn(t, t.TempDir(), before, time.Time{}, nil)
	for _, at := range throughout.m.Player.Times() {
		throughout.round(at)
	}
	for at := throughout.m.Player.Last().Add(step); !at.After(stop); at = at.Add(step) {
		throughout.round(at)
	}
	end := throughout.m.Player.Last() // its counters go on after that
	if after != before {
		end = stop
		throughout.goOnWith(after, end)
	}
	at, began := stop, map[string]bool{}
	round := func(next time.Time) {
		at = next
		throughout.round(at)
		for key, a := range throughout.alerts() {
			began[key] = began[key] || a.ActiveAt.After(stop)
		}
	}
	for _, away := range aways {
		for at.Before(stop.Add(away - time.Minute)) {
			round(at.Add(time.Minute))
		}
		round(stop.Add(away))
		round(stop.Add(away + 15*time.Second))
		t.Run(away.String(), func(t *testing.T) {
			again := startOn(t, stores[away], after, end, kept)
			fresh := startOn(t, t.TempDir(), after, end, nil)
			for _, e := range []*exporter{again, fresh} {
				e.t = t
				e.round(stop.Add(away))
				e.round(stop.Add(away + 15*time.Second))
			}
			got, ran := again.alerts(), throughout.alerts()
			maps.DeleteFunc(ran, func(key string, a alerting.Alert) bool {
				_, here := got[key]
				return !here && a.Labels["alertname"] == resting[before]
			})
			compareRestart(t, got, ran, fresh.alerts(), began, stop, away > 5*time.Minute)
			if maps.Equal(states(again.alerts()), states(fresh.alerts())) && again.drain(at) != fresh.drain(at) {
				t.Errorf("verdict %v, of a fresh exporter %v", again.drain(at), fresh.drain(at))
			}
			if again.drain(at) > throughout.drain(at) && again.drain(at) > fresh.drain(at) {
				t.Errorf("verdict %v, throughout %v, fresh %v", again.drain(at), throughout.drain(at), fresh.drain(at))
			}
		})
	}
}

func compareRestart(
	t *testing.T, got, throughout, fresh map[string]alerting.Alert, began map[string]bool, stop time.Time, long bool,
) {
	t.Helper()
	for key, a := range got {
		ran, runs := throughout[key]
		runs = runs && ran.KeepFiringSince.IsZero()
		_, new := fresh[key]
		if !runs && !(long && new) && !began[key] {
			t.Errorf("goes on: %s %s", a.State, key)
		}
		if runs && a.State == alerting.StateFiring && ran.State == alerting.StatePending {
			t.Errorf("fires too early: %s", key)
		}
		fired := ran.State == alerting.StateFiring && !ran.FiredAt.After(stop)
		if runs && !long && fired && a.State == alerting.StatePending {
			t.Errorf("pending again: %s", key)
		}
	}
	for key, a := range throughout {
		_, new := fresh[key]
		if _, ok := got[key]; !ok && a.KeepFiringSince.IsZero() && (long && new || !long && !began[key]) {
			t.Errorf("missing: %s %s", a.State, key)
		}
	}
}

func states(alerts map[string]alerting.Alert) map[string]alerting.State {
	out := map[string]alerting.State{}
	for key, a := range alerts {
		out[key] = a.State
	}
	return out
}

// exporter is an exporter with a store in a directory, on a recorded machine.
type exporter struct {
	t      *testing.T
	m      *machine.Machine
	memory *expect.Memory
	sched  *rounds.Scheduler
	engine *alerting.Engine
}

// startOn starts with what an earlier exporter kept, as JSON, or with what the recorded machine knows.
func startOn(t *testing.T, dir, name string, last time.Time, kept []byte) *exporter {
	t.Helper()
	e := &exporter{t: t}
	if kept != nil {
		var known expect.Data
		must(t, json.Unmarshal(kept, &known))
		e.memory = expect.NewMemory(known)
	}
	e.goOnWith(name, last)
	files := Builtin(t)
	var err error
	e.engine, err = alerting.New(alerting.Options{
		Dir: dir, Rules: files, Files: files.Names, Instance: "host:10879", Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	t.Cleanup(func() { must(t, e.engine.Close()) })
	return e
}

// goOnWith continues on another machine, whose recorded rounds end at last.
func (e *exporter) goOnWith(name string, last time.Time) {
	e.t.Helper()
	c := &machine.Config{Replay: Fixture(name), Timeout: 5 * time.Minute, GPUMode: "fabric"}
	m, err := c.Open(last)
	must(e.t, err)
	e.t.Cleanup(func() { must(e.t, m.Close()) })
	if e.memory == nil {
		known, err := c.Remembered(e.t.Context(), m)
		must(e.t, err)
		e.memory = expect.NewMemory(known)
	}
	e.m, e.sched = m, rounds.New(context.WithoutCancel(e.t.Context()), rounds.Options{
		Host: m.Host, Collectors: collector.All(c.Options(m, e.memory)), Timeout: c.Timeout, Now: m.Now,
		Logger: slog.New(slog.DiscardHandler), Limits: c.Limits,
	})
}

func (e *exporter) round(at time.Time) {
	e.t.Helper()
	must(e.t, e.m.Seek(at))
	if _, err := verdict.Round(e.t.Context(), e.sched, e.engine, 0); err != nil {
		e.t.Fatalf("%s: %v", at, err)
	}
}

// alerts returns the active alerts by their labels.
func (e *exporter) alerts() map[string]alerting.Alert {
	out := map[string]alerting.Alert{}
	for _, a := range e.engine.Alerts() {
		var key string
		for _, l := range slices.Sorted(maps.Keys(a.Labels)) {
			key += l + "=" + a.Labels[l] + " "
		}
		out[key] = a
	}
	return out
}

func (e *exporter) drain(at time.Time) float64 {
	e.t.Helper()
	out, err := e.engine.Query(e.t.Context(), "max(instance:rdma_host_drain:state)", at)
	must(e.t, err)
	if len(out) == 0 {
		return -1
	}
	return out[0].Value
}
