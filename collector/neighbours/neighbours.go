// Package neighbours finds what is at the far end of each link: from LLDP, the subnet and the configuration.
package neighbours

import (
	"context"
	"slices"
	"strconv"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// ofCabling selects the ports with cabling in the configuration.
const ofCabling = "rdma_port_cabling_info"

var (
	neighbourInfo = metric.Asks(source.LLDP, metric.Port("rdma_port_neighbour_info",
		"Neighbour at the far end of a port's link, or of the link of a bond member, always 1. system: announced system name, else chassis ID. port_id: port ID, or the port description where the ID is an address or a number. source: lldp (received by systemd-networkd or the exporter), subnet (answers of the link's ends, with --collector.neighbour.subnet), cabling (--config.file, where no other source has data). Absent where no source has data: NICs whose firmware consumes LLDP hide the switch.",
		"/run/systemd/netif: io.systemd.Network (Varlink, GetLLDPNeighbors), lldp/IFINDEX; AF_PACKET, ETH_P_LLDP (IEEE 802.1AB); NodeInfo, NodeDescription (IBA 14.2.5); --config.file",
		"netdev",
		"system",
		"port_id",
		"source",
	))
	neighboursAnnounced = metric.Of(
		metric.EthernetPorts,
		metric.Asks(source.LLDP, metric.Port(
			"rdma_port_lldp_neighbours",
			"LLDP neighbours on a port's link. More than one: a hub, a virtual switch, or a NIC that announces itself beside the switch; rdma_port_neighbour_info then has the most recent one that forwards packets. Absent without LLDP neighbours.",
			"as rdma_port_neighbour_info",
			"netdev",
		)),
	)
	cablingInfo = metric.Of(ofCabling, metric.Port(
		ofCabling,
		"Far end of the cable of a port according to --config.file, always 1. Absent where --config.file has no cabling for the port.",
		"--config.file", "netdev", "system", "port_id"))
	portMiscabled = metric.Of(ofCabling, metric.Asks(source.LLDP, metric.Port("rdma_port_miscabled",
		"Whether the neighbour of a port (LLDP or subnet) differs from the cabling in --config.file. Absent where either is unknown.",
		"as rdma_port_neighbour_info; --config.file", "netdev")))
)

// The sources of neighbours, values of the label source.
const (
	sourceLLDP    = "lldp"
	sourceSubnet  = "subnet"
	sourceCabling = "cabling"
)

// neighbours finds the far end of each link.
type neighbours struct {
	listen    bool // receive LLDP frames
	askSubnet bool // query both ends of InfiniBand links
	conf      *shared.SiteConfig
	common    *shared.CommonLinks
	devices   reading.Devices[neighbourDevice, neighbourReading]
	lldp      *lldpNeighbours
}

// neighbourDevice belongs to the reader of its device, one at a time.
type neighbourDevice struct {
	of     *reading.Device // that the following are of
	last   neighbourReading
	issues []snapshot.Issue
}

// neighbourReading is a device and the data of its links. Immutable.
type neighbourReading struct {
	device snapshot.Device
	links  map[string]etherLink // by netdev, of Ethernet ports
	ends   map[int]subnetAnswer // by port, of InfiniBand ports
}

// etherLink is the data of a netdev.
type etherLink struct {
	index   uint64   // of the interface
	address string   // of the interface
	saved   []farEnd // received by systemd-networkd
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := &neighbours{
		listen: with.ListenLLDP, askSubnet: with.AskSubnet, conf: with.Site, common: with.Links,
		lldp: newLLDPNeighbours(),
	}
	c.devices.Collector, c.devices.Quarantines = "neighbour", true
	return &shared.Collector{
		Name:  "neighbour",
		Help:  "switch and port at the far end of each link: from systemd-networkd, LLDP (--collector.neighbour.listen), the subnet (--collector.neighbour.subnet) and --config.file",
		Descs: slices.Concat([]*metric.Desc{neighbourInfo, neighboursAnnounced, cablingInfo, portMiscabled}, subnetDescs),
		Run:   c.run,
		Read:  with.Devices.Read(c.read),
		Emit:  metric.EmitSection(func(n *snapshot.Node) *snapshot.Neighbours { return n.Neighbours }, emitNeighbours),
	}
}

// run receives LLDP frames until ctx ends, on the netdevs found by the readings.
func (c *neighbours) run(ctx context.Context, h *host.Host) error {
	if !c.listen || h.LLDP == nil {
		return nil
	}
	return c.lldp.run(ctx, h)
}

func (c *neighbours) read(
	ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error),
) {
	c.lldp.drop(roster.Names)
	c.common.Drop(roster.Names)
	c.devices.ReadAll(ctx, h, n, roster, c.readDevice, func(readings []neighbourReading) {
		for _, r := range readings {
			if c.listen {
				c.lldp.watch(r)
			}
		}
		if err := c.lldp.failure(); err != nil {
			n.Issues = append(n.Issues, reading.IssueOf(source.LLDP, err))
		}
		if c.listen && h.LLDP != nil && c.lldp.tooEarly(h.Now()) {
			n.Pending = []string{source.LLDP.Name()}
		}
		n.Neighbours = c.section(readings, h.Now())
	}, done)
}

