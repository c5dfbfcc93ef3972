package fabric

import (
	"strings"
	"time"

	"rdma_exporter/internal/mad"
)

// Picture is what the page shows of a fabric. It is immutable.
type Picture struct {
	Fabric  *Fabric // last successful sweep; nil: none yet
	Failed  error   // error of the sweep after it; nil: none
	Known   Data    // remembered nodes and links, those of Fabric included
	Missing []End   // ends of links that are gone
	// Risen are the increases of counters since a sweep of up to one hour ago, of ports whose link was active in both sweeps.
	Risen map[End]mad.Counters
	Since time.Time // of that sweep
	Stats mad.Stats // of all sweeps
}

// CounterName is the metric of a counter without rdma_fabric_port_ and _total; empty if there is none.
func CounterName(k mad.Counter) string {
	if countedBy[k].desc == nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(countedBy[k].desc.Name, "rdma_fabric_port_"), "_total")
}

// window is the minimum age of the sweep that increases are counted from; its maximum age is twice that.
const window = 30 * time.Minute

// reading holds the counters of the ports with an active link in one sweep.
type reading struct {
	at       time.Time
	counters map[End]*mad.Counters
}

func readingOf(f *Fabric) reading {
	r := reading{f.At, map[End]*mad.Counters{}}
	for guid, n := range f.Nodes {
		for number, p := range n.Ports {
			if p.Counters != nil && p.Info.State == mad.PortActive {
				r.counters[End{guid, number}] = p.Counters
			}
		}
	}
	return r
}

// readings are the earlier sweeps that increases are counted from.
type readings struct{ older, newer reading }

// note adds a sweep, and returns the increases and the time that they are counted from.
func (r *readings) note(f *Fabric) (map[End]mad.Counters, time.Time) {
	now := readingOf(f)
	switch {
	case r.older.counters == nil:
		r.older, r.newer = now, now
	case now.at.Sub(r.newer.at) >= window:
		r.older, r.newer = r.newer, now
	}
	risen := map[End]mad.Counters{}
	for e, c := range now.counters {
		if before := r.older.counters[e]; before != nil {
			if rise := c.Since(before); !rise.Empty() {
				risen[e] = rise
			}
		}
	}
	return risen, r.older.at
}
