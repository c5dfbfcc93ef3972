package fabric

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
)

// Picture is the state of a fabric after a sweep. It does not change.
type Picture struct {
	Fabric  *Fabric     // of the last sweep that did not fail; nil: none has finished
	Failed  error       // of the sweep after that
	Known   Data        // nodes and links that are remembered, those of Fabric among them
	Missing []KnownLink // links that are gone
	Rewired []KnownLink // earlier links whose ends both have a later one
	// Risen are the counters that rose since a sweep of up to an hour ago, of ports that were ACTIVE at both times.
	Risen map[End]perf.Counters
	Since time.Time // of that sweep
	// Traffic is between the last two sweeps that did not fail, of ports that were ACTIVE at both times.
	Traffic map[End]Traffic
	// Waits is the share of that time in which a switch port had data to send and sent none. A port without it is not in
	// it.
	Waits  map[End]float64
	Loops  [][]End // suspected credit loops (Loops)
	Leaves []Leaf
	Stats  mad.Stats // of all sweeps
}

// Names returns a function that names a port by the name of its node, else by its GUID: leaf001/5.
func (p *Picture) Names() func(End) string {
	names := map[GUID]string{}
	for _, n := range p.Known.Nodes {
		names[n.GUID] = exposition.ValidLabel(n.Description)
	}
	return func(e End) string { return fmt.Sprintf("%s/%d", cmp.Or(names[e.GUID], e.GUID.String()), e.Port) }
}

// CounterName returns the name of a counter's metric without rdma_fabric_port_ and _total; empty if it has none.
func CounterName(k perf.Counter) string {
	if countedBy[k].desc == nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(countedBy[k].desc.Name, "rdma_fabric_port_"), "_total")
}

// window is the age of the sweep that counters are compared with: from one window to two.
const window = 30 * time.Minute

// reading holds the counters of the ports with an active link in one sweep.
type reading struct {
	at       time.Time
	counters map[End]*Port
}

func readingOf(f *Fabric) reading {
	r := reading{f.At, map[End]*Port{}}
	for guid, n := range f.Nodes {
		for number, p := range n.Ports {
			if p.Counters != nil && p.Info.State == mad.PortActive {
				r.counters[End{guid, number}] = p
			}
		}
	}
	return r
}

// readings are the earlier ones that counters are compared with.
type readings struct{ older, newer, last reading }

// note takes a sweep, and returns the counters that rose, the time since when, and traffic and waits since the sweep
// before.
func (r *readings) note(f *Fabric) (map[End]perf.Counters, time.Time, map[End]Traffic, map[End]float64) {
	now := readingOf(f)
	traffic, waits := now.traffic(r.last), now.waits(r.last)
	r.last = now
	switch {
	case r.older.counters == nil:
		r.older, r.newer = now, now
	case now.at.Sub(r.newer.at) >= window:
		r.older, r.newer = r.newer, now
	}
	risen := map[End]perf.Counters{}
	for e, c := range now.counters {
		if before := r.older.counters[e]; before != nil {
			if rise := c.Counters.Since(before.Counters); !rise.Empty() {
				risen[e] = rise
			}
		}
	}
	return risen, r.older.at, traffic, waits
}

// Traffic is what a port transmits and receives, in bits per second.
type Traffic struct{ Transmit, Receive float64 }

// wordBits is the unit of PortXmitData and PortRcvData (IBA 16.1.3.5).
const wordBits = 32

// traffic returns the average since an earlier reading. A port whose counters are missing or were cleared in between
// has none.
func (r reading) traffic(before reading) map[End]Traffic {
	out := map[End]Traffic{}
	for e, now := range r.counters {
		then := before.counters[e]
		if then == nil {
			continue
		}
		seconds := now.Read.Sub(then.Read).Seconds()
		sent, ok := increase(now, then, perf.TransmitData)
		received, also := increase(now, then, perf.ReceiveData)
		if ok && also && seconds > 0 {
			out[e] = Traffic{wordBits * sent / seconds, wordBits * received / seconds}
		}
	}
	return out
}

// waits returns the share of the time since an earlier reading in which a port had data to send but could not, because
// it had no credits or another virtual lane was served. A port is left out if the length of a tick is unknown, or the
// counter is missing, saturated or was cleared in between.
func (r reading) waits(before reading) map[End]float64 {
	out := map[End]float64{}
	for e, now := range r.counters {
		then := before.counters[e]
		if then == nil || now.TickBytes == 0 || now.Counters.Saturated(perf.TransmitWait) {
			continue
		}
		ticks, ok := increase(now, then, perf.TransmitWait)
		could := now.Info.Active.Rate() * now.Read.Sub(then.Read).Seconds()
		if ok && could > 0 {
			out[e] = min(1, ticks*now.TickBytes/could)
		}
	}
	return out
}

// increase is by how much a counter is higher than before; false where it is missing or lower.
func increase(now, then *Port, k perf.Counter) (float64, bool) {
	a, before := then.Counters.Get(k)
	b, after := now.Counters.Get(k)
	return float64(b - a), before && after && b >= a
}
