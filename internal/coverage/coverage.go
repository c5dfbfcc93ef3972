package coverage

import (
	"slices"

	"rdma_exporter/internal/exposition"
)

// Reason says why a metric that applies to a host is not there.
type Reason string

// The reasons, the one first that most can be done about.
const (
	CollectorDisabled Reason = "collector_disabled" // the collector is switched off
	NotReadYet        Reason = "not_read_yet"       // its first collection has not finished
	Permission        Reason = "permission"         // this process may not read the source
	Failed            Reason = "failed"             // the read failed, or has not returned
	Unknown           Reason = "unknown"            // the metric says that the fact could not be read
	NotSupported      Reason = "not_supported"      // the kernel, the driver or the hardware does not tell
)

// reasons are all of them, in that order.
var reasons = [...]Reason{CollectorDisabled, NotReadYet, Permission, Failed, Unknown, NotSupported}

// Gap is an alert that cannot be judged.
type Gap struct {
	Alert   string
	Reason  Reason
	Metrics []string // for want of which it is, or selectors of the samples that say that it is unknown; sorted
	Partly  bool     // they are there for a part of the host, which is judged
	Source  string   // what is not read, host.Source by its name, where the reason is Permission, or NotReadYet of one source
	// Collector is the one that gave nothing, where the reason is CollectorDisabled, NotReadYet or Failed; empty if it gave its section.
	Collector string
}

// Report says of all alerts what becomes of them on a host. The others are judged.
type Report struct {
	Gaps []Gap
	Idle []string // do not apply to this host
}

// Round is what the collectors brought.
type Round struct {
	Families []exposition.Family // sorted by name
	// Collector says why a collector gave nothing, empty if it gave its section.
	Collector func(name string) Reason
	// Source says why what is asked of a source is not there, empty if nothing is known of it.
	Source func(name string) Reason
}

// Detector holds the alerts against rounds. It does not change.
type Detector struct {
	alerts  []Alert
	trees   []tree // of the alerts
	leaves  []leaf
	metrics []metric // sorted by name
	needed  int      // places of metrics in all trees
}

// New makes a detector. A metric that is not among metrics is never there.
func New(alerts []Alert, metrics []Metric) *Detector {
	d := &Detector{alerts: alerts}
	d.compile(metrics)
	return d
}

// Evaluate returns the alerts that cannot be evaluated in a round.
func (d *Detector) Evaluate(r Round) Report {
	l := look{Detector: d, round: r, families: d.find(r.Families), seen: make([]verdict, len(d.leaves)), known: make([]bool, len(d.leaves))}
	var out Report
	names := make([]string, 0, d.needed) // those of all gaps
	for i := range d.trees {
		switch v := l.tree(&d.trees[i]); v.state {
		case stateIdle:
			out.Idle = append(out.Idle, d.alerts[i].Name)
		case stateMissing:
			g := Gap{Alert: d.alerts[i].Name, Reason: v.reason, Partly: v.partly, Metrics: names[len(names):]}
			l.explain(&d.trees[i], &g)
			slices.Sort(g.Metrics)
			g.Metrics = slices.Clip(slices.Compact(g.Metrics))
			names = names[:len(names)+len(g.Metrics)]
			out.Gaps = append(out.Gaps, g)
		}
	}
	return out
}
