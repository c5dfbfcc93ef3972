package fabricpage

import (
	"fmt"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

// linkTable is a table of links.
type linkTable struct {
	Name, Caption string
	Rows          []linkRow
	More          int // that are not shown
}

// linkRow is a row in a table of links.
type linkRow struct {
	Health    page.Health
	What      string // the problem
	Near, Far endText
	Does      page.Cell // the rate
	Both      string    // where it is not what the link does
	Use       page.Cell
	Errors    string
}

// endText is a port at the end of a link.
type endText struct{ Text, Href, State string }

// newLinkRow returns the row of a link, from one of its ends; base is the way from the page to the prefix of all paths.
func (f *Fabric) newLinkRow(l *Link, near, far *LinkEnd, base string) linkRow {
	out := linkRow{
		Health: l.Health, Near: near.describe(base), Far: far.describe(base), Does: l.rateCell(),
		Use: f.utilisationCell(l, near, far), Errors: describeErrors(f.errorWindow(), near.Risen, far.Risen),
	}
	out.What = words.Spaced(l.Problem)
	if l.Both != nil && (l.Does == nil || *l.Both != *l.Does) {
		out.Both = l.Both.describe()
	}
	if l.Problem == settingsDiffer && l.Ends[0].Enabled != nil && l.Ends[1].Enabled != nil {
		out.Both = l.Ends[0].Enabled.describe() + " and " + l.Ends[1].Enabled.describe()
	}
	return out
}

// describe returns the port in words; base is the way from the page to the prefix of all paths.
func (e *LinkEnd) describe(base string) endText {
	out := endText{Text: fmt.Sprintf("%s/%d", e.Node, e.Port)}
	if e.Type == mad.Switch.String() {
		out.Href = base + switchHref(e.GUID)
	}
	if e.State != "" && (e.State != snapshot.PortStates[snapshot.PortActive] ||
		e.Physical != snapshot.PhysicalStates[snapshot.PhysicalLinkUp]) {
		out.State = words.Join(", ", e.State, e.Physical)
	}
	if e.Now != "" {
		out.State = "now connected to " + e.Now
	}
	return out
}

// rateCell returns the cell with the rate of a link, which a link that is down does not have.
func (l *Link) rateCell() page.Cell {
	if l.Does != nil {
		return page.Cell{Text: l.Does.describe()}
	}
	for i := range l.Ends {
		if l.Ends[i].Now != "" {
			return page.NotApplicable
		}
		if s := l.Ends[i].State; s != "" && s != snapshot.PortStates[snapshot.PortActive] {
			return page.NotApplicable
		}
	}
	return page.UnknownCell("no answer from either end")
}

// utilisationCell returns the cell with what each end transmits, as a share of the rate: → to the far end, ← from it.
func (f *Fabric) utilisationCell(l *Link, near, far *LinkEnd) page.Cell {
	switch {
	case near.Utilisation != nil && far.Utilisation != nil:
		return page.Cell{
			Text:  fmt.Sprintf("→ %s ← %s", page.FormatPercent(*near.Utilisation), page.FormatPercent(*far.Utilisation)),
			Class: "flat",
		}
	case f.Time.IsZero():
		return page.Cell{}
	case l.Does == nil:
		return l.rateCell()
	case len(f.picture.Traffic) == 0:
		return page.UnknownCell("fewer than two sweeps with data counters")
	}
	return page.UnknownCell("no 64-bit data counters from these ports")
}

// formatLanes formats a number of lanes: 4X.
func formatLanes(lanes int) string { return fmt.Sprintf("%dX", lanes) }

// portRow is a row in the table of a switch's ports.
type portRow struct {
	linkRow
	Number         int
	State, Traffic string
	Totals         string // of counters that did not rise
}

// listPorts returns the rows of all ports of a switch that answers, else of those that had links. A port that was
// connected elsewhere has a row for each link.
func (f *Fabric) listPorts(guid, base string) (out []portRow) {
	links := map[fabric.End][]*Link{}
	most, id := 0, fabric.GUID(0)
	for i := range f.Links {
		for _, e := range f.Links[i].Ends {
			if e.GUID == guid {
				links[e.end] = append(links[e.end], &f.Links[i])
				id, most = e.end.GUID, max(most, e.Port)
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
		p := f.findPort(e)
		for _, l := range links[e] {
			out = append(out, f.newPortRow(e, p, l, base))
		}
		if p != nil && links[e] == nil {
			out = append(out, f.newPortRow(e, p, nil, base))
		}
	}
	return out
}

// findPort returns a port of the last sweep; nil if there is none.
func (f *Fabric) findPort(e fabric.End) *fabric.Port {
	if f.picture.Fabric == nil {
		return nil
	}
	return f.picture.Fabric.Port(e)
}

// newPortRow returns the row of a port.
func (f *Fabric) newPortRow(e fabric.End, p *fabric.Port, l *Link, base string) portRow {
	out := portRow{
		Number: e.Port, State: "unknown: no answer", Traffic: f.describeTraffic(e),
		linkRow: linkRow{Health: page.Inactive, Errors: describeErrors(f.errorWindow(), risenErrors(f.picture, e), nil)},
	}
	if p != nil {
		out.Totals = describeStanding(p.Counters, risenErrors(f.picture, e))
		state, physical := uint64(p.Info.State), uint64(p.Info.PhysicalState)
		out.State = words.Join(", ", snapshot.NameOf(snapshot.PortStates, &state),
			snapshot.NameOf(snapshot.PhysicalStates, &physical))
	}
	if l == nil {
		return out
	}
	near, far := &l.Ends[0], &l.Ends[1]
	if far.end == e {
		near, far = far, near
	}
	out.linkRow = f.newLinkRow(l, near, far, base)
	if near.Now != "" {
		out.State, out.Traffic, out.Totals = out.Near.State, "", ""
	}
	return out
}

// describeTraffic returns what a port sent and received on average since the counters are compared.
func (f *Fabric) describeTraffic(e fabric.End) string {
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
	rate := func(dwords uint64) string { return page.FormatRate(float64(dwords) * 32 / seconds) }
	return page.FormatDirections(rate(sent), rate(received))
}
