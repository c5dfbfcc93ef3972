package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// bothWays runs a test with openat2, and with the fallback for kernels and containers without it.
func bothWays(t *testing.T, test func(t *testing.T, dir string, l *Live)) {
	t.Run("openat2", func(t *testing.T) {
		dir, l := machine(t)
		test(t, dir, l)
		if l.tree.rest.slow.Load() {
			t.Error("the fallback was used")
		}
	})
	t.Run("os.Root", func(t *testing.T) {
		dir, l := machine(t)
		withoutOpenat2(l)
		test(t, dir, l)
	})
}

func TestLinksThatLeadOutsideAreRefused(t *testing.T) {
	bothWays(t, func(t *testing.T, dir string, l *Live) {
		outside := t.TempDir()
		put(t, outside, "secret", "secret")
		up, err := filepath.Rel(dir, outside)
		if err != nil {
			t.Fatal(err)
		}
		symlink(t, up, dir, "by-dots")
		symlink(t, outside, dir, "absolute")
		symlink(t, "../../"+up, dir, "a/b/from-below")
		symlink(t, "../"+up, dir, "sys/from-sys")
		symlink(t, "a/b/from-below", dir, "by-another-link")

		for _, way := range []string{"by-dots", "absolute", "a/b/from-below", "sys/from-sys", "by-another-link"} {
			t.Run(way, func(t *testing.T) {
				file := way + "/secret"
				_, read := l.Files.Read(file, nil)
				_, readIn := l.Files.ReadIn(way, "secret", nil)
				var readEach error
				l.Files.ReadEach(way, []string{"secret"}, nil, func(_ string, _ []byte, err error) { readEach = err })
				_, list := l.Files.List(way)
				_, link := l.Files.Link(file)
				_, resolve := l.Files.Resolve(file)
				_, resolveItself := l.Files.Resolve(way)
				for op, err := range map[string]error{
					"Read": read, "ReadIn": readIn, "ReadEach": readEach, "List": list, "Link": link,
					"Resolve": resolve, "Resolve of the link": resolveItself, "Readable": l.Files.Readable(file),
				} {
					var e *Error
					if !errors.Is(err, syscall.EXDEV) || !errors.As(err, &e) {
						t.Errorf("%s: %v, want EXDEV in an *Error", op, err)
					}
				}
			})
		}
	})
}

func TestLinksThatStayInsideAreFollowed(t *testing.T) {
	bothWays(t, func(t *testing.T, dir string, l *Live) {
		put(t, dir, "sys/devices/pci0000:00/mlx5_0/node_guid", "guid\n")
		symlink(t, "../../devices/pci0000:00/mlx5_0", dir, "sys/class/infiniband/mlx5_0")
		symlink(t, "../class/infiniband", dir, "sys/bus/all")
		const through = "sys/bus/all/mlx5_0"

		if got := content(t, l.Files, through+"/node_guid"); got != "guid\n" {
			t.Errorf("Read: %q", got)
		}
		if got := list(t, l.Files, through); !slices.Equal(got, []string{"node_guid"}) {
			t.Errorf("List: %q", got)
		}
		if got, err := l.Files.Link(through); err != nil || got != "../../devices/pci0000:00/mlx5_0" {
			t.Errorf("Link: %q, %v", got, err)
		}
		if got, err := l.Files.Resolve(through + "/node_guid"); err != nil ||
			got != "sys/devices/pci0000:00/mlx5_0/node_guid" {
			t.Errorf("Resolve: %q, %v", got, err)
		}
		if err := l.Files.Readable(through + "/node_guid"); err != nil {
			t.Errorf("Readable: %v", err)
		}
	})
}

func TestADirectoryThatBecomesALinkOutsideIsRefused(t *testing.T) {
	bothWays(t, func(t *testing.T, dir string, l *Live) {
		outside := t.TempDir()
		put(t, outside, "secret", "secret")
		put(t, dir, "d/own", "own")
		list(t, l.Files, "d")
		if err := os.RemoveAll(filepath.Join(dir, "d")); err != nil {
			t.Fatal(err)
		}
		symlink(t, outside, dir, "d")
		if names, err := l.Files.List("d"); !errors.Is(err, syscall.EXDEV) {
			t.Errorf("List: %q, %v, want EXDEV", names, err)
		}
	})
}

