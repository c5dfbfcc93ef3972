package rooted_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
)

func TestRead(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, 4095, 4096, 4097, 5000, 70_000, host.MaxFile - 1, host.MaxFile} {
		t.Run(fmt.Sprintf("%d bytes", n), func(t *testing.T) {
			hosttest.BothWays(t, func(t *testing.T, dir string, l *rooted.Tree) {
				want := strings.Repeat("x", n)
				hosttest.Put(t, dir, "sys/f", want)
				hosttest.Put(t, dir, "proc/f", want)
				for _, p := range []string{"sys/f", "proc/f"} {
					for _, buf := range [][]byte{nil, make([]byte, 0, 512), make([]byte, 100, 4096), make([]byte, 0, 2*host.MaxFile)} {
						if got, err := l.Read(p, buf); err != nil || string(got) != want {
							t.Errorf("%s of %d bytes into a buffer of %d: %d bytes, %v", p, n, cap(buf), len(got), err)
						}
					}
				}
			})
		})
	}
}

func TestReadIsBounded(t *testing.T) {
	dir, l := hosttest.Machine(t)
	for _, n := range []int{host.MaxFile + 1, host.MaxFile + 200, 2 * host.MaxFile} {
		hosttest.Put(t, dir, "sys/f", strings.Repeat("x", n))
		hosttest.Put(t, dir, "proc/f", strings.Repeat("x", n))
		for _, p := range []string{"sys/f", "proc/f"} {
			for _, buf := range [][]byte{nil, make([]byte, 0, 4*host.MaxFile)} {
				if b, err := l.Read(p, buf); !errors.Is(err, syscall.EFBIG) {
					t.Errorf("%s of %d bytes into a buffer of %d: %d bytes, %v, want EFBIG", p, n, cap(buf), len(b), err)
				}
			}
		}
	}
}

func TestReadUsesTheBuffer(t *testing.T) {
	dir, l := hosttest.Machine(t)
	hosttest.Put(t, dir, "sys/f", "content")
	buf := make([]byte, 3, 1024)
	got, err := l.Read("sys/f", buf)
	if err != nil || string(got) != "content" || &got[0] != &buf[0] {
		t.Errorf("%q, %v, in the same buffer: %v", got, err, &got[0] == &buf[0])
	}
}

func TestErrorsOfReading(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, l *rooted.Tree) {
		hosttest.Put(t, dir, "sys/file", "")
		hosttest.Symlink(t, "loop", dir, "sys/loop")
		hosttest.Symlink(t, "nowhere", dir, "sys/dangling")
		if err := os.Mkdir(filepath.Join(dir, "sys/dir"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mknod(filepath.Join(dir, "sys/socket"), unix.S_IFSOCK|0o644, 0); err != nil {
			t.Fatal(err)
		}
		hosttest.Put(t, dir, "sys/secret", "secret")
		if err := os.Chmod(filepath.Join(dir, "sys/secret"), 0); err != nil {
			t.Fatal(err)
		}
		cases := []struct {
			path   string
			errno  syscall.Errno
			reason access.Reason
		}{
			{"sys/missing", syscall.ENOENT, access.Absent},
			{"sys/dangling", syscall.ENOENT, access.Absent},
			{"sys/file/below", syscall.ENOTDIR, access.Absent},
			{"sys/dir", syscall.EISDIR, access.IO},
			{"sys/loop", syscall.ELOOP, access.IO},
			{"sys/socket", syscall.ENXIO, access.Gone},
		}
		if os.Geteuid() != 0 { // root can read everything
			cases = append(cases, struct {
				path   string
				errno  syscall.Errno
				reason access.Reason
			}{"sys/secret", syscall.EACCES, access.Permission})
		}
		for _, c := range cases {
			t.Run(c.path, func(t *testing.T) {
				b, err := l.Read(c.path, nil)
				var e *access.Error
				if !errors.Is(err, c.errno) || access.ReasonOf(err) != c.reason {
					t.Errorf("%q, %v (%s), want %v (%s)", b, err, access.ReasonOf(err), c.errno, c.reason)
				} else if !errors.As(err, &e) || e.Op != "read" || e.Path != c.path {
					t.Errorf("%#v does not name it", err)
				}
			})
		}
		if _, err := l.List("sys/file"); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("List of a file: %v", err)
		}
		if _, err := l.Link("sys/file"); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("Link of a file: %v", err)
		}
		if err := l.Readable("sys/missing"); !access.IsAbsent(err) {
			t.Errorf("Readable of what is not there: %v", err)
		}
		if err := l.Readable("sys/secret"); (os.Geteuid() == 0) != (err == nil) {
			t.Errorf("Readable of mode 0 as user %d: %v", os.Geteuid(), err)
		}
	})
}

