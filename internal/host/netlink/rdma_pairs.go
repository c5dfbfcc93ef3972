package netlink

import (
	"context"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
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
	out := []qp.QueuePair{}
	err := c.addressed(nldevCmdResQPGet, unix.NLM_F_DUMP, device, func(msgs [][]byte) (string, error) {
		out = out[:0]
		for _, m := range msgs {
			found, name, err := parsePairs(m)
			if err != nil || name != device {
				return name, err
			}
			out = append(out, found...)
		}
		return device, nil
	})
	if err != nil {
		return nil, &access.Error{Op: "query", Path: fmt.Sprintf("rdma/%s/pairs", device), Err: err}
	}
	processes := map[int]int{} // by thread
	for i := range out {
		tid := out[i].PID
		pid, known := processes[tid]
		if !known {
			pid = tid
			if c.Leader != nil && tid != 0 {
				pid = c.Leader(tid)
			}
			processes[tid] = pid
		}
		out[i].PID = pid
	}
	return out, nil
}

func parsePairs(msg []byte) (found []qp.QueuePair, device string, err error) {
	for t, v := range eachAttribute(msg) {
		switch t {
		case nl.RDMA_NLDEV_ATTR_DEV_NAME:
			device = rooted.Text(v)
		case nldevAttrResQP:
			for t, v := range eachAttribute(v) {
				if p, ok := parsePair(v); t == nldevAttrResQPEntry && ok {
					found = append(found, p)
				}
			}
		}
	}
	if device == "" {
		return nil, "", fmt.Errorf("%w: queue pairs without device", access.ErrMalformed)
	}
	return found, device, nil
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
	p.QPN, p.State = *number, int(*state)
	if peer != nil {
		p.PeerQPN = *peer
	}
	if port != nil && *port <= 255 {
		p.Port = int(*port)
	}
	if pid != nil && *pid <= 1<<31-1 {
		p.PID = int(*pid)
	}
	return p, true
}
