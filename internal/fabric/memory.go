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

// Latest returns the link that each port has or is expected to have.
func (d Data) Latest() map[End]KnownLink {
	out := map[End]KnownLink{}
	for _, l := range d.Links {
		for _, e := range []End{l.A, l.B} {
			if known, ok := out[e]; !ok || l.Seen.After(known.Seen) {
				out[e] = l
			}
		}
	}
	return out
}

// KnownLink is a link that was up.
type KnownLink struct {
	A    End       `json:"a"` // the lower one
	B    End       `json:"b"`
	Seen time.Time `json:"seen"` // last
}

// Other returns the far end of a link.
func (l *KnownLink) Other(e End) End {
	if l.A == e {
		return l.B
	}
	return l.A
}

func compareLinks(a, b KnownLink) int { return cmp.Or(a.A.compare(b.A), a.B.compare(b.B)) }

// Memory holds the nodes and links of earlier sweeps. It is not safe for concurrent use: Monitor serialises access.
//
// A port may have several links: the latest is the one that it has or is expected to have. An end of a link is
// elsewhere if its port has a later one. A link is missing until both ends are elsewhere; then it is rewired.
type Memory struct {
	nodes map[GUID]KnownNode
	links map[End][]*KnownLink // from both ends, the latest first
}

// NewMemory restores stored data.
func NewMemory(d Data) *Memory {
	m := &Memory{nodes: map[GUID]KnownNode{}, links: map[End][]*KnownLink{}}
	for _, n := range d.Nodes {
		m.nodes[n.GUID] = n
	}
	links := slices.Clone(d.Links)
	slices.SortStableFunc(links, func(a, b KnownLink) int { return a.Seen.Compare(b.Seen) })
	for _, l := range links {
		if l.A != l.B {
			m.link(l.A, l.B, l.Seen)
		}
	}
	return m
}

// Data returns what is to be stored, sorted.
func (m *Memory) Data() Data {
	d := Data{Links: m.linksWhere(func(*KnownLink) bool { return true })}
	for _, guid := range sortedNodes(m.nodes) {
		d.Nodes = append(d.Nodes, m.nodes[guid])
	}
	return d
}

// linksWhere returns the links that meet a condition, sorted.
func (m *Memory) linksWhere(is func(l *KnownLink) bool) (out []KnownLink) {
	for e, links := range m.links {
		for _, l := range links {
			if e == l.A && is(l) {
				out = append(out, *l)
			}
		}
	}
	slices.SortFunc(out, compareLinks)
	return out
}

// link adds a link as the latest of its ends. It reports whether it was not that before, and returns the links that its
// ends had since it was there before.
func (m *Memory) link(a, b End, seen time.Time) (between []*KnownLink, changed bool) {
	if b.compare(a) < 0 {
		a, b = b, a
	}
	l := &KnownLink{A: a, B: b}
	if i := slices.IndexFunc(m.links[a], func(k *KnownLink) bool { return k.B == b && k.A == a }); i >= 0 {
		l = m.links[a][i]
	}
	l.Seen = seen
	if m.latest(a) == l && m.latest(b) == l {
		return nil, false
	}
	for _, e := range []End{a, b} {
		i := max(0, slices.Index(m.links[e], l))
		between = append(between, m.links[e][:i]...)
		rest := slices.DeleteFunc(m.links[e], func(k *KnownLink) bool { return k == l })
		m.links[e] = slices.Insert(rest, 0, l)
	}
	return between, true
}

// remove removes a link from both ends.
func (m *Memory) remove(l *KnownLink) {
	for _, e := range []End{l.A, l.B} {
		m.links[e] = slices.DeleteFunc(m.links[e], func(k *KnownLink) bool { return k == l })
		if len(m.links[e]) == 0 {
			delete(m.links, e)
		}
	}
}

// Note adds the result of a sweep, and discards what was last seen before forget. It reports whether anything besides
// times has changed and has to be stored.
func (m *Memory) Note(f *Fabric, forget time.Time) bool {
	// Times are those of the wall clock: the monotonic clock does not follow when that is set.
	at, forget := f.At.Round(0), forget.Round(0)
	if last := m.lastSeen(); last.After(at) {
		m.Move(at.Sub(last)) // the clock was set back during a restart: the order of links stays
	}
	before := len(m.nodes)
	changed := false
	for guid, n := range f.Nodes {
		before := m.nodes[guid]
		now := KnownNode{GUID: guid, Type: n.Type, Description: n.Description, Ports: n.NumPorts, Seen: at}
		if !n.named {
			now.Description = before.Description
		}
		m.nodes[guid] = now
		now.Seen = before.Seen
		changed = changed || now != before
	}
	var between []*KnownLink
	for a, b := range f.Links {
		if a.compare(b) < 0 {
			k, is := m.link(a, b, at)
			between, changed = append(between, k...), changed || is
		}
	}
	for _, l := range between { // wired as before: no change to report
		if m.isRewired(l) {
			m.remove(l)
		}
	}
	maps.DeleteFunc(m.nodes, func(_ GUID, n KnownNode) bool { return n.Seen.Before(forget) })
	for _, links := range m.links {
		for _, l := range slices.Clone(links) {
			if l.Seen.Before(forget) {
				m.remove(l)
				changed = true
			}
		}
	}
	return changed || len(m.nodes) != before
}

// lastSeen is the time of the last sweep that has found anything.
func (m *Memory) lastSeen() (out time.Time) {
	for _, n := range m.nodes {
		if n.Seen.After(out) {
			out = n.Seen
		}
	}
	return out
}

// Move moves all times with a wall clock that was set: otherwise nodes and links that are gone would be forgotten
// early, or never.
func (m *Memory) Move(by time.Duration) {
	for guid, n := range m.nodes {
		n.Seen = n.Seen.Add(by)
		m.nodes[guid] = n
	}
	for e, links := range m.links {
		for _, l := range links {
			if e == l.A {
				l.Seen = l.Seen.Add(by)
			}
		}
	}
}

// Had reports whether a port has or had a link.
func (m *Memory) Had(e End) bool { return len(m.links[e]) > 0 }

// latest returns the link that a port has or is expected to have; nil: it had none.
func (m *Memory) latest(e End) *KnownLink {
	if links := m.links[e]; len(links) > 0 {
		return links[0]
	}
	return nil
}

// isRewired reports whether both ends of a link have a later one.
func (m *Memory) isRewired(l *KnownLink) bool { return m.latest(l.A) != l && m.latest(l.B) != l }

// rewired returns the earlier links whose ends are both elsewhere.
func (m *Memory) rewired() []KnownLink { return m.linksWhere(m.isRewired) }

// missing returns the links that are gone: a port at one end has answered, and is down or elsewhere, and the other end
// is not known to be elsewhere. A link whose far end does not answer is not missing.
func (m *Memory) missing(f *Fabric) []KnownLink {
	return m.linksWhere(func(l *KnownLink) bool { return m.isMissing(f, l) })
}

func (m *Memory) isMissing(f *Fabric, l *KnownLink) bool {
	return !m.isRewired(l) && (m.gone(f, l, l.A) || m.gone(f, l, l.B))
}

// gone reports whether the answer of the port at an end of a link shows that the link is gone.
func (m *Memory) gone(f *Fabric, l *KnownLink, e End) bool {
	p := f.Port(e)
	return p != nil && (!p.Info.Up() || m.latest(e) != l)
}
