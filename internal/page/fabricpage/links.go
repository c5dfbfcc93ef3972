package fabricpage

import (
	"cmp"
	"fmt"
	"slices"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

// Link is a link that is up, or was. Unknown fields are left out.
type Link struct {
	Ends    [2]LinkEnd  `json:"ends"` // a switch first
	Health  page.Health `json:"health"`
	Alerts  []string    `json:"alerts,omitempty"`  // of the findings on it
	Problem string      `json:"problem,omitempty"` // the worst: problems
	Does    *Lanes      `json:"does,omitempty"`
	Both    *Lanes      `json:"both_enabled,omitempty"` // what both ends have enabled, and support
	Could   *Lanes      `json:"both_support,omitempty"`
}

// LinkEnd is a port at the end of a link.
type LinkEnd struct {
	GUID     string `json:"node_guid"`
	Node     string `json:"node"`
	Type     string `json:"node_type"`
	Port     int    `json:"port"`
	State    string `json:"state,omitempty"`
	Physical string `json:"physical_state,omitempty"`
	Enabled  *Lanes `json:"enabled,omitempty"`
	// Of errors, that rose since counters_since: rdma_fabric_port_NAME_total.
	Risen map[string]uint64 `json:"counters,omitempty"`
	// Utilisation is the share of the link's rate that this end transmitted between the last two sweeps.
	Utilisation *float64 `json:"transmit_utilisation_ratio,omitempty"`
	// Wait is the share of that time in which it had data to send and sent none.
	Wait *float64 `json:"transmit_wait_ratio,omitempty"`
	// Now is the port, as NODE/PORT, that this one is connected to instead. State and counters are those of that link.
	Now string `json:"now,omitempty"`

	end fabric.End
}

// Lanes is a rate with the lanes and the speed that make it.
type Lanes struct {
	Rate  float64 `json:"rate_bits_per_second"`
	Lanes int     `json:"lanes"`
	Speed string  `json:"speed"`
}

// describe returns the rate as "400 Gb/s 4X NDR".
func (l *Lanes) describe() string {
	if l == nil {
		return ""
	}
	return words.Join(" ", page.FormatRate(l.Rate), l.describeWidth())
}

// describeWidth returns lanes and speed as "4X NDR".
func (l *Lanes) describeWidth() string { return words.Join(" ", formatLanes(l.Lanes), l.Speed) }

// newLanes returns the rate of a link; nil if width or speed is missing.
func newLanes(l mad.Link) *Lanes {
	if l.Widths == 0 || l.Speeds == 0 {
		return nil
	}
	return &Lanes{8 * l.Rate(), l.Widths.Lanes(), l.Speeds.Name()}
}

// setUtilisation sets the utilisation of both ends, from their own counters or else from those of the other end.
func (l *Link) setUtilisation(traffic map[fabric.End]fabric.Traffic) {
	if l.Does == nil || l.Does.Rate <= 0 {
		return
	}
	for i := range l.Ends {
		bits := -1.
		if t, ok := traffic[l.Ends[i].end]; ok {
			bits = t.Transmit
		} else if t, ok := traffic[l.Ends[1-i].end]; ok {
			bits = t.Receive
		}
		if bits >= 0 {
			ratio := min(1, bits/l.Does.Rate)
			l.Ends[i].Utilisation = &ratio
		}
	}
}

// addLinks adds the links that are up and those that are gone, sorted by the names of their ends.
func (f *Fabric) addLinks() {
	types := map[fabric.GUID]mad.NodeType{}
	for _, n := range f.picture.Known.Nodes {
		types[n.GUID] = n.Type
	}
	missing := endsOf(f.picture.Missing)
	f.latest, f.former = f.picture.Known.Latest(), map[fabric.End]bool{}
	for _, l := range f.picture.Missing {
		for _, e := range []fabric.End{l.A, l.B} {
			now := f.latest[e]
			f.former[e] = f.former[e] || now.Other(e) != l.Other(e)
		}
	}
	for _, k := range f.links() {
		a, b := k.A, k.B
		if types[b.GUID] == mad.Switch && types[a.GUID] != mad.Switch {
			a, b = b, a
		}
		l := Link{Ends: [2]LinkEnd{f.newEnd(a, k, types), f.newEnd(b, k, types)}}
		l.Health = page.NotEvaluated
		if f.picture.Fabric != nil {
			gone := missing[[2]fabric.End{k.A, k.B}]
			if !gone {
				f.setRates(&l, a)
			}
			lost := slices.ContainsFunc(l.Ends[:],
				func(x LinkEnd) bool { return types[x.end.GUID] == mad.Switch && !f.isReached(x.end.GUID) })
			l.evaluate(f, gone, !gone && f.picture.Fabric.Differs(a), lost)
		}
		f.Links = append(f.Links, l)
	}
	slices.SortFunc(f.Links, func(a, b Link) int {
		x, y := &a.Ends[0], &b.Ends[0]
		return cmp.Or(page.CompareNames(x.Node, y.Node), cmp.Compare(x.GUID, y.GUID), cmp.Compare(x.Port, y.Port))
	})
}

// links returns the remembered links without those that others have replaced at both ends.
func (f *Fabric) links() []fabric.KnownLink {
	rewired := endsOf(f.picture.Rewired)
	return slices.DeleteFunc(slices.Clone(f.picture.Known.Links),
		func(l fabric.KnownLink) bool { return rewired[[2]fabric.End{l.A, l.B}] })
}

// endsOf returns the ends of links.
func endsOf(links []fabric.KnownLink) map[[2]fabric.End]bool {
	out := map[[2]fabric.End]bool{}
	for _, l := range links {
		out[[2]fabric.End{l.A, l.B}] = true
	}
	return out
}

// newEnd returns the port at an end of a link.
func (f *Fabric) newEnd(e fabric.End, of fabric.KnownLink, types map[fabric.GUID]mad.NodeType) LinkEnd {
	out := LinkEnd{GUID: e.GUID.String(), Node: f.nameNodes[e.GUID], Type: types[e.GUID].String(), Port: e.Port, end: e}
	if now := f.latest[e]; now.Other(e) != of.Other(e) {
		to := now.Other(e)
		out.Now = fmt.Sprintf("%s/%d", f.nameNodes[to.GUID], to.Port)
		return out
	}
	if f.picture.Fabric == nil {
		return out
	}
	p := f.picture.Fabric.Port(e)
	if p == nil {
		return out
	}
	state, physical := uint64(p.Info.State), uint64(p.Info.PhysicalState)
	out.State = snapshot.NameOf(snapshot.PortStates, &state)
	out.Physical = snapshot.NameOf(snapshot.PhysicalStates, &physical)
	out.Enabled = newLanes(p.Info.Enabled)
	out.Risen = risenErrors(f.picture, e)
	if share, ok := f.picture.Waits[e]; ok {
		out.Wait = &share
	}
	return out
}

// setRates sets the rates of a link and its utilisation.
func (f *Fabric) setRates(l *Link, e fabric.End) {
	g := f.picture.Fabric
	p := cmp.Or(g.Port(e), g.Port(l.Ends[1].end))
	if p != nil && p.Info.Up() {
		l.Does = newLanes(p.Info.Active)
	}
	if supported, enabled, ok := g.Common(e); ok {
		l.Both, l.Could = newLanes(enabled), newLanes(supported)
	}
	l.setUtilisation(f.picture.Traffic)
}
