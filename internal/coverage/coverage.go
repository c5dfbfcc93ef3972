package coverage

import (
	"slices"

	"rdma_exporter/internal/exposition"
)

// Reason is the reason why a metric that applies to a host is missing.
type Reason string

// The reasons, the easiest to remedy first.
const (
	Paused            Reason = "paused"             // reading the source is paused on request
	CollectorDisabled Reason = "collector_disabled" // the collector is disabled
	Limit             Reason = "limit"              // devices beyond a limit are left out
	NotReadYet        Reason = "not_read_yet"       // its first collection has not finished
	Permission        Reason = "permission"         // this process may not read the source
	Failed            Reason = "failed"             // the read failed, or has not returned
	Unknown           Reason = "unknown"            // the fact could not be read, according to the metric
	NotSupported      Reason = "not_supported"      // not exposed by the kernel, the driver or the hardware
)

// reasons are all reasons in that order.
var reasons = [...]Reason{Paused, CollectorDisabled, Limit, NotReadYet, Permission, Failed, Unknown, NotSupported}

// Gap is an alert that is not evaluated.
type Gap struct {
	Alert   string
	Fault   string // which of its faults; empty: all
	Reason  Reason
	Metrics []string // missing metrics, or selectors of the samples that mean unknown; sorted
	Partly  bool     // evaluated only for a part of the host
	Source  string   // source that is not read (a source.Source by name), for Permission, or for NotReadYet of one source
	// Collector is the collector without a result, for CollectorDisabled, NotReadYet or Failed; empty if it has one.
	Collector string
}

// Report is the coverage of a host. Alerts not listed are evaluated.
type Report struct {
	Gaps []Gap
	Idle []string // alerts that do not apply to this host, as Alert.String
}

// Round is the result of the collectors.
type Round struct {
	Families []exposition.Family // sorted by name
	// Collector returns the reason why a collector has no result; empty if it has one.
	Collector func(name string) Reason
	// Source returns the reason why data of a source is missing; empty: unknown.
	Source func(name string) Reason
	// LeftOut means that devices are missing because of a limit.
	LeftOut bool
}

// Detector compares the requirements of alerts with the metrics of rounds. It is immutable.
type Detector struct {
	alerts  []Alert
	trees   []tree // of the alerts
	leaves  []required
	metrics []metric // sorted by name
	needed  int      // number of metrics in all trees
}

// New returns a detector. Metrics that are not in metrics are always missing.
func New(alerts []Alert, metrics []Metric) *Detector {
	d := &Detector{alerts: alerts}
	d.compile(metrics)
	return d
}

// Evaluate returns the alerts that cannot be evaluated in a round.
func (d *Detector) Evaluate(r Round) Report {
	l := evaluation{
		Detector: d, round: r, families: d.findFamilies(r.Families), seen: make([]verdict, len(d.leaves)),
		known: make([]bool, len(d.leaves)),
	}
	var out Report
	names := make([]string, 0, d.needed) // of all gaps
	for i := range d.trees {
		switch v := l.evaluateTree(&d.trees[i]); v.state {
		case stateIdle:
			out.Idle = append(out.Idle, d.alerts[i].String())
		case stateMissing:
			g := Gap{
				Alert: d.alerts[i].Name, Fault: d.alerts[i].Fault, Reason: v.reason, Partly: v.partly, Metrics: names[len(names):],
			}
			l.explain(&d.trees[i], &g)
			slices.Sort(g.Metrics)
			g.Metrics = slices.Clip(slices.Compact(g.Metrics))
			names = names[:len(names)+len(g.Metrics)]
			out.Gaps = append(out.Gaps, g)
		}
	}
	return out
}
