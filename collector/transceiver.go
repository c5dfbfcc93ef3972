package collector

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

const (
	// ownModuleInterval spaces the readings of modules where Read makes them: 30 s, less what rounds may be early.
	ownModuleInterval = 29 * time.Second
	// moduleShare bounds the wall time of the readings in the background: the next one of a module comes after that many times what the
	// last one took. Each byte comes over a slow bus while rtnl is held.
	moduleShare = 400
	// moduleLeast is the same of a device whose budget is spent: a tenth of it is taken whether there is any left.
	moduleLeast = 1000
	// keptReadings is for how many intervals the readings of a module are served that cannot be read any more.
	keptReadings = 3
)

// transceivers reads modules: Run does in a program that stays, so that no round waits for one, else Read.
type transceivers struct {
	Options
	devices kept[opticsState]

	mu    sync.Mutex
	cages map[wireTarget]*cage
	woken chan struct{} // holds one token: there are new cages
}

// opticsState belongs to the lane of its device.
type opticsState struct {
	at    time.Time // when the following was learnt
	cages []*cage   // in the order of their ports

	quarantine quarantine
}

func newTransceivers(o Options) *Collector {
	c := &transceivers{Options: o, cages: map[wireTarget]*cage{}, woken: make(chan struct{}, 1)}
	return &Collector{
		Name:    "transceiver",
		Help:    "transceivers and cables of Ethernet ports: identity, temperature, optical power, thresholds",
		Default: true,
		Descs:   transceiverDescs,
		Run:     c.run,
		Read:    c.read,
		Emit:    emitTransceivers,
	}
}

// background says whether Run reads the modules.
func (c *transceivers) background() bool { return c.ModuleInterval > 0 }

func (c *transceivers) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	names, err := c.Options.devices(h)
	if err != nil {
		done(err)
		return
	}
	c.forget(names)
	states := c.devices.of(h, names, func() *opticsState { return &opticsState{} })
	eachDevice(ctx, h, n, "transceiver", names, func(r *reader, name string) ([]snapshot.Cage, bool) {
		return c.readDevice(r, name, states[name]), true
	}, func(devices [][]snapshot.Cage) {
		n.Optics = &snapshot.Optics{Cages: slices.Concat(devices...)}
		markShared(n.Optics.Cages)
		if c.background() && slices.ContainsFunc(n.Optics.Cages, func(c snapshot.Cage) bool { return c.State == snapshot.CageUnread }) {
			n.Pending = []string{host.SourceModuleEEPROM.Name()}
		}
	}, done)
}

func (c *transceivers) readDevice(r *reader, name string, st *opticsState) []snapshot.Cage {
	r.begin(host.SourceIdentity)
	r.quarantine = &st.quarantine
	if st.at.IsZero() || r.due(st.at) {
		c.learn(r, name, st)
	}
	out := make([]snapshot.Cage, 0, len(st.cages))
	for _, g := range st.cages {
		if !c.background() && !r.now().Before(g.next) {
			c.look(r, g)
			r.issues = append(r.issues, g.seen.issues...)
		}
		out = append(out, c.view(r, g))
	}
	return out
}

// learn finds the cages of a device. Those of InfiniBand ports are not among them: no driver reads a module for a netdev of IPoIB.
func (c *transceivers) learn(r *reader, name string, st *opticsState) {
	found, whole := c.wireNetdevs(r, name)
	st.at, st.cages = r.now(), nil
	if !whole {
		st.at = time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.cages, func(t wireTarget, _ *cage) bool {
		return t.device == name && !slices.ContainsFunc(found, func(n portNetdev) bool { return n.target(name) == t })
	})
	for _, n := range found {
		if n.layer != "Ethernet" {
			continue
		}
		t := n.target(name)
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

func (n portNetdev) target(device string) wireTarget {
	return wireTarget{device, n.port, n.name, n.driver}
}

// forget drops the cages of devices that are gone.
func (c *transceivers) forget(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.cages, func(t wireTarget, _ *cage) bool { return !slices.Contains(names, t.device) })
}

// look reads a module now, and says when to do so again.
func (c *transceivers) look(r *reader, g *cage) {
	seen := g.visit(r)
	wait := ownModuleInterval
	if c.background() {
		wait = max(c.ModuleInterval, min(moduleShare*g.took, freshInterval))
	}
	if !seen.readAt.Equal(g.seen.readAt) { // there are new readings
		seen.kept = keptReadings * wait
	}
	g.looked = r.h.Now()
	g.next = g.looked.Add(wait)
	if c.background() { // not in step with those of other hosts
		g.next = g.next.Add(rand.N(wait/10 + 1))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g.seen = seen
}

// view is what is known of a cage at present. What failed is told in each round for as long as it lasts.
func (c *transceivers) view(r *reader, g *cage) snapshot.Cage {
	c.mu.Lock()
	seen := g.seen
	c.mu.Unlock()
	r.held += seen.held
	if c.background() {
		r.issues = append(r.issues, seen.issues...)
	}
	return seen.at(r.now())
}

// run reads the modules one after the other, each when its time has come, until ctx ends.
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
		r := &reader{ctx: ctx, h: h, device: g.device, since: time.Now()}
		if left := g.looked.Add(moduleLeast * g.took).Sub(r.now()); left <= 0 || r.deferrable() {
			c.look(r, g)
		} else {
			g.next = r.now().Add(min(left, c.ModuleInterval))
		}
		r.end()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// idle is how long run sleeps while there is no module to read.
const idle = time.Hour

// due is the cage whose turn is the next, and how long to wait for that.
func (c *transceivers) due(now time.Time) (next *cage, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.cages {
		if next == nil || compareTurns(g, next) < 0 {
			next = g
		}
	}
	if next == nil {
		return nil, idle
	}
	return next, max(0, next.next.Sub(now))
}

// compareTurns puts cages whose time comes together in the order of their names.
func compareTurns(a, b *cage) int {
	return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.device, b.device), cmp.Compare(a.port, b.port), cmp.Compare(a.netdev, b.netdev))
}

// markShared finds modules that several ports show: a module with two ports, or a port with two functions. A serial number is
// unique for a vendor's part. The first in order stands for the others.
func markShared(cages []snapshot.Cage) {
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
