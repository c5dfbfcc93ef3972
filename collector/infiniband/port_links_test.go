package infiniband

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
)

// step is an event of eth0, or a reading of its counts.
type step struct {
	kind  string // event, read, deleted
	admin bool   // IFF_UP
	downs uint64
	ups   uint64
	index uint64        // of the interface; 0: 2
	after time.Duration // since the step before
}

func eventStep(admin bool, downs, ups uint64) step {
	return step{kind: "event", admin: admin, downs: downs, ups: ups}
}

func readStep(admin bool, downs, ups uint64) step {
	return step{kind: "read", admin: admin, downs: downs, ups: ups, after: 15 * time.Second}
}

func (s step) soon() step { s.after = time.Second; return s }

func (s step) of(index uint64) step { s.index = index; return s }

// play returns the result of the last reading: downs and ups.
func (w *linkWatch) play(steps ...step) string {
	var ups, downs uint64
	now := time.Unix(0, 0)
	for _, s := range steps {
		now = now.Add(s.after)
		index := s.index
		if index == 0 {
			index = 2
		}
		switch s.kind {
		case "read":
			ups, downs = w.transitions("eth0", index, carrier{ups: s.ups, downs: s.downs, admin: s.admin}, now)
		default:
			w.note(host.LinkEvent{
				Index: index, Name: "eth0", Up: s.admin, Carrier: s.admin && s.ups >= s.downs, CarrierUpCount: &s.ups,
				CarrierDownCount: &s.downs, Deleted: s.kind == "deleted",
			})
		}
	}
	return fmt.Sprint(downs, " ", ups)
}

