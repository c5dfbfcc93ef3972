package infiniband

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

const expectedSources = "pin (--config.file), link_modes (advertised by both ends of an Ethernet link), link_partner (enabled at both ends of an InfiniBand link), siblings (same board and role), high_water_mark (of the port itself)"

var (
	portExpectedRate = metric.Of(
		"rdma_port_rate_bytes_per_second",
		metric.Beside("rdma_bond_member_expected_rate_bytes_per_second",
			metric.Port("rdma_port_expected_rate_bytes_per_second",
				"Expected data rate of the link. Absent where there is no expectation.", "see rdma_port_expected_rate_info")),
	)
	portExpectedRateInfo = metric.Port("rdma_port_expected_rate_info",
		"Source of the expected rate, always 1. source: "+expectedSources+
			"; capability where only that of the device is known (not evaluated).",
		"--config.file; ethtool netlink LINKMODES_GET ours and peer; the other ports of the host; the state directory",
		"source")
	portExpectedWidth = metric.Of("rdma_port_width_lanes", metric.Beside("rdma_bond_member_expected_rate_bytes_per_second",
		metric.Port("rdma_port_expected_width_lanes", "Expected lanes of the link. Absent where there is no expectation.",
			"see rdma_port_expected_width_info")))
	portExpectedWidthInfo = metric.Port("rdma_port_expected_width_info",
		"Source of the expected width, always 1. source: "+expectedSources+".", "as rdma_port_expected_rate_info",
		"source")
	portCapableRate = metric.Port("rdma_port_capable_rate_bytes_per_second",
		"Data rate of the fastest link mode that the device supports, regardless of switch and cable. Not evaluated.",
		"ethtool netlink LINKMODES_GET ours, supported")
	memberUp = metric.Beside("rdma_port_info", metric.Asks(source.Netdev, metric.Port("rdma_bond_member_up",
		"Whether the bonding driver reports a link on the member.", "/sys/class/net/NETDEV/bonding_slave/mii_status",
		"netdev")))
	memberRate = metric.Of(
		"rdma_bond_member_up",
		metric.Asks(source.LinkModes, metric.Port("rdma_bond_member_rate_bytes_per_second",
			"Data rate of the link of a bond member. Absent while the link is down.", "ethtool netlink LINKMODES_GET speed",
			"netdev")),
	)
	memberExpectedRate = metric.Of("rdma_bond_member_up", metric.Asks(source.LinkModes,
		metric.Port("rdma_bond_member_expected_rate_bytes_per_second",
			"Expected data rate of the link of a bond member. Absent where there is no expectation.",
			"see rdma_bond_member_expected_rate_info", "netdev")))
	memberExpectedRateInfo = metric.Port("rdma_bond_member_expected_rate_info",
		"Source of the expected rate of a bond member, always 1. source: as in rdma_port_expected_rate_info.",
		"as rdma_port_expected_rate_info", "netdev", "source")

	expectedDescs = []*metric.Desc{
		portExpectedRate, portExpectedRateInfo, portExpectedWidth, portExpectedWidthInfo, portCapableRate,
		memberUp, memberRate, memberExpectedRate, memberExpectedRateInfo,
	}
)

// modes returns the link modes of a netdev.
func modes(m *host.LinkModes) (out snapshot.Modes) {
	rate := func(speed uint64) *float64 {
		if speed == 0 {
			return nil
		}
		return new(float64(speed) * 1e6)
	}
	speed, _ := m.Supported.Fastest()
	out.CapableRate = rate(speed)
	if m.Autoneg == nil || *m.Autoneg != 1 {
		return out
	}
	speed, lanes := m.Advertised.And(m.Peer).Fastest()
	out.CommonRate = rate(speed)
	if lanes != 0 {
		out.CommonLanes = &lanes
	}
	return out
}

// withLinks sets the links of a port's netdevs, and for bond members whether they are up.
func (st *portState) withLinks(r *reading.Reader, netdevs []snapshot.Netdev) {
	for i := range netdevs {
		nd := &netdevs[i]
		if m, ok := st.ethtool[nd.Name]; ok {
			nd.Modes, nd.Rate, nd.Lanes = modes(&m), nil, m.Lanes
			if m.Speed != nil {
				nd.Rate = new(float64(*m.Speed) * 1e6)
			}
		}
		if nd.Member {
			nd.Up = nil
			if s := r.From(source.Netdev).Optional(sysfs.NetDir + nd.Name + "/bonding_slave/mii_status"); s != "" {
				nd.Up = new(s == "up")
			}
		}
	}
}

