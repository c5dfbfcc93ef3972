package page

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

// FabricLink is a link that is up, or was. Unknown fields are left out.
type FabricLink struct {
	Ends    [2]LinkEnd `json:"ends"` // a switch first
	Health  Health     `json:"health"`
	Alerts  []string   `json:"alerts,omitempty"`  // of the findings on it
	Problem string     `json:"problem,omitempty"` // the worst: problems
	Does    *Lanes     `json:"does,omitempty"`
	Both    *Lanes     `json:"both_enabled,omitempty"` // what both ends have enabled, and support
	Could   *Lanes     `json:"both_support,omitempty"`
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
	// Utilisation is what this end transmits, of the rate of the link, between the last two sweeps.
	Utilisation *float64 `json:"transmit_utilisation_ratio,omitempty"`
	// Wait is the share of that time in which it had data to send and sent none.
	Wait *float64 `json:"transmit_wait_ratio,omitempty"`

	end fabric.End
}

// Lanes is what a link does, may or can.
type Lanes struct {
	Rate  float64 `json:"rate_bits_per_second"`
	Lanes int     `json:"lanes"`
	Speed string  `json:"speed"`
}

// text writes it as "400 Gb/s 4X NDR".
func (l *Lanes) text() string {
	if l == nil {
		return ""
	}
	return words.Join(" ", bits(l.Rate), l.width())
}

func (l *Lanes) width() string { return words.Join(" ", count4X(l.Lanes), l.Speed) }

// lanes is nil where width or speed is missing.
func lanes(l mad.Link) *Lanes {
	if l.Widths == 0 || l.Speeds == 0 {
		return nil
	}
	return &Lanes{8 * l.Rate(), l.Widths.Lanes(), l.Speeds.Name()}
}

// utilise sets what each end transmits, from its own counters, else from those of the other end.
func (l *FabricLink) utilise(traffic map[fabric.End]fabric.Traffic) {
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

// links lists those that are there and those that are gone, by the names of their ends.
func (f *Fabric) links() {
	types := map[fabric.GUID]mad.NodeType{}
	for _, n := range f.picture.Known.Nodes {
		types[n.GUID] = n.Type
	}
	missing := map[fabric.End]bool{}
	for _, e := range f.picture.Missing {
		missing[e] = true
	}
	for _, k := range f.picture.Known.Links {
		a, b := k.A, k.B
		if types[b.GUID] == mad.Switch && types[a.GUID] != mad.Switch {
			a, b = b, a
		}
		l := FabricLink{Ends: [2]LinkEnd{f.linkEnd(a, types), f.linkEnd(b, types)}}
		l.Health = NotEvaluated
		if f.picture.Fabric != nil {
			f.measure(&l, a)
			lost := slices.ContainsFunc(l.Ends[:],
				func(x LinkEnd) bool { return types[x.end.GUID] == mad.Switch && !f.reached(x.end.GUID) })
			l.evaluate(f, missing[a], f.picture.Fabric.Differs(a), lost)
		}
		f.Links = append(f.Links, l)
	}
	slices.SortFunc(f.Links, func(a, b FabricLink) int {
		x, y := &a.Ends[0], &b.Ends[0]
		return cmp.Or(byNumber(x.Node, y.Node), cmp.Compare(x.GUID, y.GUID), cmp.Compare(x.Port, y.Port))
	})
}

func (f *Fabric) linkEnd(e fabric.End, types map[fabric.GUID]mad.NodeType) LinkEnd {
	out := LinkEnd{GUID: e.GUID.String(), Node: f.names[e.GUID], Type: types[e.GUID].String(), Port: e.Port, end: e}
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
	out.Enabled = lanes(p.Info.Enabled)
	out.Risen = risen(f.picture, e)
	if share, ok := f.picture.Waits[e]; ok {
		out.Wait = &share
	}
	return out
}

// measure sets the rates of a link and its utilisation.
func (f *Fabric) measure(l *FabricLink, e fabric.End) {
	g := f.picture.Fabric
	p := cmp.Or(g.Port(e), g.Port(l.Ends[1].end))
	if p != nil && p.Info.Up() {
		l.Does = lanes(p.Info.Active)
	}
	if supported, enabled, ok := g.Common(e); ok {
		l.Both, l.Could = lanes(enabled), lanes(supported)
	}
	l.utilise(f.picture.Traffic)
}
