package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// put writes a file below dir, with the directories above it.
func put(t testing.TB, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlink(t testing.TB, target, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// age sets an old modification time on a directory, so that the next change is visible however coarse the clock of the
// file system is.
func age(t testing.TB, path string) {
	t.Helper()
	long := time.Unix(1e9, 0)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
}

// machine makes an empty tree and opens it.
func machine(t testing.TB) (dir string, l *Live) {
	t.Helper()
	dir = t.TempDir()
	for _, d := range []string{"sys", "proc"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir, open(t, dir)
}

func open(t testing.TB, dir string) *Live {
	t.Helper()
	l, err := OpenLive(Paths{RootFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// withoutOpenat2 makes l use the fallback, as in a container whose seccomp filter rejects openat2.
func withoutOpenat2(l *Live) {
	for _, r := range []*root{l.tree.rest, l.tree.sys, l.tree.proc} {
		r.slow.Store(true)
	}
}

// descriptors counts what this process has open below dir.
func descriptors(t testing.TB, dir string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

func content(t testing.TB, f Files, name string) string {
	t.Helper()
	b, err := f.Read(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func list(t testing.TB, f Files, name string) []string {
	t.Helper()
	names, err := f.List(name)
	if err != nil {
		t.Fatal(err)
	}
	return names
}
