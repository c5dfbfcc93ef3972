package rounds

import (
	"maps"
	"slices"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/snapshot"
)

var (
	limitValue = &exposition.Desc{
		Name: "rdma_exporter_limit", Of: "rdma_exporter_limit", Type: exposition.Gauge, Scope: exposition.ScopeExporter,
		Help:   "Limit of the data. limit: devices (--limit.devices), series (--limit.series). Absent if it is disabled.",
		Labels: []string{"limit"}, Source: "the exporter",
	}
	limitExceeded = &exposition.Desc{
		Name: "rdma_exporter_limit_exceeded_by", Of: "rdma_exporter_limit", Type: exposition.Gauge,
		Scope:  exposition.ScopeExporter,
		Help:   "Devices or series that are left out because of a limit; 0: none. Virtual functions and subfunctions beside their physical function are left out first. Of a device all series are left out, or none.",
		Labels: []string{"limit"}, Source: "the exporter",
	}
)

// Limits are the maximum numbers of devices and of series; 0: no limit.
type Limits struct{ Devices, Series int }

// LeftOut is the number of devices and series beyond the limits.
type LeftOut struct{ Devices, Series int }

// limit leaves out all series of some devices until the rest is within the limit, and returns the number of series left
// out. Series that belong to no device remain.
func (l Limits) limit(families []exposition.Family, r *snapshot.Reduced) (left int) {
	n, of := 0, map[string]int{}
	for _, f := range families {
		for _, p := range f.Points {
			n += p.Samples()
		}
	}
	if l.Series == 0 || n <= l.Series {
		return 0
	}
	for _, f := range families {
		f.CountBy("device", of)
	}
	delete(of, "")
	out := map[string]bool{}
	for _, device := range slices.Backward(slices.SortedFunc(maps.Keys(of), r.Compare)) {
		if n-left <= l.Series {
			break
		}
		out[device] = true
		left += of[device]
	}
	for i, f := range families {
		families[i] = f.Without("device", out)
	}
	return left
}

// emit emits the limits, and by how much they are exceeded.
func (l Limits) emit(s *exposition.Sink, left LeftOut) {
	for _, x := range []struct {
		limit          string
		value, exceeds int
	}{{"devices", l.Devices, left.Devices}, {"series", l.Series, left.Series}} {
		if x.value > 0 {
			s.Emit(limitValue, float64(x.value), x.limit)
			s.Emit(limitExceeded, float64(x.exceeds), x.limit)
		}
	}
}
