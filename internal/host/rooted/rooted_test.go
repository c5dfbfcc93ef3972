package rooted_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
)

func TestLinksThatLeadOutsideAreRefused(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, l *rooted.Tree) {
		outside := t.TempDir()
		hosttest.Put(t, outside, "secret", "secret")
		up, err := filepath.Rel(dir, outside)
		if err != nil {
			t.Fatal(err)
		}
		hosttest.Symlink(t, up, dir, "by-dots")
		hosttest.Symlink(t, outside, dir, "absolute")
		hosttest.Symlink(t, "../../"+up, dir, "a/b/from-below")
		hosttest.Symlink(t, "../"+up, dir, "sys/from-sys")
		hosttest.Symlink(t, "a/b/from-below", dir, "by-another-link")

		for _, way := range []string{"by-dots", "absolute", "a/b/from-below", "sys/from-sys", "by-another-link"} {
			t.Run(way, func(t *testing.T) {
				file := way + "/secret"
				_, read := l.Read(file, nil)
				_, readIn := l.ReadIn(way, "secret", nil)
				var readEach error
				l.ReadEach(way, []string{"secret"}, nil, func(_ string, _ []byte, err error) { readEach = err })
				_, list := l.List(way)
				_, link := l.Link(file)
				_, resolve := l.Resolve(file)
				_, resolveItself := l.Resolve(way)
				for op, err := range map[string]error{
					"Read": read, "ReadIn": readIn, "ReadEach": readEach, "List": list, "Link": link,
					"Resolve": resolve, "Resolve of the link": resolveItself, "Readable": l.Readable(file),
				} {
					var e *access.Error
					if !errors.Is(err, syscall.EXDEV) || !errors.As(err, &e) {
						t.Errorf("%s: %v, want EXDEV in an *Error", op, err)
					}
				}
			})
		}
	})
}

func TestLinksThatStayInsideAreFollowed(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, l *rooted.Tree) {
		hosttest.Put(t, dir, "sys/devices/pci0000:00/mlx5_0/node_guid", "guid\n")
		hosttest.Symlink(t, "../../devices/pci0000:00/mlx5_0", dir, "sys/class/infiniband/mlx5_0")
		hosttest.Symlink(t, "../class/infiniband", dir, "sys/bus/all")
		const through = "sys/bus/all/mlx5_0"

		if got := hosttest.Content(t, l, through+"/node_guid"); got != "guid\n" {
			t.Errorf("Read: %q", got)
		}
		if got := hosttest.List(t, l, through); !slices.Equal(got, []string{"node_guid"}) {
			t.Errorf("List: %q", got)
		}
		if got, err := l.Link(through); err != nil || got != "../../devices/pci0000:00/mlx5_0" {
			t.Errorf("Link: %q, %v", got, err)
		}
		if got, err := l.Resolve(through + "/node_guid"); err != nil ||
			got != "sys/devices/pci0000:00/mlx5_0/node_guid" {
			t.Errorf("Resolve: %q, %v", got, err)
		}
		if err := l.Readable(through + "/node_guid"); err != nil {
			t.Errorf("Readable: %v", err)
		}
	})
}

func TestADirectoryThatBecomesALinkOutsideIsRefused(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, l *rooted.Tree) {
		outside := t.TempDir()
		hosttest.Put(t, outside, "secret", "secret")
		hosttest.Put(t, dir, "d/own", "own")
		hosttest.List(t, l, "d")
		if err := os.RemoveAll(filepath.Join(dir, "d")); err != nil {
			t.Fatal(err)
		}
		hosttest.Symlink(t, outside, dir, "d")
		if names, err := l.List("d"); !errors.Is(err, syscall.EXDEV) {
			t.Errorf("List: %q, %v, want EXDEV", names, err)
		}
	})
}

