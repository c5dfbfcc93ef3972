package neighbours

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/lldp"
	"rdma_exporter/internal/reading"
)

// lldpNeighbours holds the LLDP neighbours received on the netdevs found by the readings.
type lldpNeighbours struct {
	mu      sync.Mutex
	devices map[string]map[string]uint64 // netdevs by device, with the number of the interface
	changed chan struct{}                // closed when devices changes
	ends    map[string]map[msapID]lldpEntry
	err     error     // why no frames are received
	since   time.Time // start of listening; zero: not yet
}

// firstFrameTimeout is how long to wait for the first frame of a switch: twice the interval recommended by IEEE 802.1AB
// 9.2.5.7.
const firstFrameTimeout = time.Minute

// msapID identifies a neighbour on a netdev: the MSAP identifier, IEEE 802.1AB 9.2.7.7.
type msapID struct{ chassis, port string }

// lldpEntry is the last frame of a neighbour.
type lldpEntry struct {
	farEnd
	until time.Time
}

func newLLDPNeighbours() *lldpNeighbours {
	return &lldpNeighbours{
		devices: map[string]map[string]uint64{}, changed: make(chan struct{}), ends: map[string]map[msapID]lldpEntry{},
	}
}

// watch sets the netdevs of a device.
func (t *lldpNeighbours) watch(r neighbourReading) {
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

// drop removes the netdevs of devices that are gone.
func (t *lldpNeighbours) drop(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for device := range t.devices {
		if !slices.Contains(names, device) {
			delete(t.devices, device)
			t.wakeLocked()
		}
	}
}

// wakeLocked makes run listen on the new set of netdevs, and drops neighbours on removed ones.
func (t *lldpNeighbours) wakeLocked() {
	close(t.changed)
	t.changed = make(chan struct{})
	wanted := t.wantedLocked()
	maps.DeleteFunc(t.ends, func(name string, _ map[msapID]lldpEntry) bool { return !slices.Contains(wanted, name) })
}

func (t *lldpNeighbours) wantedLocked() (out []string) {
	for _, netdevs := range t.devices {
		out = slices.AppendSeq(out, maps.Keys(netdevs))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// run listens until ctx ends, and restarts with each change of the netdevs.
func (t *lldpNeighbours) run(ctx context.Context, h *host.Host) error {
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

// listen receives frames until ctx ends or changed is closed.
func (t *lldpNeighbours) listen(ctx context.Context, h *host.Host, netdevs []string, changed <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := h.LLDP.Receive(ctx, netdevs, func(n int, f func()) error { return h.UnderRTNL(ctx, source.LLDP, "", n, f) },
		func() { t.begin(h.Now()) }, func(netdev string, frame []byte) { t.note(netdev, frame, h.Now()) })
	if ctx.Err() != nil {
		return nil
	}
	t.fail(err)
	return err
}

// begin records that frames can be received. A change of netdevs does not restart the time.
func (t *lldpNeighbours) begin(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = nil
	if t.since.IsZero() {
		t.since = now
	}
}

// tooEarly reports whether it is too early to consider a switch silent.
func (t *lldpNeighbours) tooEarly(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err == nil && len(t.wantedLocked()) > 0 && (t.since.IsZero() || now.Sub(t.since) < firstFrameTimeout)
}

func (t *lldpNeighbours) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// failure is why no frames are received; nil if they are.
func (t *lldpNeighbours) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// note records a frame. A malformed frame is ignored; a frame with TTL 0 removes its sender.
func (t *lldpNeighbours) note(netdev string, frame []byte, now time.Time) {
	n, err := lldp.Parse(frame)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ends := t.ends[netdev]
	if ends == nil {
		ends = map[msapID]lldpEntry{}
		t.ends[netdev] = ends
	}
	maps.DeleteFunc(ends, func(_ msapID, e lldpEntry) bool { return !now.Before(e.until) })
	who := msapID{n.ChassisID, n.PortID}
	delete(ends, who)
	if n.TTL == 0 {
		return
	}
	if len(ends) >= mostNeighbours {
		delete(ends, leastRecent(ends))
	}
	ends[who] = lldpEntry{announcedEnd(&n, now), now.Add(n.TTL)}
}

// leastRecent returns the neighbour with the oldest frame. A switch sends every 30 s, while forged frames may have a
// TTL of 18 hours: by TTL the switch would be evicted.
func leastRecent(ends map[msapID]lldpEntry) msapID {
	return slices.MinFunc(slices.Collect(maps.Keys(ends)), func(a, b msapID) int { return ends[a].at.Compare(ends[b].at) })
}

// of lists the neighbours on a netdev whose TTL has not expired.
func (t *lldpNeighbours) of(netdev string, now time.Time) (out []farEnd) {
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

// savedDir is where systemd-networkd before version 256 saves received frames, one file per interface index.
const savedDir = "run/systemd/netif/lldp/"

// mostNeighbours bounds the neighbours of one netdev, at the limit of sd_lldp_rx.
const mostNeighbours = 128

// savedNeighbours reads the neighbours of an interface that networkd has received. It removes expired ones while it
// runs.
func savedNeighbours(reader *reading.Reader, netdev string, index uint64) (out []farEnd) {
	r := reader.From(source.LLDP)
	path := savedDir + strconv.FormatUint(index, 10)
	b, err := readSaved(r, path, netdev, index)
	if err != nil {
		r.IssueUnless(err, access.Absent)
		return nil
	}
	frames, whole := savedFrames(b)
	for _, f := range frames {
		n, err := lldp.Parse(f)
		if err != nil {
			whole = false
			continue
		}
		if n.TTL > 0 {
			out = append(out, announcedEnd(&n, time.Time{}))
		}
	}
	if !whole {
		r.Issue(access.ErrGarbled(path, b))
	}
	slices.SortStableFunc(out, byLikelihood)
	return out
}

// readSaved queries networkd, and reads its file if it does not run or has no such query. An answer without neighbours
// is final: a file of an earlier version remains after an upgrade until the next boot.
func readSaved(r reading.Reads, path, netdev string, index uint64) ([]byte, error) {
	if r.Host.Networkd != nil {
		r.Ask(1)
		frames, err := r.Host.Networkd.LLDPNeighbours(r.Ctx, netdev, index)
		if !host.NoNetworkd(err) {
			return frames, err
		}
	}
	r.Ask(1)
	return r.Host.Files.Read(path, nil)
}

// savedFrames returns the frames in a file: each after its length in 64 bits, little-endian (systemd, link_lldp_save).
func savedFrames(b []byte) (out [][]byte, whole bool) {
	for len(b) > 0 && len(out) < mostNeighbours {
		if len(b) < 8 {
			return out, false
		}
		n := binary.LittleEndian.Uint64(b)
		if b = b[8:]; n > uint64(len(b)) {
			return out, false
		}
		out, b = append(out, b[:n]), b[n:]
	}
	return out, len(b) == 0
}
