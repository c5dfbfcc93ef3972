package rooted_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
)

func TestAKeptDescriptorShowsWhatIsWrittenInPlace(t *testing.T) {
	dir, l := hosttest.Machine(t)
	hosttest.Put(t, dir, "sys/d/f", "one, and long")
	hosttest.List(t, l, "sys/d")
	hosttest.Content(t, l, "sys/d/f")
	open := hosttest.Descriptors(t, dir)
	hosttest.Put(t, dir, "sys/d/f", "two")
	if got := hosttest.Content(t, l, "sys/d/f"); got != "two" {
		t.Errorf("%q", got)
	}
	if n := hosttest.Descriptors(t, dir); n != open {
		t.Errorf("%d descriptors, %d before", n, open)
	}
}

func TestListDropsDescriptorsOfAChangedDirectory(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"file replaced by rename": func(t *testing.T, dir string) {
			hosttest.Put(t, dir, "new", "two")
			if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "sys/d/f")); err != nil {
				t.Fatal(err)
			}
		},
		"directory removed and made again": func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "sys/d")); err != nil {
				t.Fatal(err)
			}
			hosttest.Put(t, dir, "sys/d/f", "two")
		},
		"directory replaced by rename": func(t *testing.T, dir string) {
			hosttest.Put(t, dir, "other/f", "two")
			if err := os.Rename(filepath.Join(dir, "sys/d"), filepath.Join(dir, "old")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "sys/d")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, l := hosttest.Machine(t)
			hosttest.Put(t, dir, "sys/d/f", "one")
			hosttest.Age(t, filepath.Join(dir, "sys/d"))
			hosttest.List(t, l, "sys/d")
			hosttest.Content(t, l, "sys/d/f")
			open := hosttest.Descriptors(t, dir)
			change(t, dir)
			hosttest.List(t, l, "sys/d")
			if got := hosttest.Content(t, l, "sys/d/f"); got != "two" {
				t.Errorf("Read: %q", got)
			}
			l.ReadEach("sys/d", []string{"f"}, nil, func(_ string, b []byte, err error) {
				if err != nil || string(b) != "two" {
					t.Errorf("ReadEach: %q, %v", b, err)
				}
			})
			if n := hosttest.Descriptors(t, dir); n != open {
				t.Errorf("%d descriptors, %d before", n, open)
			}
		})
	}
}

