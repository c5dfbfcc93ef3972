package rounds

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
)

// faults counts read errors, and logs the start and end of a lasting one.
type faults struct {
	log           *slog.Logger
	reportsDenied bool // Options.ReportsDenied

	mu      sync.Mutex
	total   map[fault]float64
	lasting map[string]map[fault]error // by collector: faults in its last collection, with the first error
	listing map[string]bool            // collectors that have listed devices: a device missing from the list is gone
	denied  map[denial]time.Time       // time when it last occurred
	sources map[string]bool            // sources that were ever denied: whether they still are
	needs   map[string]string          // the permission that they require, as last reported
	devices []string                   // as last logged
	late    bool                       // as last logged
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
	return &faults{
		log: log, total: map[fault]float64{}, lasting: map[string]map[fault]error{}, denied: map[denial]time.Time{},
		listing: map[string]bool{}, sources: map[string]bool{}, needs: map[string]string{},
	}
}

func (f *faults) add(collector string, res *result, dropped map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := map[fault]error{}
	for _, i := range res.node.Issues {
		if i.Reason == string(access.Permission) {
			f.deny(collector, i, res.at)
			continue
		}
		k := fault{collector, i.Device, i.Reason}
		f.total[k]++
		if _, again := now[k]; !again {
			now[k] = i.Err
		}
	}
	for reason, n := range dropped {
		k := fault{collector: collector, reason: reason}
		f.total[k] += float64(n)
		now[k] = droppedError(reason, n)
	}
	if res.err != nil {
		k := fault{collector: collector, reason: reasonWhole}
		f.total[k]++
		now[k] = res.err
	}
	before := f.lasting[collector]
	ended := map[fault]string{}
	for k, err := range before {
		if _, again := now[k]; again {
			continue
		}
		if ended[k] = f.describeEnd(k, res); ended[k] == "" {
			now[k] = err
		}
	}
	for _, k := range sortedFaults(now) {
		if _, lasts := before[k]; !lasts && k.reason != string(access.Late) {
			f.log.Warn("read failed", "collector", k.collector, "device", k.device, "reason", k.reason, "first", now[k])
		}
	}
	for _, k := range sortedFaults(ended) {
		if ended[k] != "" && k.reason != string(access.Late) {
			f.log.Info(ended[k], "collector", k.collector, "device", k.device, "reason", k.reason)
		}
	}
	f.lasting[collector] = now
	f.logLate(collector)
	if slices.ContainsFunc(res.node.Devices, isNamed) {
		f.listing[collector] = true
	}
	f.permit(res.at)
	f.logDevices(res)
}

// describeEnd returns the log message for a fault that is missing in a collection; empty: it lasts, since the item was
// not read.
func (f *faults) describeEnd(k fault, res *result) string {
	const recovered, gone = "read works again", "read error ends: the device is not listed any more"
	reads := res.node.Devices
	switch own := slices.IndexFunc(reads, func(d snapshot.DeviceRead) bool { return d.Device == k.device }); {
	case k.reason == reasonWhole && res.err == nil:
		return recovered
	case res.err != nil || len(res.node.Pending) > 0:
		return ""
	case own >= 0 && (isLost(reads[own]) || reads[own].Quarantined > 0):
		return ""
	case own >= 0:
		return recovered
	case k.device != "" && f.listing[k.collector]:
		return gone
	case k.device == "" && slices.ContainsFunc(reads, isLost):
		return "" // such as a dropped sample, which may be of that device
	}
	return recovered
}

// isLost reports whether a collection has no data of a device.
func isLost(d snapshot.DeviceRead) bool { return d.Stuck || d.Late || d.Discarded }

func isNamed(d snapshot.DeviceRead) bool { return d.Device != "" }

func sortedFaults[V any](of map[fault]V) []fault {
	return slices.SortedFunc(maps.Keys(of), func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.collector, b.collector), cmp.Compare(a.device, b.device), cmp.Compare(a.reason, b.reason))
	})
}

// reasonWhole is the reason of a collector without a result.
const reasonWhole = "failed"

// droppedError returns the error for samples that were dropped from a collection, with the reason from
// exposition.Sink.Dropped.
func droppedError(reason string, n int) error {
	why := map[string]string{
		"duplicate": "another sample has the same name and labels", "bad_value": "the value is not valid for the metric",
		"undeclared": "the collector does not declare the metric",
	}[reason]
	if n == 1 {
		return fmt.Errorf("1 sample dropped: %s", cmp.Or(why, reason))
	}
	return fmt.Errorf("%d samples dropped: %s", n, cmp.Or(why, reason))
}

// Failure is a read that fails, or samples of it that were dropped.
type Failure struct {
	Collector string
	Device    string // empty: not of a single device
	Reason    string // reason of rdma_scrape_errors_total
	Err       error  // the first of this reason
}

// String returns "collector infiniband, mlx5_0: parse …: malformed".
func (f Failure) String() string {
	of := "collector " + f.Collector
	if f.Device != "" {
		of += ", " + f.Device
	}
	return fmt.Sprintf("%s: %v", of, f.Err)
}

// listFailures returns the lasting faults, sorted. Unsupported and absent data is not a fault.
func (f *faults) listFailures() (out []Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, lasting := range f.lasting {
		for k, err := range lasting {
			if isFailure(k.reason) {
				out = append(out, Failure{k.collector, k.device, k.reason, err})
			}
		}
	}
	slices.SortFunc(out, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Collector, b.Collector), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// countPanic counts a panic in add itself, such as one in logging.
func (f *faults) countPanic(collector string, err error) {
	f.mu.Lock()
	k := fault{collector: collector, reason: string(access.Panic)}
	f.total[k]++
	first := f.total[k] == 1
	f.mu.Unlock()
	if first {
		_ = access.Guard(func() error {
			f.log.Error("accounting for a collection failed", "collector", collector, "err", err)
			return nil
		})
	}
}

// deny records a denied source. A denial is not a fault of the device and does not end by itself: it is counted at its
// start, and logged once per source.
func (f *faults) deny(collector string, i snapshot.Issue, at time.Time) {
	k := denial{collector, i.Device, i.Source}
	_, before := f.denied[k]
	f.denied[k], f.needs[i.Source] = at, i.Needs
	if before {
		return
	}
	f.total[fault{collector, i.Device, i.Reason}]++
	if !f.sources[i.Source] && !f.reportsDenied {
		f.log.Warn("permission denied", "collector", collector, "device", i.Device, "source", i.Source,
			"first", i.Err, "needs", i.Needs)
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

// listDenials returns all sources that were ever denied, and whether they still are.
func (f *faults) listDenials() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sources) == 0 {
		return nil
	}
	return maps.Clone(f.sources)
}

// listRemedies returns the permission required by each denied source.
func (f *faults) listRemedies() map[string]string {
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

// logLate logs the start and end of late reads, once for all devices and collectors together.
func (f *faults) logLate(collector string) {
	var first error
	for of, lasting := range f.lasting {
		for k, err := range lasting {
			if k.reason == string(access.Late) && (first == nil || of == collector) {
				first = err
			}
		}
	}
	switch {
	case first != nil && !f.late:
		f.log.Warn("reads do not end in time", "collector", collector, "first", first)
	case first == nil && f.late:
		f.log.Info("reads end in time again")
	}
	f.late = first != nil
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

// listTotals returns the numbers of faults since the start, sorted.
func (f *faults) listTotals() (keys []fault, totals []float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys = sortedFaults(f.total)
	for _, k := range keys {
		totals = append(totals, f.total[k])
	}
	return keys, totals
}