func TestPathsOutsideAreRefused(t *testing.T) {
	dir, l := hosttest.Machine(t)
	hosttest.Put(t, dir, "etc/passwd", "inside")
	for _, p := range []string{
		"", ".", "..", "../etc/passwd", "/etc/passwd", "sys/../../etc/passwd", "etc//passwd", "a\x00b",
	} {
		if access.Clean(p) {
			t.Errorf("Clean(%q)", p)
		}
		_, list := l.List(p)
		_, link := l.Link(p)
		_, resolve := l.Resolve(p)
		for op, err := range map[string]error{
			"List": list, "Link": link, "Resolve": resolve, "Readable": l.Readable(p),
		} {
			if !errors.Is(err, syscall.EINVAL) {
				t.Errorf("%s(%q): %v, want EINVAL", op, p, err)
			}
		}
		if p == "etc//passwd" {
			continue
		}
		if b, err := l.Read(p, nil); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("Read(%q): %q, %v, want EINVAL", p, b, err)
		}
	}
	for _, p := range []string{
		"sys", "sys/class/infiniband", "proc/self/status", "a..b", "..a", "a/...", "\xff", "a b\n",
	} {
		if !access.Clean(p) {
			t.Errorf("Clean(%q) is false", p)
		}
	}
}

func TestNamesNeedNotBeUTF8(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, l *rooted.Tree) {
		const name = "mlx5_\xff\xfe"
		hosttest.Put(t, dir, "sys/class/"+name+"/rate", "100")
		if got := hosttest.List(t, l, "sys/class"); !slices.Equal(got, []string{name}) {
			t.Errorf("List: %q", got)
		}
		if got := hosttest.Content(t, l, "sys/class/"+name+"/rate"); got != "100" {
			t.Errorf("Read: %q", got)
		}
		if got, err := l.Resolve("sys/class/" + name); err != nil || got != "sys/class/"+name {
			t.Errorf("Resolve: %q, %v", got, err)
		}
	})
}

func TestCirclesOfLinksEnd(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, l *rooted.Tree) {
		hosttest.Symlink(t, "b", dir, "a")
		hosttest.Symlink(t, "a", dir, "b")
		if _, err := l.Resolve("a"); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("Resolve: %v, want ELOOP", err)
		}
		if _, err := l.Read("a", nil); err == nil {
			t.Error("Read follows a circle")
		}
	})
}

func TestSysAndProcAreMountsWhereverTheyAre(t *testing.T) {
	rest, sys, procDir := t.TempDir(), t.TempDir(), t.TempDir()
	hosttest.Put(t, rest, "etc/hostname", "rest")
	hosttest.Put(t, sys, "class/x", "sys")
	hosttest.Put(t, procDir, "version", "proc")
	hosttest.Symlink(t, "elsewhere", rest, "sys")
	l, err := rooted.Open(rooted.Paths{RootFS: rest, Sys: sys, Proc: procDir})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for p, want := range map[string]string{"etc/hostname": "rest", "sys/class/x": "sys", "proc/version": "proc"} {
		if got := hosttest.Content(t, l, p); got != want {
			t.Errorf("%s: %q", p, got)
		}
		if got, err := l.Resolve(p); err != nil || got != p {
			t.Errorf("Resolve(%s): %q, %v", p, got, err)
		}
	}
	if l.IsSysfs() {
		t.Error("a folder is taken for a kernel's sysfs")
	}
}

func TestATreeThatCannotBeReadIsNamed(t *testing.T) {
	dir, _ := hosttest.Machine(t)
	hosttest.Put(t, dir, "file", "")
	before := hosttest.Descriptors(t, dir)
	for flag, p := range map[string]rooted.Paths{
		"--path.rootfs": {RootFS: filepath.Join(dir, "no-such")},
		"--path.sysfs":  {RootFS: dir, Sys: filepath.Join(dir, "file")},
		"--path.procfs": {RootFS: dir, Proc: filepath.Join(dir, "no-such")},
	} {
		t.Run(flag, func(t *testing.T) {
			l, err := rooted.Open(p)
			if err == nil {
				t.Fatalf("opened %v", l)
			}
			if got := err.Error(); got[:len(flag)] != flag {
				t.Errorf("%s", got)
			}
		})
	}
	if n := hosttest.Descriptors(t, dir); n != before {
		t.Errorf("%d descriptors were left open", n-before)
	}
}
