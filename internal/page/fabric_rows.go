package page

import (
	"fmt"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

// linkTable is a table of links.
type linkTable struct {
	Name, Caption string
	Rows          []linkRow
	More          int // that are not shown
}

type linkRow struct {
	Health    Health
	What      string // the problem
	Near, Far endText
	Does      value  // the rate
	Both      string // where it is not what the link does
	Use       value
	Errors    string
}

// endText is a port at the end of a link.
type endText struct{ Text, Href, State string }

// row is of a link, from one of its ends; base is the way from the page to the prefix of all paths.
func (f *Fabric) row(l *FabricLink, near, far *LinkEnd, base string) linkRow {
	out := linkRow{
		Health: l.Health, Near: near.text(base), Far: far.text(base), Does: l.rateText(), Use: f.utilisation(l, near, far),
		Errors: errorText(f.window(), near.Risen, far.Risen),
	}
	out.What = words.Spaced(l.Problem)
	if l.Both != nil && (l.Does == nil || *l.Both != *l.Does) {
		out.Both = l.Both.text()
	}
	if l.Problem == settingsDiffer && l.Ends[0].Enabled != nil && l.Ends[1].Enabled != nil {
		out.Both = l.Ends[0].Enabled.text() + " and " + l.Ends[1].Enabled.text()
	}
	return out
}

func (e *LinkEnd) text(base string) endText {
	out := endText{Text: fmt.Sprintf("%s/%d", e.Node, e.Port)}
	if e.Type == mad.Switch.String() {
		out.Href = base + switchHref(e.GUID)
	}
	if e.State != "" && (e.State != snapshot.PortStates[snapshot.PortActive] ||
		e.Physical != snapshot.PhysicalStates[snapshot.PhysicalLinkUp]) {
		out.State = words.Join(", ", e.State, e.Physical)
	}
	return out
}

// rateText is the rate of a link; one that is down has none.
func (l *FabricLink) rateText() value {
	if l.Does != nil {
		return value{Text: l.Does.text()}
	}
	for i := range l.Ends {
		if s := l.Ends[i].State; s != "" && s != snapshot.PortStates[snapshot.PortActive] {
			return notApplicable
		}
	}
	return unknown("no answer from either end")
}

// utilisation is what each end transmits, of the rate: → to the far end, ← from it.
func (f *Fabric) utilisation(l *FabricLink, near, far *LinkEnd) value {
	switch {
	case near.Utilisation != nil && far.Utilisation != nil:
		return value{Text: fmt.Sprintf("→ %s ← %s", percent(*near.Utilisation), percent(*far.Utilisation)), Class: "flat"}
	case f.Time.IsZero():
		return value{}
	case l.Does == nil:
		return l.rateText()
	case len(f.picture.Traffic) == 0:
		return unknown("fewer than two sweeps with data counters")
	}
	return unknown("no 64-bit data counters from these ports")
}

// count4X writes lanes as the field does.
func count4X(lanes int) string { return fmt.Sprintf("%dX", lanes) }

// fabricPort is a row of the table of a switch's ports.
type fabricPort struct {
	linkRow
	Number         int
	State, Traffic string
	Totals         string // of counters that did not rise
}

// portsOf are all ports of a switch that answers, else those that had links.
func (f *Fabric) portsOf(guid, base string) (out []fabricPort) {
	links := map[fabric.End]*FabricLink{}
	most, id := 0, fabric.GUID(0)
	for i := range f.Links {
		for _, e := range f.Links[i].Ends {
			if e.GUID == guid {
				links[e.end], id, most = &f.Links[i], e.end.GUID, max(most, e.Port)
			}
		}
	}
	for _, n := range f.picture.Known.Nodes {
		if n.GUID.String() == guid {
			id, most = n.GUID, max(most, n.Ports)
		}
	}
	for number := 1; number <= most; number++ {
		e := fabric.End{GUID: id, Port: number}
		if p, l := f.port(e), links[e]; p != nil || l != nil {
			out = append(out, f.portRow(e, p, l, base))
		}
	}
	return out
}

func (f *Fabric) port(e fabric.End) *fabric.Port {
	if f.picture.Fabric == nil {
		return nil
	}
	return f.picture.Fabric.Port(e)
}

func (f *Fabric) portRow(e fabric.End, p *fabric.Port, l *FabricLink, base string) fabricPort {
	out := fabricPort{
		Number: e.Port, State: "unknown: no answer", Traffic: f.traffic(e),
		linkRow: linkRow{Health: Inactive, Errors: errorText(f.window(), risen(f.picture, e), nil)},
	}
	if p != nil {
		out.Totals = standing(p.Counters, risen(f.picture, e))
		state, physical := uint64(p.Info.State), uint64(p.Info.PhysicalState)
		out.State = words.Join(", ", snapshot.NameOf(snapshot.PortStates, &state),
			snapshot.NameOf(snapshot.PhysicalStates, &physical))
	}
	switch {
	case l == nil:
	case l.Ends[1].end == e:
		out.linkRow = f.row(l, &l.Ends[1], &l.Ends[0], base)
	default:
		out.linkRow = f.row(l, &l.Ends[0], &l.Ends[1], base)
	}
	return out
}

// traffic is what a port sent and received on average since the counters are compared.
func (f *Fabric) traffic(e fabric.End) string {
	c, ok := f.picture.Risen[e]
	seconds := f.Time.Sub(f.Since).Seconds()
	if !ok || seconds <= 0 {
		return ""
	}
	sent, known := c.Get(perf.TransmitData)
	received, also := c.Get(perf.ReceiveData)
	if !known && !also {
		return ""
	}
	rate := func(words uint64) string { return bits(float64(words) * 32 / seconds) }
	return both(rate(sent), rate(received))
}