// readDevice reads one device whenever its identity was read; failures are repeated until then. Virtual functions and
// sub-functions have no link of their own, and functions that manage NVLink switches none to a switch of the network.
func (c *neighbours) readDevice(
	r *reading.Reader, d *reading.Device, st *neighbourDevice,
) (out neighbourReading, ok bool) {
	if st.of == d {
		r.Issues = st.issues
		return st.last, st.last.links != nil
	}
	if st.of = d; d.ManagesNVLink {
		st.last, st.issues = neighbourReading{}, slices.Clone(r.Issues)
		return st.last, false
	}
	id := shared.PortsOf(d, []snapshot.FunctionType{snapshot.Physical, snapshot.Software}, "Ethernet", "InfiniBand")
	out = neighbourReading{device: id, links: map[string]etherLink{}, ends: map[int]subnetAnswer{}}
	for i := range id.Ports {
		if id.Ports[i].LinkLayer == "InfiniBand" {
			out.ends[id.Ports[i].Number] = c.subnetEnds(r, d.MaxRate, id.Ports[i].Number, st.last.ends[id.Ports[i].Number])
		}
		for _, nd := range id.Ports[i].Netdev {
			if id.Ports[i].LinkLayer == "Ethernet" {
				out.links[nd.Name] = readEtherLink(r, nd.Name)
			}
		}
	}
	st.last, st.issues = out, slices.Clone(r.Issues)
	return out, true
}

func readEtherLink(r *reading.Reader, netdev string) (out etherLink) {
	files := r.From(source.Netdev)
	index := files.Count(sysfs.NetDir + netdev + "/ifindex")
	out.address = files.Optional(sysfs.NetDir + netdev + "/address")
	if index != nil {
		out.index = *index
		out.saved = savedNeighbours(r, netdev, *index)
	}
	return out
}

func emitNeighbours(section *snapshot.Neighbours, s metric.Sink) {
	for i := range section.Ports {
		p := &section.Ports[i]
		at := [...]string{p.Device, strconv.Itoa(p.Port), p.Netdev}
		if p.Source != "" {
			s.Emit(neighbourInfo, 1, slices.Concat(at[:], []string{p.End.System, p.End.Port, p.Source})...)
		}
		metric.EmitNumber(s, neighboursAnnounced, p.Announced, at[:]...)
		if c := p.Cabled; c != nil {
			s.Emit(cablingInfo, 1, slices.Concat(at[:], []string{c.System, c.Port})...)
		}
		metric.EmitBool(s, portMiscabled, p.Miscabled, at[:]...)
	}
	emitSubnets(s, section.Subnets)
}
