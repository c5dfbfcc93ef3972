package infiniband

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

const baselineHelp = " Mean of the first 4h of a transceiver, counted from 1h after link-up; fixed then, and begun anew with another serial number, after the transceiver was unplugged, and by accept. Absent while it forms, and without a state directory after each restart."

var (
	berBaseline = metric.Of("rdma_port_info", metric.Beside("rdma_port_info", metric.Port("rdma_port_fec_ber_baseline",
		"Errors before FEC per bit that the link had when its transceiver was new here; without an error the rate of one error in 4h. end: own, what the port receives; neighbour, what it sends."+baselineHelp,
		"docs/ber.md", "netdev", "end")))
	berBaselineStart = metric.Of("rdma_port_info", metric.Beside("rdma_port_info",
		metric.Port("rdma_port_fec_ber_baseline_start_timestamp_seconds",
			"Time at which rdma_port_fec_ber_baseline began to form, Unix time. Absent where errors before FEC are not counted, and until 1h after link-up.",
			"docs/ber.md", "netdev", "end")))
	receiveBaseline = metric.BesideAge(metric.Optics("rdma_transceiver_receive_power_baseline_dbm", "Optical power that a lane received when its transceiver was new here."+baselineHelp, "docs/ber.md", "lane"))
	biasBaseline    = metric.BesideAge(metric.Optics("rdma_transceiver_bias_baseline_amperes", "Laser bias current of a lane when its transceiver was new here."+baselineHelp, "docs/ber.md", "lane"))

	baselineDescs = []*metric.Desc{berBaseline, berBaselineStart, receiveBaseline, biasBaseline}
)

// What is measured, in the ID of a baseline.
const (
	ofEnd     = "#"
	ofReceive = "#receive/"
	ofBias    = "#bias/"
)

// baselines forms the baselines in memory, from readings a minute apart.
type baselines struct {
	mu    sync.Mutex
	now   time.Time // of the last round
	read  reading.Last
	links map[string]*settling
	last  map[string]float64 // counters at the last readings, by ID

	measured []baselineOf // by the last readings
}

// settling is since when a link is ACTIVE without interruption.
type settling struct {
	since time.Time // zero: it is not
	downs uint64    // times that it went down
}

// baselineOf is a baseline that a port has, with its labels.
type baselineOf struct {
	id     string
	desc   *metric.Desc
	labels []string
	link   string // ID of the link
	serial string
	value  float64
	rate   float64 // bits per second; 0: value is a reading, not a counter
}

func (b *baselines) setNow(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = now
}

// deriveBaselines adds the readings of a complete node once a minute, and emits the baselines of what was read last.
func (c *infiniBand) deriveBaselines(n *snapshot.Node, s metric.Sink) {
	if n.InfiniBand == nil {
		return
	}
	b := &c.baselines
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.read.Due(b.now, shared.SlowInterval) {
		b.learn(c.memory, n)
	}
	for i := range b.measured {
		o := &b.measured[i]
		r, known := c.memory.Baseline(o.id)
		if !known {
			continue
		}
		if o.desc == berBaseline {
			s.Emit(berBaselineStart, float64(r.Since.Unix()), o.labels...)
		}
		switch {
		case !r.Formed() || r.Serial != "" && o.serial != "" && r.Serial != o.serial:
		case o.desc == berBaseline:
			s.Emit(berBaseline, r.Ratio(), o.labels...)
		default:
			s.Emit(o.desc, r.Mean(), o.labels...)
		}
	}
}

