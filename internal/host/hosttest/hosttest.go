// Package hosttest makes trees of files for the tests of the packages that read them.
package hosttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/rooted"
)

// Put writes a file below dir, with the directories above it.
func Put(t testing.TB, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Symlink makes a link below dir, with the directories above it.
func Symlink(t testing.TB, target, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// Age sets an old modification time on a directory, so that the next change is visible however coarse the clock of the
// file system is.
func Age(t testing.TB, path string) {
	t.Helper()
	long := time.Unix(1e9, 0)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
}

// Machine makes an empty tree and opens it.
func Machine(t testing.TB) (dir string, l *rooted.Tree) {
	t.Helper()
	dir = t.TempDir()
	for _, d := range []string{"sys", "proc"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir, Open(t, dir)
}

// Open opens a tree until the end of the test.
func Open(t testing.TB, dir string) *rooted.Tree {
	t.Helper()
	l, err := rooted.Open(rooted.Paths{RootFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// WithoutOpenat2 makes l use the fallback, as in a container whose seccomp filter rejects openat2.
func WithoutOpenat2(l *rooted.Tree) {
	for _, r := range []*rooted.Root{l.Rest, l.Sys, l.Proc} {
		r.Slow.Store(true)
	}
}

// Descriptors counts what this process has open below dir.
func Descriptors(t testing.TB, dir string) (n int) {
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

// Content reads a file that has to be there.
func Content(t testing.TB, f host.Files, name string) string {
	t.Helper()
	b, err := f.Read(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// List lists a directory that has to be there.
func List(t testing.TB, f host.Files, name string) []string {
	t.Helper()
	names, err := f.List(name)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// BothWays runs a test with openat2, and with the fallback for kernels and containers without it.
func BothWays(t *testing.T, test func(t *testing.T, dir string, l *rooted.Tree)) {
	t.Run("openat2", func(t *testing.T) {
		dir, l := Machine(t)
		test(t, dir, l)
		if l.Rest.Slow.Load() {
			t.Error("the fallback was used")
		}
	})
	t.Run("os.Root", func(t *testing.T) {
		dir, l := Machine(t)
		WithoutOpenat2(l)
		test(t, dir, l)
	})
}

// InfiniBandPorts makes a host with InfiniBand devices of one port each, in these states ("4: ACTIVE"), and returns its
// root. Each device has its own node GUID and umad file.
func InfiniBandPorts(t testing.TB, states ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	put := func(name, content string) { Put(t, dir, name, content+"\n") }
	put("proc/version", "")
	put("sys/class/infiniband_mad/abi_version", "5")
	for i, state := range states {
		umad, device := fmt.Sprintf("sys/class/infiniband_mad/umad%d/", i), fmt.Sprintf("mlx5_%d", i)
		put(umad+"ibdev", device)
		put(umad+"port", "1")
		put("sys/class/infiniband/"+device+"/node_guid", fmt.Sprintf("0:%d", i))
		put("sys/class/infiniband/"+device+"/ports/1/link_layer", "InfiniBand")
		put("sys/class/infiniband/"+device+"/ports/1/state", state)
	}
	return dir
}