func TestTransitionsWithEvents(t *testing.T) {
	const up, down = true, false
	first := readStep(up, 1, 1)
	for _, c := range []struct {
		name  string
		steps []step
		want  string // downs and ups
	}{
		{"first seen", []step{first}, "0 0"},
		{"a loss and its end", []step{first, eventStep(up, 2, 1), eventStep(up, 2, 2), readStep(up, 2, 2)}, "1 1"},
		{"many between two events", []step{first, eventStep(up, 41, 41), readStep(up, 41, 41)}, "40 40"},
		{"by hand", []step{first, eventStep(down, 2, 1), eventStep(up, 2, 2), readStep(up, 2, 2)}, "0 0"},
		{"set up while it is read first, and lost", []step{readStep(down, 1, 1), readStep(up, 1, 1), readStep(up, 1, 1), eventStep(up, 2, 1), eventStep(up, 2, 2), readStep(up, 2, 2)}, "1 1"},
		{"set up, and set down in the moment of a reading", []step{first, eventStep(down, 1, 1), readStep(up, 1, 1).soon(), eventStep(down, 2, 1), eventStep(up, 2, 2), readStep(up, 2, 2)}, "0 0"},
		{"by hand, and the link trains afterwards", []step{first, eventStep(down, 2, 1), eventStep(up, 2, 1), eventStep(up, 2, 2), readStep(up, 2, 2)}, "0 0"},
		{"by hand, and the driver lets go of the link later", []step{first, eventStep(down, 1, 1), eventStep(up, 2, 1), eventStep(up, 2, 2), readStep(up, 2, 2)}, "0 0"},
		{"by hand, and the link falls again while it trains", []step{first, eventStep(down, 2, 1), eventStep(up, 2, 2), eventStep(up, 3, 3), readStep(up, 3, 3)}, "1 1"},
		{"by hand, where the carrier does not care", []step{first, eventStep(down, 1, 1), eventStep(up, 1, 1), eventStep(up, 2, 2), readStep(up, 2, 2)}, "1 1"},
		{"losses, then by hand in the same second", []step{first, eventStep(down, 4, 3), eventStep(up, 4, 4), readStep(up, 4, 4)}, "2 2"},
		{"losses, then by hand, where the carrier does not care", []step{first, eventStep(up, 1, 1), eventStep(down, 4, 4), eventStep(up, 4, 4), readStep(up, 4, 4)}, "3 3"},
		{"set down without a carrier, after losses", []step{first, eventStep(up, 2, 1), eventStep(down, 3, 2), eventStep(up, 3, 3), readStep(up, 3, 3)}, "1 1"},
		{"lost, then set down and up, then back", []step{first, eventStep(up, 2, 1), eventStep(down, 2, 1), eventStep(up, 2, 1), eventStep(up, 2, 2), readStep(up, 2, 2)}, "1 1"},
		{"set up without a link, set down again, set up with one", []step{readStep(down, 1, 0), eventStep(up, 1, 0), eventStep(down, 1, 0), eventStep(up, 1, 1), readStep(up, 1, 1)}, "0 1"},
		{"down by hand before it was seen", []step{readStep(down, 2, 1), eventStep(up, 2, 2), readStep(up, 2, 2)}, "0 1"},
		{"toggled by the driver while it opens", []step{first, eventStep(down, 2, 1), eventStep(up, 3, 3), readStep(up, 3, 3)}, "0 0"},
		{"set down twice before a reading", []step{first, eventStep(down, 2, 1), eventStep(up, 2, 2), eventStep(down, 3, 2), eventStep(up, 3, 3), readStep(up, 3, 3)}, "0 0"},

		{"a reading in the middle of a change by hand", []step{first, readStep(up, 2, 1), eventStep(down, 2, 1), eventStep(up, 2, 2), readStep(up, 2, 2)}, "0 0"},
		{"a reading ahead of its event tells nothing yet", []step{first, readStep(up, 2, 1)}, "0 0"},
		{"nor does another one at once", []step{first, readStep(up, 2, 1), readStep(up, 3, 2).soon()}, "0 0"},
		{"its event was lost", []step{first, readStep(up, 3, 3), readStep(up, 3, 3)}, "2 2"},
		{"all events were lost", []step{first, readStep(up, 3, 3), readStep(up, 9, 9), readStep(up, 9, 9)}, "8 8"},
		{"events of a change by hand were lost, the readings saw it", []step{first, readStep(down, 2, 1), readStep(down, 2, 1), readStep(up, 2, 2), readStep(up, 2, 2)}, "0 0"},
		{"a reading from before an event", []step{first, eventStep(up, 5, 5), readStep(up, 3, 3), readStep(up, 5, 5)}, "4 4"},
		{"readings from before events, again and again", []step{first, eventStep(up, 5, 5), readStep(up, 3, 3), eventStep(up, 9, 9), readStep(up, 7, 7), eventStep(up, 12, 12), readStep(up, 11, 11)}, "11 11"},
		{"an event from before the first reading", []step{readStep(up, 5, 5), eventStep(up, 4, 4), eventStep(up, 6, 6), readStep(up, 6, 6)}, "1 1"},

		{"deleted and made again", []step{first, eventStep(up, 3, 3), eventStep(down, 4, 3), {kind: "deleted", downs: 4, ups: 3}, eventStep(up, 1, 1).of(9), readStep(up, 1, 1).of(9), eventStep(up, 2, 2).of(9), readStep(up, 2, 2).of(9)}, "3 3"},
		{"made again, and events of the old one come late", []step{readStep(up, 5, 5), eventStep(up, 6, 6), readStep(up, 1, 1).of(9), eventStep(up, 7, 7), readStep(up, 2, 2).of(9), eventStep(up, 2, 2).of(9), readStep(up, 2, 2).of(9)}, "2 2"},
		{"made again, with more on its counts", []step{readStep(up, 5, 5), readStep(up, 50, 50).of(9), eventStep(up, 51, 51).of(9), readStep(up, 51, 51).of(9)}, "1 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newLinkWatch()
			w.listening.Store(true)
			if got := w.play(c.steps...); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestTransitionsWithoutEvents(t *testing.T) {
	const up, down = true, false
	for _, c := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"first seen", []step{readStep(up, 7, 7)}, "0 0"},
		{"losses", []step{readStep(up, 1, 1), readStep(up, 2, 1), readStep(up, 5, 5)}, "4 4"},
		{"by hand", []step{readStep(up, 1, 1), readStep(down, 2, 1), readStep(up, 2, 2)}, "0 0"},
		{"made again", []step{readStep(up, 5, 5), readStep(up, 6, 6), readStep(up, 9, 9).of(9), readStep(up, 10, 10).of(9)}, "2 2"},
		{"went backwards", []step{readStep(up, 5, 5), readStep(up, 6, 6), readStep(up, 1, 1), readStep(up, 2, 2)}, "2 2"},
		{"one count went backwards", []step{readStep(up, 5, 5), readStep(up, 6, 1), readStep(up, 7, 2)}, "1 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := newLinkWatch().play(c.steps...); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// FuzzTransitionsNeverFall: whatever the events and readings are, and in whichever order.
func FuzzTransitionsNeverFall(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{0xff, 0x80, 0x11, 0x42, 0, 0, 0x91, 3})
	f.Fuzz(func(t *testing.T, script []byte) {
		w := newLinkWatch()
		now := time.Unix(0, 0)
		var ups, downs uint64
		most := 4 + uint64(len(script)) // more than the counts below reach
		for i, b := range script {
			u, d, admin := uint64(b>>2&3)+uint64(i/4), uint64(b>>4&3)+uint64(i/4), b&1 != 0
			now = now.Add(time.Duration(b&7) * time.Second)
			switch b >> 6 {
			case 0:
				w.listening.Store(b&2 != 0)
			case 1:
				w.note(host.LinkEvent{
					Index: uint64(b & 8), Name: "eth0", Up: admin, Carrier: b&2 != 0, CarrierUpCount: &u, CarrierDownCount: &d,
					Deleted: b&0x36 == 0,
				})
			default:
				newUps, newDowns := w.transitions("eth0", uint64(b&8), carrier{ups: u, downs: d, admin: admin}, now)
				if newUps < ups || newDowns < downs || newUps > ups+most || newDowns > downs+most {
					t.Fatalf("%d %d, then %d %d", ups, downs, newUps, newDowns)
				}
				ups, downs = newUps, newDowns
			}
		}
	})
}

func TestEventsThatSayNothing(t *testing.T) {
	w := newLinkWatch()
	w.listening.Store(true)
	w.note(host.LinkEvent{Index: 3, Name: "eth1", CarrierUpCount: new(uint64), CarrierDownCount: new(uint64)})
	if len(w.links) != 0 {
		t.Error("a netdev that nobody reads is kept")
	}
	w.play(readStep(true, 1, 1))
	w.note(host.LinkEvent{Index: 2, Name: "eth0"}) // a kernel without the counts
	if got := w.play(readStep(true, 1, 1)); got != "0 0" {
		t.Error(got)
	}
	w.drop(time.Unix(0, 0).Add(15*time.Second + linkRetention))
	if len(w.links) != 0 {
		t.Error("a netdev that is read no more is kept")
	}
}

func TestTransitionsOfInfiniBandPorts(t *testing.T) {
	state := func(n uint64) *uint64 { return &n }
	for _, c := range []struct {
		name   string
		states []*uint64
		want   string // downs and ups
	}{
		{"ACTIVE for ever", []*uint64{state(4), state(4)}, "0 0"},
		{"plugged in", []*uint64{state(1), state(2), state(4)}, "0 1"},
		{"lost and back", []*uint64{state(4), state(1), state(2), state(4)}, "1 1"},
		{"deferred is ACTIVE", []*uint64{state(4), state(5), state(4)}, "0 0"},
		{"a reading that failed", []*uint64{state(4), nil, state(4)}, "0 0"},
		{"first readings failed", []*uint64{nil, nil, state(4)}, "0 0"},
		{"never read", []*uint64{nil}, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ib := &infiniBand{ports: map[deviceKey]map[int]*portHistory{}}
			got := ""
			for _, s := range c.states {
				devices := []snapshot.Device{
					{Name: "mlx5_0", Ports: []snapshot.Port{{Number: 1, LinkLayer: "InfiniBand", State: s}}},
				}
				ib.history(&devices[0], &devices[0].Ports[0])
				got = "none"
				if tr := devices[0].Ports[0].Transitions; tr != nil {
					got = fmt.Sprint(tr.Downs, " ", tr.Ups)
				}
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestRegistrations: the count belongs to the device, under any name.
func TestRegistrations(t *testing.T) {
	w := newDeviceWatch()
	device := func(name, guid string) *snapshot.Device { return &snapshot.Device{Name: name, NodeGUID: guid} }
	if w.registrations(device("mlx5_0", "a")) != nil {
		t.Error("reported before the events are received")
	}
	w.listening.Store(true)
	event := func(kind host.DeviceEventType, index uint64, name string) {
		w.note(host.DeviceEvent{Type: kind, Index: index, Device: name})
	}
	read := func(name, guid string, want uint64) {
		t.Helper()
		if n := w.registrations(device(name, guid)); n == nil || *n != want {
			t.Errorf("%s %s: %v, want %d", name, guid, collectortest.Value(n), want)
		}
	}
	read("mlx5_0", "a", 0) // registered before the exporter started
	read("ibp1s0", "b", 0)

	// Driver reload: the kernel's name, then udev's.
	event(host.DeviceUnregistered, 7, "mlx5_0")
	event(host.DeviceRegistered, 8, "mlx5_0")
	event(host.NetdevAttached, 8, "mlx5_0")
	event(host.DeviceRenamed, 8, "rocep24s0")
	read("rocep24s0", "a", 1)
	read("ibp1s0", "b", 0)

	// Renamed between two readings, and by another program afterwards.
	event(host.DeviceRenamed, 8, "storage")
	read("storage", "a", 1)
	event(host.DeviceRenamed, 2, "spare") // its registration was not received
	read("spare", "b", 0)

	// Another device takes the name.
	event(host.DeviceRegistered, 9, "mlx5_0")
	event(host.DeviceRenamed, 9, "rocep24s0")
	read("rocep24s0", "c", 1)
	read("storage", "a", 1)
	event(host.DeviceUnregistered, 9, "rocep24s0")
	event(host.DeviceRegistered, 10, "rocep24s0")
	read("rocep24s0", "c", 2)
	read("rocep24s0", "c", 2)

	// A device without GUID and PCI address is identified by its name.
	event(host.DeviceRegistered, 11, "rxe0")
	read("rxe0", "", 1)
}

// quiet are events that end as the test says.
type quiet struct {
	links, devices error
	wait           bool // until ctx ends
}

func (q quiet) end(ctx context.Context, listening func(), err error) error {
	if err == nil {
		listening()
		if q.wait {
			<-ctx.Done()
		}
	}
	return err
}

func (q quiet) Links(ctx context.Context, listening func(), _ func(host.LinkEvent)) error {
	return q.end(ctx, listening, q.links)
}

func (q quiet) Devices(ctx context.Context, listening func(), _ func(host.DeviceEvent)) error {
	return q.end(ctx, listening, q.devices)
}

func (quiet) Overruns() uint64 { return 0 }

func TestListening(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name   string
		events host.Events
		want   error
	}{
		{"nothing to listen to", nil, nil},
		{"an old kernel", quiet{devices: &access.Error{Op: "listen to", Path: "devices", Err: syscall.EOPNOTSUPP}}, nil},
		{"not permitted", quiet{devices: syscall.EPERM}, nil},
		{"links fail", quiet{links: broken, wait: true}, broken},
		{"devices fail", quiet{devices: broken}, broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			ib := &infiniBand{links: newLinkWatch(), registered: newDeviceWatch()}
			if err := ib.run(t.Context(), &host.Host{Events: c.events}); !errors.Is(err, c.want) {
				t.Error(err)
			}
			if ib.links.listening.Load() {
				t.Error("listens still")
			}
		})
	}
}

// TestPanicOfDeviceEvents: a panic of the listener ends the listening with an error.
func TestPanicOfDeviceEvents(t *testing.T) {
	ib := &infiniBand{links: newLinkWatch(), registered: newDeviceWatch()}
	if err := ib.run(t.Context(), &host.Host{Events: panickingEvents{}}); !errors.Is(err, access.ErrPanic) {
		t.Errorf("%v", err)
	}
}

type panickingEvents struct{ quiet }

func (panickingEvents) Devices(context.Context, func(), func(host.DeviceEvent)) error {
	panic("odd event")
}
