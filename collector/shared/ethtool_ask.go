package shared

import (
	"context"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
)

// AskEthtool makes an ethtool request for a netdev, which takes rtnl. made is false if an earlier request is slow or
// has not returned, or if the item is quarantined; an unsupported request returns the zero answer.
func AskEthtool[T any](
	r *reading.Reader, s source.Source, ask func(context.Context, string) (T, error), netdev string,
) (answer T, made bool) {
	got, made := reading.Ask(r, s, sysfs.EthtoolDir(netdev), s.Name(), netdev, ask)
	return counters.ValueOf(got), made
}

// NoteNetlink records the outcome of a request that has a fallback. A denied permission is reported.
func NoteNetlink(r reading.Reads, dir, name string, now time.Time, err error) {
	r.Quarantine.Note(dir, name, now, err)
	if err != nil && access.NotPermitted(err) {
		r.Issue(err)
	}
}

// Blocked reports whether rtnl is unavailable. The read is then tried again in the next round, at no cost.
func Blocked(err error) bool {
	reason := access.ReasonOf(err)
	return err != nil && (reason == access.BackedOff || reason == access.Stuck || reason == access.Late)
}

// CarrierChanges returns the carrier changes, without a lock.
func CarrierChanges(reader *reading.Reader, netdev string) (n uint64) {
	r := reader.From(source.Netdev)
	for _, name := range []string{"carrier_up_count", "carrier_down_count"} {
		n += counters.ValueOf(r.Count(sysfs.NetDir + netdev + "/" + name))
	}
	return n
}
