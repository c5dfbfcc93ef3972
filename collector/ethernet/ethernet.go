// Package ethernet reads statistics of the netdevs of RDMA ports: PFC and pause, priorities, discards, FEC, link
// errors.
package ethernet

import (
	"context"
	"slices"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

const (
	// statsInterval is the interval of netdev statistics in rounds: 15 s, less the jitter of scrapes.
	statsInterval = 14 * time.Second
	// cheapRead is the duration of a read that is permitted even if the time budget of the device is spent: below a tenth
	// of its budget. A device that was stuck for long has spent the budget of half an hour.
	cheapRead = statsInterval / 1000
)

// ethernet reads the statistics of the netdevs of RDMA ports.
type ethernet struct {
	stats   *counters.NetdevStats
	devices reading.Devices[ethState, []wire.NetdevCounters]
	samples *pfcSampler
}

// ethState belongs to the reader of its device, one at a time.
type ethState struct {
	of      *reading.Device // that the following are of
	netdevs []*ethNetdev
}

// ethNetdev is what outlives a round of one netdev.
type ethNetdev struct {
	reading.PortNetdev

	statsRead timedRead
	settings  timedRead // pause and FEC, both
	pause     reading.Kept[*wire.Pause]
	fec       reading.Kept[*wire.FEC]
	fecActive *uint64 // of the answer for which the code was determined
	fecCode   reading.Kept[string]
	carrier   *uint64 // carrier changes at the last failure
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := &ethernet{
		stats:   with.Stats,
		devices: reading.Devices[ethState, []wire.NetdevCounters]{Collector: "ethernet", Quarantines: true},
	}
	c.samples = newPFCSampler(with.SampleInterval, c.readPauses)
	return &shared.Collector{
		Name:  "ethernet",
		Help:  "netdev statistics of RDMA ports: PFC and pause, priorities, discards, FEC, link errors, PCIe stalls",
		Descs: append(counters.NetdevDescs(), pfcSampleDescs...),
		Run:   c.samples.run,
		Read:  with.Devices.Read(c.read),
		Emit:  metric.EmitSection(func(n *snapshot.Node) *wire.Ethernet { return n.Ethernet }, emitEthernet),
	}
}

func (c *ethernet) read(ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error)) {
	c.devices.ReadAll(ctx, h, n, roster, c.readDevice, func(devices [][]wire.NetdevCounters) {
		n.Ethernet = &wire.Ethernet{Netdevs: slices.Concat(devices...)}
		c.samples.drop(h.Now())
		c.stats.Keep(roster.Names)
	}, done)
}

func (c *ethernet) readDevice(r *reading.Reader, d *reading.Device, st *ethState) ([]wire.NetdevCounters, bool) {
	name := r.Device
	if st.of != d {
		c.learn(d, st)
	}
	out := make([]wire.NetdevCounters, 0, len(st.netdevs))
	for _, nd := range st.netdevs {
		nd.release(r)
		c.readStats(r, nd)
		nd.readSettings(r)
		out = append(out, c.counters(r, name, nd))
	}
	return out, true
}

// learn finds the netdevs of a device.
func (c *ethernet) learn(d *reading.Device, st *ethState) {
	before := st.netdevs
	st.of, st.netdevs = d, nil
	for _, n := range d.Netdevs {
		nd := &ethNetdev{PortNetdev: n}
		if i := slices.IndexFunc(before, func(o *ethNetdev) bool { return o.PortNetdev == n }); i >= 0 {
			nd = before[i]
		}
		st.netdevs = append(st.netdevs, nd)
	}
	c.stats.KeepOf(d.Name, d.Netdevs)
}

// dir names the requests for a netdev, as captures do.
func (nd *ethNetdev) dir() string { return sysfs.EthtoolDir(nd.Name) }

