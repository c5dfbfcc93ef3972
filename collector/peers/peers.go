// Package peers reports which peers the queue pairs of a port are connected to, and which of them were lost.
package peers

import (
	"context"
	"net/netip"
	"slices"
	"strconv"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/peers"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/qp"
)

const programs = "eBPF programs at ib_modify_qp_with_udata, ib_modify_qp, ib_destroy_qp_user, ib_uverbs_qp_event_handler"

var (
	portPeers = metric.Of("rdma_port_peers", metric.Port("rdma_port_peers",
		"Different peers (GIDs, or LIDs) of the connected queue pairs of a port, as far as known; without eBPF programs those of rdma_cm.",
		programs+"; without them RDMA netlink RES_CM_ID_GET"))
	portQueuePairs = metric.Port("rdma_port_peer_queue_pairs",
		"Connected queue pairs (RC, UC, XRC) of a port. peer: known; unknown: connected before the eBPF programs were attached, and not known from an earlier run. Queue pairs of DEVX, UD, DC and SRD are not included: the kernel does not know their peers. unknown is absent where RDMA netlink does not list queue pairs. Without eBPF programs known are those of rdma_cm, and unknown is only of rxe, siw, hfi1, cxgb4 and irdma.",
		programs+"; RDMA netlink RES_QP_GET, RES_CM_ID_GET", "peer")
	portPeerLost = observed(metric.Port("rdma_port_peer_lost_total",
		"Losses of a peer, at most 64 peers, those lost last. peer: address of its GID, or lid:N. certainty: exact (attempts to connect that failed for want of a route or neighbour, RoCE only), nearly_exact (queue pairs that the hardware put into ERR when retries were exceeded), candidate (queue pairs that ended within seconds of exceeded retries: all peers of a program that has exited).",
		programs+"; RDMA netlink RES_QP_GET, after an increase of rdma_port_transport_retries_exceeded_total",
		"peer", "certainty"))
	portPeerLostSince = observed(metric.Port("rdma_port_peer_lost_start_time_seconds",
		"Time of the first loss of a peer, of those without a pause of an hour.", "as rdma_port_peer_lost_total",
		"peer", "certainty"))
	portPeerRefused = observed(metric.Port("rdma_port_peer_unreachable_info",
		"Last attempt to connect to a peer that failed, always 1; of certainty exact. error: timed_out (no neighbour answers), no_route, host_unreachable, host_down. command: that of the process; kernel: a queue pair of the kernel, as of NVMe over RDMA.",
		"as rdma_port_peer_lost_total", "peer", "error", "command"))
	portPeerName = observed(metric.Port("rdma_port_peer_name_info",
		"Name of the address of a lost peer, always 1; absent without one. source: site (configuration file), hosts (/etc/hosts).",
		"--config.file; /etc/hosts", "peer", "name", "source"))
	portGIDInfo = metric.Port("rdma_port_gid_info",
		"Address of a GID of a port, always 1; at most 16 for each port. It names the peers of other hosts. Only with eBPF programs.",
		"ports/N/gids", "gid")
	pairsDropped = metric.Host("rdma_peer_queue_pairs_dropped_total",
		"Connected queue pairs beyond the 65,536 that are kept: missing in rdma_port_peers and rdma_port_peer_queue_pairs.",
		programs)
)

// observed is for metrics that are absent where programs observe queue pairs and nothing is wrong. Where only those of
// rdma_cm are known, losses are not seen.
func observed(d *metric.Desc) *metric.Desc {
	return metric.Of("rdma_port_peers", metric.Beside(pairsDropped.Name, metric.Asks(source.EBPF, d)))
}

// gidsOfPort limits the series of a port.
const gidsOfPort = 16

// collector keeps the addresses of each device.
type collector struct {
	table   *peers.Table
	retries *shared.Retries
	conf    *shared.SiteConfig
	hosts   reading.Kept[map[string]string] // names of addresses
	devices reading.Devices[deviceState, []qp.Address]
	// connected is used instead of devices while no programs were attached.
	connected reading.Devices[connectedDevice, []qp.PeersOfPort]
}

// deviceState belongs to the reader of its device, one at a time.
type deviceState struct {
	of        *reading.Device // that the following are of
	read      reading.Last
	addresses []qp.Address
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := &collector{table: with.Peers, retries: with.Retries, conf: with.Site}
	c.devices.Collector, c.connected.Collector = "peers", "peers"
	return &shared.Collector{
		Name: "peers",
		Help: "peers of connected queue pairs, and those that were lost: without the eBPF programs of the collector gdr only peers of rdma_cm",
		Descs: []*metric.Desc{
			portPeers, portQueuePairs, portPeerLost, portPeerLostSince, portPeerRefused, portPeerName, portGIDInfo, pairsDropped,
		},
		Read: with.Devices.Read(c.read),
		Emit: metric.EmitSection(func(n *snapshot.Node) *qp.Peers { return n.Peers }, emit),
	}
}

