package collector

import "rdma_exporter/internal/snapshot"

// States of a port (enum ib_port_state, include/rdma/ib_verbs.h) in which it carries traffic.
const (
	stateActive      = 4
	stateActiveDefer = 5
)

func isActive(p *snapshot.Port) bool {
	return p.State != nil && (*p.State == stateActive || *p.State == stateActiveDefer)
}

// isRoCE reports whether a port carries RoCE: an Ethernet port of a channel adapter. iWARP devices are RNICs, and EFA
// has a link layer of its own.
func isRoCE(d *snapshot.Device, p *snapshot.Port) bool {
	return p.LinkLayer == "Ethernet" && d.NodeType != nil && *d.NodeType == nodeCA
}

// nodeCA is RDMA_NODE_IB_CA of enum rdma_node_type.
const nodeCA = 1
