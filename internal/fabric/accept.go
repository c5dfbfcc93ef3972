package fabric

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/mad"
)

var errNotSeen = errors.New("the fabric is not reachable at present: missing links and nodes cannot be determined")

// accept removes what was taken away or moved on purpose, and returns it: missing and rewired links by one of their
// ends (NODE/PORT) or all, and unreachable nodes by name or GUID, with all their links. Nodes that no remaining link
// leads to are removed with them. If any name is wrong, nothing is removed.
func (m *Memory) accept(f *Fabric, names []string, all bool) (forgotten []string, err error) {
	if f == nil {
		return nil, errNotSeen
	}
	var links []*KnownLink
	var nodes []GUID
	for _, name := range names {
		n, l, wrong := m.named(f, name)
		nodes, links, err = append(nodes, n...), append(links, l...), errors.Join(err, wrong)
	}
	if err != nil {
		return nil, err
	}
	of := m.endsOf()
	for _, guid := range nodes {
		links = append(links, m.linksOf(of[guid])...)
	}
	if all {
		for _, ends := range of {
			links = append(links, m.acceptable(f, m.linksOf(ends))...)
		}
		nodes = sortedNodes(m.nodes)
	}
	done := map[*KnownLink]bool{}
	forget := func(links []*KnownLink) {
		for i := 0; i < len(links); i++ { // links grows
			l := links[i]
			if done[l] {
				continue
			}
			done[l] = true
			a, b := l.A, l.B
			if m.nodes[b.GUID].Type == mad.Switch && m.nodes[a.GUID].Type != mad.Switch {
				a, b = b, a
			}
			forgotten = append(forgotten, fmt.Sprintf("%s to %s", m.name(a), m.name(b)))
			nodes = append(nodes, l.A.GUID, l.B.GUID)
			for _, k := range m.linksOf([]End{l.A, l.B}) { // what was rewired to this link would be missing without it
				if m.isRewired(k) {
					links = append(links, k)
				}
			}
			m.remove(l)
		}
	}
	forget(links)
	held := m.held(f, of)
	for i := 0; i < len(nodes); i++ { // nodes grows
		guid := nodes[i]
		n, ok := m.nodes[guid]
		if !ok || held[guid] {
			continue
		}
		forget(m.linksOf(of[guid]))
		forgotten = append(forgotten, fmt.Sprintf("%s %s (%s)",
			strings.ReplaceAll(n.Type.String(), "_", " "), n.Description, guid))
		delete(m.nodes, guid)
	}
	slices.Sort(forgotten)
	return forgotten, nil
}

// linksOf returns the links of ports.
func (m *Memory) linksOf(ends []End) (out []*KnownLink) {
	for _, e := range ends {
		out = append(out, m.links[e]...)
	}
	return out
}

// acceptable returns the links that are missing or rewired.
func (m *Memory) acceptable(f *Fabric, links []*KnownLink) []*KnownLink {
	return slices.DeleteFunc(links, func(l *KnownLink) bool { return !m.isRewired(l) && !m.isMissing(f, l) })
}

// held returns the nodes that were reached, and those that may be reached over remaining links through switches. An
// adapter port that has not answered holds no further node: it is queried from its far end only.
func (m *Memory) held(f *Fabric, of map[GUID][]End) map[GUID]bool {
	held := map[GUID]bool{}
	queue := slices.Collect(maps.Keys(f.Nodes))
	for i := 0; i < len(queue); i++ { // queue grows
		guid := queue[i]
		if held[guid] {
			continue
		}
		held[guid] = true
		for _, e := range of[guid] {
			if m.nodes[guid].Type != mad.Switch && f.Port(e) == nil {
				continue
			}
			for _, l := range m.links[e] {
				queue = append(queue, l.Other(e).GUID)
			}
		}
	}
	return held
}

// name returns a port as NODE/PORT.
func (m *Memory) name(e End) string { return fmt.Sprintf("%s/%d", m.nodes[e.GUID].Description, e.Port) }

// endsOf returns the ports with a remembered link, by node.
func (m *Memory) endsOf() map[GUID][]End {
	out := map[GUID][]End{}
	for e := range m.links {
		out[e.GUID] = append(out[e.GUID], e)
	}
	return out
}

// called returns the nodes with a name, a GUID, or both. The page shows both where nodes share a name.
func (m *Memory) called(name string) (out []GUID) {
	for guid, n := range m.nodes {
		if n.Description == name || guid.String() == name || n.Description+" "+guid.String() == name {
			out = append(out, guid)
		}
	}
	return out
}

// named resolves a name: an unreachable node, or a port with links that are missing or rewired.
func (m *Memory) named(f *Fabric, name string) (nodes []GUID, links []*KnownLink, err error) {
	if of := m.called(name); len(of) > 0 {
		switch {
		case len(of) > 1:
			return nil, nil, fmt.Errorf("%s: %d nodes have this name: use the GUID", name, len(of))
		case f.Nodes[of[0]] != nil:
			return nil, nil, fmt.Errorf("%s: the node is reachable: name a port of it whose link is gone, %s/PORT", name, name)
		}
		return of, nil, nil
	}
	at := strings.LastIndexByte(name, '/')
	if at < 0 {
		return nil, nil, fmt.Errorf("%s: no remembered node has this name or GUID: use NODE or NODE/PORT as shown on the page", name)
	}
	port, err := strconv.Atoi(name[at+1:])
	of := m.called(name[:at])
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %q is not a port number: use NODE/PORT", name, name[at+1:])
	case len(of) == 0:
		return nil, nil, fmt.Errorf("%s: no remembered node has the name or GUID %s: use NODE/PORT as shown on the page", name, name[:at])
	case len(of) > 1:
		return nil, nil, fmt.Errorf("%s: %d nodes have the name %s: use the GUID, GUID/PORT", name, len(of), name[:at])
	}
	links = m.acceptable(f, m.linksOf([]End{{of[0], port}}))
	if len(links) == 0 {
		return nil, nil, fmt.Errorf("%s: the link of this port is not missing", name)
	}
	return nil, links, nil
}
