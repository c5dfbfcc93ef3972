// Package peers follows the peers of connected queue pairs, and finds those that were lost. It is pure: events, lists
// and counters in, sums and losses out.
package peers

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/snapshot/qp"
)

// Limits of a table. A host of eight GPUs has some thousand connected queue pairs.
const (
	// maxPairs limits those whose peer is known; and those whose peer is not, those of an earlier run, and ends.
	maxPairs = 1 << 16
	maxLost  = 64
)

// Table is the connected queue pairs of a machine. Its methods may be called by several goroutines.
type Table struct {
	mu      sync.Mutex
	seq     uint64    // of the last event
	since   time.Time // qp.Pairs.Since of the last reading
	epoch   int       // counts gaps in the events
	listed  map[string]listing
	pairs   map[pairID]*pair
	saved   map[pairID]*pair // of before the last gap or of an earlier run, until a list confirms them
	older   map[pairID]int   // ports of connected queue pairs whose peer is not known
	ends    []ending         // the oldest first
	ports   map[portID]counter
	rises   map[portID]*rise
	lost    []qp.LostPeer
	dropped uint64
	changed chan struct{}
}

// listing is the last list of a device.
type listing struct {
	epoch  int // that it belongs to
	at     time.Time
	judged time.Time // the last one after exceeded retries
	ok     bool
}

// pairID identifies a live queue pair.
type pairID struct {
	device string
	number uint64
}

type portID struct {
	device string
	port   int
}

// pair is a connected queue pair.
type pair struct {
	port     int
	peer     string
	number   uint64 // of the peer's queue pair
	pid      int
	command  string
	excluded bool // in ERR for a known reason, or since an unknown time
}

// ending is the end of a queue pair that was not put into ERR before.
type ending struct {
	of pairID
	pair
	at time.Time
}

// New returns an empty table.
func New() *Table {
	return &Table{
		listed: map[string]listing{}, pairs: map[pairID]*pair{}, saved: map[pairID]*pair{}, older: map[pairID]int{},
		ports: map[portID]counter{}, rises: map[portID]*rise{}, changed: make(chan struct{}, 1),
	}
}

// Last returns the number of the last event that was taken up.
func (t *Table) Last() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seq
}

// Take takes up a reading of the programs.
func (t *Table) Take(r *qp.Pairs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	skipped := len(r.Events) > 0 && r.Events[0].Seq > t.seq+1
	if !r.Since.Equal(t.since) || skipped {
		t.since = r.Since
		t.begin()
	}
	for i := range r.Events {
		if e := &r.Events[i]; e.Seq > t.seq {
			t.seq = e.Seq
			t.add(e)
		}
	}
	if len(r.Events) > 0 {
		t.touch()
	}
}

// begin marks a gap in the events: what was connected before counts again once a list confirms it.
func (t *Table) begin() {
	t.epoch++
	for id, p := range t.pairs {
		if len(t.saved) < maxPairs {
			t.saved[id] = p
		}
	}
	clear(t.pairs)
	clear(t.older)
}

// add takes up an event.
func (t *Table) add(e *qp.PairEvent) {
	id := pairID{e.Device, e.QPN}
	switch e.Kind {
	case qp.PairConnected:
		t.forget(id)
		if len(t.pairs) >= maxPairs {
			t.dropped++
			return
		}
		t.pairs[id] = &pair{port: e.Port, peer: e.Peer, number: e.PeerQPN, pid: e.PID, command: e.Command}
	case qp.PairRefused:
		if e.RoCE && qp.Unreachable[e.Errno] != "" {
			t.lose(qp.LostPeer{
				Device: e.Device, Port: e.Port, Peer: e.Peer, Certainty: qp.LostExactly,
				Errno: e.Errno, PID: e.PID, Command: e.Command,
			}, e.At)
		}
	case qp.PairError:
		t.exclude(id)
	case qp.PairEvented:
		if fatal[e.Event] {
			t.exclude(id)
		}
	case qp.PairEnded:
		if p := t.pairs[id]; p != nil && !p.excluded {
			t.ends = append(t.ends, ending{id, *p, e.At})
			if len(t.ends) > maxPairs {
				t.ends = slices.Clone(t.ends[len(t.ends)-maxPairs/2:])
			}
		}
		t.forget(id)
	}
}

func (t *Table) forget(id pairID) {
	delete(t.pairs, id)
	delete(t.saved, id)
	delete(t.older, id)
}

// exclude notes that a queue pair enters ERR for a reason other than its peer.
func (t *Table) exclude(id pairID) {
	for _, in := range []map[pairID]*pair{t.pairs, t.saved} {
		if p := in[id]; p != nil {
			p.excluded = true
		}
	}
}

// listAgain is the least time between two lists of a device: on mlx5 each is a firmware command for each queue pair.
const listAgain = 30 * time.Second

