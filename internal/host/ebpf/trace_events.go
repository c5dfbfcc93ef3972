package ebpf

import (
	"encoding/binary"

	"rdma_exporter/internal/host/rooted"
)

// The programs and this package share the layout of these records, in host byte order. All begin with the kind.
const (
	recordBegin   = iota + 1 // a registration
	recordEnd                // the end of one
	recordAsync              // an asynchronous event
	recordPair               // a queue pair was moved to RTR or ERR
	recordPairEnd            // a queue pair is destroyed
)

// Mechanisms in a record.
const (
	traceDMABUF = iota + 1
	tracePeermem
	traceHost
)

// Offsets in a record that begins a registration: kind u32, PID u32, identity u64, bytes u64, mechanism u32, padding,
// function, exporter, RDMA device.
const (
	beginPID       = 4
	beginID        = 8
	beginBytes     = 16
	beginMechanism = 24
	beginFunction  = 32
	beginExporter  = beginFunction + functionSize
	beginDevice    = beginExporter + exporterSize
	beginSize      = beginDevice + deviceSize

	functionSize = 24 // a PCI function has 12 characters, an auxiliary device of mlx5 about 20
	exporterSize = 24
	deviceSize   = 64 // IB_DEVICE_NAME_MAX
)

// Offsets in a record that ends a registration: kind u32, mechanism u32, identity u64.
const (
	endMechanism = 4
	endID        = 8
	endSize      = 16
)

// Offsets in a record of an asynchronous event: kind u32, PID u32, event u32, port u32, queue pair u32, padding, RDMA
// device.
const (
	asyncPID    = 4
	asyncEvent  = 8
	asyncPort   = 12
	asyncQPN    = 16
	asyncDevice = 24
	asyncSize   = asyncDevice + deviceSize
)

// traceRecord is a decoded record.
type traceRecord struct {
	kind                       uint32
	mechanism                  uint32
	pid                        int
	id, bytes                  uint64
	function, exporter, device string
	event, port, qpn           uint32
	pair                       pairRecord
}

// decodeTrace returns false for bytes that are no record.
func decodeTrace(b []byte) (r traceRecord, ok bool) {
	if len(b) < 4 {
		return r, false
	}
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	switch r.kind = u32(0); {
	case r.kind == recordBegin && len(b) >= beginSize:
		r.pid, r.id, r.bytes, r.mechanism = int(u32(beginPID)), u64(beginID), u64(beginBytes), u32(beginMechanism)
		r.function = rooted.Text(b[beginFunction:][:functionSize])
		r.exporter = rooted.Text(b[beginExporter:][:exporterSize])
		r.device = rooted.Text(b[beginDevice:][:deviceSize])
	case r.kind == recordEnd && len(b) >= endSize:
		r.mechanism, r.id = u32(endMechanism), u64(endID)
	case r.kind == recordAsync && len(b) >= asyncSize:
		r.pid, r.event, r.port, r.qpn = int(u32(asyncPID)), u32(asyncEvent), u32(asyncPort), u32(asyncQPN)
		r.device = rooted.Text(b[asyncDevice:][:deviceSize])
	case r.kind == recordPair && len(b) >= pairSize:
		r.pid, r.port, r.qpn = int(u32(pairPID)), u32(pairPort), u32(pairQPN)
		r.device = rooted.Text(b[pairDevice:][:deviceSize])
		r.pair = decodePair(b)
	case r.kind == recordPairEnd && len(b) >= pairEndSize:
		r.pid, r.qpn, r.device = int(u32(pairEndPID)), u32(pairEndQPN), rooted.Text(b[pairEndDevice:][:deviceSize])
	default:
		return r, false
	}
	return r, true
}