// learn measures, and adds a reading of each link that is settled.
func (b *baselines) learn(m *expect.Memory, n *snapshot.Node) {
	took := b.now.Sub(b.read.Time())
	counted := b.read.Within(b.now, 3*shared.SlowInterval) // a longer gap is unknown time
	b.read.Read(b.now)
	b.settle(n)
	b.measured = nil
	for _, of := range partsOf(n) {
		b.measured = append(b.measured, of.baselines()...)
		for _, c := range of.cages {
			if c.State == wire.CageEmpty {
				m.ForgetBaselines(of.link(c.Netdev))
			}
		}
	}
	last := map[string]float64{}
	for i := range b.measured {
		o := &b.measured[i]
		before, again := b.last[o.id]
		last[o.id] = o.value
		if l := b.links[portOfLink(o.link)]; !counted || !again || l == nil || l.since.IsZero() ||
			b.now.Sub(l.since) < expect.BaselineSettle {
			continue
		}
		r := expect.Reading{Serial: o.serial, Sum: o.value, Weight: 1, Took: took}
		if o.rate > 0 {
			if o.value < before {
				continue // the counter was reset
			}
			r.Sum, r.Weight = o.value-before, o.rate*took.Seconds()
		}
		known, _ := m.Baseline(o.id)
		known.Device = o.labels[0]
		known.Port, _ = strconv.Atoi(o.labels[1])
		m.SetBaseline(o.id, known.Add(b.now, r))
	}
	b.last = last
}

// settle notes since when each link is ACTIVE. A link that went down between two readings begins again.
func (b *baselines) settle(n *snapshot.Node) {
	links := map[string]*settling{}
	for d, p := range snapshot.PortsOf(n.InfiniBand.Devices) {
		id := lastingID(d, p.Number, "")
		if id == "" || !sysfs.IsActive(p) {
			continue
		}
		l := &settling{b.now, linkDowns(p)}
		if before := b.links[id]; before != nil && before.downs == l.downs {
			l.since = before.since
		}
		links[id] = l
	}
	b.links = links
}

// linkDowns returns the number of times that the link of a port went down, by any of its counters.
func linkDowns(p *snapshot.Port) (sum uint64) {
	for _, c := range p.Counters {
		if c.Name == "link_downed" {
			sum += c.Value
		}
	}
	for i := range p.Netdev {
		sum += counters.ValueOf(p.Netdev[i].CarrierDowns)
	}
	return sum
}

// portOfLink returns the ID of the port of a link that may be the member of a bond.
func portOfLink(id string) string {
	if parts := strings.Split(id, "/"); len(parts) > 3 {
		return strings.Join(parts[:3], "/")
	}
	return id
}

// portParts are a port and the parts of other sections that belong to it.
type portParts struct {
	device  *snapshot.Device
	port    *snapshot.Port
	netdevs []*wire.NetdevCounters
	cages   []*wire.Cage
	far     []*snapshot.PortSubnet
}

// partsOf returns the parts of each port with a lasting identity.
func partsOf(n *snapshot.Node) (out []portParts) {
	for d, p := range snapshot.PortsOf(n.InfiniBand.Devices) {
		if lastingID(d, p.Number, "") == "" {
			continue
		}
		of := portParts{device: d, port: p}
		if n.Ethernet != nil {
			of.netdevs = those(n.Ethernet.Netdevs,
				func(nd *wire.NetdevCounters) bool { return nd.Device == d.Name && nd.Port == p.Number })
		}
		if n.Optics != nil {
			of.cages = those(n.Optics.Cages, func(c *wire.Cage) bool { return c.Device == d.Name && c.Port == p.Number })
		}
		if n.Neighbours != nil {
			of.far = those(n.Neighbours.Subnets,
				func(f *snapshot.PortSubnet) bool { return f.Device == d.Name && f.Port == p.Number })
		}
		out = append(out, of)
	}
	return out
}

// those returns the elements that match.
func those[T any](all []T, match func(*T) bool) (out []*T) {
	for i := range all {
		if match(&all[i]) {
			out = append(out, &all[i])
		}
	}
	return out
}

// link returns the ID of the link of a netdev; empty netdev: of the port.
func (of *portParts) link(netdev string) string { return lastingID(of.device, of.port.Number, netdev) }

// serial returns the serial number of the transceiver of a netdev; empty: unknown.
func (of *portParts) serial(netdev string) string {
	for _, c := range of.cages {
		if c.Netdev == netdev && c.Module != nil {
			return c.Module.SerialNumber
		}
	}
	return ""
}

