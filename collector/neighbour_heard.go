package collector

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/lldp"
)

// heard is what was heard of neighbours, on the netdevs that the readings have found.
type heard struct {
	mu      sync.Mutex
	devices map[string]map[string]uint64 // netdevs by device, with the number of the interface
	changed chan struct{}                // closed when devices changes
	ends    map[string]map[speaker]heardEnd
	err     error     // why nothing is heard
	since   time.Time // when it was begun to listen; zero: not yet
}

// firstWord is how long a switch may keep silent before it counts as one that does not speak: twice the interval that IEEE 802.1AB 9.2.5.7
// recommends.
const firstWord = time.Minute

// speaker is what tells neighbours of one netdev apart: IEEE 802.1AB 9.2.7.7, the MSAP identifier.
type speaker struct{ chassis, port string }

// heardEnd is the last frame of a speaker.
type heardEnd struct {
	farEnd
	until time.Time
}

func newHeard() *heard {
	return &heard{devices: map[string]map[string]uint64{}, changed: make(chan struct{}), ends: map[string]map[speaker]heardEnd{}}
}

// want sets the netdevs of a device.
func (t *heard) want(r neighbourReading) {
	netdevs := map[string]uint64{}
	for name, l := range r.links {
		netdevs[name] = l.index
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !maps.Equal(t.devices[r.device.Name], netdevs) {
		t.devices[r.device.Name] = netdevs
		t.wakeLocked()
	}
}

// forget drops the netdevs of devices that are gone.
func (t *heard) forget(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for device := range t.devices {
		if !slices.Contains(names, device) {
			delete(t.devices, device)
			t.wakeLocked()
		}
	}
}

// wakeLocked has run join on other netdevs, and drops what was heard on those that are gone.
func (t *heard) wakeLocked() {
	close(t.changed)
	t.changed = make(chan struct{})
	wanted := t.wantedLocked()
	maps.DeleteFunc(t.ends, func(name string, _ map[speaker]heardEnd) bool { return !slices.Contains(wanted, name) })
}

func (t *heard) wantedLocked() (out []string) {
	for _, netdevs := range t.devices {
		out = slices.AppendSeq(out, maps.Keys(netdevs))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// run listens until ctx ends, again whenever there are other netdevs.
func (t *heard) run(ctx context.Context, h *host.Host) error {
	for ctx.Err() == nil {
		t.mu.Lock()
		netdevs, changed := t.wantedLocked(), t.changed
		t.mu.Unlock()
		if len(netdevs) == 0 {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		if err := t.listen(ctx, h, netdevs, changed); err != nil {
			return err
		}
	}
	return nil
}

// listen hears frames until ctx ends or changed is closed.
func (t *heard) listen(ctx context.Context, h *host.Host, netdevs []string, changed <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := h.LLDP.Hear(ctx, netdevs, func(n int, f func()) error { return h.UnderRTNL(ctx, host.SourceLLDP, "", n, f) },
		func() { t.begin(h.Now()) }, func(netdev string, frame []byte) { t.note(netdev, frame, h.Now()) })
	if ctx.Err() != nil {
		return nil
	}
	t.fail(err)
	return err
}

// begin notes that frames arrive. Other netdevs make no new beginning.
func (t *heard) begin(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = nil
	if t.since.IsZero() {
		t.since = now
	}
}

// early says whether it is too early to call a switch silent.
func (t *heard) early(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err == nil && len(t.wantedLocked()) > 0 && (t.since.IsZero() || now.Sub(t.since) < firstWord)
}

func (t *heard) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// failure is why nothing is heard, nil if it is.
func (t *heard) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// note takes a frame. One that cannot be understood says nothing; one without time to live is a farewell.
func (t *heard) note(netdev string, frame []byte, now time.Time) {
	n, err := lldp.Parse(frame)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ends := t.ends[netdev]
	if ends == nil {
		ends = map[speaker]heardEnd{}
		t.ends[netdev] = ends
	}
	maps.DeleteFunc(ends, func(_ speaker, e heardEnd) bool { return !now.Before(e.until) })
	who := speaker{n.ChassisID, n.PortID}
	delete(ends, who)
	if n.TTL == 0 {
		return
	}
	if len(ends) >= mostNeighbours {
		delete(ends, leastRecent(ends))
	}
	ends[who] = heardEnd{announcedEnd(&n, now), now.Add(n.TTL)}
}

// leastRecent is who was heard longest ago. A switch speaks each 30 s, while forged frames may hold for 18 hours, so that by the time to live
// the switch would have to go.
func leastRecent(ends map[speaker]heardEnd) speaker {
	return slices.MinFunc(slices.Collect(maps.Keys(ends)), func(a, b speaker) int { return ends[a].at.Compare(ends[b].at) })
}

// of lists those that were heard on a netdev and still hold.
func (t *heard) of(netdev string, now time.Time) (out []farEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.ends[netdev] {
		if now.Before(e.until) {
			out = append(out, e.farEnd)
		}
	}
	slices.SortFunc(out, byLikelihood)
	return out
}
