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

// faults counts what could not be read, and logs a lasting fault when it starts and when it ends.
type faults struct {
	log   *slog.Logger
	tells bool // Options.Tells

	mu      sync.Mutex
	total   map[fault]float64
	lasting map[string]map[fault]bool // by collector: the faults of its last collection
	denied  map[denial]time.Time      // when it was last seen
	sources map[string]bool           // that were ever denied: whether they are
	needs   map[string]string         // what would permit those, as it was told last
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

// denialTime is how long a denial that is not seen lasts: some things are read once in a minute.
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
	for k := range before { // what is left alone has not mended
		if slices.ContainsFunc(res.node.Devices, func(d snapshot.DeviceRead) bool { return d.Device == k.device && d.Quarantined > 0 }) {
			now[k] = true
		}
	}
	for k := range now {
		if !before[k] {
			f.log.Warn("cannot read", "collector", k.collector, "device", k.device, "reason", k.reason, "first", example[k])
		}
	}
	for k := range before {
		if !now[k] {
			f.log.Info("can read again", "collector", k.collector, "device", k.device, "reason", k.reason)
		}
	}
	f.lasting[collector] = now
	f.permit(res.at)
	f.logDevices(res)
}

// panicked counts what stopped add itself, which may have been the log.
func (f *faults) panicked(collector string, err error) {
	f.mu.Lock()
	k := fault{collector: collector, reason: string(host.Panic)}
	f.total[k]++
	first := f.total[k] == 1
	f.mu.Unlock()
	if first {
		_ = host.Guard(func() error {
			f.log.Error("cannot account for a collection", "collector", collector, "err", err)
			return nil
		})
	}
}

// deny notes what is not permitted. That is no fault of the device, and does not change by itself: it is counted when it
// starts, and logged once a source.
func (f *faults) deny(collector string, i snapshot.Issue, at time.Time) {
	k := denial{collector, i.Device, i.Source}
	_, before := f.denied[k]
	f.denied[k], f.needs[i.Source] = at, i.Needs
	if before {
		return
	}
	f.total[fault{collector, i.Device, i.Reason}]++
	if !f.sources[i.Source] && !f.tells {
		f.log.Warn("not permitted", "collector", collector, "device", i.Device, "source", i.Source, "first", i.Err, "needs", i.Needs)
	}
	f.sources[i.Source] = true
}

// permit ends denials that are no longer seen.
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
			f.log.Info("permitted again", "source", source)
		}
	}
}

// denials says of each source that was ever denied whether it is.
func (f *faults) denials() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sources) == 0 {
		return nil
	}
	return maps.Clone(f.sources)
}

// remedies says of each source that is denied what would permit it.
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

// logDevices says which RDMA devices come and go.
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
		f.log.Info("no RDMA device on this host; watching for one")
	default:
		f.log.Info("RDMA devices", "count", len(names), "devices", names)
	}
	f.devices = names
}

// counts returns the totals in order.
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