func TestPathsOutsideAreRefused(t *testing.T) {
	dir, l := machine(t)
	put(t, dir, "etc/passwd", "inside")
	for _, p := range []string{
		"", ".", "..", "../etc/passwd", "/etc/passwd", "sys/../../etc/passwd", "etc//passwd", "a\x00b",
	} {
		if Clean(p) {
			t.Errorf("Clean(%q)", p)
		}
		_, list := l.Files.List(p)
		_, link := l.Files.Link(p)
		_, resolve := l.Files.Resolve(p)
		for op, err := range map[string]error{
			"List": list, "Link": link, "Resolve": resolve, "Readable": l.Files.Readable(p),
		} {
			if !errors.Is(err, syscall.EINVAL) {
				t.Errorf("%s(%q): %v, want EINVAL", op, p, err)
			}
		}
		if p == "etc//passwd" {
			continue
		}
		if b, err := l.Files.Read(p, nil); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("Read(%q): %q, %v, want EINVAL", p, b, err)
		}
	}
	for _, p := range []string{
		"sys", "sys/class/infiniband", "proc/self/status", "a..b", "..a", "a/...", "\xff", "a b\n",
	} {
		if !Clean(p) {
			t.Errorf("Clean(%q) is false", p)
		}
	}
}

func TestNamesNeedNotBeUTF8(t *testing.T) {
	bothWays(t, func(t *testing.T, dir string, l *Live) {
		const name = "mlx5_\xff\xfe"
		put(t, dir, "sys/class/"+name+"/rate", "100")
		if got := list(t, l.Files, "sys/class"); !slices.Equal(got, []string{name}) {
			t.Errorf("List: %q", got)
		}
		if got := content(t, l.Files, "sys/class/"+name+"/rate"); got != "100" {
			t.Errorf("Read: %q", got)
		}
		if got, err := l.Files.Resolve("sys/class/" + name); err != nil || got != "sys/class/"+name {
			t.Errorf("Resolve: %q, %v", got, err)
		}
	})
}

func TestCirclesOfLinksEnd(t *testing.T) {
	bothWays(t, func(t *testing.T, dir string, l *Live) {
		symlink(t, "b", dir, "a")
		symlink(t, "a", dir, "b")
		if _, err := l.Files.Resolve("a"); !errors.Is(err, syscall.ELOOP) {
			t.Errorf("Resolve: %v, want ELOOP", err)
		}
		if _, err := l.Files.Read("a", nil); err == nil {
			t.Error("Read follows a circle")
		}
	})
}

func TestSysAndProcAreMountsWhereverTheyAre(t *testing.T) {
	rest, sys, procDir := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, rest, "etc/hostname", "rest")
	put(t, sys, "class/x", "sys")
	put(t, procDir, "version", "proc")
	symlink(t, "elsewhere", rest, "sys")
	l, err := OpenLive(Paths{RootFS: rest, Sys: sys, Proc: procDir})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for p, want := range map[string]string{"etc/hostname": "rest", "sys/class/x": "sys", "proc/version": "proc"} {
		if got := content(t, l.Files, p); got != want {
			t.Errorf("%s: %q", p, got)
		}
		if got, err := l.Files.Resolve(p); err != nil || got != p {
			t.Errorf("Resolve(%s): %q, %v", p, got, err)
		}
	}
	if l.tree.isSysfs() {
		t.Error("a folder is taken for a kernel's sysfs")
	}
	if _, err := l.RDMA.System(t.Context()); !errors.Is(err, syscall.EPROTONOSUPPORT) {
		t.Errorf("a copied tree asks: %v", err)
	}
}

func TestATreeThatCannotBeReadIsNamed(t *testing.T) {
	dir, _ := machine(t)
	put(t, dir, "file", "")
	before := descriptors(t, dir)
	for flag, p := range map[string]Paths{
		"--path.rootfs": {RootFS: filepath.Join(dir, "no-such")},
		"--path.sysfs":  {RootFS: dir, Sys: filepath.Join(dir, "file")},
		"--path.procfs": {RootFS: dir, Proc: filepath.Join(dir, "no-such")},
	} {
		t.Run(flag, func(t *testing.T) {
			l, err := OpenLive(p)
			if err == nil {
				t.Fatalf("opened %v", l)
			}
			if got := err.Error(); got[:len(flag)] != flag {
				t.Errorf("%s", got)
			}
		})
	}
	if n := descriptors(t, dir); n != before {
		t.Errorf("%d descriptors were left open", n-before)
	}
}