// measured returns the present value of a link of the port, for a baseline. kind and last, the last label, are parts of
// the ID.
func (of *portParts) measured(desc *metric.Desc, netdev, kind, last string, value, rate float64) baselineOf {
	name := of.link(netdev)
	return baselineOf{
		id: name + kind + last, desc: desc, link: name, serial: of.serial(netdev), value: value, rate: rate,
		labels: []string{of.device.Name, strconv.Itoa(of.port.Number), netdev, last},
	}
}

// baselines returns the present values of a port for which baselines are kept.
func (of *portParts) baselines() []baselineOf {
	if !sysfs.IsActive(of.port) {
		return nil
	}
	return slices.Concat(of.ownErrors(), of.farErrors(), of.lanes())
}

// ownErrors returns the errors before FEC of a port: corrected bits, else corrected symbols, as in
// port:rdma_link_raw_errors:rate10m.
func (of *portParts) ownErrors() (out []baselineOf) {
	p := of.port
	if p.Rate == nil {
		return nil
	}
	add := func(netdev string, v float64) {
		out = append(out, of.measured(berBaseline, netdev, ofEnd, "own", v, *p.Rate))
	}
	var symbols []func()
	for _, nd := range of.netdevs {
		if bits, ok := correctedBits(nd); ok {
			add(nd.Netdev, bits)
		} else if nd.FEC != nil && len(nd.FEC.Histogram) > 0 {
			total, _ := counters.CorrectedSymbols(nd.FEC.Histogram)
			symbols = append(symbols, func() { add(nd.Netdev, float64(total)) })
		}
	}
	if v, ok := correctedByPort(p.FEC); ok {
		symbols = append(symbols, func() { add("", v) })
	}
	if len(out) == 0 {
		for _, s := range symbols {
			s()
		}
	}
	return out
}

func correctedBits(nd *wire.NetdevCounters) (float64, bool) {
	if nd.Stats != nil {
		for i := range nd.Stats.Counts {
			if c := &nd.Stats.Counts[i]; c.What == wire.FECCorrectedBits {
				return c.Value, true
			}
		}
	}
	if nd.FEC != nil && nd.FEC.CorrectedBits != nil {
		return float64(*nd.FEC.CorrectedBits), true
	}
	return 0, false
}

// correctedByPort returns the counter of corrected symbols of an InfiniBand port that counts.
func correctedByPort(f *snapshot.IBFEC) (float64, bool) {
	if f == nil {
		return 0, false
	}
	for _, c := range f.Counts {
		if c.Name == "corrected_symbols" && c.Lane < 0 && !mad.FECCount(c).AtEnd() {
			return float64(c.Value), true
		}
	}
	return 0, false
}

// farErrors returns the errors before FEC at the far end of an InfiniBand link. Its transceiver is not readable.
func (of *portParts) farErrors() (out []baselineOf) {
	for _, far := range of.far {
		if v, ok := correctedByPort(far.FEC); ok && of.port.Rate != nil {
			out = append(out, of.measured(berBaseline, "", ofEnd, "neighbour", v, *of.port.Rate))
		}
	}
	return out
}

// darkLane is the power in dBm at which a lane receives nothing, as in RDMATransceiverOutOfRange.
const darkLane = -30

// lanes returns the readings of the lanes in use of the transceivers of a port.
func (of *portParts) lanes() (out []baselineOf) {
	for _, c := range of.cages {
		if c.Module == nil || c.First != "" {
			continue
		}
		for i := range c.Module.Lanes {
			l := &c.Module.Lanes[i]
			if l.Active != nil && !*l.Active {
				continue
			}
			number := strconv.Itoa(l.Number)
			if l.RxPower != nil && *l.RxPower > darkLane {
				out = append(out, of.measured(receiveBaseline, c.Netdev, ofReceive, number, *l.RxPower, 0))
			}
			if l.Bias != nil && *l.Bias > 0 {
				out = append(out, of.measured(biasBaseline, c.Netdev, ofBias, number, *l.Bias, 0))
			}
		}
	}
	return out
}
