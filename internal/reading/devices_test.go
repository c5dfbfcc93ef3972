package reading

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/workers"
	"rdma_exporter/test/played"
)

// rosterOf returns a roster of devices with a constant identity.
func rosterOf(names ...string) *Roster {
	return NewRoster(names, &snapshot.Reduced{}, func(string) Identity { return Identity{Registration: 1} })
}

// TestStatesBelongToADevice: a state is kept while its device is the same, also if its registration is unknown in
// between.
func TestStatesBelongToADevice(t *testing.T) {
	var changed []string
	d := Devices[int, string]{Collector: "c", Changed: func(_ *host.Host, device string, gone bool) {
		if gone {
			device += " is gone"
		}
		changed = append(changed, device)
	}}
	ids := map[string]Identity{"a": {1, 0}, "b": {2, 0}}
	keep := func(want string, names ...string) {
		t.Helper()
		changed = nil
		d.Keep(nil, NewRoster(names, nil, func(name string) Identity { return ids[name] }))
		slices.Sort(changed)
		if got := strings.Join(changed, ", "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	keep("a, b", "a", "b")
	keep("", "a", "b")
	ids["a"] = Identity{0, 0}
	keep("", "a", "b")
	ids["a"] = Identity{1, 0}
	keep("", "a", "b")
	ids["a"], ids["b"] = Identity{3, 0}, Identity{2, 1}
	keep("a, b", "a", "b")
	keep("b is gone", "a")
	keep("b", "b", "a")
}

// TestPanicOfOneDevice: a panic caused by one device costs only the data of that device, and its turn is free again.
func TestPanicOfOneDevice(t *testing.T) {
	h := played.Machine(t, "")
	d, roster := Devices[int, string]{Collector: "c"}, rosterOf("a", "odd", "z")
	for range 2 {
		var n snapshot.Node
		var got []string
		d.ReadAll(t.Context(), h, &n, roster, func(r *Reader, _ *Device, _ *int) (string, bool) {
			if r.Device == "odd" {
				panic("odd bytes")
			}
			return r.Device, true
		}, func(names []string) { got = names }, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
		if !slices.Equal(got, []string{"a", "z"}) {
			t.Errorf("read %v", got)
		}
		if len(n.Issues) != 1 || n.Issues[0].Device != "odd" || n.Issues[0].Reason != string(access.Panic) ||
			!errors.Is(n.Issues[0].Err, access.ErrPanic) {
			t.Errorf("%+v", n.Issues)
		}
	}
}

// TestDeviceReplacedDuringTheRead: data read through descriptors that were open at the start of the round belongs to
// the first device. All other data may belong to the second.
func TestDeviceReplacedDuringTheRead(t *testing.T) {
	const dir = "sys/class/infiniband/a"
	for _, c := range []struct {
		name    string
		then    func(r Reads)
		dropped bool
	}{
		{"nothing else", func(Reads) {}, false},
		{"another open file", func(r Reads) { r.Text(dir, "kept") }, false},
		{"a new file", func(r Reads) { r.Text(dir, "new") }, true},
		{"a list", func(r Reads) { _, _ = r.Host.Files.List(dir) }, true},
		{"a link", func(r Reads) { _, _ = r.Host.Files.Link(dir + "/device") }, true},
		{"a failed read", func(r Reads) { r.Text(dir, "none") }, true},
		{"a request", func(r Reads) { r.Ask(1) }, true},
		{"a request with an answer", func(r Reads) { _ = r.Try(func() error { return nil }) }, true},
		{"an unanswered request", func(r Reads) { _ = r.Try(func() error { return access.ErrMalformed }) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			create := func() {
				t.Helper()
				for _, name := range []string{"kept", "new"} {
					made := os.MkdirAll(filepath.Join(root, dir), 0o755)
					if err := errors.Join(made, os.WriteFile(filepath.Join(root, dir, name), []byte("1\n"), 0o644)); err != nil {
						t.Fatal(err)
					}
				}
			}
			create()
			if err := os.Mkdir(filepath.Join(root, "proc"), 0o755); err != nil {
				t.Fatal(err)
			}
			opened, err := live.Open(rooted.Paths{RootFS: root})
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			d := Devices[int, string]{Collector: "c"}
			read := func(then func(Reads)) (got []string) {
				h := opened.ForRound()
				names, err := h.Devices()
				if err != nil {
					t.Fatal(err)
				}
				identity := func(name string) Identity { return IdentityOf(h, name) }
				roster := NewRoster(names, &snapshot.Reduced{}, identity)
				var n snapshot.Node
				d.ReadAll(t.Context(), h, &n, roster, func(reader *Reader, _ *Device, _ *int) (string, bool) {
					r := reader.From(source.Identity)
					if _, err := r.Host.Files.Attributes(dir); err != nil {
						t.Error(err)
					}
					text := r.Text(dir, "kept")
					then(r)
					return text, true
				}, func(out []string) { got = out }, func(err error) {
					if err != nil {
						t.Error(err)
					}
				})
				return got
			}
			for range 2 {
				if got := read(func(Reads) {}); !slices.Equal(got, []string{"1"}) {
					t.Fatalf("%q", got)
				}
			}
			got := read(func(r Reads) {
				if err := os.Rename(filepath.Join(root, dir), filepath.Join(root, "old")); err != nil {
					t.Error(err)
				}
				create()
				c.then(r)
			})
			if dropped := len(got) == 0; dropped != c.dropped {
				t.Errorf("dropped %t", dropped)
			}
		})
	}
}

// TestPanicOutsideTheRead: a panic while the results are processed fails the collection in any goroutine: that of the
// caller, a helper started because of a blocked device, or the one started at the end of ctx.
func TestPanicOutsideTheRead(t *testing.T) {
	for name, takes := range map[string]map[string]time.Duration{
		"caller": nil, "helper": {"a": 3 * workers.MaxDelay, "z": time.Second}, "end of ctx": {"a": time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var n snapshot.Node
				h := played.Machine(t, "")
				done := make(chan error, 1)
				d := Devices[int, string]{Collector: "c"}
				go d.ReadAll(ctx, h, &n, rosterOf("a", "m", "z"), func(r *Reader, _ *Device, _ *int) (string, bool) {
					time.Sleep(takes[r.Device])
					return r.Device, true
				}, func([]string) { panic("odd names") }, func(err error) { done <- err })
				if err := <-done; !errors.Is(err, access.ErrPanic) {
					t.Errorf("error %v", err)
				}
				time.Sleep(time.Hour) // until all have returned
			})
		})
	}
}
