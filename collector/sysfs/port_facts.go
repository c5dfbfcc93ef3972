package sysfs

import "rdma_exporter/internal/snapshot"

// States of a port (enum ib_port_state, include/rdma/ib_verbs.h) in which it carries traffic.
const (
	StateActive      = 4
	stateActiveDefer = 5
)

// IsActive reports whether a port carries traffic.
func IsActive(p *snapshot.Port) bool {
	return p.State != nil && (*p.State == StateActive || *p.State == stateActiveDefer)
}

// IsRoCE reports whether a port carries RoCE: an Ethernet port of a channel adapter. iWARP devices are RNICs, and EFA
// has a link layer of its own.
func IsRoCE(d *snapshot.Device, p *snapshot.Port) bool {
	return p.LinkLayer == "Ethernet" && d.NodeType != nil && *d.NodeType == NodeCA
}

// NodeCA is RDMA_NODE_IB_CA of enum rdma_node_type.
const NodeCA = 1