// read takes up the events. That nothing is observed is no issue: the collector gdr reports why.
func (c *collector) read(
	ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error),
) {
	found, err := qp.Pairs{}, error(host.ErrNotTracing)
	if h.Tracer != nil {
		found, err = h.Tracer.Pairs(ctx, c.table.Last())
	}
	if err != nil {
		if access.ReasonOf(err) == access.Malformed {
			n.Issues = append(n.Issues, reading.IssueOf(source.EBPF, err))
		}
		if c.table.Observed() { // they are paused
			done(nil)
		} else {
			c.readConnections(ctx, h, n, roster, done)
		}
		return
	}
	c.table.Take(&found)
	c.table.Retain(roster.Names)
	for _, r := range c.retries.Latest() {
		c.table.Count(r.Device, r.Port, r.Exceeded, r.At)
	}
	c.readHosts(ctx, h, n)
	c.devices.ReadAll(ctx, h, n, roster, c.readDevice, func(found [][]qp.Address) {
		c.table.Judge(h.Now())
		n.Peers = c.table.Sum()
		c.name(n.Peers.Lost)
		n.Peers.Addresses = slices.Concat(found...)
	}, done)
}

// readDevice lists the queue pairs if that is due, and reads the GIDs each SlowInterval.
func (c *collector) readDevice(r *reading.Reader, d *reading.Device, st *deviceState) ([]qp.Address, bool) {
	if c.table.Wants(r.Device, r.Now()) {
		var found []qp.QueuePair
		asked := r.From(source.Holders)
		err := asked.Try(func() (err error) { found, err = r.Host.RDMA.QueuePairs(r.Ctx, r.Device); return err })
		if err != nil {
			asked.IssueUnless(err, access.Absent, access.Unsupported, access.Invalid)
			c.table.NotListed(r.Device, r.Now())
		} else {
			c.table.List(r.Device, found, r.Now())
		}
	}
	if st.of != d || st.read.DueOf(r, shared.SlowInterval) {
		st.of, st.addresses = d, readAddresses(r, d)
		st.read.Read(r.Now())
	}
	return st.addresses, len(st.addresses) > 0
}

// readAddresses reads the GIDs in use. The kernel answers from its own table.
func readAddresses(reader *reading.Reader, d *reading.Device) (out []qp.Address) {
	r := reader.From(source.PortTables)
	for i := range d.Ports {
		port := d.Ports[i].Number
		dir := sysfs.PortDir(d.Name, port) + "/gids"
		names, err := reader.Host.Files.List(dir)
		if err != nil {
			continue
		}
		slices.SortFunc(names, func(a, b string) int {
			x, _ := strconv.Atoi(a)
			y, _ := strconv.Atoi(b)
			return x - y
		})
		var gids []string
		for _, name := range names {
			text, state := r.TableEntry(dir, name)
			gid := qp.ShortAddress(text)
			if state == reading.EntryUsed && isAddress(gid) && !slices.Contains(gids, gid) && len(gids) < gidsOfPort {
				gids = append(gids, gid)
				out = append(out, qp.Address{Device: d.Name, Port: port, GID: gid})
			}
		}
	}
	return out
}

// isAddress reports whether an entry of a GID table is in use: others are zero, or have a zero interface ID.
func isAddress(gid string) bool {
	a, err := netip.ParseAddr(gid)
	return err == nil && !a.IsUnspecified() && a != netip.MustParseAddr("fe80::")
}

func emit(p *qp.Peers, s metric.Sink) {
	if !p.ByCM {
		s.Emit(pairsDropped, float64(p.Dropped))
	}
	for i := range p.Ports {
		one := &p.Ports[i]
		port := strconv.Itoa(one.Port)
		s.Emit(portPeers, float64(one.Peers), one.Device, port)
		s.Emit(portQueuePairs, float64(one.Known), one.Device, port, "known")
		if one.Connected != nil {
			s.Emit(portQueuePairs, float64(*one.Connected-one.Known), one.Device, port, "unknown")
		}
	}
	for i := range p.Lost {
		l := &p.Lost[i]
		port, peer := strconv.Itoa(l.Port), qp.ShortAddress(l.Peer)
		s.Emit(portPeerLost, float64(l.Pairs), l.Device, port, peer, l.Certainty)
		s.Emit(portPeerLostSince, float64(l.First.UnixMilli())/1000, l.Device, port, peer, l.Certainty)
		if l.Name != "" && (i == 0 || !samePeer(l, &p.Lost[i-1])) { // else with another certainty
			s.Emit(portPeerName, 1, l.Device, port, peer, l.Name, l.NamedBy)
		}
		if l.Certainty == qp.LostExactly {
			s.Emit(portPeerRefused, 1, l.Device, port, peer, qp.Unreachable[l.Errno], l.Command)
		}
	}
	for _, a := range p.Addresses {
		s.Emit(portGIDInfo, 1, a.Device, strconv.Itoa(a.Port), a.GID)
	}
}
