package counters

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot/wire"
)

// NetdevStats reads the driver statistics of netdevs (ethtool -S), shared by all collectors that use them: on mlx5 a
// read takes some 40 registers under rtnl. A collector that needs fresh values reads; the others use the newest.
type NetdevStats struct {
	tables map[string]map[string]NetdevEntry

	mu      sync.Mutex
	Netdevs map[string]*NetdevState
}

// NetdevState is the newest read of a netdev.
type NetdevState struct {
	NetdevTarget
	Newest *wire.NetdevReading
	shown  uint8 // see snapshot.NetdevReading
}

// NewNetdevStats returns statistics of no netdev.
func NewNetdevStats() *NetdevStats {
	return &NetdevStats{tables: NetdevTables(), Netdevs: map[string]*NetdevState{}}
}

// statsRequests are the ioctls of a read: ETHTOOL_GDRVINFO, ETHTOOL_GSTRINGS, ETHTOOL_GSTATS.
const statsRequests = 3

// Read reads the statistics of a netdev now and keeps them. The error is that of the driver, or rtnl unavailable.
func (w *NetdevStats) Read(ctx context.Context, h *host.Host, of NetdevTarget) (*wire.NetdevReading, error) {
	var stats []host.Stat
	var err error
	var took time.Duration
	table, ask, requests := w.tables[of.Driver], h.Ethtool.NetdevStats, statsRequests
	if table == nil {
		table, ask, requests = w.tables[standard], h.Ethtool.StandardStats, 1
	}
	if refused := h.UnderRTNL(ctx, w.Source(of.Driver), of.Device, requests, func() {
		start := time.Now()
		stats, err = ask(ctx, of.Netdev)
		took = time.Since(start)
	}); refused != nil {
		return nil, refused // stats may still be written to
	}
	if err != nil {
		if access.ReasonOf(err) == access.Gone {
			w.drop(of.Netdev)
		}
		return nil, err
	}
	now := h.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.Netdevs[of.Netdev]
	if st == nil || st.NetdevTarget != of {
		st = &NetdevState{NetdevTarget: of}
		w.Netdevs[of.Netdev] = st
	}
	counts := NetdevCounts(table, stats)
	st.show(counts)
	st.Newest = &wire.NetdevReading{At: now, Took: took, Counts: counts, Shown: st.shown}
	return st.Newest, nil
}

// Last returns the newest read of a netdev by any collector; nil if there is none.
func (w *NetdevStats) Last(of NetdevTarget) *wire.NetdevReading {
	w.mu.Lock()
	defer w.mu.Unlock()
	if st := w.Netdevs[of.Netdev]; st != nil && st.NetdevTarget == of {
		return st.Newest
	}
	return nil
}

// LinkDowns returns the link-down count of a netdev in the driver's own statistics; nil where no read is fresh enough,
// or the driver has no such count.
func (w *NetdevStats) LinkDowns(device string, port int, netdev string, now time.Time) *uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.Netdevs[netdev]
	if st == nil || st.Device != device || st.Port != port || now.Sub(st.Newest.At) > StatsRetention {
		return nil
	}
	for i := range st.Newest.Counts {
		if c := &st.Newest.Counts[i]; c.What == wire.LinkDowns {
			return new(uint64(c.Value))
		}
	}
	return nil
}

// Source returns the source of a driver's statistics.
func (w *NetdevStats) Source(driver string) source.Source {
	if w.tables[driver] == nil {
		return source.StandardStats
	}
	return source.NetdevStats
}

// Keep drops the netdevs of all devices except these.
func (w *NetdevStats) Keep(devices []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.Netdevs, func(_ string, st *NetdevState) bool { return !slices.Contains(devices, st.Device) })
}

// KeepOf drops the netdevs of a device except these.
func (w *NetdevStats) KeepOf(device string, netdevs []reading.PortNetdev) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.Netdevs, func(_ string, st *NetdevState) bool {
		return st.Device == device &&
			!slices.ContainsFunc(netdevs, func(n reading.PortNetdev) bool { return TargetOf(device, n) == st.NetdevTarget })
	})
}

// drop removes a netdev that is gone.
func (w *NetdevStats) drop(netdev string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.Netdevs, netdev)
}

// NetdevCounts maps statistics to the metrics common to all drivers, in the order of their first occurrence.
func NetdevCounts(table map[string]NetdevEntry, stats []host.Stat) []wire.NetdevCount {
	var out []wire.NetdevCount
	type key struct {
		what  wire.NetdevStat
		label string
		index int
	}
	place := map[key]int{}
	for _, s := range stats {
		e, ok := table[s.Name]
		if !ok || s.Value == AllOnes {
			continue
		}
		v := float64(s.Value)
		if e.per != 0 {
			v /= e.per
		}
		if e.what == wire.PCIeStallRatio {
			v = min(v, 1)
		}
		k := key{e.what, e.label, e.index}
		if i, ok := place[k]; ok {
			out[i].Value += v
			continue
		}
		place[k] = len(out)
		out = append(out, wire.NetdevCount{What: e.what, Label: e.label, Index: e.index, Value: v})
	}
	return out
}

// show records the priorities with a count above 0, and those with PFC enabled where the driver lists no others.
func (st *NetdevState) show(counts []wire.NetdevCount) {
	for i := range counts {
		if c := &counts[i]; c.ByPriority() &&
			(c.Value > 0 || c.What == wire.PFCPauseFrames && listsEnabledOnly[st.Driver]) {
			st.shown |= 1 << c.Index
		}
	}
}

// StatsRetention is how long statistics are served without a new read. Older counters would stop and then jump.
const StatsRetention = time.Minute

// NetdevTarget is a netdev that can be read.
type NetdevTarget struct {
	Device         string
	Port           int
	Netdev, Driver string
}

// TargetOf returns the target of a netdev of a device.
func TargetOf(device string, n reading.PortNetdev) NetdevTarget {
	return NetdevTarget{device, n.Port, n.Name, n.Driver}
}