// Wants reports whether a list of a device's queue pairs is due: after a gap in the events, and after exceeded retries.
func (t *Table) Wants(device string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, known := t.listed[device]
	if t.epoch == 0 {
		return false
	}
	if now.Sub(last.judged).Abs() >= listAgain && t.risen(device) {
		return true
	}
	return !known || last.epoch != t.epoch && now.Sub(last.at).Abs() >= listAgain
}

// risen reports whether a rise on a port of a device has no list yet.
func (t *Table) risen(device string) bool {
	for id, r := range t.rises {
		if id.device == device && !r.listed {
			return true
		}
	}
	return false
}

// note notes an attempt to list the queue pairs of a device.
func (t *Table) note(device string, now time.Time, ok bool) {
	last := t.listed[device]
	last.at = now
	if ok {
		last.ok, last.epoch = true, t.epoch
	}
	if t.risen(device) {
		last.judged = now
	}
	t.listed[device] = last
}

// NotListed notes that the queue pairs of a device could not be listed.
func (t *Table) NotListed(device string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(device, now, false)
	for id, r := range t.rises {
		r.listed = r.listed || id.device == device
	}
}

// List takes up the queue pairs of a device as listed after the last reading of the programs.
func (t *Table) List(device string, found []qp.QueuePair, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.listed[device]
	t.note(device, now, true)
	t.blame(device, found, now)
	if !last.ok || last.epoch != t.epoch {
		t.confirm(device, found)
		t.touch()
	}
}

// confirm adopts what was connected before the gap and is the same still.
func (t *Table) confirm(device string, found []qp.QueuePair) {
	for _, q := range found {
		id := pairID{device, q.QPN}
		p := t.pairs[id]
		if before := t.saved[id]; p == nil && before != nil && before.is(&q) && len(t.pairs) < maxPairs {
			p = before
			t.pairs[id] = p
		}
		switch {
		case p != nil && q.State == stateERR:
			p.excluded = true
		case p != nil:
		case len(t.older) >= maxPairs:
			t.dropped++
		default:
			t.older[id] = q.Port
		}
	}
	maps.DeleteFunc(t.saved, func(id pairID, _ *pair) bool { return id.device == device })
}

// is reports whether a listed queue pair has the same peer and process. The kernel does not list the number of an XRC
// peer.
func (p *pair) is(q *qp.QueuePair) bool {
	return p.pid == q.PID && (q.PeerQPN == 0 || p.number == q.PeerQPN) && (q.Port == 0 || p.port == q.Port)
}

// Observed reports whether programs were ever read.
func (t *Table) Observed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch > 0
}

// HasLost reports whether a peer was lost.
func (t *Table) HasLost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.lost) > 0
}

// Retain forgets the devices that are not among the present ones.
func (t *Table) Retain(devices []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone := func(device string) bool { return !slices.Contains(devices, device) }
	maps.DeleteFunc(t.listed, func(device string, _ listing) bool { return gone(device) })
	maps.DeleteFunc(t.ports, func(id portID, _ counter) bool { return gone(id.device) })
	maps.DeleteFunc(t.rises, func(id portID, _ *rise) bool { return gone(id.device) })
	maps.DeleteFunc(t.pairs, func(id pairID, _ *pair) bool { return gone(id.device) })
	maps.DeleteFunc(t.older, func(id pairID, _ int) bool { return gone(id.device) })
}

// Sum returns the sums of all ports with queue pairs, and the lost peers.
func (t *Table) Sum() *qp.Peers {
	t.mu.Lock()
	defer t.mu.Unlock()
	type sum struct {
		known, connected int
		peers            map[string]bool
	}
	sums := map[portID]*sum{}
	of := func(device string, port int) *sum {
		id := portID{device, port}
		if sums[id] == nil {
			sums[id] = &sum{peers: map[string]bool{}}
		}
		return sums[id]
	}
	for id := range t.ports {
		of(id.device, id.port)
	}
	for id, p := range t.pairs {
		s := of(id.device, p.port)
		s.known++
		s.connected++
		s.peers[p.peer] = true
	}
	for id, port := range t.older {
		of(id.device, port).connected++
	}
	out := &qp.Peers{Lost: slices.Clone(t.lost), Dropped: t.dropped}
	for id, s := range sums {
		one := qp.PeersOfPort{Device: id.device, Port: id.port, Known: s.known, Peers: len(s.peers)}
		if last := t.listed[id.device]; last.ok && last.epoch == t.epoch {
			one.Connected = &s.connected
		}
		out.Ports = append(out.Ports, one)
	}
	slices.SortFunc(out.Ports, func(a, b qp.PeersOfPort) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), a.Port-b.Port)
	})
	slices.SortFunc(out.Lost, func(a, b qp.LostPeer) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), a.Port-b.Port, cmp.Compare(a.Peer, b.Peer),
			cmp.Compare(a.Certainty, b.Certainty))
	})
	return out
}
