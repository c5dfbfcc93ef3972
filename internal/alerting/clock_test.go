//go:build !race

package alerting_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
)

// clockRules are the ways in which rules depend on time: pending, kept, history, times as values, and the time of the
// evaluation.
const clockRules = downRule + `
      - {alert: History, expr: 'increase(errors_total[605s]) > 2'}
      - {record: 'port:loss:last_time', expr: '0 * (changes(losses_total[30s]) > 0) + time() or port:loss:last_time > time() - 86400'}
      - {alert: Lost, expr: 'time() - port:loss:last_time < 605'}
`

// clockRun is a host whose clock may change after its first part.
type clockRun struct {
	clock  *hostClock
	engine *alerting.Engine
	dir    string
	ran    time.Duration
	seen   map[time.Duration]string // alerts after each round
}

const (
	clockChange = 10 * time.Minute // of a run
	clockEnd    = 25 * time.Minute
	clockDown   = 45 * time.Second // without an exporter between two starts
)

func (r *clockRun) start(t *testing.T) {
	t.Helper()
	var known []alerting.Active
	if r.engine != nil {
		known = r.engine.Active()
		closeEngine(t, r.engine)
	}
	var err error
	r.engine, err = alerting.New(alerting.Options{
		Dir: r.dir, Scratch: t.TempDir(), Known: known, Instance: instance, Clock: r.clock.read,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Rules:  fstest.MapFS{"r.yml": {Data: []byte(clockRules)}}, Files: []string{"r.yml"},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// round evaluates, and notes the alerts with their ages.
func (r *clockRun) round(t *testing.T) {
	t.Helper()
	down := func(yes bool) float64 {
		if yes {
			return 1
		}
		return 4
	}
	count := min(float64(r.ran/time.Minute), 9)
	loss := 0.0
	if r.ran >= clockChange-5*time.Minute {
		loss = 1
	}
	now := r.clock.Wall
	err := r.engine.Append(now, slices.Values([]*family{
		gauge("state", down(true), "device", "always"),
		gauge("state", down(r.ran >= clockChange-time.Minute), "device", "waits"),
		gauge("state", down(r.ran < clockChange-time.Minute), "device", "ended"),
		gauge("state", down(r.ran >= clockChange+5*time.Minute), "device", "later"),
		counter("errors_total", count), counter("losses_total", loss),
	}))
	if errors.Is(err, alerting.ErrTimeBackwards) {
		return
	}
	if err == nil {
		err = r.engine.Eval(t.Context(), now)
	}
	if err != nil {
		t.Fatalf("%s: %v", r.ran, err)
	}
	lines := ""
	for _, a := range r.engine.Alerts() {
		lines += fmt.Sprintf(" %s %s %s", a.Name, a.Labels["device"], a.State)
		if !a.FiredAt.IsZero() && (a.FiredAt.After(now) || a.FiredAt.Before(a.ActiveAt)) {
			t.Errorf("%s: %s active since %s, fired at %s, now %s", r.ran, a.Name, a.ActiveAt, a.FiredAt, now)
		}
	}
	r.seen[r.ran] = lines
}

// playClock runs the host; change is what happens to its clock, between two starts or not.
func playClock(t *testing.T, restart bool, change func(*hostClock)) *clockRun {
	t.Helper()
	r := &clockRun{clock: newHostClock(), dir: filepath.Join(t.TempDir(), "store"), seen: map[time.Duration]string{}}
	r.start(t)
	for r.ran < clockEnd {
		r.round(t)
		step := 15 * time.Second
		if restart && r.ran == clockChange {
			step = clockDown
		}
		r.ran += step
		if r.clock.run(step); r.ran-step == clockChange {
			if change(r.clock); restart {
				r.start(t)
			}
		}
	}
	closeEngine(t, r.engine)
	return r
}

// TestClock: whatever happens to the clock, alerts are those of a host whose clock is right, in each round and with the
// same age. A clock that is set back by less than a round costs a round.
func TestClock(t *testing.T) {
	for _, restart := range []bool{false, true} {
		when := map[bool]string{false: "serving", true: "between starts"}[restart]
		right := playClock(t, restart, func(*hostClock) {})
		for _, name := range []string{
			"Down always firing", "Down waits firing", "Down ended firing", "Down later pending", "Down later firing",
			"History  firing", "Lost  firing",
		} {
			if !slices.ContainsFunc(slices.Collect(maps.Values(right.seen)), func(s string) bool {
				return strings.Contains(s, name)
			}) {
				t.Fatalf("%s: no %s", when, name)
			}
		}
		for name, step := range map[string]time.Duration{
			"3s": 3 * time.Second, "20s": 20 * time.Second, "5m": 5 * time.Minute, "3h": 3 * time.Hour, "2d": 48 * time.Hour,
			"20y": 20 * 365 * 24 * time.Hour,
		} {
			for direction, by := range map[string]time.Duration{"forward": step, "back": -step} {
				t.Run(when+"/"+direction+"/"+name, func(t *testing.T) {
					t.Parallel()
					got := playClock(t, restart, func(c *hostClock) { c.set(by) })
					got.compare(t, right, map[bool]int{true: 1}[by < 0 && step <= 15*time.Second])
				})
			}
		}
	}
}

// compare reports rounds whose alerts differ. So many rounds may be missing.
func (r *clockRun) compare(t *testing.T, right *clockRun, missing int) {
	t.Helper()
	for _, at := range slices.Sorted(maps.Keys(right.seen)) {
		got, ok := r.seen[at]
		switch {
		case !ok && missing > 0:
			missing--
		case !ok:
			t.Errorf("%s: no round", at)
		case got != right.seen[at]:
			t.Errorf("%s:%s\nwant:%s", at, got, right.seen[at])
		}
	}
}

// TestSuspend: suspension is no pending time, nothing resolves, and no alert fires early.
func TestSuspend(t *testing.T) {
	keep := func(s string) string { // history has a gap
		return strings.Join(
			slices.DeleteFunc(strings.SplitAfter(s, "ing"), func(a string) bool { return !strings.HasPrefix(a, " Down") }), "")
	}
	for _, restart := range []bool{false, true} {
		right := playClock(t, restart, func(*hostClock) {})
		for name, length := range map[string]time.Duration{
			"3s": 3 * time.Second, "90s": 90 * time.Second, "10m": 10 * time.Minute, "3h": 3 * time.Hour, "2d": 48 * time.Hour,
		} {
			if restart && length > time.Hour { // Prometheus' tolerance
				continue
			}
			t.Run(fmt.Sprint(name, map[bool]string{true: " between starts"}[restart]), func(t *testing.T) {
				t.Parallel()
				got := playClock(t, restart, func(c *hostClock) { c.suspend(length) })
				for at, want := range right.seen {
					if got := keep(got.seen[at]); got != keep(want) {
						t.Errorf("%s:%s\nwant:%s", at, got, keep(want))
					}
				}
			})
		}
	}
}

// TestClockAfterBoot: a host boots with a clock that is behind, so that all samples are later, and its clock is set
// right while the exporter serves.
func TestClockAfterBoot(t *testing.T) {
	right := playClock(t, true, func(*hostClock) {})
	for name, behind := range map[string]time.Duration{
		"5m": 5 * time.Minute, "3h": 3 * time.Hour, "20y": 20 * 365 * 24 * time.Hour,
	} {
		for _, set := range []bool{false, true} {
			t.Run(fmt.Sprint(name, map[bool]string{true: " set right later"}[set]), func(t *testing.T) {
				t.Parallel()
				r := &clockRun{clock: newHostClock(), dir: filepath.Join(t.TempDir(), "store"), seen: map[time.Duration]string{}}
				r.start(t)
				for ; r.ran <= clockChange; r.ran += 15 * time.Second {
					r.round(t)
					r.clock.run(15 * time.Second)
				}
				r.clock.boot()
				r.clock.set(-behind)
				r.start(t)
				for r.ran += clockDown - 15*time.Second; r.ran < clockEnd; r.ran += 15 * time.Second {
					if set && r.ran == clockChange+2*time.Minute+clockDown {
						r.clock.set(behind)
					}
					r.round(t)
					r.clock.run(15 * time.Second)
				}
				closeEngine(t, r.engine)
				for at, want := range right.seen {
					// The length of the boot is unknown: pending and kept alerts end later by it.
					if at < clockChange+2*time.Minute || at > clockChange+4*time.Minute {
						continue
					}
					if got := r.seen[at]; got != want {
						t.Errorf("%s:%s\nwant:%s", at, got, want)
					}
				}
			})
		}
	}
}
