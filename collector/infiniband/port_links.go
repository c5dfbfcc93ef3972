package infiniband

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
)

// linkWatch counts non-administrative carrier changes of netdevs. The total comes from the kernel's counts, which are
// complete; the administrative part from events, or without events from IFF_UP at each reading.
type linkWatch struct {
	listening atomic.Bool

	mu    sync.Mutex
	links map[string]*link // by netdev
}

// carrier is the kernel's carrier counts of a netdev at one moment, and whether it was administratively up.
type carrier struct {
	ups, downs uint64
	admin      bool
}

// before reports whether c is of an earlier moment than o.
func (c carrier) before(o carrier) bool { return c.ups < o.ups || c.downs < o.downs }

// after reports whether something has happened since o.
func (c carrier) after(o carrier) bool { return !c.before(o) && (c.ups > o.ups || c.downs > o.downs) }

// surplus returns the number of ups less downs. They alternate: it has two values.
func (c carrier) surplus() int64 { return int64(c.ups) - int64(c.downs) }

// link is the state of one netdev.
type link struct {
	index uint64 // of the interface: a recreated one has another
	last  carrier
	owed  uint64 // expected ups after the last administrative down
	ups   uint64 // not administrative, since the netdev was first seen
	downs uint64
	// on is ups less downs while there is a carrier; nil until an event. It depends on the driver: a netdev is created
	// with a carrier, which most drivers clear before they register it.
	on *int64

	readAt    time.Time
	waiting   *carrier // a reading that no event has confirmed yet
	waitingAt time.Time
}

const (
	// settle is longer than the kernel delays an event (1 s, net/core/link_watch.c). A read of the counts may coincide
	// with an administrative change, which the following event reports. After this time no event is expected.
	settle = 3 * time.Second
	// linkRetention is how long a netdev is kept that is no longer read: a driver reload is shorter.
	linkRetention = time.Hour
)

func newLinkWatch() *linkWatch { return &linkWatch{links: map[string]*link{}} }

// run listens until ctx ends.
func (w *linkWatch) run(ctx context.Context, events host.Events) error {
	defer w.listening.Store(false)
	return events.Links(ctx, func() { w.listening.Store(true) }, w.note)
}

// note records an event. Events of interfaces that are not read, and events from before the last reading, are ignored.
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

// transitions records a reading of an interface's counts and returns the non-administrative transitions so far. Earlier
// changes of another interface with the same name are unknown.
func (w *linkWatch) transitions(netdev string, index uint64, read carrier, at time.Time) (ups, downs uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.links[netdev]
	if l == nil {
		l = &link{index: index, last: read}
		w.links[netdev] = l
	}
	l.readAt = at
	listening := w.listening.Load()
	switch {
	case l.index != index, read.before(l.last) && !listening:
		l.index, l.last, l.owed, l.on, l.waiting = index, read, 0, nil, nil
	case listening:
		l.wait(read, at)
	default:
		l.advance(read)
	}
	return l.ups, l.downs
}

// wait defers a reading that is ahead of the events until the next event; after settle that event was lost, or came
// before the first reading. A reading from before the last event is dropped.
func (l *link) wait(read carrier, at time.Time) {
	if l.ahead(l.waiting) && at.Sub(l.waitingAt) >= settle {
		l.advance(*l.waiting)
	}
	switch {
	case !l.ahead(&read):
		l.waiting = nil
	case !l.ahead(l.waiting):
		l.waiting, l.waitingAt = &read, at
	}
}

// ahead reports whether a reading shows what no event has reported.
func (l *link) ahead(read *carrier) bool {
	return read != nil && (read.after(l.last) || !read.before(l.last) && read.admin != l.last.admin)
}

// advance moves on to a later moment.
//
//   - A netdev that was up and is not any more lost its carrier by that, if it has none: the last fall is
//     administrative.
//   - All falls while it was down are: some drivers report the loss of the link a little later.
//   - An administrative fall is followed by a rise: when the netdev is set up again, or after the training of the link.
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

// drop removes netdevs that have long not been read.
func (w *linkWatch) drop(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.links, func(_ string, l *link) bool { return now.Sub(l.readAt) >= linkRetention })
}

// deviceWatch counts registrations of RDMA devices.
type deviceWatch struct {
	listening atomic.Bool

	mu       sync.Mutex
	names    map[uint64]string    // of registrations received, by index
	received map[string]uint64    // registrations since the last reading, by the name that the device has or had last
	count    map[deviceKey]uint64 // those of devices that have been read
}

func newDeviceWatch() *deviceWatch {
	return &deviceWatch{names: map[uint64]string{}, received: map[string]uint64{}, count: map[deviceKey]uint64{}}
}

// run listens until ctx ends. A kernel without device notifications, or without permission to receive them, is no
// error.
func (w *deviceWatch) run(ctx context.Context, events host.Events) error {
	err := events.Devices(ctx, func() { w.listening.Store(true) }, w.note)
	switch access.ReasonOf(err) {
	case access.Unsupported, access.Absent, access.Invalid, access.Permission:
		return nil
	}
	return err
}

// note records an event. A device registers under its kernel name and is renamed afterwards: its registration moves
// with it.
func (w *deviceWatch) note(e host.DeviceEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Type {
	case host.DeviceRegistered:
		w.names[e.Index] = e.Device
		w.received[e.Device]++
	case host.DeviceUnregistered:
		delete(w.names, e.Index)
	case host.DeviceRenamed:
		old, heard := w.names[e.Index]
		if !heard || old == e.Device {
			return
		}
		w.names[e.Index] = e.Device
		if n := w.received[old]; n > 0 {
			w.received[e.Device] += n
			delete(w.received, old)
		}
	}
}

// registrations returns the registrations of a device just read, under any name it had before; nil where the kernel
// does not report them.
func (w *deviceWatch) registrations(d *snapshot.Device) *uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.listening.Load() {
		return nil
	}
	key := keyOf(d)
	w.count[key] += w.received[d.Name]
	delete(w.received, d.Name)
	return new(w.count[key])
}

// run receives events between the readings.
func (c *infiniBand) run(ctx context.Context, h *host.Host) error {
	if h.Events == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	devices := make(chan error, 1)
	go func() { devices <- access.Guard(func() error { return c.registered.run(ctx, h.Events) }) }()
	err := c.links.run(ctx, h.Events)
	cancel()
	return errors.Join(err, <-devices)
}
