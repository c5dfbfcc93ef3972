package page

import (
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/fabric"
)

// problem is what is wrong with a link, in a word. Findings decide it; of what no rule evaluates, a sweep shows whether
// a link is gone, and whether one end is set lower than the other.
type problem struct {
	name    string
	reasons []string // of findings: SYMPTOM/REASON
	brief   string   // "1 …"
}

// problems, the worst first. Links of an unreachable switch have no finding of their own: the switch has.
var problems = []problem{
	{linkGone, []string{"fabric_link_degraded/gone"}, "gone"},
	{"flapping", []string{"fabric_link_degraded/flapping"}, "flapping"},
	{"degraded", []string{"fabric_link_degraded/rate"}, "degraded"},
	{"link_errors", []string{"fabric_link_errors/symbols", "fabric_link_errors/errors"}, "with link errors"},
	{"receive_errors", []string{"fabric_link_errors/receive"}, "with packet errors"},
	{"bit_errors", []string{"fabric_link_errors/ber"}, "with bit errors"},
	{"port_counters", []string{"fabric_link_errors/counters"}, "with discards or waiting"},
	{settingsDiffer, nil, "with lower settings at one end"},
	{unreachableSwitch, nil, "to an unreachable switch"},
}

const (
	linkGone       = "gone"
	settingsDiffer = "settings_differ"
	// unreachableSwitch is the problem of a link whose switch has the finding.
	unreachableSwitch = "switch_unreachable"
)

func problemNamed(name string) *problem {
	i := slices.IndexFunc(problems, func(p problem) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &problems[i]
}

// problemRank orders problems, the worst first, and none last.
func problemRank(name string) int {
	if i := slices.IndexFunc(problems, func(p problem) bool { return p.name == name }); i >= 0 {
		return i
	}
	return len(problems)
}

// byPort are the findings on links and switches by the port in their labels, port 0 for a node; those of a host or the
// whole fabric are at the zero End.
func byPort(findings []check.Finding) map[fabric.End][]check.Finding {
	out := map[fabric.End][]check.Finding{}
	for _, f := range findings {
		guid, err := strconv.ParseUint(strings.ReplaceAll(f.Labels["node_guid"], ":", ""), 16, 64)
		if err != nil {
			guid = 0 // of a host, or the whole fabric
		}
		port, _ := strconv.Atoi(f.Labels["port"]) // 0: none
		e := fabric.End{GUID: fabric.GUID(guid), Port: port}
		out[e] = append(out[e], f)
	}
	return out
}

// found is the worst severity of the findings on a port or a node, and the names of their alerts; what is pending is
// watched.
func (f *Fabric) found(e fabric.End) (h Health, alerts []string) {
	h = OK
	for _, x := range f.pending[e] {
		h = worst(h, pendingRow(Health(x.Severity)))
	}
	for _, x := range f.findings[e] {
		h = worst(h, Health(x.Severity))
		if !slices.Contains(alerts, x.Alert) {
			alerts = append(alerts, x.Alert)
		}
	}
	return h, alerts
}

// evaluate sets health, alerts and problem of a link by the findings on its ends, then by what the sweep shows.
func (l *FabricLink) evaluate(f *Fabric, gone, differs, lost bool) {
	l.Health = OK
	if !evaluated(f.in.Report) {
		l.Health = NotEvaluated
	}
	for i := range l.Ends {
		h, alerts := f.found(l.Ends[i].end)
		if h != OK {
			l.Health = worst(l.Health, h)
		}
		l.Alerts = append(l.Alerts, alerts...)
		for _, x := range f.findings[l.Ends[i].end] {
			l.worse(problemOf(x))
		}
	}
	slices.Sort(l.Alerts)
	l.Alerts = slices.Compact(l.Alerts)
	switch {
	case lost:
		l.Problem, l.Health = unreachableSwitch, NotEvaluated
	case gone:
		l.worse(linkGone)
		if wide := f.wideGone(l); wide != nil {
			l.Health, l.Alerts = worst(l.Health, Health(wide.Severity)), append(l.Alerts, wide.Alert)
		} else {
			l.Health = worst(l.Health, Info)
		}
	case differs:
		l.worse(settingsDiffer)
		l.Health = worst(l.Health, Info)
	}
}

// worse sets a problem, if the link has none that is worse.
func (l *FabricLink) worse(name string) {
	if name != "" && problemRank(name) < problemRank(l.Problem) {
		l.Problem = name
	}
}

// problemOf is that of a finding; empty: none of a link.
func problemOf(x check.Finding) string {
	reason := x.Labels["symptom"] + "/" + x.Labels["reason"]
	i := slices.IndexFunc(problems, func(p problem) bool { return slices.Contains(p.reasons, reason) })
	if i < 0 {
		return ""
	}
	return problems[i].name
}

// wideGone is the finding on several links, of a switch, a host or the fabric, that a link which is gone is among; nil:
// there is none, or the link has its own.
func (f *Fabric) wideGone(l *FabricLink) *check.Finding {
	if slices.Contains(l.Alerts, "RDMAFabricLinkDegraded") {
		return nil
	}
	of := slices.Clone(f.findings[fabric.End{}])
	for i := range l.Ends {
		of = append(of, f.findings[fabric.End{GUID: l.Ends[i].end.GUID}]...)
	}
	for i := range of {
		x := &of[i]
		host := x.Labels["system"]
		atHost := slices.ContainsFunc(l.Ends[:], func(e LinkEnd) bool { return strings.HasPrefix(e.Node+" ", host+" ") })
		if problemOf(*x) == linkGone && (host == "" || atHost) {
			return x
		}
	}
	return nil
}
