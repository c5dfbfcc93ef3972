package fabric

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"rdma_exporter/internal/mad"
)

// Data is the memory of a fabric as it is stored: nodes and links with their names.
type Data struct {
	Nodes []KnownNode `json:"nodes"`
	Links []KnownLink `json:"links"`
}

// KnownNode is a node that has answered.
type KnownNode struct {
	GUID        GUID         `json:"guid"`
	Type        mad.NodeType `json:"type"`
	Description string       `json:"description"`
	Ports       int          `json:"ports"`
	Seen        time.Time    `json:"seen"` // last
}

// KnownLink is a link that was up.
type KnownLink struct {
	A    End       `json:"a"` // the lower one
	B    End       `json:"b"`
	Seen time.Time `json:"seen"` // last
}

// Memory holds the nodes and links of earlier sweeps. It is not safe for concurrent use: Monitor serialises access.
type Memory struct {
	nodes map[GUID]KnownNode
	links map[End]KnownLink // from both ends
}

// NewMemory restores stored data. If a port has two links, the later one is used.
func NewMemory(d Data) *Memory {
	m := &Memory{nodes: map[GUID]KnownNode{}, links: map[End]KnownLink{}}
	for _, n := range d.Nodes {
		m.nodes[n.GUID] = n
	}
	links := slices.Clone(d.Links)
	slices.SortStableFunc(links, func(a, b KnownLink) int { return a.Seen.Compare(b.Seen) })
	for _, l := range links {
		m.link(l)
	}
	return m
}

// Data returns what is to be stored, sorted.
func (m *Memory) Data() Data {
	var d Data
	for _, guid := range sortedNodes(m.nodes) {
		d.Nodes = append(d.Nodes, m.nodes[guid])
	}
	for e, l := range m.links {
		if e == l.A {
			d.Links = append(d.Links, l)
		}
	}
	slices.SortFunc(d.Links, func(a, b KnownLink) int { return cmp.Or(a.A.compare(b.A), a.B.compare(b.B)) })
	return d
}

// link adds a link and removes earlier links of its ends.
func (m *Memory) link(l KnownLink) {
	if l.B.compare(l.A) < 0 {
		l.A, l.B = l.B, l.A
	}
	for _, e := range []End{l.A, l.B} {
		if old, ok := m.links[e]; ok {
			delete(m.links, old.A)
			delete(m.links, old.B)
		}
	}
	m.links[l.A], m.links[l.B] = l, l
}

// Note adds the result of a sweep, and discards what was last seen before forget. It reports whether anything besides
// times has changed and has to be stored.
func (m *Memory) Note(f *Fabric, forget time.Time) bool {
	nodes, links := len(m.nodes), maps.Clone(m.links)
	changed := false
	for guid, n := range f.Nodes {
		before := m.nodes[guid]
		now := KnownNode{GUID: guid, Type: n.Type, Description: n.Description, Ports: n.NumPorts, Seen: f.At}
		if !n.named {
			now.Description = before.Description
		}
		m.nodes[guid] = now
		now.Seen = before.Seen
		changed = changed || now != before
	}
	for a, b := range f.Links {
		if a.compare(b) < 0 {
			m.link(KnownLink{a, b, f.At})
		}
	}
	maps.DeleteFunc(m.nodes, func(_ GUID, n KnownNode) bool { return n.Seen.Before(forget) })
	maps.DeleteFunc(m.links, func(_ End, l KnownLink) bool { return l.Seen.Before(forget) })
	same := maps.EqualFunc(links, m.links, func(a, b KnownLink) bool { return a.A == b.A && a.B == b.B })
	return changed || len(m.nodes) != nodes || !same
}

// Move moves all times with a wall clock that was set: otherwise nodes and links that are gone would be forgotten
// early, or never.
func (m *Memory) Move(by time.Duration) {
	for guid, n := range m.nodes {
		n.Seen = n.Seen.Add(by)
		m.nodes[guid] = n
	}
	for e, l := range m.links {
		l.Seen = l.Seen.Add(by)
		m.links[e] = l
	}
}

// Had reports whether a port has or had a link.
func (m *Memory) Had(e End) bool {
	_, ok := m.links[e]
	return ok
}

// other returns the far end of the remembered link of a port.
func (m *Memory) other(e End) (End, bool) {
	l, ok := m.links[e]
	if l.A == e {
		return l.B, ok
	}
	return l.A, ok
}

// missing returns the ends of links that are gone: a port at one end has answered, and is down or connected to another
// port. A link whose far end does not answer is not missing.
func (m *Memory) missing(f *Fabric) (out []End) {
	for e := range m.links {
		to, _ := m.other(e)
		if m.gone(f, e, to) || m.gone(f, to, e) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, End.compare)
	return out
}

// gone reports whether the answer of a port shows that its link to another one is gone.
func (m *Memory) gone(f *Fabric, e, to End) bool {
	p := f.Port(e)
	now, linked := f.Links[e]
	return p != nil && (!p.Info.Up() || linked && now != to)
}