// release clears the quarantine of the netdev when its carrier has changed.
func (nd *ethNetdev) release(r *reading.Reader) {
	if !r.Quarantine.Failing(nd.dir()) {
		nd.carrier = nil
		return
	}
	n := r.From(source.Netdev).Count(sysfs.NetDir + nd.Name + "/carrier_changes")
	if n != nil && nd.carrier != nil && *n != *nd.carrier {
		r.Quarantine.Release(nd.dir())
	}
	nd.carrier = n
}

// readStats reads the statistics if the newest are old. A netdev that is being sampled needs values of the time of the
// scrape: rules divide its pause time by the time between scrapes.
func (c *ethernet) readStats(r *reading.Reader, nd *ethNetdev) {
	const item = "stats"
	now, target := r.Now(), counters.TargetOf(r.Device, nd.PortNetdev)
	if r.Quarantine.Held(nd.dir(), item, now) {
		return
	}
	tried := nd.statsRead
	if last := c.stats.Last(target); last != nil && last.At.After(tried.Time()) { // of the sampler
		tried.Read(last.At)
	}
	kept := statsInterval
	if c.samples.sampling(nd.Name) {
		kept = c.samples.interval
	}
	if !tried.due(r, kept) {
		return
	}
	var err error
	asked, begun := c.stats.Source(nd.Driver), time.Now()
	r.Apart(asked, func() { _, err = c.stats.Read(r.Ctx, r.Host, target) })
	nd.statsRead.took = time.Since(begun)
	if !shared.Blocked(err) {
		nd.statsRead.Read(now)
	}
	r.From(asked).Outcome(nd.dir(), item, err)
}

// timedRead is a read of which only an expensive one is deferred.
type timedRead struct {
	reading.Last
	took time.Duration // by the last read
}

func (t *timedRead) due(r *reading.Reader, interval time.Duration) bool {
	if t.took > cheapRead {
		return t.DueOf(r, interval)
	}
	return t.Due(r.Now(), interval)
}

// readSettings reads pause and FEC, which InfiniBand does not have.
func (nd *ethNetdev) readSettings(r *reading.Reader) {
	now := r.Now()
	if nd.Layer != "Ethernet" || !nd.settings.due(r, shared.SlowInterval) {
		return
	}
	begun := time.Now()
	pause, made := reading.Ask(r, source.Pause, nd.dir(), "pause", nd.Name, r.Host.Ethtool.Pause)
	if !made {
		return // nor would the other be
	}
	if pause != nil {
		nd.pause.Keep(pause, now)
	}
	fec, made := reading.Ask(r, source.FEC, nd.dir(), "fec", nd.Name, r.Host.Ethtool.FEC)
	if !made {
		return
	}
	if fec != nil {
		nd.fec.Keep(fec, now)
		nd.readCode(r, now)
	}
	nd.settings.Read(now)
	nd.settings.took = time.Since(begun)
}

// counters returns the values of a netdev that are fresh enough to be served.
func (c *ethernet) counters(r *reading.Reader, device string, nd *ethNetdev) wire.NetdevCounters {
	out := wire.NetdevCounters{Device: device, Port: nd.Port, LinkLayer: nd.Layer, Netdev: nd.Name}
	now, target := r.Now(), counters.TargetOf(device, nd.PortNetdev)
	if stats := c.stats.Last(target); stats != nil && now.Sub(stats.At) <= counters.StatsRetention {
		out.Stats = stats
		if nd.Layer == "Ethernet" {
			out.PFC = c.samples.note(target, stats, now)
		}
	}
	if nd.pause.Within(now, shared.SettingsRetention) {
		out.Pause = new(*nd.pause.Value)
	}
	if nd.fec.Within(now, shared.SettingsRetention) {
		out.FEC, out.FECCode = new(*nd.fec.Value), nd.fecCode.Value
	}
	for _, a := range answers(&out) {
		if out.Stats.Has(a.what, a.label) {
			*a.value = nil
		}
	}
	return out
}
