package host

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestAKeptDescriptorShowsWhatIsWrittenInPlace(t *testing.T) {
	dir, l := machine(t)
	put(t, dir, "sys/d/f", "one, and long")
	list(t, l.Files, "sys/d")
	content(t, l.Files, "sys/d/f")
	open := descriptors(t, dir)
	put(t, dir, "sys/d/f", "two")
	if got := content(t, l.Files, "sys/d/f"); got != "two" {
		t.Errorf("%q", got)
	}
	if n := descriptors(t, dir); n != open {
		t.Errorf("%d descriptors, %d before", n, open)
	}
}

func TestListDropsDescriptorsOfAChangedDirectory(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"file replaced by rename": func(t *testing.T, dir string) {
			put(t, dir, "new", "two")
			if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "sys/d/f")); err != nil {
				t.Fatal(err)
			}
		},
		"directory removed and made again": func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "sys/d")); err != nil {
				t.Fatal(err)
			}
			put(t, dir, "sys/d/f", "two")
		},
		"directory replaced by rename": func(t *testing.T, dir string) {
			put(t, dir, "other/f", "two")
			if err := os.Rename(filepath.Join(dir, "sys/d"), filepath.Join(dir, "old")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "sys/d")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, l := machine(t)
			put(t, dir, "sys/d/f", "one")
			age(t, filepath.Join(dir, "sys/d"))
			list(t, l.Files, "sys/d")
			content(t, l.Files, "sys/d/f")
			open := descriptors(t, dir)
			change(t, dir)
			list(t, l.Files, "sys/d")
			if got := content(t, l.Files, "sys/d/f"); got != "two" {
				t.Errorf("Read: %q", got)
			}
			l.Files.ReadEach("sys/d", []string{"f"}, nil, func(_ string, b []byte, err error) {
				if err != nil || string(b) != "two" {
					t.Errorf("ReadEach: %q, %v", b, err)
				}
			})
			if n := descriptors(t, dir); n != open {
				t.Errorf("%d descriptors, %d before", n, open)
			}
		})
	}
}

func TestADirectoryThatWentLetsGoOfItsDescriptors(t *testing.T) {
	dir, l := machine(t)
	open := descriptors(t, dir)
	put(t, dir, "sys/d/f", "one")
	list(t, l.Files, "sys/d")
	content(t, l.Files, "sys/d/f")
	if n := descriptors(t, dir); n != open+1 {
		t.Fatalf("%d descriptors, want %d: none is kept", n, open+1)
	}
	if err := os.RemoveAll(filepath.Join(dir, "sys/d")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Files.List("sys/d"); !IsAbsent(err) {
		t.Errorf("List: %v", err)
	}
	if _, err := l.Files.Read("sys/d/f", nil); !IsAbsent(err) {
		t.Errorf("Read: %v", err)
	}
	if n := descriptors(t, dir); n != open {
		t.Errorf("%d descriptors are left", n-open)
	}
}

// sysfs does not update the time of a directory when an entry is added or removed.
func TestAnUnmodifiedDirectoryIsReadAgainLater(t *testing.T) {
	dir, l := machine(t)
	d := filepath.Join(dir, "sys/d")
	put(t, dir, "sys/d/old", "")
	age(t, d)
	attributes := func() []string {
		t.Helper()
		names, err := l.Files.Attributes("sys/d")
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	attributes()
	put(t, dir, "sys/d/new", "")
	age(t, d)
	if got := attributes(); !slices.Equal(got, []string{"old"}) {
		t.Errorf("the steady state costs a listing: %q", got)
	}
	l.tree.dirs["sys/d"].listed = time.Now().Add(-relistInterval)
	if got := attributes(); !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("after %v: %q", relistInterval, got)
	}
	put(t, dir, "sys/d/newest", "")
	age(t, d)
	if got := list(t, l.Files, "sys/d"); !slices.Equal(got, []string{"new", "newest", "old"}) {
		t.Errorf("List is stale: %q", got)
	}
}

func TestForgetReadsAgain(t *testing.T) {
	dir, l := machine(t)
	d := filepath.Join(dir, "sys/d")
	put(t, dir, "sys/d/f", "one")
	age(t, d)
	open := descriptors(t, dir)
	list(t, l.Files, "sys/d")
	content(t, l.Files, "sys/d/f")
	if err := os.Remove(filepath.Join(d, "f")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "sys/d/f", "two")
	put(t, dir, "sys/d/g", "")
	age(t, d)
	l.Forget()
	if n := descriptors(t, dir); n != open {
		t.Errorf("%d descriptors are left", n-open)
	}
	if got := list(t, l.Files, "sys/d"); !slices.Equal(got, []string{"f", "g"}) {
		t.Errorf("List: %q", got)
	}
	if got := content(t, l.Files, "sys/d/f"); got != "two" {
		t.Errorf("Read: %q", got)
	}
}

func TestDescriptorsAreBounded(t *testing.T) {
	dir, l := machine(t)
	open := descriptors(t, dir)
	l.tree.max = 5
	var names []string
	for i := range 12 {
		name := fmt.Sprint(i)
		names = append(names, name)
		put(t, dir, "sys/a/"+name, "a"+name)
		put(t, dir, "sys/b/"+name, "b"+name)
	}
	for range 3 {
		for _, d := range []string{"a", "b"} {
			list(t, l.Files, "sys/"+d)
			l.Files.ReadEach("sys/"+d, names, nil, func(name string, b []byte, err error) {
				if err != nil || string(b) != d+name {
					t.Errorf("%s/%s: %q, %v", d, name, b, err)
				}
			})
			for _, name := range names {
				if got := content(t, l.Files, "sys/"+d+"/"+name); got != d+name {
					t.Errorf("%s/%s: %q", d, name, got)
				}
			}
		}
		if n := descriptors(t, dir) - open; n != 5 || l.tree.kept != 5 {
			t.Fatalf("%d descriptors are open and %d counted, want 5", n, l.tree.kept)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "sys/a")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Files.List("sys/a"); !IsAbsent(err) {
		t.Error(err)
	}
	l.Files.ReadEach("sys/b", names, nil, func(string, []byte, error) {})
	if n := descriptors(t, dir) - open; n != 5 {
		t.Errorf("%d descriptors are open: the room of a device that went is not used again", n)
	}
}

func TestReadsWithoutAListingKeepNothing(t *testing.T) {
	dir, l := machine(t)
	put(t, dir, "sys/d/f", "one")
	open := descriptors(t, dir)
	content(t, l.Files, "sys/d/f")
	if n := descriptors(t, dir); n != open {
		t.Errorf("%d descriptors were kept", n-open)
	}
}

func TestCloseReleasesAll(t *testing.T) {
	dir, l := machine(t)
	put(t, dir, "sys/d/f", "one")
	list(t, l.Files, "sys/d")
	content(t, l.Files, "sys/d/f")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := descriptors(t, dir); n != 0 {
		t.Errorf("%d descriptors are left", n)
	}
	if _, err := l.Files.Read("sys/d/f", nil); err == nil {
		t.Error("reads after Close")
	}
	if _, err := l.Files.List("sys/d"); err == nil {
		t.Error("lists after Close")
	}
}

func TestDescriptorsOf(t *testing.T) {
	for limit, want := range map[uint64]int{
		0: 0, 768: 0, 1024: 128, 4096: 1664, 20000: 9616, 1 << 20: 10240, math.MaxUint64: 10240,
	} {
		if got := descriptorsOf(limit, 768); got != want {
			t.Errorf("of %d: %d, want %d", limit, got, want)
		}
	}
}
