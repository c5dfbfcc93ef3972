package netlink

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink/nl"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/qp"
)

// cmConnect is RDMA_CM_CONNECT of enum rdma_cm_state (core/cma_priv.h): connecting, or connected.
const cmConnect = 5

// Connections makes one query, which the core answers from its list (fill_res_cm_id_entry, core/nldev.c).
func (c *RDMAClient) Connections(_ context.Context, device string) ([]qp.Connection, error) {
	found, err := dump(c, nldevCmdResCMGet, nldevAttrResCM, nldevAttrResCMEntry, device, parseConnection)
	if err != nil {
		return nil, &access.Error{Op: "query", Path: fmt.Sprintf("rdma/%s/connections", device), Err: err}
	}
	p, seen := processes{c.Leader, map[int]int{}}, map[uint64]bool{}
	out := []qp.Connection{} // not nil: none
	for _, one := range found {
		if !seen[one.QPN] { // a process may give one number to several IDs
			seen[one.QPN] = true
			one.PID = p.processOf(one.PID)
			out = append(out, one)
		}
	}
	return out, nil
}

// parseConnection returns false for an ID without a connected queue pair or an address of the peer.
func parseConnection(b []byte) (c qp.Connection, ok bool) {
	var kind, state, number, port, pid *uint64
	attributeList{
		nldevAttrResType: &kind, nldevAttrResState: &state, nldevAttrResLQPN: &number,
		nl.RDMA_NLDEV_ATTR_PORT_INDEX: &port, nldevAttrResPID: &pid,
		nldevAttrResDstAddr: func(v []byte) { c.Peer = gidOfSocket(v) },
	}.decode(b)
	if kind == nil || state == nil || number == nil || *number == 0 || *state != cmConnect || c.Peer == "" ||
		!slices.Contains(pairedTypes, *kind) {
		return c, false
	}
	c.QPN, c.Port, c.PID = *number, atMost(mostPort, port), atMost(mostPID, pid)
	return c, true
}

// familyIB is AF_IB of include/linux/socket.h.
const familyIB = 27

// addressAt is where the address is in a socket address of a family, and its length: struct sockaddr_in, sockaddr_in6,
// sockaddr_ib.
var addressAt = map[uint16][2]int{2: {4, 4}, 10: {8, 16}, familyIB: {8, 16}}

// gidOfSocket returns the address of a socket as sysfs writes a GID; empty if it has none. An IPv4 address is mapped.
func gidOfSocket(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	at, known := addressAt[binary.NativeEndian.Uint16(b)]
	if !known || len(b) < at[0]+at[1] {
		return ""
	}
	a, _ := netip.AddrFromSlice(b[at[0] : at[0]+at[1]])
	if a.IsUnspecified() {
		return ""
	}
	return netip.AddrFrom16(a.As16()).StringExpanded()
}
