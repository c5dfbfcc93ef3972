package state

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// testValue is what the tests keep: what is wrong with a mix of two of them shows.
type testValue struct {
	N    int
	Fill string
}

func valueOf(n int) testValue {
	return testValue{N: n, Fill: strings.Repeat(fmt.Sprintf("%d <&>   ", n), n%400)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openStore(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// reads fails the test unless the directory holds the value of n.
func reads(t *testing.T, dir string, n int) {
	t.Helper()
	var v testValue
	if err := Read(t.Context(), dir, &v); err != nil || v != valueOf(n) {
		t.Errorf("read %d, %v, want %d", v.N, err, n)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestWriteAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "var", "lib", "state")
	var v testValue
	if err := Read(t.Context(), dir, &v); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("no directory: %v", err)
	}
	s := openStore(t, dir)
	if err := s.Read(&v); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing written: %v", err)
	}
	for n := range 4 {
		must(t, s.Write(valueOf(n)))
		reads(t, dir, n)
		must(t, s.Read(&v))
	}
	must(t, s.Close())
	if err := s.Write(valueOf(9)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
	reads(t, dir, 3)
	reads(t, openStore(t, dir).dir, 3)
	must(t, os.Remove(filepath.Join(dir, currentName)))
	reads(t, dir, 2)
	if want := []string{lockName, oldName}; !slices.Equal(names(t, dir), want) {
		t.Errorf("%v, want %v", names(t, dir), want)
	}
	var other []string
	if err := Read(t.Context(), dir, &other); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a value of another kind: %v", err)
	}
}

// TestModes: addresses of the fabric are readable for the service and its group only.
func TestModes(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "parent")
	dir := filepath.Join(parent, "state")
	s := openStore(t, dir)
	must(t, s.Write(valueOf(1)))
	mask := fs.FileMode(umask(t))
	for name, want := range map[string]fs.FileMode{
		parent: 0o755, dir: 0o750, s.path(currentName): 0o640, s.path(lockName): 0o640,
	} {
		st, err := os.Stat(name)
		must(t, err)
		if got := st.Mode().Perm(); got != want&^mask {
			t.Errorf("%s: %o, want %o", name, got, want&^mask)
		}
	}
}

// umask reads that of this process without a change to it.
func umask(t *testing.T) (mask uint32) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, rest, _ := strings.Cut(string(b), "\nUmask:\t")
	_, err = fmt.Sscanf(rest, "%o", &mask)
	must(t, err)
	return mask
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	_, err := Open(dir)
	if want := "state directory " + dir +
		": in use by another rdma_exporter: stop that one, or set another --state.dir"; !errors.Is(err, ErrLocked) ||
		err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	must(t, s.Close())
	openStore(t, dir)
}

// TestTorn: a file that is cut off anywhere is known, and the generation before it is read.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	must(t, s.Write(valueOf(1)))
	must(t, s.Write(valueOf(2)))
	must(t, s.Close())
	whole, err := os.ReadFile(s.path(currentName))
	must(t, err)
	spoil := func(what string, b []byte) {
		t.Helper()
		must(t, os.WriteFile(s.path(currentName), b, fileMode))
		var v testValue
		if err := Read(t.Context(), dir, &v); err != nil || v != valueOf(1) && v != valueOf(2) {
			t.Fatalf("%s: %d, %v", what, v.N, err)
		}
	}
	for n := range len(whole) - 1 { // the last byte is the end of the line
		spoil(fmt.Sprintf("%d of %d bytes", n, len(whole)), whole[:n])
		reads(t, dir, 1)
		zeros := make([]byte, len(whole))
		copy(zeros, whole[:n])
		spoil(fmt.Sprintf("zeros after %d bytes", n), zeros)
		reads(t, dir, 1)
	}
	for bit := range len(whole) * 8 {
		flipped := bytes.Clone(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		spoil(fmt.Sprintf("bit %d flipped", bit), flipped)
	}
}

