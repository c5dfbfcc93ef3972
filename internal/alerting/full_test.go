package alerting_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/alerting/store"
	"rdma_exporter/test/alone"
)

// noFileBeyond makes writes beyond a size fail in this process, as on a full disk, until the returned function is
// called: for tests that do not run in parallel.
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

// smallDisk mounts a file system of some MiB, in a process of its own with its own mounts: empty for the caller, which
// returns.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	if !alone.Mounting(t) {
		return ""
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillDisk fills a file system with a file named filler.
func fillDisk(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for piece := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(piece)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
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

// TestFullDisk: the log of samples, or the chunks, cannot be written, in memory neither. The engine continues with its
// alerts, moves back within a minute once there is space, and logs both. TestFullFileSystem has space in memory.
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
				stepTo(t, e, timeAt(now), c.round...)
			}
			wal, err := os.Stat(dir + "/wal/00000000")
			if err != nil {
				t.Fatal(err)
			}
			restore, degraded := noFileBeyond(t, c.limit(wal.Size())), 0
			for end := now + time.Hour; now < end; now += 15 * time.Second {
				stepTo(t, e, timeAt(now), c.round...)
				if log.Len() > 0 {
					restore() // there is space again
				}
				if e.Stats().Degraded {
					degraded++
				}
				if a := e.Alerts(); len(a) != 1 || a[0].State != alerting.StateFiring {
					t.Fatalf("%s: %+v\n%s", now, a, log)
				}
			}
			if degraded == 0 || degraded > 5 || e.Stats().Degraded {
				t.Errorf("%d rounds in memory, at the end %v", degraded, e.Stats().Degraded)
			}
			if l := log.String(); strings.Count(l, "\n") != 2 || !strings.Contains(l, "alerting store is in memory") ||
				!strings.Contains(l, "starts empty") ||
				!strings.Contains(l, "alerting store is in the state directory again") {
				t.Errorf("log:\n%s", l)
			}
		})
	}
}