func TestADirectoryThatWentLetsGoOfItsDescriptors(t *testing.T) {
	dir, l := hosttest.Machine(t)
	open := hosttest.Descriptors(t, dir)
	hosttest.Put(t, dir, "sys/d/f", "one")
	hosttest.List(t, l, "sys/d")
	hosttest.Content(t, l, "sys/d/f")
	if n := hosttest.Descriptors(t, dir); n != open+1 {
		t.Fatalf("%d descriptors, want %d: none is kept", n, open+1)
	}
	if err := os.RemoveAll(filepath.Join(dir, "sys/d")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.List("sys/d"); !access.IsAbsent(err) {
		t.Errorf("List: %v", err)
	}
	if _, err := l.Read("sys/d/f", nil); !access.IsAbsent(err) {
		t.Errorf("Read: %v", err)
	}
	if n := hosttest.Descriptors(t, dir); n != open {
		t.Errorf("%d descriptors are left", n-open)
	}
}

// sysfs does not update the time of a directory when an entry is added or removed.
func TestAnUnmodifiedDirectoryIsReadAgainLater(t *testing.T) {
	dir, l := hosttest.Machine(t)
	d := filepath.Join(dir, "sys/d")
	hosttest.Put(t, dir, "sys/d/old", "")
	hosttest.Age(t, d)
	attributes := func() []string {
		t.Helper()
		names, err := l.Attributes("sys/d")
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	attributes()
	hosttest.Put(t, dir, "sys/d/new", "")
	hosttest.Age(t, d)
	if got := attributes(); !slices.Equal(got, []string{"old"}) {
		t.Errorf("the steady state costs a listing: %q", got)
	}
	l.ListedAt("sys/d", time.Now().Add(-rooted.RelistInterval))
	if got := attributes(); !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("after %v: %q", rooted.RelistInterval, got)
	}
	hosttest.Put(t, dir, "sys/d/newest", "")
	hosttest.Age(t, d)
	if got := hosttest.List(t, l, "sys/d"); !slices.Equal(got, []string{"new", "newest", "old"}) {
		t.Errorf("List is stale: %q", got)
	}
}

func TestForgetReadsAgain(t *testing.T) {
	dir, l := hosttest.Machine(t)
	d := filepath.Join(dir, "sys/d")
	hosttest.Put(t, dir, "sys/d/f", "one")
	hosttest.Age(t, d)
	open := hosttest.Descriptors(t, dir)
	hosttest.List(t, l, "sys/d")
	hosttest.Content(t, l, "sys/d/f")
	if err := os.Remove(filepath.Join(d, "f")); err != nil {
		t.Fatal(err)
	}
	hosttest.Put(t, dir, "sys/d/f", "two")
	hosttest.Put(t, dir, "sys/d/g", "")
	hosttest.Age(t, d)
	l.ForgetAll()
	if n := hosttest.Descriptors(t, dir); n != open {
		t.Errorf("%d descriptors are left", n-open)
	}
	if got := hosttest.List(t, l, "sys/d"); !slices.Equal(got, []string{"f", "g"}) {
		t.Errorf("List: %q", got)
	}
	if got := hosttest.Content(t, l, "sys/d/f"); got != "two" {
		t.Errorf("Read: %q", got)
	}
}

func TestDescriptorsAreBounded(t *testing.T) {
	dir, l := hosttest.Machine(t)
	open := hosttest.Descriptors(t, dir)
	l.KeepAtMost(5)
	var names []string
	for i := range 12 {
		name := fmt.Sprint(i)
		names = append(names, name)
		hosttest.Put(t, dir, "sys/a/"+name, "a"+name)
		hosttest.Put(t, dir, "sys/b/"+name, "b"+name)
	}
	for range 3 {
		for _, d := range []string{"a", "b"} {
			hosttest.List(t, l, "sys/"+d)
			l.ReadEach("sys/"+d, names, nil, func(name string, b []byte, err error) {
				if err != nil || string(b) != d+name {
					t.Errorf("%s/%s: %q, %v", d, name, b, err)
				}
			})
			for _, name := range names {
				if got := hosttest.Content(t, l, "sys/"+d+"/"+name); got != d+name {
					t.Errorf("%s/%s: %q", d, name, got)
				}
			}
		}
		if n := hosttest.Descriptors(t, dir) - open; n != 5 || l.Kept() != 5 {
			t.Fatalf("%d descriptors are open and %d counted, want 5", n, l.Kept())
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "sys/a")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.List("sys/a"); !access.IsAbsent(err) {
		t.Error(err)
	}
	l.ReadEach("sys/b", names, nil, func(string, []byte, error) {})
	if n := hosttest.Descriptors(t, dir) - open; n != 5 {
		t.Errorf("%d descriptors are open: the room of a device that went is not used again", n)
	}
}

func TestReadsWithoutAListingKeepNothing(t *testing.T) {
	dir, l := hosttest.Machine(t)
	hosttest.Put(t, dir, "sys/d/f", "one")
	open := hosttest.Descriptors(t, dir)
	hosttest.Content(t, l, "sys/d/f")
	if n := hosttest.Descriptors(t, dir); n != open {
		t.Errorf("%d descriptors were kept", n-open)
	}
}

func TestCloseReleasesAll(t *testing.T) {
	dir, l := hosttest.Machine(t)
	hosttest.Put(t, dir, "sys/d/f", "one")
	hosttest.List(t, l, "sys/d")
	hosttest.Content(t, l, "sys/d/f")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := hosttest.Descriptors(t, dir); n != 0 {
		t.Errorf("%d descriptors are left", n)
	}
	if _, err := l.Read("sys/d/f", nil); err == nil {
		t.Error("reads after Close")
	}
	if _, err := l.List("sys/d"); err == nil {
		t.Error("lists after Close")
	}
}

func TestDescriptorsOf(t *testing.T) {
	for limit, want := range map[uint64]int{
		0: 0, 768: 0, 1024: 128, 4096: 1664, 20000: 9616, 1 << 20: 10240, math.MaxUint64: 10240,
	} {
		if got := rooted.DescriptorsOf(limit, 768); got != want {
			t.Errorf("of %d: %d, want %d", limit, got, want)
		}
	}
}
