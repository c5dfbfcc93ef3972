package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/evidence"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
)

// facts are the findings of a sweep, the worst first, each by the alert that fires for it after a while.
func (v *fabricView) facts() {
	add := func(h Health, fault, where, summary string, at evidence.FabricObject) {
		at.Host = v.Host
		f := evidence.OfFabric(fault, at)
		x := check.Finding{
			Alert: f.Alert, Summary: summary, Drain: check.DrainNo, Diagnose: short(f.Diagnose, maxText),
			Action: short(f.Action, maxText), DrainReason: f.DrainReason,
		}
		v.Facts = append(v.Facts, finding{Finding: x, Row: h, Health: h, Where: where, Runbook: runbookPath(f.Alert)})
	}
	whole := evidence.FabricObject{}
	if v.Failed != "" {
		add(Warning, "unseen", "", "Sweep failed: "+v.Failed, whole)
	}
	if v.Time.IsZero() {
		return
	}
	if len(v.Managers) == 0 || v.Managers[0].State != smStates[mad.SMMaster] {
		add(Critical, "no_subnet_manager", "", "No master subnet manager answers.", whole)
	}
	if lost := v.unreachable(); len(lost) > 0 {
		add(Critical, "switch_unreachable", andMore(lost[0].Node, len(lost)),
			either(len(lost), "1 switch is unreachable.", "%d switches are unreachable."),
			evidence.FabricObject{GUID: lost[0].GUID})
	}
	if n := v.silent(); n > 0 {
		add(Warning, "partly_seen", "", either(n, "1 request of the last sweep without an answer.",
			"%d requests of the last sweep without an answer."), whole)
	}
	for _, p := range problems {
		links := v.with(p.name)
		if len(links) == 0 || p.text == "" {
			continue
		}
		e := links[0].worseEnd()
		add(p.health, p.name, andMore(links[0].name(), len(links)),
			either(len(links), "1 link "+p.text+".", "%d links "+p.text+"."),
			evidence.FabricObject{GUID: e.GUID, Port: strconv.Itoa(e.Port)})
	}
	if n := len(v.picture.Loops); n > 0 {
		e := v.picture.Loops[0][0]
		add(Info, "credit_loop",
			andMore(fmt.Sprintf("%s/%d", v.names[e.GUID], e.Port), len(v.picture.Loops[0])),
			either(n, "1 credit loop suspected.", "%d credit loops suspected."), whole)
	}
	if leaves := v.oversubscribed(); len(leaves) > 0 {
		add(Info, "oversubscribed", andMore(leaves[0].Node, len(leaves)), either(len(leaves),
			"1 leaf switch has lost uplinks and is oversubscribed.",
			"%d leaf switches have lost uplinks and are oversubscribed."),
			evidence.FabricObject{GUID: leaves[0].GUID})
	}
	slices.SortStableFunc(v.Facts,
		func(a, b finding) int { return slices.Index(healths, a.Health) - slices.Index(healths, b.Health) })
}

// with are the links that have a problem, those with the most errors first.
func (f *Fabric) with(problem string) []*FabricLink {
	out := f.linksThat(func(l *FabricLink) bool { return l.Problem == problem })
	byErrors(out)
	return out
}

func (l *FabricLink) name() string {
	return fmt.Sprintf("%s/%d to %s/%d", l.Ends[0].Node, l.Ends[0].Port, l.Ends[1].Node, l.Ends[1].Port)
}

// worseEnd is the one that counts the most errors; the first where they count the same.
func (l *FabricLink) worseEnd() *LinkEnd {
	of := func(e *LinkEnd) uint64 { return e.rose(linkErrors) + e.rose(discards) }
	if of(&l.Ends[1]) > of(&l.Ends[0]) {
		return &l.Ends[1]
	}
	return &l.Ends[0]
}

// andMore is a name for several.
func andMore(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s and %d more", name, n-1)
}

// either is for one, or for many with their number.
func either(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}

// unreachable are the switches that the last sweep did not reach.
func (f *Fabric) unreachable() []FabricNode {
	return slices.DeleteFunc(slices.Clone(f.Unreachable), func(n FabricNode) bool { return n.Type != mad.Switch.String() })
}

// oversubscribed are the leaf switches that have lost uplinks, the worst first.
func (f *Fabric) oversubscribed() []Switch {
	out := slices.DeleteFunc(slices.Clone(f.Switches), func(s Switch) bool { return !s.oversubscribed })
	slices.SortStableFunc(out, func(a, b Switch) int { return cmp.Compare(*b.Oversubscription, *a.Oversubscription) })
	return out
}

// silent counts requests without an answer, those to subnet managers aside, which have a finding of their own.
func (f *Fabric) silent() (n int) {
	for what, k := range f.Unanswered {
		if what != string(fabric.AskManager) {
			n += k
		}
	}
	return n
}
