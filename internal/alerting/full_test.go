package alerting_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/test/alone"
)

// noFileBeyond makes writes beyond a size fail in this process, as on a full disk, until the returned function is called: for tests that do
// not run in parallel.
func noFileBeyond(t *testing.T, bytes uint64) (restore func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
	}
}

// wide is many series, so that the log of samples exceeds the test's own output.
func wide(state float64) []*family {
	out := []*family{gauge("state", state, "device", "mlx5_0")}
	for i := range 300 {
		out = append(out, gauge("other", 1, "n", fmt.Sprint(i)))
	}
	return out
}

// TestFullDisk: the log of samples, or the chunks, cannot be written. The engine continues in another place with its alerts, and logs it
// once.
func TestFullDisk(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	for _, c := range []struct {
		name  string
		round []*family
		limit func(wal int64) uint64
	}{
		{"log of samples", wide(1), func(wal int64) uint64 { return uint64(wal) }},
		{"chunks", wide(1)[:1], func(int64) uint64 { return 100 << 10 }}, // their file has 128 KiB from the beginning
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			e, log := lasting(t, dir)
			defer closeEngine(t, e)
			now := time.Duration(0)
			for ; now < 20*time.Minute; now += 15 * time.Second { // no chunk is full
				step(t, e, at(now), c.round...)
			}
			wal, err := os.Stat(dir + "/wal/00000000")
			if err != nil {
				t.Fatal(err)
			}
			restore := noFileBeyond(t, c.limit(wal.Size()))
			for end := now + time.Hour; now < end; now += 15 * time.Second {
				step(t, e, at(now), c.round...)
				if log.Len() > 0 {
					restore() // the other place is not full
				}
				if a := e.Alerts(); len(a) != 1 || a[0].State != alerting.StateFiring {
					t.Fatalf("%s: %+v\n%s", now, a, log)
				}
			}
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "alerting store starts empty") {
				t.Errorf("log:\n%s", log)
			}
			if _, err := os.Stat(dir + ".broken"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoSpaceAnywhere: nothing can be written at first, later it can.
func TestNoSpaceAnywhere(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	parent, scratch := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "scratch")
	e, err := alerting.New(alerting.Options{
		Dir: filepath.Join(parent, "store"), Scratch: scratch, Instance: instance,
		Rules: fstest.MapFS{"r.yml": {Data: []byte(downRule)}}, Files: []string{"r.yml"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngine(t, e)
	now := time.Duration(0)
	for ; now < 10*time.Minute; now += 15 * time.Second {
		step(t, e, at(now), wide(1)...)
	}
	wal, err := os.Stat(filepath.Join(parent, "store/wal/00000000"))
	if err != nil {
		t.Fatal(err)
	}
	remove(t, parent)
	write(t, parent, "in the way")
	restore := noFileBeyond(t, uint64(wal.Size()))
	for range 4 {
		if err := e.Append(at(now), slices.Values(wide(1))); !errors.Is(err, alerting.ErrNoStore) {
			t.Errorf("%s: %v", now, err)
		}
		if _, err := e.Query(t.Context(), "state", at(now)); !errors.Is(err, alerting.ErrNoStore) {
			t.Errorf("%s: query: %v", now, err)
		}
		now += 15 * time.Second
	}
	if a := e.Alerts(); len(a) != 1 || a[0].State != alerting.StateFiring {
		t.Errorf("meanwhile: %+v", a)
	}
	restore()
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	step(t, e, at(now), wide(1)...)
	if a := e.Alerts(); len(a) != 1 || a[0].State != alerting.StateFiring {
		t.Errorf("afterwards: %+v", a)
	}
	if !e.Stats().Degraded {
		t.Error("not degraded")
	}
}

// reopenVariable names the store that this binary opens in another process: a crash would otherwise end all tests.
const reopenVariable = "RDMA_EXPORTER_ALERTING_TEST_STORE"

// TestKilledThenFull: a process was killed before it had written its chunks, and there is no space for them at the next start.
func TestKilledThenFull(t *testing.T) {
	if dir := os.Getenv(reopenVariable); dir != "" {
		noFileBeyond(t, 70<<10) // a file of chunks has 128 KiB from the beginning
		e, log := lasting(t, dir)
		defer closeEngine(t, e)
		step(t, e, at(time.Hour), wide(1)...)
		fmt.Printf("%d alerts\n%s", len(e.Alerts()), log)
		return
	}
	dir, killed := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "store")
	e, _ := lasting(t, dir)
	defer closeEngine(t, e)
	for i := range 131 {
		step(t, e, at(time.Duration(i)*15*time.Second), wide(1)...)
	}
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil { // the state left by a killed process
		t.Fatal(err)
	}
	remove(t, killed+"/lock")
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledThenFull$")
	c.Env = append(os.Environ(), reopenVariable+"="+killed)
	out, err := c.CombinedOutput()
	if s := string(out); err != nil || !strings.Contains(s, "1 alerts") || strings.Count(s, "alerting store starts empty") != 1 || !strings.Contains(s, "no space for 12 MiB") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(killed + ".broken/wal/00000000"); err != nil {
		t.Error(err)
	}
}
