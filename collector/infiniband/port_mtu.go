package infiniband

import (
	"strconv"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/snapshot"
)

var (
	portMTU = metric.Of(metric.EthernetPorts, metric.Asks(source.Netdev, metric.Port("rdma_port_mtu_bytes",
		"MTU of the port's netdev.", "/sys/class/net/NETDEV/mtu", "netdev")))
	// portActiveMTU asks the netdev; of InfiniBand ports only management datagrams report it.
	portActiveMTU = metric.Of(
		metric.EthernetPorts,
		metric.Asks(source.Netdev, metric.Port(
			"rdma_port_active_mtu_bytes",
			"MTU of RDMA in use: 256, 512, 1024, 2048 or 4096. RoCE: the largest payload that fits into the netdev's MTU; absent where 256 does not fit, and on Ethernet ports without RoCE. InfiniBand: read each minute where umad can be opened (--collector.infiniband.mad); absent elsewhere, and while the link is down.",
			"/sys/class/net/NETDEV/mtu, iboe_get_mtu of include/rdma/ib_addr.h; PortInfo, IBA 14.2.5.6, NeighborMTU",
		)),
	)
)

// readMTUs reads the MTU of each netdev. The kernel takes no lock for it.
func readMTUs(r *reading.Reader, netdevs []snapshot.Netdev) {
	files := r.From(source.Netdev)
	for i := range netdevs {
		dir := sysfs.NetDir + netdevs[i].Name
		netdevs[i].MTU = nil
		if n, err := strconv.ParseUint(files.Optional(dir+"/mtu"), 10, 64); err == nil {
			netdevs[i].MTU = within(files, dir, "mtu", &n, mtus)
		}
	}
}

// emitMTU emits the MTUs. The members of a bond have its MTU.
func emitMTU(s metric.Sink, d *snapshot.Device, p *snapshot.Port, port string) {
	if p.Settings != nil {
		metric.EmitNumber(s, portActiveMTU, p.Settings.MTU, d.Name, port)
	}
	for _, nd := range p.Netdev {
		metric.EmitNumber(s, portMTU, nd.MTU, d.Name, port, nd.Name)
	}
	if len(p.Netdev) == 0 || p.Netdev[0].MTU == nil || !sysfs.IsRoCE(d, p) {
		return
	}
	if mtu, ok := setup.RoCEMTU(*p.Netdev[0].MTU); ok {
		s.Emit(portActiveMTU, float64(mtu), d.Name, port)
	}
}
