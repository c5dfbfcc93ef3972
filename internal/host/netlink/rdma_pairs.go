package netlink

import (
	"context"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/qp"
)

// Of enum ib_qp_type, those with one peer: RC, UC, XRC initiator and target; and of enum ib_qp_state, those after a
// peer was set.
var (
	pairedTypes  = []uint64{2, 3, 9, 10}
	pairedStates = []uint64{2, 3, 6}
)

// QueuePairs makes one query, for which the core calls query_qp of the driver once per queue pair (fill_res_qp_entry,
// core/nldev.c). The kernel does not report the peer's number of XRC queue pairs.
func (c *RDMAClient) QueuePairs(_ context.Context, device string) ([]qp.QueuePair, error) {
	found, err := dump(c, nldevCmdResQPGet, nldevAttrResQP, nldevAttrResQPEntry, device, parsePair)
	if err != nil {
		return nil, &access.Error{Op: "query", Path: fmt.Sprintf("rdma/%s/pairs", device), Err: err}
	}
	p := processes{c.Leader, map[int]int{}}
	out := make([]qp.QueuePair, len(found)) // not nil: none
	for i, q := range found {
		q.PID = p.processOf(q.PID)
		out[i] = q
	}
	return out, nil
}

// parsePair returns false for a queue pair without a peer.
func parsePair(b []byte) (p qp.QueuePair, ok bool) {
	var kind, state, number, peer, port, pid *uint64
	attributeList{
		nldevAttrResType: &kind, nldevAttrResState: &state, nldevAttrResLQPN: &number, nldevAttrResRQPN: &peer,
		nl.RDMA_NLDEV_ATTR_PORT_INDEX: &port, nldevAttrResPID: &pid,
	}.decode(b)
	if kind == nil || state == nil || number == nil || !slices.Contains(pairedTypes, *kind) ||
		!slices.Contains(pairedStates, *state) {
		return p, false
	}
	p.QPN, p.State, p.Port, p.PID = *number, int(*state), atMost(mostPort, port), atMost(mostPID, pid)
	if peer != nil {
		p.PeerQPN = *peer
	}
	return p, true
}

// Limits of numbers of ports and processes.
const (
	mostPort = 1<<8 - 1
	mostPID  = 1<<31 - 1
)

// atMost returns a number of the kernel; 0 if there is none, or it is larger.
func atMost(most uint64, n *uint64) int {
	if n == nil || *n > most {
		return 0
	}
	return int(*n)
}