// lastingID returns the identifier of a link in the memory; empty for links of devices that are created and removed
// with jobs.
func lastingID(d *snapshot.Device, port int, netdev string) string {
	if d.FunctionType != snapshot.Physical {
		return ""
	}
	return expect.LinkID(d.NodeGUID, d.PCIAddress, port, netdev)
}

// isPart reports whether a device is part of another one on this host and has its links. A virtual function in a guest
// without its physical function is a device like others.
func isPart(d *snapshot.Device) bool {
	return d.FunctionType == snapshot.SubFunction || d.PhysicalFunction != ""
}

// remember sets for each port whether it was ACTIVE and what its link is expected to have, and stores the present
// values. It reports whether all inputs were the same as in the previous round.
func (c *infiniBand) remember(now time.Time, devices []snapshot.Device) (same bool) {
	c.common.Of(devices)
	for d, p := range snapshot.PortsOf(devices) {
		c.history(d, p)
	}
	conf := c.conf.Current()
	version := c.memory.Version() // anything deleted from here on is evaluated in the next round
	if !c.roles.waiting(now) && c.evaluated.reuse(devices, conf, version, c.machine.version) {
		return true
	}
	c.evaluate(now, conf, devices)
	c.dropTransient(devices)
	c.evaluated.store(devices, conf, version, c.machine.version)
	return false
}

// evaluate sets roles and expectations of each port from the configuration and the evidence.
func (c *infiniBand) evaluate(now time.Time, conf *site.Config, devices []snapshot.Device) {
	perCard := portsPerCard(devices)
	subjects := make([][]site.Subject, len(devices))
	for i := range devices {
		subjects[i] = c.conf.Subjects(&devices[i])
	}
	c.assignRoles(now, devices, func(i, j int) (string, bool) {
		return conf.Settings(subjects[i][1+j]).Role, conf.Ignored(subjects[i][0]) || conf.Ignored(subjects[i][1+j])
	})
	var links []expect.NamedLink
	var targets []*snapshot.Expected
	for i := range devices {
		d := &devices[i]
		for j := range d.Ports {
			p := &d.Ports[j]
			pin := conf.Settings(subjects[i][1+j])
			p.PinnedActive, p.PinnedSM = pin.Active, pin.SubnetManager
			kind := expect.Kind{Board: boardOf(d), LinkLayer: p.LinkLayer, PortsPerCard: perCard[cardOf(d)], Role: p.Role}
			if isPart(d) || conf.Ignored(subjects[i][0]) || conf.Ignored(subjects[i][1+j]) {
				kind.Board = "" // neither is a reference for others
			}
			p.Idle = ""
			if pin.Idle {
				p.Idle = snapshot.IdlePinned
			}
			for _, l := range LinksOf(d, p, kind, pin) {
				l.Idle = l.Netdev == "" && !l.Active && !pin.Active && !isPart(d) && p.Role != string(pci.Other)
				links, targets = append(links, l.NamedLink), append(targets, l.expected)
			}
		}
	}
	c.memory.Observe(now, links)
	c.expect(links, targets)
	for d, p := range snapshot.PortsOf(devices) {
		if id := lastingID(d, p.Number, ""); id != "" {
			p.WasActive, p.EarlierLayer = c.memory.WasActive(id), c.memory.EarlierLayer(id)
			if p.Idle == "" && c.memory.IsIdle(id) {
				p.Idle = snapshot.IdleAccepted
			}
		}
		p.PeersActive = p.PeersActive && p.Idle == ""
	}
}

// dropTransient drops the history of devices without a lasting identity, once they are gone.
func (c *infiniBand) dropTransient(devices []snapshot.Device) {
	for key, ports := range c.ports {
		gone := !slices.ContainsFunc(devices, func(d snapshot.Device) bool { return keyOf(&d) == key })
		maps.DeleteFunc(ports, func(_ int, h *portHistory) bool { return gone && h.transient })
		if len(ports) == 0 {
			delete(c.ports, key)
		}
	}
}

// linkOf is a link, and the destination of its expectation.
type linkOf struct {
	expect.NamedLink
	expected *snapshot.Expected
}

