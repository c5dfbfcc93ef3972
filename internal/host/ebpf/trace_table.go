package ebpf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"rdma_exporter/internal/snapshot/accel"
)

const (
	// tracedRegions limits the registrations that are followed at a time. Ranks of a job have some hundred each.
	tracedRegions = 1 << 18
	// tracedTotals limits the kinds of events that are counted, each of a device and port.
	tracedTotals = 4096
	// tracedRecent limits the events that are kept with their process.
	tracedRecent = 64
)

// traceTable sums up records. Registrations of a process end with it: the kernel releases them.
type traceTable struct {
	live   map[regionID]tracedRegion
	groups map[regionGroup]*regionSum
	totals map[asyncKey]uint64
	recent []accel.AsyncEvent
	begun  uint64
	lost   uint64 // records that were not taken up
}

// regionID is the kernel's object. Addresses are reused after its end.
type regionID struct {
	mechanism uint32
	id        uint64
}

type regionGroup struct {
	mechanism                  uint32
	function, exporter, device string
	pid                        int
}

// regionSum sums up the registrations of a group.
type regionSum struct {
	group          regionGroup
	regions, bytes uint64
}

// tracedRegion is one registration.
type tracedRegion struct {
	of    *regionSum
	bytes uint64
}

type asyncKey struct {
	device string
	port   int
	event  uint32
}

func newTraceTable() *traceTable {
	return &traceTable{
		live: map[regionID]tracedRegion{}, groups: map[regionGroup]*regionSum{}, totals: map[asyncKey]uint64{},
	}
}

// add takes up a record that was read at a time.
func (t *traceTable) add(r traceRecord, now time.Time) {
	id := regionID{r.mechanism, r.id}
	switch r.kind {
	case recordBegin:
		t.end(id) // its end was lost
		t.begin(id, r)
	case recordEnd:
		t.end(id)
	case recordAsync:
		t.count(r, now)
	}
}

func (t *traceTable) begin(id regionID, r traceRecord) {
	if len(t.live) >= tracedRegions {
		t.lost++
		return
	}
	t.begun++
	g := regionGroup{r.mechanism, r.function, r.exporter, r.device, r.pid}
	sum := t.groups[g]
	if sum == nil {
		sum = &regionSum{group: g}
		t.groups[g] = sum
	}
	sum.regions++
	sum.bytes += r.bytes
	t.live[id] = tracedRegion{sum, r.bytes}
}

// end ignores an object that is not known: its registration was before the programs were attached, or had failed.
func (t *traceTable) end(id regionID) {
	one, known := t.live[id]
	if !known {
		return
	}
	one.of.regions--
	one.of.bytes -= one.bytes
	if one.of.regions == 0 {
		delete(t.groups, one.of.group)
	}
	delete(t.live, id)
}

// prune ends the registrations of processes that have ended: after a loss their ends may be missing.
func (t *traceTable) prune(ended func(pid int) bool) {
	gone := map[int]bool{}
	for g := range t.groups {
		if ended(g.pid) {
			gone[g.pid] = true
		}
	}
	for id, one := range t.live {
		if gone[one.of.group.pid] {
			t.end(id)
		}
	}
}

func (t *traceTable) count(r traceRecord, now time.Time) {
	key := asyncKey{r.device, portOfEvent(r.event, r.port), r.event}
	if _, known := t.totals[key]; !known && len(t.totals) >= tracedTotals {
		t.lost++
		return
	}
	t.totals[key]++
	if !eventOfQueue(r.event) {
		return
	}
	t.recent = append(t.recent, accel.AsyncEvent{At: now, Device: r.device, Kind: eventName(r.event), PID: r.pid})
	t.recent = t.recent[max(0, len(t.recent)-tracedRecent):]
}

// fill sets the sums of a trace.
func (t *traceTable) fill(out *accel.Trace) {
	out.Begun = t.begun
	mechanisms := map[uint32]string{
		traceDMABUF: accel.RegisteredDMABUF, tracePeermem: accel.RegisteredPeermem, traceHost: accel.RegisteredHost,
	}
	for g, sum := range t.groups {
		out.Registrations = append(out.Registrations, accel.Registration{
			Device: g.device, Function: g.function, Mechanism: mechanisms[g.mechanism], Exporter: g.exporter, PID: g.pid,
			Regions: sum.regions, Bytes: sum.bytes,
		})
	}
	slices.SortFunc(out.Registrations, func(a, b accel.Registration) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Function, b.Function),
			cmp.Compare(a.Mechanism, b.Mechanism), cmp.Compare(a.Exporter, b.Exporter))
	})
	for _, key := range slices.SortedFunc(maps.Keys(t.totals), func(a, b asyncKey) int {
		return cmp.Or(cmp.Compare(a.device, b.device), a.port-b.port, cmp.Compare(a.event, b.event))
	}) {
		out.Totals = append(out.Totals,
			accel.AsyncTotal{Device: key.device, Port: key.port, Kind: eventName(key.event), Count: t.totals[key]})
	}
	out.Recent = slices.Clone(t.recent)
}

// asyncEvents is enum ib_event_type of include/rdma/ib_verbs.h.
var asyncEvents = []string{
	"cq_error", "qp_fatal", "qp_request_error", "qp_access_error", "communication_established", "sq_drained",
	"path_migrated", "path_migration_error", "device_fatal", "port_active", "port_error", "lid_change", "pkey_change",
	"sm_change", "srq_error", "srq_limit_reached", "qp_last_wqe_reached", "client_reregister", "gid_change", "wq_fatal",
}

// Events with a port in their element: IB_EVENT_PORT_ACTIVE to IB_EVENT_SM_CHANGE, IB_EVENT_CLIENT_REREGISTER,
// IB_EVENT_GID_CHANGE.
const (
	eventPathMigrationError = 7
	eventPortActive         = 9
	eventSMChange           = 13
	eventLastWQE            = 16
	eventClientReregister   = 17
	eventGIDChange          = 18
	eventWQFatal            = 19
)

func eventName(event uint32) string {
	if event < uint32(len(asyncEvents)) {
		return asyncEvents[event]
	}
	return fmt.Sprintf("event_%d", event)
}

// portOfEvent is 0 for an event without port, whose element is a pointer.
func portOfEvent(event, port uint32) int {
	if event >= eventPortActive && event <= eventSMChange || event == eventClientReregister || event == eventGIDChange {
		return int(port)
	}
	return 0
}

// eventOfQueue reports whether an event belongs to a queue pair or completion queue.
func eventOfQueue(event uint32) bool {
	return event <= eventPathMigrationError || event == eventLastWQE || event == eventWQFatal
}
