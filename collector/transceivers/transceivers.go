// Package transceivers reads transceivers and cables: identity, temperature, optical power, thresholds.
package transceivers

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

const (
	// ownModuleInterval is the interval of transceiver readings made by Read: 30 s, less the jitter of rounds.
	ownModuleInterval = 29 * time.Second
	// moduleShare bounds the wall time of readings in the background: the next reading of a transceiver follows after this
	// multiple of the duration of the last one. Each byte is read over a slow bus under rtnl.
	moduleShare = 400
	// moduleLeast is the same for a device whose budget is spent: a tenth of it is used regardless.
	moduleLeast = 1000
	// servedIntervals is the number of intervals for which the readings of a transceiver that can no longer be read are
	// served.
	servedIntervals = 3
)

// transceivers reads transceivers: in Run in a long-running program, so that no round waits for one, otherwise in Read.
type transceivers struct {
	interval time.Duration // of readings by Run; 0: Read reads
	devices  reading.Devices[opticsState, []wire.Cage]

	mu    sync.Mutex
	cages map[counters.NetdevTarget]*cage
	woken chan struct{} // holds one token: there are new cages
}

// opticsState belongs to the reader of its device, one at a time.
type opticsState struct {
	of    *reading.Device // that the following are of
	cages []*cage         // in the order of their ports
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := &transceivers{
		interval: with.ModuleInterval,
		cages:    map[counters.NetdevTarget]*cage{}, woken: make(chan struct{}, 1),
	}
	c.devices.Collector, c.devices.Quarantines = "transceiver", true
	return &shared.Collector{
		Name:  "transceiver",
		Help:  "transceivers and cables of Ethernet ports: identity, temperature, optical power, thresholds",
		Descs: transceiverDescs,
		Run:   c.run,
		Read:  with.Devices.Read(c.read),
		Emit:  metric.EmitSection(func(n *snapshot.Node) *wire.Optics { return n.Optics }, emitTransceivers),
	}
}

// background reports whether Run reads the transceivers.
func (c *transceivers) background() bool { return c.interval > 0 }

func (c *transceivers) read(
	ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error),
) {
	c.drop(roster.Names)
	c.devices.ReadAll(ctx, h, n, roster, c.readDevice, func(devices [][]wire.Cage) {
		n.Optics = &wire.Optics{Cages: slices.Concat(devices...)}
		markShared(n.Optics.Cages)
		if c.background() &&
			slices.ContainsFunc(n.Optics.Cages, func(c wire.Cage) bool { return c.State == wire.CageUnread }) {
			n.Pending = []string{source.ModuleEEPROM.Name()}
		}
	}, done)
}

func (c *transceivers) readDevice(r *reading.Reader, d *reading.Device, st *opticsState) ([]wire.Cage, bool) {
	if st.of != d {
		c.learn(d, st)
	}
	out := make([]wire.Cage, 0, len(st.cages))
	for _, g := range st.cages {
		if !c.background() && !r.Now().Before(g.next) {
			c.readCage(r, g)
			r.Issues = append(r.Issues, g.seen.issues...)
		}
		out = append(out, c.view(r, g))
	}
	return out, true
}

// learn finds the cages of a device, without those of InfiniBand ports: no driver reads a transceiver through an IPoIB
// netdev.
func (c *transceivers) learn(d *reading.Device, st *opticsState) {
	st.of, st.cages = d, nil
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.cages, func(t counters.NetdevTarget, _ *cage) bool {
		return t.Device == d.Name &&
			!slices.ContainsFunc(d.Netdevs, func(n reading.PortNetdev) bool { return counters.TargetOf(d.Name, n) == t })
	})
	for _, n := range d.Netdevs {
		if n.Layer != "Ethernet" {
			continue
		}
		t := counters.TargetOf(d.Name, n)
		if c.cages[t] == nil {
			c.cages[t] = newCage(t)
			select {
			case c.woken <- struct{}{}:
			default:
			}
		}
		st.cages = append(st.cages, c.cages[t])
	}
}

// drop removes the cages of devices that are gone.
func (c *transceivers) drop(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.cages, func(t counters.NetdevTarget, _ *cage) bool { return !slices.Contains(names, t.Device) })
}

// readCage reads a transceiver now, and sets the time of the next read.
func (c *transceivers) readCage(r *reading.Reader, g *cage) {
	seen := g.update(r)
	wait := ownModuleInterval
	if c.background() {
		wait = max(c.interval, min(moduleShare*g.took, freshInterval))
	}
	if !seen.readAt.Equal(g.seen.readAt) { // there are new readings
		seen.kept = servedIntervals * wait
	}
	g.lastRead = r.Host.Now()
	g.next = g.lastRead.Add(wait)
	if c.background() { // not in step with those of other hosts
		g.next = g.next.Add(rand.N(wait/10 + 1))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g.seen = seen
}

// view returns the present state of a cage. A failure is reported in each round as long as it lasts.
func (c *transceivers) view(r *reading.Reader, g *cage) wire.Cage {
	c.mu.Lock()
	seen := g.seen
	c.mu.Unlock()
	r.Held += seen.held
	if c.background() {
		r.Issues = append(r.Issues, seen.issues...)
	}
	return seen.at(r.Now())
}

// run reads the transceivers one after the other, each when it is due, until ctx ends.
func (c *transceivers) run(ctx context.Context, h *host.Host) error {
	if !c.background() {
		return nil
	}
	for {
		g, wait := c.due(h.Now())
		if wait > 0 {
			select {
			case <-time.After(wait):
			case <-c.woken:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		r := reading.New(ctx, h, g.Device)
		if left := g.lastRead.Add(moduleLeast * g.took).Sub(r.Now()); left <= 0 || r.Deferrable() {
			c.readCage(r, g)
		} else {
			g.next = r.Now().Add(min(left, c.interval))
		}
		r.End()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// idleWait is how long run sleeps while there is no cage.
const idleWait = time.Hour

// due returns the next cage to read, and the time until then.
func (c *transceivers) due(now time.Time) (next *cage, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.cages {
		if next == nil || compareTurns(g, next) < 0 {
			next = g
		}
	}
	if next == nil {
		return nil, idleWait
	}
	return next, max(0, next.next.Sub(now))
}

// compareTurns sorts cages by the time of their next read, then by name.
func compareTurns(a, b *cage) int {
	return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Port, b.Port),
		cmp.Compare(a.Netdev, b.Netdev))
}

// markShared finds transceivers reported by several ports: a transceiver with two ports, or a port with two functions.
// A serial number is unique for a vendor's part number. The first port in order represents the others.
func markShared(cages []wire.Cage) {
	type identity struct{ vendor, part, serial string }
	first := map[identity]string{}
	for i := range cages {
		m := cages[i].Module
		if m == nil || m.SerialNumber == "" {
			continue
		}
		id := identity{m.Vendor, m.PartNumber, m.SerialNumber}
		if netdev, shown := first[id]; shown {
			cages[i].First = netdev
		} else {
			first[id] = cages[i].Netdev
		}
	}
}
