package peers

import (
	"context"

	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/peers"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/qp"
)

// hostsFile is read only while there are lost peers, each SlowInterval.
const hostsFile = "etc/hosts"

// readHosts reads the names of addresses of the host.
func (c *collector) readHosts(ctx context.Context, h *host.Host, n *snapshot.Node) {
	if !c.table.HasLost() || !c.hosts.Due(h.Now(), shared.SlowInterval) {
		return
	}
	names := map[string]string{}
	issues, err := reading.OfHost(ctx, h, "peers/hosts", source.Setup, func(r reading.Reads) {
		b, err := r.Host.Files.Read(hostsFile, nil)
		if err != nil {
			r.IssueUnless(err, access.Absent)
			return
		}
		names = peers.ParseHosts(b)
	})
	if err != nil {
		n.Issues = append(n.Issues, reading.IssueOf(source.Setup, err))
		return
	}
	n.Issues = append(n.Issues, issues...)
	c.hosts.Keep(names, h.Now())
}

// name names lost peers: by the configuration file, then by the host.
func (c *collector) name(lost []qp.LostPeer) {
	conf := c.conf.Current()
	for i := range lost {
		l := &lost[i]
		address := qp.ShortAddress(l.Peer)
		if l.Name, l.NamedBy = conf.Peer(address), qp.NamedBySite; l.Name == "" {
			l.Name, l.NamedBy = c.hosts.Value[address], qp.NamedByHosts
		}
	}
}

func samePeer(a, b *qp.LostPeer) bool {
	return a.Device == b.Device && a.Port == b.Port && a.Peer == b.Peer
}