// TestFullFileSystem: a file system of 32 MiB is full for ten minutes. No sample and no alert is lost, neither when the
// store moves into memory nor when it moves back, and none by a kill -9 after that.
func TestFullFileSystem(t *testing.T) {
	disk := smallDisk(t, 32)
	if disk == "" {
		return
	}
	dir := filepath.Join(disk, "alerting", "store")
	e, log := lasting(t, dir)
	now, samples := time.Duration(0), 0
	rounds := func(until time.Duration) {
		t.Helper()
		for ; now < until; now += 15 * time.Second {
			state := 4.0
			if now >= 5*time.Minute && now < 6*time.Minute || now >= 24*time.Minute { // fires until 11m; pending
				state = 1
			}
			stepTo(t, e, timeAt(now), wide(state)...)
			samples++
		}
		if got := queryAt(t, e, "count_over_time(state[2h])", timeAt(now))[0].Value; int(got) != samples {
			t.Errorf("%s: %g of %d samples", now, got, samples)
		}
	}
	rounds(10 * time.Minute)
	if from := len(e.Alerts()); from > 0 {
		t.Fatal("it was down for less than 2m")
	}
	fillDisk(t, disk)
	rounds(20 * time.Minute)
	if !e.Stats().Degraded {
		t.Fatal("not in memory")
	}
	remove(t, filepath.Join(disk, "filler"))
	at20 := now
	rounds(at20 + 75*time.Second)
	if e.Stats().Degraded {
		t.Errorf("in memory 75s after there is space again")
	}
	rounds(25 * time.Minute)
	pending := e.Active()
	from, _ := e.Observed()
	if len(pending) != 1 || !pending[0].ActiveAt.Equal(timeAt(24*time.Minute)) || !from.Equal(timeAt(0)) {
		t.Errorf("%+v, observed from %s", pending, from)
	}
	if l := log.String(); strings.Count(l, "msg=\"alerting store ") != 2 ||
		!strings.Contains(l, "alerting store is in memory") ||
		!strings.Contains(l, "alerting store is in the state directory again") {
		t.Errorf("log:\n%s", l)
	}
	killed := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil { // the state left by a killed process
		t.Fatal(err)
	}
	closeEngine(t, e)
	remove(t, killed+"/lock")
	e, _ = lasting(t, killed)
	defer closeEngine(t, e)
	rounds(26*time.Minute + 30*time.Second)
	if a := e.Alerts(); len(a) != 1 || a[0].State != alerting.StateFiring { // a kill costs one round
		t.Errorf("2m15s after it is down: %+v", a)
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
		stepTo(t, e, timeAt(now), wide(1)...)
	}
	wal, err := os.Stat(filepath.Join(parent, "store/wal/00000000"))
	if err != nil {
		t.Fatal(err)
	}
	remove(t, parent)
	write(t, parent, "in the way")
	restore := noFileBeyond(t, uint64(wal.Size()))
	for range 4 {
		if err := e.Append(timeAt(now), slices.Values(wide(1))); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", now, err)
		}
		if _, err := e.Query(t.Context(), "state", timeAt(now)); !errors.Is(err, store.ErrUnavailable) {
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
	stepTo(t, e, timeAt(now), wide(1)...)
	if a := e.Alerts(); len(a) != 1 || a[0].State != alerting.StateFiring {
		t.Errorf("afterwards: %+v", a)
	}
	if !e.Stats().Degraded {
		t.Error("not degraded")
	}
}

// reopenVariable names the store that this binary opens in another process: a crash would otherwise end all tests.
const reopenVariable = "RDMA_EXPORTER_ALERTING_TEST_STORE"

// TestKilledThenFull: a process was killed before it had written its chunks, and there is no space for them at the next
// start.
func TestKilledThenFull(t *testing.T) {
	if dir := os.Getenv(reopenVariable); dir != "" {
		noFileBeyond(t, 70<<10) // a file of chunks has 128 KiB from the beginning
		e, log := lasting(t, dir)
		defer closeEngine(t, e)
		stepTo(t, e, timeAt(time.Hour), wide(1)...)
		fmt.Printf("%d alerts\n%s", len(e.Alerts()), log)
		return
	}
	dir, killed := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "store")
	e, _ := lasting(t, dir)
	defer closeEngine(t, e)
	for i := range 131 {
		stepTo(t, e, timeAt(time.Duration(i)*15*time.Second), wide(1)...)
	}
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil { // the state left by a killed process
		t.Fatal(err)
	}
	remove(t, killed+"/lock")
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledThenFull$")
	c.Env = append(os.Environ(), reopenVariable+"="+killed)
	out, err := c.CombinedOutput()
	if s := string(out); err != nil || !strings.Contains(s, "1 alerts") ||
		strings.Count(s, "starts empty") != 1 || strings.Count(s, "alerting store is in memory") != 1 ||
		!strings.Contains(s, "no space for 12 MiB") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(killed + "/wal/00000000"); err != nil { // for the next start
		t.Error(err)
	}
}

// scratchVariable names the directory in which this binary keeps a store in memory, in another process, until it is
// killed.
const scratchVariable = "RDMA_EXPORTER_ALERTING_TEST_SCRATCH"

// TestScratchAfterKill: the store of a process that was killed a moment ago is removed at the next start, and that of a
// living one is not.
func TestScratchAfterKill(t *testing.T) {
	if dir := os.Getenv(scratchVariable); dir != "" {
		e, err := alerting.New(alerting.Options{Scratch: dir, Instance: instance, Rules: fstest.MapFS{}})
		if err != nil {
			t.Fatal(err)
		}
		stepTo(t, e, timeAt(0), wide(1)...)
		fmt.Println("ready")
		time.Sleep(time.Hour)
		runtime.KeepAlive(e) // it holds the lock
	}
	scratch := filepath.Join(t.TempDir(), "[a*") // no pattern
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	stores := func() []string {
		entries, err := os.ReadDir(scratch)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	begin := func() *exec.Cmd {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestScratchAfterKill$")
		c.Env = append(os.Environ(), scratchVariable+"="+scratch)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("ready"))
		if _, err := io.ReadFull(out, line); err != nil || string(line) != "ready" {
			t.Fatalf("%q, %v", line, err)
		}
		return c
	}
	kill := func(c *exec.Cmd) {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // killed
	}
	living := begin()
	defer kill(living)
	of := stores()
	killed := begin()
	if all := stores(); len(all) != 2 {
		t.Fatalf("%q: a living one was removed", all)
	}
	kill(killed)
	e, err := alerting.New(alerting.Options{
		Dir: filepath.Join(t.TempDir(), "store"), Scratch: scratch, Instance: instance, Rules: fstest.MapFS{},
	})
	if err != nil {
		t.Fatal(err)
	}
	closeEngine(t, e)
	if all := stores(); len(all) != 1 || all[0] != of[0] {
		t.Errorf("%q, want %q", all, of)
	}
}
