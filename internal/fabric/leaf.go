package fabric

import (
	"maps"
	"slices"

	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/site"
)

// Leaf is a switch with links to hosts and to switches. Rates are in bytes per second.
type Leaf struct {
	GUID     GUID
	Down     float64 // links to hosts that are up
	Up       float64 // links to switches that are up
	Expected float64 // all expected links to switches at the rate enabled at both ends; 0: none is up
	Missing  int     // expected links to switches that are down or connected elsewhere
}

// Ratio returns the oversubscription: the data rate of the links to hosts divided by that of the links to switches; 0
// if no link to a switch is up.
func (l *Leaf) Ratio() float64 {
	if l.Up == 0 {
		return 0
	}
	return l.Down / l.Up
}

// uplink is a link at the port of a leaf.
type uplink struct {
	end  End
	link *KnownLink
}

// leaves returns the leaf switches that have answered, by GUID. Expected are the uplinks of the site configuration, of
// other switches the remembered ones.
func (m *Memory) leaves(f *Fabric, c *site.Config) (out []Leaf) {
	downs, ups := map[GUID][]End{}, map[GUID][]uplink{}
	for e, links := range m.links {
		for _, l := range links {
			switch {
			case m.nodes[e.GUID].Type != mad.Switch || f.Nodes[e.GUID] == nil || m.isRewired(l):
			case m.nodes[l.Other(e).GUID].Type == mad.Switch:
				ups[e.GUID] = append(ups[e.GUID], uplink{e, l})
			case l == m.latest(e):
				downs[e.GUID] = append(downs[e.GUID], e)
			}
		}
	}
	for _, guid := range slices.Sorted(maps.Keys(downs)) {
		if len(ups[guid]) == 0 {
			continue
		}
		l := Leaf{GUID: guid}
		for _, e := range downs[guid] {
			if p := f.Port(e); p != nil && p.Info.Up() {
				l.Down += p.Info.Active.Rate()
			}
		}
		up, unknown := 0, 0
		for _, u := range ups[guid] {
			e := u.end
			p := f.Port(e)
			switch {
			case p == nil:
				unknown++
			case m.gone(f, u.link, e):
				l.Missing++
			default:
				up++
				l.Up += p.Info.Active.Rate()
				enabled := p.Info.Active.Rate()
				if _, both, ok := f.Common(e); ok {
					enabled = both.Rate()
				}
				l.Expected += enabled
			}
		}
		if want := c.Uplinks(m.nodes[guid].Description, guid.String()); want > 0 {
			l.Missing = max(0, want-up-unknown)
		}
		if up > 0 {
			l.Expected += l.Expected / float64(up) * float64(l.Missing)
		}
		out = append(out, l)
	}
	return out
}
