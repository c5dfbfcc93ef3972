package collector

import (
	"context"
	"slices"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

const (
	// wireInterval is the interval of netdev statistics in rounds: 15 s, less the jitter of scrapes.
	wireInterval = 14 * time.Second
	// cheapRead is the duration of a read that is permitted even if the time budget of the device is spent: below a tenth of its budget. A
	// device that was stuck for long has spent the budget of half an hour.
	cheapRead = wireInterval / 1000
	// wireRetention is how long statistics are served without a new read. Older counters would stop and then jump.
	wireRetention = time.Minute
	// settingsRetention is the same for pause and FEC, read each slowInterval.
	settingsRetention = 3 * slowInterval
)

// ethernet reads the statistics of the netdevs of RDMA ports.
type ethernet struct {
	Options
	devices perDevice[ethState]
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
	settingsAt   time.Time     // when pause and FEC were read
	settingsTook time.Duration // both
	pause        *snapshot.Pause
	pauseAt      time.Time
	fec          *snapshot.FEC
	fecAt        time.Time
	fecActive    *uint64 // of the answer for which the code was determined
	fecCode      string
	codeAt       time.Time
	carrier      *uint64 // carrier changes at the last failure
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
	names, err := c.Options.devices(h, n)
	if err != nil {
		done(err)
		return
	}
	states := c.devices.of(h, names, func() *ethState { return &ethState{} })
	eachDevice(ctx, h, n, "ethernet", names, func(r *reader, name string) ([]snapshot.NetdevCounters, bool) {
		return c.readDevice(r, name, states[name]), true
	}, func(devices [][]snapshot.NetdevCounters) {
		n.Ethernet = &snapshot.Ethernet{Netdevs: slices.Concat(devices...)}
		c.samples.drop(h.Now())
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

// release clears the quarantine of the netdev when its carrier has changed.
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

// readWire reads the statistics if the newest are old. A netdev that is being sampled needs values of the time of the scrape: rules
// divide its pause time by the time between scrapes.
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
	if !tried.IsZero() && (now.Sub(tried) < kept || nd.wireTook > cheapRead && !r.deferrable()) {
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

// blocked reports whether rtnl is unavailable. The read is then tried again in the next round, at no cost.
func blocked(err error) bool {
	reason := host.ReasonOf(err)
	return err != nil && (reason == host.BackedOff || reason == host.Stuck)
}

// failed records the outcome of a request. An item that a driver does not support is no failure.
func (nd *ethNetdev) failed(r *reader, item string, now time.Time, err error) {
	r.quarantine.note(nd.dir(), item, now, err)
	if reason := host.ReasonOf(err); err != nil && reason != host.Absent && reason != host.Unsupported {
		r.issue(err)
	}
}

// readSettings reads pause and FEC, which InfiniBand does not have.
func (nd *ethNetdev) readSettings(r *reader) {
	now := r.now()
	if nd.layer != "Ethernet" || !nd.settingsAt.IsZero() && (now.Sub(nd.settingsAt) < slowInterval || nd.settingsTook > cheapRead && !r.deferrable()) {
		return
	}
	begun := time.Now()
	pause, made := askSetting(r, nd, "pause", host.SourcePause, r.h.Ethtool.Pause)
	if !made {
		return // nor would the other be
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
		nd.readCode(r, now)
	}
	nd.settingsAt, nd.settingsTook = now, time.Since(begun)
}

// askSetting reads a setting; the answer is nil where there is none. made is false if rtnl is unavailable.
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

// counters are the values of a netdev that are fresh enough to be served.
func (c *ethernet) counters(r *reader, device string, nd *ethNetdev) snapshot.NetdevCounters {
	out := snapshot.NetdevCounters{Device: device, Port: nd.port, LinkLayer: nd.layer, Netdev: nd.name}
	now, target := r.now(), nd.target(device)
	if wire := c.wires.last(target); wire != nil && now.Sub(wire.At) <= wireRetention {
		out.Wire = wire
		if nd.layer == "Ethernet" {
			out.PFC = c.samples.note(target, wire, now)
		}
	}
	if nd.pause != nil && now.Sub(nd.pauseAt) <= settingsRetention {
		out.Pause = withoutPause(*nd.pause, out.Wire)
	}
	if nd.fec != nil && now.Sub(nd.fecAt) <= settingsRetention {
		out.FEC, out.FECCode = withoutFEC(*nd.fec, out.Wire), nd.fecCode
	}
	return out
}

// withoutPause leaves out counts that are in the driver's own statistics, which are read more often.
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