func TestReadableDoesNotOpen(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, l *rooted.Tree) {
		if err := unix.Mkfifo(filepath.Join(dir, "uverbs0"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := l.Readable("uverbs0"); err != nil { // opening it would block
			t.Error(err)
		}
	})
}

func TestReadEach(t *testing.T) {
	dir, l := hosttest.Machine(t)
	big := strings.Repeat("b", 9000)
	hosttest.Put(t, dir, "sys/counters/a", "1\n")
	hosttest.Put(t, dir, "sys/counters/big", big)
	hosttest.Put(t, dir, "sys/counters/c", "3\n")
	names := []string{"c", "missing", "big", "a"}
	for range 3 { // before the directory is listed, with new and cached descriptors
		var seen []string
		got := map[string]string{}
		buf := l.ReadEach("sys/counters", names, make([]byte, 0, 512), func(name string, b []byte, err error) {
			seen = append(seen, name)
			if name == "missing" {
				var e *access.Error
				if !access.IsAbsent(err) || !errors.As(err, &e) || e.Path != "sys/counters/missing" {
					t.Errorf("missing: %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			got[name] = string(b)
		})
		if strings.Join(seen, " ") != strings.Join(names, " ") {
			t.Errorf("read %q, want the order of %q", seen, names)
		}
		if got["a"] != "1\n" || got["c"] != "3\n" || got["big"] != big {
			t.Errorf("a %q, c %q, big %d bytes", got["a"], got["c"], len(got["big"]))
		}
		if cap(buf) < len(big) {
			t.Errorf("the buffer that grew is lost: %d", cap(buf))
		}
		hosttest.List(t, l, "sys/counters")
	}
}

// A driver whose query fails, by EINVAL or after a firmware timeout, is queried once.
func TestReadEachQueriesAFailingFileOnce(t *testing.T) {
	dir, l := hosttest.Machine(t)
	hosttest.Put(t, dir, "sys/d/a", "a")
	failing := filepath.Join(dir, "sys/d/b")
	if err := os.Mkdir(failing, 0o755); err != nil {
		t.Fatal(err)
	}
	hosttest.Age(t, filepath.Join(dir, "sys/d"))
	hosttest.List(t, l, "sys/d")
	names := []string{"a", "b"}
	l.ReadEach("sys/d", names, nil, func(string, []byte, error) {})
	l.ReadEach("sys/d", names, nil, func(name string, b []byte, err error) {
		if name == "a" { // what a second attempt would find
			if err := os.Remove(failing); err != nil {
				t.Fatal(err)
			}
			hosttest.Put(t, dir, "sys/d/b", "second attempt")
			hosttest.List(t, l, "sys/d")
			return
		}
		var e *access.Error
		if !errors.Is(err, syscall.EISDIR) || !errors.As(err, &e) || e.Path != "sys/d/b" {
			t.Errorf("%q, %v, want EISDIR of the descriptor that was there", b, err)
		}
	})
}

func TestListIsSortedAndWhole(t *testing.T) {
	dir, l := hosttest.Machine(t)
	for _, n := range []string{"10", "9", "b", "a"} {
		hosttest.Put(t, dir, "sys/d/"+n, "")
	}
	if got := strings.Join(hosttest.List(t, l, "sys/d"), " "); got != "10 9 a b" {
		t.Errorf("%s", got)
	}
	var want bytes.Buffer
	for i := range 2000 { // more than one getdents returns
		name := strings.Repeat("n", 20) + string(rune('a'+i/100)) + string(rune('a'+i/10%10)) + string(rune('a'+i%10))
		hosttest.Put(t, dir, "sys/many/"+name, "")
		want.WriteString(name + " ")
	}
	if got := strings.Join(hosttest.List(t, l, "sys/many"), " ") + " "; got != want.String() {
		t.Errorf("%d bytes of names, want %d", len(got), want.Len())
	}
}
