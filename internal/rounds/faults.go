package rounds

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// faults counts read errors, and logs the start and end of a lasting one.
type faults struct {
	log   *slog.Logger
	tells bool // Options.Tells

	mu      sync.Mutex
	total   map[fault]float64
	lasting map[string]map[fault]bool // by collector: faults in its last collection
	denied  map[denial]time.Time      // time when it last occurred
	sources map[string]bool           // sources that were ever denied: whether they still are
	needs   map[string]string         // the permission that those require, as last reported
	devices []string                  // as last logged
}

// fault is a label set of rdma_scrape_errors_total.
type fault struct {
	collector, device, reason string
}

// denial is a source that this process may not read.
type denial struct {
	collector, device, source string
}

// denialTime is how long a denial is considered current without recurring: some sources are read once a minute.
const denialTime = 5 * time.Minute

func newFaults(log *slog.Logger) *faults {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &faults{log: log, total: map[fault]float64{}, lasting: map[string]map[fault]bool{}, denied: map[denial]time.Time{}, sources: map[string]bool{}, needs: map[string]string{}}
}

func (f *faults) add(collector string, res *result, dropped map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := map[fault]bool{}
	example := map[fault]error{}
	for _, i := range res.node.Issues {
		if i.Reason == string(host.Permission) {
			f.deny(collector, i, res.at)
			continue
		}
		k := fault{collector, i.Device, i.Reason}
		f.total[k]++
		now[k] = true
		if example[k] == nil {
			example[k] = i.Err
		}
	}
	for reason, n := range dropped {
		k := fault{collector: collector, reason: reason}
		f.total[k] += float64(n)
		now[k] = true
	}
	if res.err != nil {
		k := fault{collector: collector, reason: "failed"}
		f.total[k]++
		now[k], example[k] = true, res.err
	}
	before := f.lasting[collector]
	for k := range before { // an item that is not read has not recovered
		if slices.ContainsFunc(res.node.Devices, func(d snapshot.DeviceRead) bool { return d.Device == k.device && d.Quarantined > 0 }) {
			now[k] = true
		}
	}
	for k := range now {
		if !before[k] {
			f.log.Warn("read failed", "collector", k.collector, "device", k.device, "reason", k.reason, "first", example[k])
		}
	}
	for k := range before {
		if !now[k] {
			f.log.Info("read works again", "collector", k.collector, "device", k.device, "reason", k.reason)
		}
	}
	f.lasting[collector] = now
	f.permit(res.at)
	f.logDevices(res)
}

// panicked counts a panic in add itself, possibly in logging.
func (f *faults) panicked(collector string, err error) {
	f.mu.Lock()
	k := fault{collector: collector, reason: string(host.Panic)}
	f.total[k]++
	first := f.total[k] == 1
	f.mu.Unlock()
	if first {
		_ = host.Guard(func() error {
			f.log.Error("accounting for a collection failed", "collector", collector, "err", err)
			return nil
		})
	}
}

// deny records a denied source. That is not a fault of the device and does not change by itself: it is counted at its start, and logged
// once per source.
func (f *faults) deny(collector string, i snapshot.Issue, at time.Time) {
	k := denial{collector, i.Device, i.Source}
	_, before := f.denied[k]
	f.denied[k], f.needs[i.Source] = at, i.Needs
	if before {
		return
	}
	f.total[fault{collector, i.Device, i.Reason}]++
	if !f.sources[i.Source] && !f.tells {
		f.log.Warn("permission denied", "collector", collector, "device", i.Device, "source", i.Source, "first", i.Err, "needs", i.Needs)
	}
	f.sources[i.Source] = true
}

// permit ends denials that no longer occur.
func (f *faults) permit(at time.Time) {
	if len(f.denied) == 0 {
		return
	}
	left := map[string]bool{}
	for k, seen := range f.denied {
		if at.Sub(seen) > denialTime {
			delete(f.denied, k)
			continue
		}
		left[k.source] = true
	}
	for source, denied := range f.sources {
		if denied && !left[source] {
			f.sources[source] = false
			f.log.Info("permission granted", "source", source)
		}
	}
}

// denials returns all sources that were ever denied, and whether they still are.
func (f *faults) denials() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sources) == 0 {
		return nil
	}
	return maps.Clone(f.sources)
}

// remedies returns the permission required by each denied source.
func (f *faults) remedies() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out map[string]string
	for source, denied := range f.sources {
		if denied {
			if out == nil {
				out = map[string]string{}
			}
			out[source] = f.needs[source]
		}
	}
	return out
}

// logDevices logs changes in the list of RDMA devices.
func (f *faults) logDevices(res *result) {
	if res.node.InfiniBand == nil {
		return
	}
	names := []string{}
	for _, d := range res.node.Devices {
		names = append(names, d.Device)
	}
	switch {
	case f.devices != nil && slices.Equal(names, f.devices):
		return
	case len(names) == 0:
		f.log.Info("no RDMA devices on this host; waiting for one")
	default:
		f.log.Info("RDMA devices", "count", len(names), "devices", names)
	}
	f.devices = names
}

// counts returns the totals, sorted.
func (f *faults) counts() (keys []fault, totals []float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.total {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.collector, b.collector), cmp.Compare(a.device, b.device), cmp.Compare(a.reason, b.reason))
	})
	for _, k := range keys {
		totals = append(totals, f.total[k])
	}
	return keys, totals
}
