package collector

import (
	"context"
	"slices"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

const (
	// wireInterval is how often a netdev's statistics are read in rounds: 15 s, less what scrapes may be early.
	wireInterval = 14 * time.Second
	// cheap is the time that a reading may take whether the device's time is spent or not: below a tenth of its budget. A device that
	// was stuck for long has spent that of half an hour.
	cheap = wireInterval / 1000
	// wireKept is how long they are served while no others can be had. Older counters would stand still, and then jump.
	wireKept = time.Minute
	// settingsKept is the same for pause and FEC, which are read each slowInterval.
	settingsKept = 3 * slowInterval
)

// ethernet reads what the netdevs of RDMA ports count.
type ethernet struct {
	Options
	devices kept[ethState]
	samples *pfcSampler
}

// ethState belongs to the lane of its device.
type ethState struct {
	at      time.Time // when the following was read
	netdevs []*ethNetdev

	quarantine quarantine
}

// ethNetdev is what outlives a round of one netdev.
type ethNetdev struct {
	portNetdev

	wireTried    time.Time
	wireTook     time.Duration // the last reading
	settingsAt   time.Time     // when pause and FEC were asked for
	settingsTook time.Duration // both
	pause        *snapshot.Pause
	pauseAt      time.Time
	fec          *snapshot.FEC
	fecAt        time.Time
	carrier      *uint64 // how often it had come and gone when something had just failed
}

func newEthernet(o Options) *Collector {
	c := &ethernet{Options: o}
	if c.wires == nil {
		c.wires = newWires()
	}
	c.samples = newPFCSampler(o.SampleInterval, c.readPauses)
	return &Collector{
		Name:    "ethernet",
		Help:    "netdev statistics of RDMA ports: PFC and pause, priorities, discards, FEC, link errors, PCIe stalls",
		Default: true,
		Descs:   append(wireDescs(), pfcSampleDescs...),
		Run:     c.samples.run,
		Read:    c.read,
		Emit:    emitEthernet,
	}
}

func (c *ethernet) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	names, err := c.Options.devices(h)
	if err != nil {
		done(err)
		return
	}
	states := c.devices.of(h, names, func() *ethState { return &ethState{} })
	eachDevice(ctx, h, n, "ethernet", names, func(r *reader, name string) ([]snapshot.NetdevCounters, bool) {
		return c.readDevice(r, name, states[name]), true
	}, func(devices [][]snapshot.NetdevCounters) {
		n.Ethernet = &snapshot.Ethernet{Netdevs: slices.Concat(devices...)}
		c.samples.forget(h.Now())
		c.wires.keep(names)
	}, done)
}

func (c *ethernet) readDevice(r *reader, name string, st *ethState) []snapshot.NetdevCounters {
	r.begin(host.SourceIdentity)
	r.quarantine = &st.quarantine
	if st.at.IsZero() || r.due(st.at) {
		c.learn(r, name, st)
	}
	out := make([]snapshot.NetdevCounters, 0, len(st.netdevs))
	for _, nd := range st.netdevs {
		nd.release(r)
		c.readWire(r, nd)
		nd.readSettings(r)
		out = append(out, c.counters(r, name, nd))
	}
	return out
}

// learn finds the netdevs of a device.
func (c *ethernet) learn(r *reader, name string, st *ethState) {
	before := st.netdevs
	found, whole := c.wireNetdevs(r, name)
	st.netdevs, st.at = nil, r.now()
	if !whole {
		st.at = time.Time{}
	}
	for _, n := range found {
		nd := &ethNetdev{portNetdev: n}
		if i := slices.IndexFunc(before, func(o *ethNetdev) bool { return o.portNetdev == n }); i >= 0 {
			nd = before[i]
		}
		st.netdevs = append(st.netdevs, nd)
	}
	c.wires.keepOf(name, found)
}

// dir names the requests for a netdev, as captures do.
func (nd *ethNetdev) dir() string { return ethtoolDir(nd.name) }

// release lets what failed be asked again when the carrier has come or gone.
func (nd *ethNetdev) release(r *reader) {
	if r.quarantine.groups[nd.dir()] == nil {
		nd.carrier = nil
		return
	}
	r.begin(host.SourceNetdev)
	n := r.count(netDir + nd.name + "/carrier_changes")
	if n != nil && nd.carrier != nil && *n != *nd.carrier {
		r.quarantine.release(nd.dir())
	}
	nd.carrier = n
}

