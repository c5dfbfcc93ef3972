package ebpf

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/qp"
)

// Offsets in a record of a move to RTR or ERR: kind, then u32 each, the peer's GID, the caller's command, RDMA device.
const (
	pairPID       = 4 // of the process that created the queue pair; 0: the kernel
	pairQPN       = 8
	pairPort      = 12
	pairState     = 16 // enum ib_qp_state
	pairResult    = 20 // 0 or a negative errno
	pairPeerQPN   = 24
	pairPathID    = 28 // the peer's LID
	pairPathType  = 32 // enum rdma_ah_attr_type
	pairPathFlags = 36 // bit 0 IB_AH_GRH: with a GID
	pairGID       = 40
	pairCommand   = pairGID + gidSize
	pairDevice    = pairCommand + commandSize
	pairSize      = pairDevice + deviceSize

	gidSize     = 16
	commandSize = 16 // TASK_COMM_LEN
)

// Offsets in a record of the end of a queue pair: kind u32, PID of the caller u32, queue pair u32, padding, RDMA
// device.
const (
	pairEndPID    = 4
	pairEndQPN    = 8
	pairEndDevice = 16
	pairEndSize   = pairEndDevice + deviceSize
)

// Of enum rdma_ah_attr_type.
const (
	pathInfiniBand = 1
	pathRoCE       = 2
	pathOmniPath   = 3
)

// pairRecord is what only a record of a move has.
type pairRecord struct {
	state, peer, pathType uint32
	errno                 syscall.Errno
	address, command      string
}

// decodePair decodes a record of at least pairSize bytes.
func decodePair(b []byte) pairRecord {
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	r := pairRecord{
		state: u32(pairState), peer: u32(pairPeerQPN), pathType: u32(pairPathType),
		command: rooted.Text(b[pairCommand:][:commandSize]),
	}
	if result := int32(u32(pairResult)); result < 0 {
		r.errno = syscall.Errno(-result)
	}
	lid := u32(pairPathID)
	switch {
	case r.pathType == pathInfiniBand:
		r.address = fmt.Sprintf("lid:%d", lid&0xffff)
	case r.pathType == pathOmniPath:
		r.address = fmt.Sprintf("lid:%d", lid)
	default:
		r.address = netip.AddrFrom16([gidSize]byte(b[pairGID:])).StringExpanded()
	}
	return r
}

// pairsKept limits the events of queue pairs that are kept for readers: of 30 s, at a thousand a second.
const pairsKept = 1 << 15

// pairLog keeps the latest events of queue pairs.
type pairLog struct {
	events []qp.PairEvent
	seq    uint64
	names  map[string]string // addresses, devices and commands, which repeat
}

// add takes up a record; others than those of queue pairs are ignored.
func (l *pairLog) add(r *traceRecord, now time.Time) {
	e := qp.PairEvent{At: now, Device: l.name(r.device), Port: int(r.port), QPN: uint64(r.qpn), PID: r.pid}
	switch {
	case r.kind == recordPairEnd:
		e.Kind = qp.PairEnded
	case r.kind == recordAsync && r.qpn != 0 && eventOfQueue(r.event):
		e.Kind, e.Event, e.Port = qp.PairEvented, eventName(r.event), 0
	case r.kind != recordPair:
		return
	case r.pair.state == stateERR:
		if r.pair.errno != 0 {
			return
		}
		e.Kind = qp.PairError
	default:
		e.Kind, e.PeerQPN, e.Peer = qp.PairConnected, uint64(r.pair.peer), l.name(r.pair.address)
		e.RoCE, e.Command = r.pair.pathType == pathRoCE, l.name(r.pair.command)
		if r.pid == 0 { // the caller is a worker thread, at each attempt another
			e.Command = qp.Kernel
		}
		if r.pair.errno != 0 {
			e.Kind, e.Errno = qp.PairRefused, int(r.pair.errno)
		}
	}
	l.seq++
	e.Seq = l.seq
	if len(l.events) >= 2*pairsKept {
		l.events = append(l.events[:0], l.events[len(l.events)-pairsKept:]...)
	}
	l.events = append(l.events, e)
}

// name returns one copy of a text.
func (l *pairLog) name(s string) string {
	if l.names == nil || len(l.names) > pairsKept {
		l.names = map[string]string{}
	}
	if known, ok := l.names[s]; ok {
		return known
	}
	l.names[s] = s
	return s
}

// after returns a copy of the kept events after one.
func (l *pairLog) after(seq uint64) []qp.PairEvent {
	kept := l.events[max(0, len(l.events)-pairsKept):]
	if len(kept) == 0 || seq >= l.seq {
		return nil
	}
	skip := 0
	if first := kept[0].Seq; seq >= first {
		skip = int(seq - first + 1)
	}
	return append([]qp.PairEvent(nil), kept[skip:]...)
}