// LinksOf returns the links of a port: its own link, and the links of bond members, which are evaluated separately.
func LinksOf(d *snapshot.Device, p *snapshot.Port, kind expect.Kind, pin site.Settings) (out []linkOf) {
	named := func(netdev, wire string) linkOf {
		l := linkOf{expect.NamedLink{Device: d.Name, Port: p.Number, Netdev: netdev}, nil}
		l.ID, l.Kind, l.Wire, l.PinnedRate, l.PinnedLanes = lastingID(d, p.Number, netdev), kind, wire, pin.Rate, pin.Lanes
		return l
	}
	own := named("", p.Wire)
	own.Active, own.Rate, own.Lanes, own.expected = sysfs.IsActive(p), p.Rate, p.Lanes, &p.Expected
	partner := p.CommonRate != nil
	if partner {
		own.CommonRate, own.CommonLanes, own.CommonSource = p.CommonRate, p.CommonLanes, expect.LinkPartner
	}
	bonded := false
	for i := range p.Netdev {
		nd := &p.Netdev[i]
		if !nd.Member {
			own.Wire = cmp.Or(nd.Wire, own.Wire)
			if !partner {
				own.CommonRate, own.CommonLanes = nd.CommonRate, nd.CommonLanes
			}
			continue
		}
		bonded = true
		l := named(nd.Name, nd.Wire)
		l.Active, l.Rate, l.Lanes, l.expected = nd.Rate != nil && nd.Up != nil && *nd.Up, nd.Rate, nd.Lanes, &nd.Expected
		l.CommonRate, l.CommonLanes = nd.CommonRate, nd.CommonLanes
		out = append(out, l)
	}
	if bonded { // its rate is that of one member or of all, depending on mode and driver
		own.Link = expect.Link{ID: own.ID, Active: own.Active}
	}
	return append(out, own)
}

// expect sets the expectation of each link.
func (c *infiniBand) expect(links []expect.NamedLink, to []*snapshot.Expected) {
	plain := make([]expect.Link, len(links))
	for i := range links {
		plain[i] = links[i].Link
	}
	for i, e := range expect.Of(plain, c.memory.Mark) {
		if e.RateSource != "" {
			to[i].ExpectedRate, to[i].ExpectedRateSource = &e.Rate, string(e.RateSource)
		}
		if e.LanesSource != "" {
			to[i].ExpectedLanes, to[i].ExpectedLanesSource = &e.Lanes, string(e.LanesSource)
		}
	}
}

// portsPerCard counts the ports of each card.
func portsPerCard(devices []snapshot.Device) map[string]int {
	out := map[string]int{}
	for i := range devices {
		if !isPart(&devices[i]) {
			out[cardOf(&devices[i])] += len(devices[i].Ports)
		}
	}
	return out
}

// boardOf returns the model of a device; empty where unknown.
func boardOf(d *snapshot.Device) string { return cmp.Or(d.BoardID, d.HCAType) }

// cardOf returns the card of a device: its PCI address without the function.
func cardOf(d *snapshot.Device) string {
	if d.PCIAddress == "" {
		return d.Name
	}
	return strings.TrimSuffix(d.PCIAddress, path.Ext(d.PCIAddress))
}

func emitExpected(s metric.Sink, d *snapshot.Device, p *snapshot.Port, port string) {
	if isPart(d) {
		return
	}
	from := p.ExpectedRateSource
	for _, nd := range p.Netdev {
		if !nd.Member && nd.CapableRate != nil {
			s.Emit(portCapableRate, *nd.CapableRate/8, d.Name, port)
			from = cmp.Or(from, "capability")
		}
		emitMember(s, d, &nd, port)
	}
	metric.EmitRate(s, portExpectedRate, p.ExpectedRate, d.Name, port)
	metric.EmitIf(s, from != "", portExpectedRateInfo, d.Name, port, from)
	if p.ExpectedLanes != nil {
		s.Emit(portExpectedWidth, float64(*p.ExpectedLanes), d.Name, port)
		s.Emit(portExpectedWidthInfo, 1, d.Name, port, p.ExpectedLanesSource)
	}
}

func emitMember(s metric.Sink, d *snapshot.Device, nd *snapshot.Netdev, port string) {
	if !nd.Member {
		return
	}
	metric.EmitBool(s, memberUp, nd.Up, d.Name, port, nd.Name)
	metric.EmitRate(s, memberRate, nd.Rate, d.Name, port, nd.Name)
	if nd.ExpectedRate != nil {
		s.Emit(memberExpectedRate, *nd.ExpectedRate/8, d.Name, port, nd.Name)
		s.Emit(memberExpectedRateInfo, 1, d.Name, port, nd.Name, nd.ExpectedRateSource)
	}
}
