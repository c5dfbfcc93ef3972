package collector

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// wires reads the driver statistics of netdevs (ethtool -S), shared by all collectors that use them: on mlx5 a read takes some 40
// registers under rtnl. A collector that needs fresh values reads; the others use the newest.
type wires struct {
	tables map[string]map[string]wireEntry

	mu      sync.Mutex
	netdevs map[string]*wireState
}

// wireTarget is a netdev that can be read.
type wireTarget struct {
	device         string
	port           int
	netdev, driver string
}

// wireState is the newest read of a netdev.
type wireState struct {
	wireTarget
	newest *snapshot.Wire
	shown  uint8 // see snapshot.Wire
}

func newWires() *wires { return &wires{tables: wireTables(), netdevs: map[string]*wireState{}} }

// wireRequests are the ioctls of a read: ETHTOOL_GDRVINFO, ETHTOOL_GSTRINGS, ETHTOOL_GSTATS.
const wireRequests = 3

// read reads the statistics of a netdev now and keeps them. The error is that of the driver, or rtnl unavailable.
func (w *wires) read(ctx context.Context, h *host.Host, of wireTarget) (*snapshot.Wire, error) {
	var stats []host.Stat
	var err error
	var took time.Duration
	table, ask, requests := w.tables[of.driver], h.Ethtool.NetdevStats, wireRequests
	if table == nil {
		table, ask, requests = w.tables[standard], h.Ethtool.StandardStats, 1
	}
	if refused := h.UnderRTNL(ctx, w.source(of.driver), of.device, requests, func() {
		start := time.Now()
		stats, err = ask(ctx, of.netdev)
		took = time.Since(start)
	}); refused != nil {
		return nil, refused // stats may still be written to
	}
	if err != nil {
		if host.ReasonOf(err) == host.Gone {
			w.drop(of.netdev)
		}
		return nil, err
	}
	now := h.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.netdevs[of.netdev]
	if st == nil || st.wireTarget != of {
		st = &wireState{wireTarget: of}
		w.netdevs[of.netdev] = st
	}
	counts := wireCounts(table, stats)
	st.show(counts)
	st.newest = &snapshot.Wire{At: now, Took: took, Counts: counts, Shown: st.shown}
	return st.newest, nil
}

// last is the newest read of a netdev by any collector; nil if there is none.
func (w *wires) last(of wireTarget) *snapshot.Wire {
	w.mu.Lock()
	defer w.mu.Unlock()
	if st := w.netdevs[of.netdev]; st != nil && st.wireTarget == of {
		return st.newest
	}
	return nil
}

// linkDowns is the link-down count of a netdev in the driver's own statistics; nil where no read is fresh enough, or the driver has no
// such count.
func (w *wires) linkDowns(device string, port int, netdev string, now time.Time) *uint64 {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.netdevs[netdev]
	if st == nil || st.device != device || st.port != port || now.Sub(st.newest.At) > wireRetention {
		return nil
	}
	for i := range st.newest.Counts {
		if c := &st.newest.Counts[i]; c.What == snapshot.LinkDowns {
			n := uint64(c.Value)
			return &n
		}
	}
	return nil
}

// source is the source of a driver's statistics.
func (w *wires) source(driver string) host.Source {
	if w.tables[driver] == nil {
		return host.SourceStandardStats
	}
	return host.SourceNetdevStats
}

// keep drops the netdevs of all devices except these.
func (w *wires) keep(devices []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.netdevs, func(_ string, st *wireState) bool { return !slices.Contains(devices, st.device) })
}

// keepOf drops the netdevs of a device except these.
func (w *wires) keepOf(device string, netdevs []portNetdev) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.netdevs, func(_ string, st *wireState) bool {
		return st.device == device && !slices.ContainsFunc(netdevs, func(n portNetdev) bool { return n.target(device) == st.wireTarget })
	})
}

// drop removes a netdev that is gone.
func (w *wires) drop(netdev string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.netdevs, netdev)
}

// wireCounts maps statistics to the metrics common to all drivers, in the order of their first occurrence.
func wireCounts(table map[string]wireEntry, stats []host.Stat) []snapshot.WireCount {
	var out []snapshot.WireCount
	type key struct {
		what  snapshot.WireWhat
		label string
		index int
	}
	place := map[key]int{}
	for _, s := range stats {
		e, ok := table[s.Name]
		if !ok || s.Value == allOnes {
			continue
		}
		v := float64(s.Value)
		if e.per != 0 {
			v /= e.per
		}
		if e.what == snapshot.PCIeStallRatio {
			v = min(v, 1)
		}
		k := key{e.what, e.label, e.index}
		if i, ok := place[k]; ok {
			out[i].Value += v
			continue
		}
		place[k] = len(out)
		out = append(out, snapshot.WireCount{What: e.what, Label: e.label, Index: e.index, Value: v})
	}
	return out
}

// show records the priorities with a count above 0, and those with PFC enabled where the driver lists no others.
func (st *wireState) show(counts []snapshot.WireCount) {
	for i := range counts {
		if c := &counts[i]; c.ByPriority() && (c.Value > 0 || c.What == snapshot.PFCPauseFrames && listsEnabledOnly[st.driver]) {
			st.shown |= 1 << c.Index
		}
	}
}
