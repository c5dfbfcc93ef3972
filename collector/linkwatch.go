package collector

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// linkWatch counts how often the carriers of netdevs came and went by themselves. How often at all is told by the kernel's own
// counts, which miss nothing; that some of it was administrative is told by events, or without them by IFF_UP at each reading.
type linkWatch struct {
	mu        sync.Mutex
	listening bool
	links     map[string]*link // by netdev
}

// carrier is what the kernel counts of a netdev at one moment, and whether it was administratively up then.
type carrier struct {
	ups, downs uint64
	admin      bool
}

// before says whether c is of an earlier moment than o.
func (c carrier) before(o carrier) bool { return c.ups < o.ups || c.downs < o.downs }

// after says whether something has happened since o.
func (c carrier) after(o carrier) bool { return !c.before(o) && (c.ups > o.ups || c.downs > o.downs) }

// surplus is by how much ups exceed downs. They alternate, so that it has two values.
func (c carrier) surplus() int64 { return int64(c.ups) - int64(c.downs) }

// link is what is known of one netdev.
type link struct {
	index uint64 // of the interface: one that is made again has another
	last  carrier
	owed  uint64 // rises that the last administrative fall will bring
	ups   uint64 // not administrative, since the netdev was first seen
	downs uint64
	// on is by how much ups exceed downs while there is a carrier; nil until an event has told. It depends on the driver: a
	// netdev is made with a carrier, which most take away before they register it.
	on *int64

	readAt    time.Time
	waiting   *carrier // a reading that no event has confirmed yet
	waitingAt time.Time
}

const (
	// settle is longer than the kernel holds an event back (a second, net/core/link_watch.c). A reading of the counts may fall
	// into an administrative change; the event that follows tells of it. After this time there is none to come.
	settle = 3 * time.Second
	// forgetLinks is how long a netdev that is not read any more is remembered: a driver that is loaded again takes less.
	forgetLinks = time.Hour
)

func newLinkWatch() *linkWatch { return &linkWatch{links: map[string]*link{}} }

// run listens until ctx ends.
func (w *linkWatch) run(ctx context.Context, events host.Events) error {
	defer w.listen(false)
	return events.Links(ctx, func() { w.listen(true) }, w.note)
}

func (w *linkWatch) listen(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listening = on
}

// note takes an event. Those of interfaces that nobody has read, and those from before the last reading, say nothing new.
func (w *linkWatch) note(e host.LinkEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.links[e.Name]
	if l == nil || l.index != e.Index || e.Deleted || e.CarrierUpCount == nil || e.CarrierDownCount == nil {
		return
	}
	now := carrier{ups: *e.CarrierUpCount, downs: *e.CarrierDownCount, admin: e.Up}
	if now.before(l.last) {
		return
	}
	l.advance(now)
	if e.Up { // else the flag is clear in any case
		on := now.surplus()
		if !e.Carrier {
			on++
		}
		l.on = &on
	}
}

// transitions takes a reading of an interface's counts and tells how often the carrier came and went by itself so far. What
// happened to another interface of the same name before it was read is not known.
func (w *linkWatch) transitions(netdev string, index uint64, read carrier, at time.Time) (ups, downs uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.links[netdev]
	if l == nil {
		l = &link{index: index, last: read}
		w.links[netdev] = l
	}
	l.readAt = at
	switch {
	case l.index != index, read.before(l.last) && !w.listening:
		l.index, l.last, l.owed, l.on, l.waiting = index, read, 0, nil, nil
	case w.listening:
		l.wait(read, at)
	default:
		l.advance(read)
	}
	return l.ups, l.downs
}

// wait leaves a reading that is ahead of the events to the event that is still to come; after settle it was lost. A reading from
// before the last event is of no use.
func (l *link) wait(read carrier, at time.Time) {
	if l.waiting != nil && l.waiting.after(l.last) && at.Sub(l.waitingAt) >= settle {
		l.advance(*l.waiting)
	}
	switch {
	case !read.after(l.last):
		l.waiting = nil
	case l.waiting == nil || !l.waiting.after(l.last):
		l.waiting, l.waitingAt = &read, at
	}
}

// advance moves on to a later moment.
//
//   - A netdev that was up and is not any more lost its carrier by that, if it has none: the last fall is administrative.
//   - All falls while it was down are: some drivers let go of the link a little later.
//   - Each administrative fall owes a rise, which comes when the netdev is set up again, or after the training of the link.
func (l *link) advance(now carrier) {
	before := l.last
	l.last = now
	ups, downs := now.ups-before.ups, now.downs-before.downs
	var byHand uint64
	switch {
	case !before.admin:
		byHand = downs
	case !now.admin && (l.on == nil || now.surplus() != *l.on):
		byHand = min(downs, 1)
	}
	owed := l.owed
	if before.admin && !now.admin {
		paid := min(ups, owed)
		l.ups += ups - paid
		l.owed = max(owed-paid, byHand)
	} else {
		owed += byHand
		paid := min(ups, owed)
		l.ups += ups - paid
		l.owed = min(owed-paid, 1)
	}
	l.downs += downs - byHand
}

// forget drops netdevs that have long not been read.
func (w *linkWatch) forget(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.links, func(_ string, l *link) bool { return now.Sub(l.readAt) >= forgetLinks })
}

// deviceWatch counts how often RDMA devices registered.
type deviceWatch struct {
	mu        sync.Mutex
	listening bool
	names     map[uint64]string    // of registrations that were heard, by index
	heard     map[string]uint64    // registrations since the last reading, by the name that the device has or had last
	count     map[deviceKey]uint64 // those of devices that have been read
}

func newDeviceWatch() *deviceWatch {
	return &deviceWatch{names: map[uint64]string{}, heard: map[string]uint64{}, count: map[deviceKey]uint64{}}
}

// run listens until ctx ends. A kernel that announces no devices, and one that does not let this user listen, is no error.
func (w *deviceWatch) run(ctx context.Context, events host.Events) error {
	err := events.Devices(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.listening = true
	}, w.note)
	switch host.ReasonOf(err) {
	case host.Unsupported, host.Absent, host.Invalid, host.Permission:
		return nil
	}
	return err
}

// note takes an event. A device registers under the kernel's name and is renamed afterwards: its registration goes with it.
func (w *deviceWatch) note(e host.DeviceEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Type {
	case host.DeviceRegistered:
		w.names[e.Index] = e.Device
		w.heard[e.Device]++
	case host.DeviceUnregistered:
		delete(w.names, e.Index)
	case host.DeviceRenamed:
		old, heard := w.names[e.Index]
		if !heard || old == e.Device {
			return
		}
		w.names[e.Index] = e.Device
		if n := w.heard[old]; n > 0 {
			w.heard[e.Device] += n
			delete(w.heard, old)
		}
	}
}

// registrations of a device that was read now under its name, whatever name it had before; nil where the kernel does not tell.
func (w *deviceWatch) registrations(d *snapshot.Device) *uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.listening {
		return nil
	}
	key := keyOf(d)
	w.count[key] += w.heard[d.Name]
	delete(w.heard, d.Name)
	n := w.count[key]
	return &n
}

// run listens to what happens between the readings.
func (c *infiniBand) run(ctx context.Context, h *host.Host) error {
	if h.Events == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	devices := make(chan error, 1)
	go func() { devices <- host.Guard(func() error { return c.registered.run(ctx, h.Events) }) }()
	err := c.links.run(ctx, h.Events)
	cancel()
	return errors.Join(err, <-devices)
}
