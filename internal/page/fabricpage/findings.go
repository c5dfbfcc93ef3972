package fabricpage

import (
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/page"
)

// problem is the problem of a link in one word. It follows from the findings. For a link that no rule evaluates, the
// sweep shows whether it is gone, and whether one end is set lower than the other.
type problem struct {
	name    string
	reasons []string // of findings: SYMPTOM/REASON
	brief   string   // "1 …"
}

// problems are all problems, the worst first. Links of an unreachable switch have no finding of their own; the switch
// has one.
var problems = []problem{
	{linkGone, []string{"fabric_link_degraded/gone"}, "gone"},
	{"flapping", []string{"fabric_link_degraded/flapping"}, "flapping"},
	{"degraded", []string{"fabric_link_degraded/rate"}, "degraded"},
	{"link_errors", []string{"fabric_link_errors/symbols", "fabric_link_errors/errors"}, "with link errors"},
	{"receive_errors", []string{"fabric_link_errors/receive"}, "with packet errors"},
	{"bit_errors", []string{"fabric_link_errors/ber"}, "with bit errors"},
	{"port_counters", []string{"fabric_link_errors/counters"}, "with discards or waiting"},
	{"rewired", []string{"fabric_link_degraded/rewired"}, "rewired"},
	{settingsDiffer, nil, "with lower settings at one end"},
	{unreachableSwitch, nil, "to an unreachable switch"},
}

const (
	linkGone       = "gone"
	settingsDiffer = "settings_differ"
	// unreachableSwitch is the problem of a link whose switch has the finding.
	unreachableSwitch = "switch_unreachable"
)

// findProblem returns the problem of a name; nil if there is none.
func findProblem(name string) *problem {
	i := slices.IndexFunc(problems, func(p problem) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &problems[i]
}

// problemRank returns the rank of a problem: the worst is 0, none is last.
func problemRank(name string) int {
	if i := slices.IndexFunc(problems, func(p problem) bool { return p.name == name }); i >= 0 {
		return i
	}
	return len(problems)
}

// groupByPort returns the findings on links and switches by the port in their labels, port 0 for a node; those of a
// host or the whole fabric are at the zero End.
func groupByPort(findings []check.Finding) map[fabric.End][]check.Finding {
	out := map[fabric.End][]check.Finding{}
	for _, f := range findings {
		e := endOf(f.Labels, "node_guid")
		out[e] = append(out[e], f)
	}
	return out
}

// endOf returns the port in labels; the zero End if they are of a host, or the whole fabric.
func endOf(labels map[string]string, node string) fabric.End {
	guid, err := strconv.ParseUint(strings.ReplaceAll(labels[node], ":", ""), 16, 64)
	if err != nil {
		guid = 0
	}
	port, _ := strconv.Atoi(labels["port"]) // 0: none
	return fabric.End{GUID: fabric.GUID(guid), Port: port}
}

// shareWithLinks gives the ends of links the finding of the switch that is their cause.
func shareWithLinks(findings map[fabric.End][]check.Finding, parts []map[string]string) {
	for _, p := range parts {
		link, common := endOf(p, "node_guid"), endOf(p, "end_guid")
		common.Port = 0
		for _, f := range findings[common] {
			if f.Labels["symptom"] == p["symptom"] && f.Labels["reason"] == p["reason"] {
				findings[link] = append(findings[link], f)
			}
		}
	}
}

// findHealth returns the worst severity of the findings of some kind on a port or a node, and the names of their
// alerts. Pending alerts count as Watching.
func (f *Fabric) findHealth(e fabric.End, is func(check.Finding) bool) (h page.Health, alerts []string) {
	h = page.OK
	for _, x := range f.pending[e] {
		if is(x) {
			h = page.Worst(h, page.PendingHealth(page.Health(x.Severity)))
		}
	}
	for _, x := range f.findings[e] {
		if !is(x) {
			continue
		}
		h = page.Worst(h, page.Health(x.Severity))
		if !slices.Contains(alerts, x.Alert) {
			alerts = append(alerts, x.Alert)
		}
	}
	return h, alerts
}

// evaluate sets health, alerts and problem of a link, first from the findings on its ends, then from the sweep.
func (l *Link) evaluate(f *Fabric, gone, differs, lost bool) {
	l.Health = page.OK
	if !page.IsEvaluated(f.in.Report) {
		l.Health = page.NotEvaluated
	}
	for i := range l.Ends {
		e := &l.Ends[i]
		// Of a port with a link and one that is missing, the alert says which.
		is := func(x check.Finding) bool { return !f.former[e.end] || (problemOf(x) == linkGone) == (e.Now != "") }
		h, alerts := f.findHealth(e.end, is)
		if h != page.OK {
			l.Health = page.Worst(l.Health, h)
		}
		l.Alerts = append(l.Alerts, alerts...)
		for _, x := range f.findings[e.end] {
			if is(x) {
				l.raiseProblem(problemOf(x))
			}
		}
	}
	slices.Sort(l.Alerts)
	l.Alerts = slices.Compact(l.Alerts)
	switch {
	case lost:
		l.Problem, l.Health = unreachableSwitch, page.NotEvaluated
	case gone:
		l.raiseProblem(linkGone)
		if wide := f.findWideFinding(l); wide != nil {
			l.Health, l.Alerts = page.Worst(l.Health, page.Health(wide.Severity)), append(l.Alerts, wide.Alert)
		} else {
			l.Health = page.Worst(l.Health, page.Info)
		}
	case differs:
		l.raiseProblem(settingsDiffer)
		l.Health = page.Worst(l.Health, page.Info)
	}
}

// raiseProblem sets a problem, if the link has none that is worse.
func (l *Link) raiseProblem(name string) {
	if name != "" && problemRank(name) < problemRank(l.Problem) {
		l.Problem = name
	}
}

// problemOf returns the problem of a finding; empty if it is not on a link.
func problemOf(x check.Finding) string {
	reason := x.Labels["symptom"] + "/" + x.Labels["reason"]
	i := slices.IndexFunc(problems, func(p problem) bool { return slices.Contains(p.reasons, reason) })
	if i < 0 {
		return ""
	}
	return problems[i].name
}

// findWideFinding returns the finding on a switch, a host or the fabric that covers a link which is gone; nil if there
// is none, or the link has its own finding.
func (f *Fabric) findWideFinding(l *Link) *check.Finding {
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
