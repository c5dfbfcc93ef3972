package alerting_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/prometheus/tsdb/fileutil"

	"rdma_exporter/internal/alerting"
)

// lasting opens an engine that survives disk failures, and returns its log.
func lasting(t *testing.T, dir string, known ...alerting.Active) (*alerting.Engine, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	e, err := alerting.New(alerting.Options{
		Dir: dir, Scratch: t.TempDir(), Known: known, Instance: instance, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Rules: fstest.MapFS{"r.yml": {Data: []byte(downRule +
			"      - {alert: Never, expr: 'count_over_time(state[2h]) < 0'}\n")}}, Files: []string{"r.yml"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, &log
}

func closeEngine(t *testing.T, e *alerting.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// longRun leaves a store with blocks, head chunks and a log of samples, in which an alert has been pending for 90 s. It
// ends at 2 h.
func longRun(t *testing.T, dir string) (active []alerting.Active, end time.Duration) {
	t.Helper()
	e, _ := lasting(t, dir)
	end = 2 * time.Hour
	for now := time.Duration(0); now <= end; now += 15 * time.Second {
		state := 4.0
		if now >= end-90*time.Second {
			state = 1
		}
		stepTo(t, e, timeAt(now), gauge("state", state, "device", "mlx5_0"))
	}
	active = e.Active()
	closeEngine(t, e)
	if len(active) != 1 || !active[0].SeenAt.Equal(timeAt(end)) || !active[0].ActiveAt.Equal(timeAt(end-90*time.Second)) {
		t.Fatalf("active: %+v", active)
	}
	return active, end
}

// damage overwrites the middle of each file that matches a pattern.
func damage(t *testing.T, pattern string) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := len(b) / 3; i < len(b)/3+len(b)/8; i++ {
			b[i] ^= 0x5a
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBrokenStore: whatever the damage to the store of an earlier run, rules are evaluated and pending times continue.
func TestBrokenStore(t *testing.T) {
	before := filepath.Join(t.TempDir(), "store")
	known, end := longRun(t, before)
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		aside  bool // existing data was set aside
		memory bool // samples are in memory
	}{
		{"whole", func(*testing.T, string) {}, false, false},
		{"log of samples", func(t *testing.T, dir string) { damage(t, dir+"/wal/0*") }, false, false},
		{"no log of samples", func(t *testing.T, dir string) { remove(t, dir+"/wal") }, false, false},
		{"head chunks", func(t *testing.T, dir string) { damage(t, dir+"/chunks_head/*") }, false, false},
		{"meta of a block", func(t *testing.T, dir string) { damage(t, dir+"/01*/meta.json") }, true, false},
		{"index of a block", func(t *testing.T, dir string) { damage(t, dir+"/01*/index") }, true, false},
		{"chunks of a block", func(t *testing.T, dir string) { damage(t, dir+"/01*/chunks/*") }, true, false},
		{"a file in its place", func(t *testing.T, dir string) { remove(t, dir); write(t, dir, "x") }, true, false},
		{"no folder can be made", func(t *testing.T, dir string) { remove(t, filepath.Dir(dir)); write(t, filepath.Dir(dir), "x") }, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "alerting", "store")
			if err := os.CopyFS(dir, os.DirFS(before)); err != nil {
				t.Fatal(err)
			}
			write(t, dir+".broken", "the one before")
			c.damage(t, dir)
			e, log := lasting(t, dir, known...)
			defer closeEngine(t, e)
			for now := 15 * time.Second; now <= 45*time.Second; now += 15 * time.Second {
				stepTo(t, e, timeAt(end+now), gauge("state", 1, "device", "mlx5_0"))
				want := alerting.StatePending
				if now >= 45*time.Second { // 90 s before, 30 s in this run
					want = alerting.StateFiring
				}
				if a := e.Alerts(); len(a) != 1 || a[0].State != want {
					t.Errorf("%s after the start: %+v, want %s", now, a, want)
				}
			}
			if st, err := os.Stat(dir + ".broken"); c.aside && (err != nil || st.Size() == int64(len("the one before"))) {
				t.Errorf("not set aside: %v, %v", st, err)
			}
			if got := e.Stats().Degraded; got != c.memory {
				t.Errorf("degraded: %v", got)
			}
			if n := strings.Count(log.String(), "starts empty"); n > 1 || (n == 1) != (c.aside || c.memory) {
				t.Errorf("log:\n%s", log)
			}
		})
	}
}

// TestMoveTo: an engine that ran beside another one continues with the pending times of that one after it has ended.
func TestMoveTo(t *testing.T) {
	down := gauge("state", 1, "device", "mlx5_0")
	for name, lost := range map[string]bool{"samples are there": false, "samples are lost": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			first, _ := lasting(t, dir)
			for now := time.Duration(0); now <= time.Minute; now += 15 * time.Second {
				stepTo(t, first, timeAt(now), down)
			}
			known := first.Active()
			closeEngine(t, first)
			if lost {
				remove(t, dir)
			}
			second, _ := lasting(t, "")
			defer closeEngine(t, second)
			for now := 40 * time.Second; now <= 70*time.Second; now += 15 * time.Second {
				stepTo(t, second, timeAt(now), down)
			}
			second.MoveTo(dir, known)
			for now := 85 * time.Second; now <= 150*time.Second; now += 15 * time.Second {
				stepTo(t, second, timeAt(now), down)
				want := alerting.StatePending
				if now >= 2*time.Minute+25*time.Second {
					want = alerting.StateFiring
				}
				began := second.Active()[0].ActiveAt.Sub(t0()) // no rounds for 25 s
				if began != 25*time.Second || second.Alerts()[0].State != want {
					t.Errorf("after %s: began after %s, %s; want %s", now, began, second.Alerts()[0].State, want)
				}
			}
		})
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestClockSetBack: a clock that was wrong by a year costs the samples and nothing else, within a run and between two.
func TestClockSetBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	down := gauge("state", 1, "device", "mlx5_0")
	state := func(e *alerting.Engine) alerting.State { return e.Alerts()[0].State }
	e, _ := lasting(t, dir)
	year := -365 * 24 * time.Hour
	for now := time.Duration(0); now <= time.Minute; now += 15 * time.Second {
		stepTo(t, e, timeAt(now), down)
	}
	if err := e.Append(timeAt(50*time.Second), slices.Values([]*family(nil))); err == nil {
		t.Error("a clock that goes back by less than a round: no error")
	}
	for now := 15 * time.Second; now <= 75*time.Second; now += 15 * time.Second {
		stepTo(t, e, timeAt(year+now), down)
		if want := map[bool]alerting.State{
			true: alerting.StateFiring, false: alerting.StatePending,
		}[now >= time.Minute]; state(e) != want {
			t.Errorf("%s after the clock went back: %s", now, state(e))
		}
	}
	known := e.Active()
	closeEngine(t, e)

	e, _ = lasting(t, dir, known...)
	defer closeEngine(t, e)
	for now := 15 * time.Second; now <= 30*time.Second; now += 15 * time.Second {
		stepTo(t, e, timeAt(2*year+now), down)
	}
	if state(e) != alerting.StateFiring {
		t.Errorf("after a restart in the past: %s", state(e))
	}
	if e.Stats().Degraded {
		t.Error("degraded")
	}
}

// TestClockSetForward: an hour without rounds is not part of a pending time or of keep_firing_for.
func TestClockSetForward(t *testing.T) {
	down, up := gauge("state", 1, "device", "mlx5_0"), gauge("state", 4, "device", "mlx5_0")
	for name, c := range map[string]struct {
		before, after []*family        // rounds around the jump
		want          []alerting.State // in those after it; "" for none
	}{
		"waits": {[]*family{down, down, down}, []*family{down, down, down, down, down, down, down}, []alerting.State{
			"pending", "pending", "pending", "pending", "pending", "firing", "firing",
		}}, // for 2m, of which 30 s were seen before
		"fires":        {slices.Repeat([]*family{down}, 10), []*family{down, down}, []alerting.State{"firing", "firing"}},
		"ended before": {append(slices.Repeat([]*family{down}, 10), up, up), []*family{up, up}, []alerting.State{"firing", "firing"}}, // is kept firing for 5m
		"never was":    {[]*family{up, up}, []*family{up, up}, []alerting.State{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := lasting(t, filepath.Join(t.TempDir(), "store"))
			defer closeEngine(t, e)
			now := timeAt(0)
			round := func(f *family) {
				now = now.Add(15 * time.Second)
				stepTo(t, e, now, f)
			}
			for _, f := range c.before {
				round(f)
			}
			now = now.Add(time.Hour)
			for i, f := range c.after {
				round(f)
				got := alerting.State("")
				if a := e.Alerts(); len(a) == 1 {
					got = a[0].State
				}
				if got != c.want[i] {
					t.Errorf("round %d after it: %q, want %q", i, got, c.want[i])
				}
			}
		})
	}
}

// TestScratchOfTheKilled: directories of dead processes are removed, since they occupy memory. Others stay, and nothing
// in them is opened or created: in a world-writable directory the lock may be a link to anywhere.
func TestScratchOfTheKilled(t *testing.T) {
	scratch, elsewhere := t.TempDir(), t.TempDir()
	trap := filepath.Join(elsewhere, "made")
	hour := time.Now().Add(-time.Hour)
	folder := func(mode os.FileMode, change func(dir string) error) func(string) error {
		return func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode), change(dir), os.Chtimes(dir, hour, hour))
		}
	}
	nothing := func(string) error { return nil }
	trapped := func(dir string) error { return os.Symlink(trap, dir+"/lock") }
	var used fileutil.Releaser
	cases := []struct {
		name string
		make func(dir string) error
		left bool
	}{
		{"alerting-old", folder(0o700, nothing), false},
		{"alerting-used", folder(0o700, func(dir string) (err error) {
			used, _, err = fileutil.Flock(dir + "/lock")
			return err
		}), true},
		{"alerting-young", folder(0o700, func(dir string) error { return os.Mkdir(dir+"/wal", 0o700) }), false},
		{"replay-old", folder(0o700, nothing), true},
		{"alerting-group", folder(0o770, trapped), true},
		{"alerting-all", folder(0o707, trapped), true},
		{"alerting-link", func(dir string) error { return os.Symlink(elsewhere, dir) }, true},
		{"alerting-other", folder(0o700, func(dir string) error {
			err := os.Chown(dir, 65534, 65534)
			// Ownership cannot be changed here; a foreign directory is simulated by a permissive mode.
			if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) {
				return os.Chmod(dir, 0o777)
			}
			return errors.Join(err, trapped(dir))
		}), true},
	}
	name := func(kind string) string { return filepath.Join(scratch, "rdma_exporter-"+kind) }
	for _, c := range cases {
		if err := c.make(name(c.name)); err != nil {
			t.Fatal(err)
		}
	}
	defer used.Release()
	now := time.Now()
	if err := errors.Join(os.Chtimes(elsewhere, hour, hour), os.Chtimes(name("alerting-young"), now, now)); err != nil {
		t.Fatal(err)
	}
	// They are removed although the store itself is on disk.
	e, err := alerting.New(alerting.Options{
		Dir: filepath.Join(t.TempDir(), "store"), Scratch: scratch, Instance: instance, Rules: fstest.MapFS{},
	})
	if err != nil {
		t.Fatal(err)
	}
	closeEngine(t, e)
	for _, c := range cases {
		if _, err := os.Lstat(name(c.name)); (err == nil) != c.left {
			t.Errorf("%s: %v, want left %v", c.name, err, c.left)
		}
	}
	if got, err := os.ReadDir(elsewhere); err != nil || len(got) > 0 {
		t.Errorf("made elsewhere: %v, %v", got, err)
	}
}