// TestBrokenIsSetAside, one only, and never becomes the older generation.
func TestBrokenIsSetAside(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"first", "second"} {
		s := openStore(t, dir)
		must(t, s.Write(valueOf(1)))
		must(t, s.Write(valueOf(2)))
		must(t, s.Close())
		must(t, os.WriteFile(s.path(currentName), []byte(text), fileMode))
		s = openStore(t, dir)
		if got := s.SetAside(); !strings.HasPrefix(got, s.path(brokenName)+": ") ||
			!strings.Contains(got, "incomplete or damaged") {
			t.Errorf("SetAside: %q", got)
		}
		reads(t, dir, 1)
		must(t, s.Write(valueOf(3)))
		reads(t, dir, 3)
		must(t, os.Remove(s.path(currentName)))
		reads(t, dir, 1)
		if b, err := os.ReadFile(s.path(brokenName)); err != nil || string(b) != text {
			t.Errorf("set aside: %q, %v", b, err)
		}
		must(t, s.Close())
	}
	if want := []string{lockName, brokenName, oldName}; !slices.Equal(names(t, dir), want) {
		t.Errorf("%v, want %v", names(t, dir), want)
	}
	must(t, os.WriteFile(filepath.Join(dir, currentName), nil, fileMode))
	must(t, os.WriteFile(filepath.Join(dir, oldName), nil, fileMode))
	var v testValue
	err := Read(t.Context(), dir, &v)
	if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), currentName) {
		t.Errorf("both broken: %v", err)
	}
}

// TestNotOurs: links, pipes and folders in the places of files are neither followed nor waited for, and other files
// stay.
func TestNotOurs(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for what, put := range map[string]func(name string) error{
		"link":   func(name string) error { return os.Symlink(outside, name) },
		"pipe":   func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"folder": func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(outside, []byte("outside"), 0o600))
			must(t, put(filepath.Join(dir, currentName)))
			must(t, put(filepath.Join(dir, tempName)))
			must(t, os.WriteFile(filepath.Join(dir, "state.v2.json"), []byte("newer"), 0o600))
			s := openStore(t, dir)
			must(t, s.Write(valueOf(1)))
			reads(t, dir, 1)
			for name, want := range map[string]string{outside: "outside", filepath.Join(dir, "state.v2.json"): "newer"} {
				if b, err := os.ReadFile(name); err != nil || string(b) != want {
					t.Errorf("%s is %q, %v", name, b, err)
				}
			}
			must(t, s.Close())
			must(t, os.Remove(s.path(lockName)))
			must(t, os.Symlink(outside, s.path(lockName)))
			if _, err := Open(dir); err == nil {
				t.Error("a lock that is a link is followed")
			}
		})
	}
}

// TestFIFO: a FIFO in place of any file is not waited for, and the newest value that is left is read.
func TestFIFO(t *testing.T) {
	for name, want := range map[string]int{
		currentName: 1, oldName: 2, brokenName: 2, tempName: 2, lockName: 2,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir)
			must(t, s.Write(valueOf(1)))
			must(t, s.Write(valueOf(2)))
			must(t, s.Close())
			must(t, remove(s.path(name)))
			must(t, syscall.Mkfifo(s.path(name), 0o600))
			k := &File[testValue]{Dir: dir, Log: slog.New(slog.DiscardHandler)}
			if v, err := k.Open(); err != nil || v != valueOf(want) {
				t.Errorf("%d, %v, want %d", v.N, err, want)
			}
			must(t, k.Save(valueOf(3)))
			reads(t, dir, 3)
			must(t, k.Close())
		})
	}
}

