package reading

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/played"
)

// identifiedRoster returns a roster of devices whose identity read reads.
func identifiedRoster(h *host.Host, read func(*Reader) *Device, names ...string) *Roster {
	ids, roster := &Identities{Read: read, Interval: time.Minute}, rosterOf(names...)
	ids.Give(h, roster)
	return roster
}

// collected reads all devices for a collector, and returns the drivers and the issues.
func collected(ctx context.Context, d *Devices[int, string], h *host.Host, roster *Roster) (out []string) {
	var n snapshot.Node
	done := make(chan struct{})
	go d.ReadAll(ctx, h, &n, roster, func(_ *Reader, of *Device, _ *int) (string, bool) {
		return of.Name + " " + of.Driver, true
	}, func(all []string) { out = all }, func(error) { close(done) })
	<-done
	for _, i := range n.Issues {
		out = append(out, i.Device+" "+i.Source+" "+i.Reason)
	}
	return out
}

// TestIdentityIsReadOnce: the first collector reads the identity of a device, which is read again after the interval,
// or in the next round if it has no ports yet. Each collector in that round gets its failures; it is charged once.
func TestIdentityIsReadOnce(t *testing.T) {
	const dir = "sys/class/infiniband/x/"
	machine := played.Machine(t, "-- "+dir+"driver --\nmlx5_core\n-- "+dir+"bad --\ntext\n")
	now := time.Unix(0, 0)
	machine.Now, machine.Meter = func() time.Time { return now }, &source.Meter{}
	var reads int
	ports := []snapshot.Port{{Number: 1}}
	roster := identifiedRoster(machine, func(r *Reader) *Device {
		reads++
		id := r.From(source.Identity)
		id.Decimal(dir + "bad")
		return &Device{Device: snapshot.Device{Name: r.Device, Driver: id.Optional(dir + "driver"), Ports: ports}}
	}, "x")
	first, second := &Devices[int, string]{Collector: "first"}, &Devices[int, string]{Collector: "second"}
	for _, c := range []struct {
		after  time.Duration
		ports  []snapshot.Port
		reads  int
		issues bool
	}{
		{0, nil, 1, true},
		{time.Second, ports, 2, true}, // had no ports
		{time.Second, ports, 2, false},
		{time.Minute, ports, 3, true},
		{time.Second, ports, 3, false},
	} {
		now, ports = now.Add(c.after), c.ports
		h := machine.ForRound()
		want := []string{"x mlx5_core"}
		if c.issues {
			want = append(want, "x identity malformed")
		}
		for _, d := range []*Devices[int, string]{first, second} {
			if got := collected(t.Context(), d, h, roster); !slices.Equal(got, want) || reads != c.reads {
				t.Errorf("%s, %s: %q after %d reads, want %q after %d", now, d.Collector, got, reads, want, c.reads)
			}
		}
	}
	if got := fmt.Sprint(machine.Meter.Costs()); !strings.HasPrefix(got, "[{1 none 6 ") {
		t.Errorf("costs %s", got)
	}
}

// TestIdentityThatHangs: a device whose identity read hangs costs each collector only the data of that device, also in
// later rounds, and is read again once the read returns.
func TestIdentityThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine := played.Machine(t, "-- sys/class/infiniband/a/x --\n-- sys/class/infiniband/hung/x --\n-- sys/class/infiniband/z/x --\n")
		machine.Now, machine.Turns = time.Now, access.NewTurns()
		var reads atomic.Int32
		end := make(chan struct{})
		roster := identifiedRoster(machine, func(r *Reader) *Device {
			if reads.Add(1); r.Device == "hung" {
				<-end
			}
			return &Device{Device: snapshot.Device{Name: r.Device, Ports: make([]snapshot.Port, 1)}}
		}, "a", "hung", "z")
		all := []*Devices[int, string]{{Collector: "first"}, {Collector: "second"}}
		round := func(want ...string) {
			t.Helper()
			h := machine.ForRound()
			for _, d := range all {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if got := collected(ctx, d, h, roster); !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", d.Collector, got, want)
				}
				cancel()
			}
		}
		round("a ", "z ", "hung  stuck")
		round("a ", "z ", "hung  stuck")
		close(end)
		synctest.Wait()
		round("a ", "hung ", "z ")
		if n := reads.Load(); n != 3 {
			t.Errorf("%d reads", n)
		}
	})
}
