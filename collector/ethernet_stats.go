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

// netdevStats reads the driver statistics of netdevs (ethtool -S), shared by all collectors that use them: on mlx5 a
// read takes some 40 registers under rtnl. A collector that needs fresh values reads; the others use the newest.
type netdevStats struct {
	tables map[string]map[string]netdevEntry

	mu      sync.Mutex
	netdevs map[string]*netdevState
}

// netdevState is the newest read of a netdev.
type netdevState struct {
	netdevTarget
	newest *snapshot.NetdevReading
	shown  uint8 // see snapshot.NetdevReading
}

func newNetdevStats() *netdevStats {
	return &netdevStats{tables: netdevTables(), netdevs: map[string]*netdevState{}}
}

// statsRequests are the ioctls of a read: ETHTOOL_GDRVINFO, ETHTOOL_GSTRINGS, ETHTOOL_GSTATS.
const statsRequests = 3

// read reads the statistics of a netdev now and keeps them. The error is that of the driver, or rtnl unavailable.
func (w *netdevStats) read(ctx context.Context, h *host.Host, of netdevTarget) (*snapshot.NetdevReading, error) {
	var stats []host.Stat
	var err error
	var took time.Duration
	table, ask, requests := w.tables[of.driver], h.Ethtool.NetdevStats, statsRequests
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
	if st == nil || st.netdevTarget != of {
		st = &netdevState{netdevTarget: of}
		w.netdevs[of.netdev] = st
	}
	counts := netdevCounts(table, stats)
	st.show(counts)
	st.newest = &snapshot.NetdevReading{At: now, Took: took, Counts: counts, Shown: st.shown}
	return st.newest, nil
}

// last is the newest read of a netdev by any collector; nil if there is none.
func (w *netdevStats) last(of netdevTarget) *snapshot.NetdevReading {
	w.mu.Lock()
	defer w.mu.Unlock()
	if st := w.netdevs[of.netdev]; st != nil && st.netdevTarget == of {
		return st.newest
	}
	return nil
}

// linkDowns is the link-down count of a netdev in the driver's own statistics; nil where no read is fresh enough, or
// the driver has no such count.
func (w *netdevStats) linkDowns(device string, port int, netdev string, now time.Time) *uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.netdevs[netdev]
	if st == nil || st.device != device || st.port != port || now.Sub(st.newest.At) > statsRetention {
		return nil
	}
	for i := range st.newest.Counts {
		if c := &st.newest.Counts[i]; c.What == snapshot.LinkDowns {
			return new(uint64(c.Value))
		}
	}
	return nil
}

// source is the source of a driver's statistics.
func (w *netdevStats) source(driver string) host.Source {
	if w.tables[driver] == nil {
		return host.SourceStandardStats
	}
	return host.SourceNetdevStats
}

// keep drops the netdevs of all devices except these.
func (w *netdevStats) keep(devices []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.netdevs, func(_ string, st *netdevState) bool { return !slices.Contains(devices, st.device) })
}

// keepOf drops the netdevs of a device except these.
func (w *netdevStats) keepOf(device string, netdevs []portNetdev) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.netdevs, func(_ string, st *netdevState) bool {
		return st.device == device &&
			!slices.ContainsFunc(netdevs, func(n portNetdev) bool { return n.target(device) == st.netdevTarget })
	})
}

// drop removes a netdev that is gone.
func (w *netdevStats) drop(netdev string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.netdevs, netdev)
}

// netdevCounts maps statistics to the metrics common to all drivers, in the order of their first occurrence.
func netdevCounts(table map[string]netdevEntry, stats []host.Stat) []snapshot.NetdevCount {
	var out []snapshot.NetdevCount
	type key struct {
		what  snapshot.NetdevStat
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
		out = append(out, snapshot.NetdevCount{What: e.what, Label: e.label, Index: e.index, Value: v})
	}
	return out
}

// show records the priorities with a count above 0, and those with PFC enabled where the driver lists no others.
func (st *netdevState) show(counts []snapshot.NetdevCount) {
	for i := range counts {
		if c := &counts[i]; c.ByPriority() &&
			(c.Value > 0 || c.What == snapshot.PFCPauseFrames && listsEnabledOnly[st.driver]) {
			st.shown |= 1 << c.Index
		}
	}
}

// statsRetention is how long statistics are served without a new read. Older counters would stop and then jump.
const statsRetention = time.Minute

// portNetdev is a netdev of a physical port: that of an RDMA port, or a member of its bond.
type portNetdev struct {
	port         int
	layer        string // link_layer of the port
	name, driver string
}

// netdevTarget is a netdev that can be read.
type netdevTarget struct {
	device         string
	port           int
	netdev, driver string
}

func (n portNetdev) target(device string) netdevTarget {
	return netdevTarget{device, n.port, n.name, n.driver}
}