// TestHungDirectory: an opening that hangs in the kernel is given up at the limit, no other is begun before it returns,
// and it is closed then.
func TestHungDirectory(t *testing.T) {
	dir, gate := t.TempDir(), filepath.Join(t.TempDir(), "gate")
	must(t, syscall.Mkfifo(gate, 0o600))
	k := &File[testValue]{Dir: dir, Log: slog.New(slog.DiscardHandler), Limit: time.Nanosecond}
	opened := 0
	k.open = func(dir string) (*Store, error) {
		opened++
		f, err := os.Open(gate) // waits for a writer
		if err != nil {
			return nil, err
		}
		must(t, f.Close())
		return Open(dir)
	}
	for _, want := range []string{
		"state directory " + dir + ": no answer within 1ns: check the file system that it is on",
		"state directory " + dir + ": no answer yet from an earlier attempt: check the file system that it is on",
	} {
		if _, err := k.Open(); !errors.Is(err, ErrLate) || err.Error() != want || k.IsOpen() {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f, err := os.OpenFile(gate, os.O_WRONLY, 0)
	must(t, err)
	for k.late.Pending() {
		runtime.Gosched()
	}
	must(t, f.Close())
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	k.open, k.Limit = nil, 0
	if _, err := k.Open(); err != nil { // not locked by the late one
		t.Error(err)
	}
	must(t, k.Close())
}

// TestCannotWrite: the value before stays, and nothing half done.
func TestCannotWrite(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	must(t, s.Write(valueOf(1)))
	for what, v := range map[string]any{"too large": strings.Repeat("x", maxSize), "no JSON": func() {}} {
		t.Run(what, func(t *testing.T) {
			if err := s.Write(v); err == nil || !strings.Contains(err.Error(), dir) {
				t.Error(err)
			}
			reads(t, dir, 1)
		})
	}
	must(t, os.RemoveAll(dir))
	if err := s.Write(valueOf(2)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below"), "/proc/state"} {
		if s, err := Open(dir); err == nil ||
			!strings.Contains(err.Error(), "user of the program") && !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("%s: %v, %v", dir, s, err)
		}
	}
}

func TestConcurrentWrites(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	must(t, s.Write(valueOf(0)))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			if err := s.Write(valueOf(n)); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			var v testValue
			if err := Read(t.Context(), dir, &v); err != nil || v != valueOf(v.N) {
				t.Errorf("%d, %v", v.N, err)
			}
		})
	}
	wg.Wait()
}

func FuzzDecode(f *testing.F) {
	whole, err := encode(valueOf(7), time.Unix(1, 0))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"version":1,"sum":"","value":null}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		value, err := decode(b)
		if err != nil && !isBroken(err) {
			t.Errorf("%v is no broken file", err)
		}
		if err != nil {
			return
		}
		again, err := encode(rawValue(value), time.Unix(1, 0))
		must(t, err)
		if _, err := decode(again); err != nil {
			t.Errorf("%q is not whole after it was written again: %v", value, err)
		}
	})
}

type rawValue []byte

func (r rawValue) MarshalJSON() ([]byte, error) { return r, nil }

// TestFile: a value that cannot be read stays, or is replaced where Unread says so; a damaged file is logged; nothing
// is written once closed.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	must(t, s.Write([]string{"of another kind"}))
	must(t, s.Close())
	var log bytes.Buffer
	k := &File[testValue]{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}
	if _, err := k.Open(); err == nil || k.IsOpen() || k.Write(valueOf(1)) == nil {
		t.Errorf("open: %v, %v", k.IsOpen(), err)
	}
	if _, failed := k.Last(); !failed {
		t.Error("no failure")
	}
	k.Unread = "cannot read"
	if v, err := k.Open(); err != nil || v != (testValue{}) || !strings.Contains(log.String(), `msg="cannot read"`) {
		t.Errorf("%v, %v\n%s", v, err, &log)
	}
	must(t, k.Save(valueOf(1)))
	must(t, k.Save(valueOf(2)))
	must(t, k.Close())
	if err := k.Save(valueOf(3)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	must(t, os.WriteFile(s.path(currentName), []byte("torn"), fileMode))
	if v, err := k.Open(); err != nil || v != valueOf(1) ||
		!strings.Contains(log.String(), "state file damaged, using the earlier one") {
		t.Errorf("%d, %v\n%s", v.N, err, &log)
	}
	must(t, k.Close())
}