// readWire makes a reading where the newest is old. Of a netdev that is being sampled, one of the time of the scrape is needed: rules
// divide what it has been paused by the time between scrapes.
func (c *ethernet) readWire(r *reader, nd *ethNetdev) {
	const item = "stats"
	now, target := r.now(), nd.target(r.device)
	if r.quarantine.held(nd.dir(), item, now) {
		return
	}
	tried := nd.wireTried
	if last := c.wires.last(target); last != nil && last.At.After(tried) {
		tried = last.At
	}
	kept := wireInterval
	if c.samples.sampling(nd.name) {
		kept = c.samples.interval
	}
	if !tried.IsZero() && (now.Sub(tried) < kept || nd.wireTook > cheap && !r.deferrable()) {
		return
	}
	var err error
	begun := time.Now()
	r.apart(c.wires.source(nd.driver), func() { _, err = c.wires.read(r.ctx, r.h, target) })
	nd.wireTook = time.Since(begun)
	if !blocked(err) {
		nd.wireTried = now
	}
	nd.failed(r, item, now, err)
}

// blocked says whether rtnl is in the way. Then it is tried again in the next round, which costs nothing and tells whether it still is.
func blocked(err error) bool {
	reason := host.ReasonOf(err)
	return err != nil && (reason == host.BackedOff || reason == host.Stuck)
}

// failed notes the outcome of a request. What a driver does not have is no fault.
func (nd *ethNetdev) failed(r *reader, item string, now time.Time, err error) {
	r.quarantine.note(nd.dir(), item, now, err)
	if reason := host.ReasonOf(err); err != nil && reason != host.Absent && reason != host.Unsupported {
		r.issue(err)
	}
}

// readSettings asks for pause and FEC, which InfiniBand has not.
func (nd *ethNetdev) readSettings(r *reader) {
	now := r.now()
	if nd.layer != "Ethernet" || !nd.settingsAt.IsZero() && (now.Sub(nd.settingsAt) < slowInterval || nd.settingsTook > cheap && !r.deferrable()) {
		return
	}
	begun := time.Now()
	pause, made := askSetting(r, nd, "pause", host.SourcePause, r.h.Ethtool.Pause)
	if !made {
		return // nor is the other
	}
	if pause != nil {
		nd.pause, nd.pauseAt = pause, now
	}
	fec, made := askSetting(r, nd, "fec", host.SourceFEC, r.h.Ethtool.FEC)
	if !made {
		return
	}
	if fec != nil {
		nd.fec, nd.fecAt = fec, now
	}
	nd.settingsAt, nd.settingsTook = now, time.Since(begun)
}

// askSetting asks for a setting; the answer is nil where there is none. It is not made where rtnl is in the way.
func askSetting[T any](r *reader, nd *ethNetdev, item string, s host.Source, ask func(context.Context, string) (T, error)) (answer *T, made bool) {
	now := r.now()
	if r.quarantine.held(nd.dir(), item, now) {
		return nil, true
	}
	ctx := r.ctx
	got := new(T) // may still be written to after a refusal
	var err error
	if r.underRTNL(s, 1, func() { *got, err = ask(ctx, nd.name) }) != nil {
		return nil, false
	}
	nd.failed(r, item, now, err)
	if err != nil {
		return nil, true
	}
	return got, true
}

// counters is what is known of a netdev and fresh enough to be served.
func (c *ethernet) counters(r *reader, device string, nd *ethNetdev) snapshot.NetdevCounters {
	out := snapshot.NetdevCounters{Device: device, Port: nd.port, LinkLayer: nd.layer, Netdev: nd.name}
	now, target := r.now(), nd.target(device)
	if wire := c.wires.last(target); wire != nil && now.Sub(wire.At) <= wireKept {
		out.Wire = wire
		if nd.layer == "Ethernet" {
			out.PFC = c.samples.note(target, wire, now)
		}
	}
	if nd.pause != nil && now.Sub(nd.pauseAt) <= settingsKept {
		out.Pause = withoutPause(*nd.pause, out.Wire)
	}
	if nd.fec != nil && now.Sub(nd.fecAt) <= settingsKept {
		out.FEC = withoutFEC(*nd.fec, out.Wire)
	}
	return out
}

// withoutPause leaves out what the driver's own statistics tell, which are read more often.
func withoutPause(p snapshot.Pause, w *snapshot.Wire) *snapshot.Pause {
	if w.Has(snapshot.GlobalPauseFrames, receive) {
		p.RXFrames, p.TXFrames = nil, nil
	}
	if w.Has(snapshot.PauseStormEvents, "error") {
		p.TXStormEvents = nil
	}
	return &p
}

// withoutFEC is as withoutPause.
func withoutFEC(f snapshot.FEC, w *snapshot.Wire) *snapshot.FEC {
	for what, v := range map[snapshot.WireWhat]**uint64{
		snapshot.FECCorrectedBits: &f.CorrectedBits, snapshot.FECCorrectedBlocks: &f.Corrected, snapshot.FECUncorrectableBlocks: &f.Uncorrectable,
	} {
		if w.Has(what, "") {
			*v = nil
		}
	}
	return &f
}
