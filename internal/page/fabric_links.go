package page

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
)

// FabricLink is a link that is there, or was. What is not known is left out.
type FabricLink struct {
	Ends    [2]LinkEnd `json:"ends"`              // a switch first
	Problem string     `json:"problem,omitempty"` // the worst: problems
	Does    *Lanes     `json:"does,omitempty"`
	Both    *Lanes     `json:"both_enabled,omitempty"` // what both ends have enabled, and support
	Could   *Lanes     `json:"both_support,omitempty"`
}

// LinkEnd is a port at the end of a link.
type LinkEnd struct {
	GUID     string            `json:"node_guid"`
	Node     string            `json:"node"`
	Type     string            `json:"node_type"`
	Port     int               `json:"port"`
	State    string            `json:"state,omitempty"`
	Physical string            `json:"physical_state,omitempty"`
	Enabled  *Lanes            `json:"enabled,omitempty"`
	Risen    map[string]uint64 `json:"counters,omitempty"` // of errors, that rose since counters_since: rdma_fabric_port_NAME_total

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
	return joined(" ", bits(l.Rate), l.width())
}

func (l *Lanes) width() string { return joined(" ", count4X(l.Lanes), l.Speed) }

// lanes is nil where nothing is told.
func lanes(l mad.Link) *Lanes {
	if l.Widths == 0 || l.Speeds == 0 {
		return nil
	}
	return &Lanes{8 * l.Rate(), l.Widths.Lanes(), l.Speeds.Name()}
}

// problem is what may be the matter with a link, with the alert that tells of it after a while.
type problem struct {
	name   string
	health Health
	alert  string
	text   string // "the link is …"
}

// problems, the worst first. What is behind a switch that does not answer has its alert there.
var problems = []problem{
	{"gone", Warning, "RDMAFabricLinkGone", "gone"},
	{"degraded", Warning, "RDMAFabricLinkDegraded", "slower or narrower than both ends allow"},
	{"settings_differ", Info, "RDMAFabricLinkSettingsDiffer", "set lower at one end"},
	{"switch_unreachable", NotEvaluated, "", ""},
}

func problemNamed(name string) *problem {
	i := slices.IndexFunc(problems, func(p problem) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &problems[i]
}

// linkErrors are the counters that say that a link is bad; of the others some rise in good order, or for what happens elsewhere.
var linkErrors = []mad.Counter{
	mad.SymbolErrors, mad.LinkErrorRecoveries, mad.LinkDowned, mad.ReceiveErrors, mad.LocalLinkIntegrityErrors, mad.ExcessiveBufferOverrunErrors,
}

// noErrors are counters that rise in good order.
var noErrors = []mad.Counter{mad.TransmitWait, mad.TransmitData, mad.ReceiveData, mad.ReceiveSwitchRelayErrors}

func (e *LinkEnd) linkErrors() (n uint64) {
	for _, k := range linkErrors {
		n += e.Risen[fabric.CounterName(k)]
	}
	return n
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
		if f.picture.Fabric != nil {
			f.judge(&l, a, missing[a], types)
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
	out.State, out.Physical = name(portStates, &state), name(physicalStates, &physical)
	out.Enabled = lanes(p.Info.Enabled)
	out.Risen = risen(f.picture, e)
	return out
}

// risen are the counters of errors that rose.
func risen(p *fabric.Picture, e fabric.End) map[string]uint64 {
	c, ok := p.Risen[e]
	if !ok {
		return nil
	}
	out := map[string]uint64{}
	for k := range mad.NumCounters {
		if v, rose := c.Get(k); rose && fabric.CounterName(k) != "" && !slices.Contains(noErrors, k) {
			out[fabric.CounterName(k)] = v
		}
	}
	return out
}

// judge says what the link does, and what is the matter with it.
func (f *Fabric) judge(l *FabricLink, e fabric.End, gone bool, types map[fabric.GUID]mad.NodeType) {
	g := f.picture.Fabric
	p := g.Port(e)
	if p == nil {
		p = g.Port(l.Ends[1].end)
	}
	if p != nil && p.Info.Up() {
		l.Does = lanes(p.Info.Active)
	}
	if supported, enabled, ok := g.Common(e); ok {
		l.Both, l.Could = lanes(enabled), lanes(supported)
	}
	lost := slices.ContainsFunc(l.Ends[:], func(x LinkEnd) bool { return types[x.end.GUID] == mad.Switch && !f.reached(x.end.GUID) })
	switch {
	case lost:
		l.Problem = "switch_unreachable"
	case gone:
		l.Problem = "gone"
	case g.Degraded(e):
		l.Problem = "degraded"
	case g.Differs(e):
		l.Problem = "settings_differ"
	}
}
