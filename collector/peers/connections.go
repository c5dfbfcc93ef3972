package peers

import (
	"context"
	"slices"

	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/peers"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/qp"
)

// connectedDevice belongs to the reader of its device, one at a time.
type connectedDevice struct {
	of    *reading.Device // that the following are of
	read  reading.Last
	ports []qp.PeersOfPort
}

// readConnections reads what is known without eBPF programs.
func (c *collector) readConnections(
	ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error),
) {
	c.connected.ReadAll(ctx, h, n, roster, readConnected, func(found [][]qp.PeersOfPort) {
		if ports := slices.Concat(found...); len(ports) > 0 {
			n.Peers = &qp.Peers{Ports: ports, ByCM: true}
		}
	}, done)
}

// readConnected lists the IDs of rdma_cm each SlowInterval, and the queue pairs where that sends no firmware command.
func readConnected(r *reading.Reader, d *reading.Device, st *connectedDevice) ([]qp.PeersOfPort, bool) {
	if st.of == d && !st.read.DueOf(r, shared.SlowInterval) {
		return st.ports, true
	}
	st.of, st.ports = d, nil
	st.read.Read(r.Now())
	asked := r.From(source.Holders)
	var ids []qp.Connection
	var pairs []qp.QueuePair
	err := asked.Try(func() (err error) { ids, err = r.Host.RDMA.Connections(r.Ctx, r.Device); return err })
	if err == nil && shared.ListsQPs(d.Driver) {
		err = asked.Try(func() (err error) { pairs, err = r.Host.RDMA.QueuePairs(r.Ctx, r.Device); return err })
	}
	if err != nil {
		asked.IssueUnless(err, access.Absent, access.Unsupported, access.Invalid)
		return nil, true
	}
	if pairs == nil && shared.ListsQPs(d.Driver) {
		pairs = []qp.QueuePair{} // of a recording: none
	}
	st.ports = peers.OfConnections(r.Device, ids, pairs)
	return st.ports, true
}
