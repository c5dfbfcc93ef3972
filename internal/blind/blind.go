package blind

import (
	"cmp"
	"slices"
	"strings"

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
	NotSupported      Reason = "not_supported"      // the kernel, the driver or the hardware does not tell
)

// Reasons lists all of them.
func Reasons() []Reason {
	return []Reason{CollectorDisabled, NotReadYet, Permission, Failed, NotSupported}
}

// Gap is an alert that cannot be judged.
type Gap struct {
	Alert   string
	Reason  Reason
	Metrics []string // for want of which it is, sorted
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

// Metric is a metric that rules may read.
type Metric struct {
	Desc       *exposition.Desc
	Collectors []string // that have it; none: the exporter itself
}

// Detector holds the alerts against rounds. It does not change.
type Detector struct {
	alerts  []Alert
	metrics map[string]Metric
}

// New makes a detector. A metric that is not among metrics is never there.
func New(alerts []Alert, metrics []Metric) *Detector {
	d := &Detector{alerts: alerts, metrics: map[string]Metric{}}
	for _, m := range metrics {
		if known, ok := d.metrics[m.Desc.Name]; ok {
			m.Collectors = slices.Concat(known.Collectors, m.Collectors)
		}
		d.metrics[m.Desc.Name] = m
	}
	return d
}

// Judge says which alerts are blind in a round.
func (d *Detector) Judge(r Round) Report {
	l := look{Detector: d, round: r, seen: map[string]verdict{}}
	var out Report
	for _, a := range d.alerts {
		switch v := l.need(a.Need); v.state {
		case stateIdle:
			out.Idle = append(out.Idle, a.Name)
		case stateBlind:
			v.gap.Alert = a.Name
			slices.Sort(v.gap.Metrics)
			v.gap.Metrics = slices.Compact(v.gap.Metrics)
			out.Gaps = append(out.Gaps, v.gap)
		}
	}
	return out
}

type state uint8

const (
	stateSeen  state = iota
	stateBlind       // it applies and is not there
	stateIdle        // it does not apply
)

// verdict is a state, and of blindness the gap.
type verdict struct {
	state state
	gap   Gap
}

// look is a Detector at work on one round.
type look struct {
	*Detector
	round Round
	seen  map[string]verdict // by what is needed
}

func (l *look) need(n Need) verdict {
	switch {
	case n.Metric != "":
		return l.metric(n)
	case len(n.Any) > 0:
		return best(l.each(n.Any))
	default:
		return worst(l.each(n.All))
	}
}

func (l *look) each(needs []Need) []verdict {
	out := make([]verdict, len(needs))
	for i, n := range needs {
		out[i] = l.need(n)
	}
	return out
}

// worst is the verdict on what needs all: what does not apply in one respect does not apply, and what the host does not tell no permission
// brings. The gap has the metrics of all.
func worst(all []verdict) (out verdict) {
	for _, v := range all {
		switch {
		case v.state == stateIdle:
			return v
		case v.state == stateBlind && out.state == stateBlind:
			out.gap = join(later(out.gap, v.gap))
		case v.state == stateBlind:
			out = v
		}
	}
	return out
}

// best is the verdict on what needs one.
func best(all []verdict) verdict {
	out := verdict{state: stateIdle}
	for _, v := range all {
		switch {
		case v.state == stateSeen:
			return v
		case v.state == stateBlind && out.state == stateBlind:
			gap, other := later(out.gap, v.gap)
			out.gap = join(other, gap)
		case v.state == stateBlind:
			out = v
		}
	}
	return out
}

// later puts the gap first whose reason is the later one of Reasons: the one that less can be done about.
func later(a, b Gap) (Gap, Gap) {
	if slices.Index(Reasons(), b.Reason) > slices.Index(Reasons(), a.Reason) {
		return b, a
	}
	return a, b
}

// join gives a gap the metrics of another.
func join(a, b Gap) Gap {
	a.Metrics = slices.Concat(a.Metrics, b.Metrics)
	a.Partly = a.Partly && b.Partly
	return a
}

func (l *look) metric(n Need) verdict {
	k := n.Metric
	if len(n.Labels) > 0 {
		k = n.key()
	}
	if v, ok := l.seen[k]; ok {
		return v
	}
	v := l.judge(n)
	l.seen[k] = v
	return v
}

// judge says of a metric whether it is there, and if not, what that means.
func (l *look) judge(n Need) verdict {
	m := l.metrics[n.Metric]
	if m.Desc == nil {
		m.Desc = &exposition.Desc{}
	}
	of, partly, there := l.of(m), m.Desc.Never != "" && l.has(m.Desc.Never), l.has(n.Metric)
	told := there && l.told(n)
	blindFor := func(r Reason) verdict { return verdict{stateBlind, Gap{Reason: r, Metrics: []string{n.Metric}}} }
	if told && !partly {
		return verdict{}
	}
	if of != "" && family(of) != n.Metric && !partly && !l.has(of) {
		if v := l.metric(Need{Metric: family(of)}); v.state == stateBlind {
			return v
		}
		return verdict{state: stateIdle}
	}
	if r, collector := l.off(m); r != "" {
		v := blindFor(r)
		v.gap.Collector = collector
		return v
	}
	asked := l.asked(m, n)
	switch {
	case !told && (asked == Permission || asked == NotReadYet):
		v := blindFor(asked)
		v.gap.Source = m.Desc.Asks
		return v
	case partly:
		v := blindFor(NotSupported)
		v.gap.Partly = there
		return v
	case there, m.Desc.Beside != "" && l.has(m.Desc.Beside): // nothing has that label, or is so
		return verdict{}
	case family(of) == n.Metric:
		return verdict{state: stateIdle}
	}
	return blindFor(cmp.Or(asked, NotSupported))
}

// of is what a metric tells about: as its Desc says, else by its scope.
func (l *look) of(m Metric) string {
	switch m.Desc.Scope {
	case exposition.ScopeDevice, exposition.ScopePort, exposition.ScopeFunction, exposition.ScopeBond:
		return cmp.Or(m.Desc.Of, "rdma_device_info")
	case exposition.ScopeGPU:
		return cmp.Or(m.Desc.Of, "rdma_gpu_info")
	}
	return m.Desc.Of
}

// asked says how asking for what is needed went, as far as is known.
func (l *look) asked(m Metric, n Need) Reason {
	needed := func(label string) bool { return slices.Contains(n.Labels, label) }
	if m.Desc.Asks == "" || len(m.Desc.AskedLabels) > 0 && !slices.ContainsFunc(m.Desc.AskedLabels, needed) {
		return ""
	}
	return l.round.Source(m.Desc.Asks)
}

// off says which of a metric's collectors gave nothing, and why; empty if one did.
func (l *look) off(m Metric) (why Reason, collector string) {
	for _, collector = range m.Collectors {
		if why = l.round.Collector(collector); why == "" {
			return "", ""
		}
	}
	return why, collector
}

// family is the metric that a selector names.
func family(selector string) string {
	name, _, _ := strings.Cut(selector, "{")
	return name
}

// has says whether a selector, NAME or NAME{label="value"}, has a sample.
func (l *look) has(selector string) bool {
	name, matcher, labelled := strings.Cut(strings.TrimSuffix(selector, `"}`), "{")
	f, ok := l.find(name)
	if !ok || !labelled {
		return ok
	}
	label, value, _ := strings.Cut(matcher, `="`)
	return f.Has(label, value)
}

// told says whether a sample of a metric that is there has the labels that are needed.
func (l *look) told(n Need) bool {
	f, _ := l.find(n.Metric)
	return len(n.Labels) == 0 || f.Tells(n.Labels...)
}

func (l *look) find(name string) (exposition.Family, bool) {
	i, ok := slices.BinarySearchFunc(l.round.Families, name, func(f exposition.Family, name string) int {
		return strings.Compare(f.Head.Desc.Name, name)
	})
	if !ok {
		return exposition.Family{}, false
	}
	return l.round.Families[i], true
}
