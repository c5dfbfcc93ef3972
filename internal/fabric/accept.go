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

var errNotSeen = errors.New("the fabric is not seen at present: what is gone is not known")

// accept forgets what was taken away on purpose, and says what that was: links that are gone, by one of their ends, NODE/PORT, or all; and nodes
// that are not reached, by name or GUID, with all their links. With them goes what no link that is left leads to. A name that is none of these
// forgets nothing at all.
func (m *Memory) accept(f *Fabric, names []string, all bool) (forgotten []string, err error) {
	if f == nil {
		return nil, errNotSeen
	}
	var ends []End
	var nodes []GUID
	for _, name := range names {
		n, e, wrong := m.named(f, name)
		nodes, ends, err = append(nodes, n...), append(ends, e...), errors.Join(err, wrong)
	}
	if err != nil {
		return nil, err
	}
	of := m.endsOf()
	for _, guid := range nodes {
		ends = append(ends, of[guid]...)
	}
	if all {
		ends, nodes = append(ends, m.missing(f)...), sortedNodes(m.nodes)
	}
	forget := func(e End) {
		if l, ok := m.links[e]; ok {
			a, b := l.A, l.B
			if m.nodes[b.GUID].Type == mad.Switch && m.nodes[a.GUID].Type != mad.Switch {
				a, b = b, a
			}
			forgotten = append(forgotten, fmt.Sprintf("%s to %s", m.name(a), m.name(b)))
			delete(m.links, l.A)
			delete(m.links, l.B)
			nodes = append(nodes, l.A.GUID, l.B.GUID)
		}
	}
	for _, e := range ends {
		forget(e)
	}
	held := m.held(f, of)
	for i := 0; i < len(nodes); i++ { // it grows
		guid := nodes[i]
		n, ok := m.nodes[guid]
		if !ok || held[guid] {
			continue
		}
		for _, e := range of[guid] {
			forget(e)
		}
		forgotten = append(forgotten, fmt.Sprintf("%s %s (%s)", strings.ReplaceAll(n.Type.String(), "_", " "), n.Description, guid))
		delete(m.nodes, guid)
	}
	slices.Sort(forgotten)
	return forgotten, nil
}

// held are the nodes that are reached, and those that links may still lead to, through switches. A port of an adapter that has not answered
// holds nothing: it is asked from the other end only.
func (m *Memory) held(f *Fabric, of map[GUID][]End) map[GUID]bool {
	held := map[GUID]bool{}
	queue := slices.Collect(maps.Keys(f.Nodes))
	for i := 0; i < len(queue); i++ { // it grows
		guid := queue[i]
		if held[guid] {
			continue
		}
		held[guid] = true
		for _, e := range of[guid] {
			if to, ok := m.other(e); ok && (m.nodes[guid].Type == mad.Switch || f.Port(e) != nil) {
				queue = append(queue, to.GUID)
			}
		}
	}
	return held
}

// name of a port as one types it.
func (m *Memory) name(e End) string { return fmt.Sprintf("%s/%d", m.nodes[e.GUID].Description, e.Port) }

// endsOf are the ports of nodes that have a link, or had one.
func (m *Memory) endsOf() map[GUID][]End {
	out := map[GUID][]End{}
	for e := range m.links {
		out[e.GUID] = append(out[e.GUID], e)
	}
	return out
}

// called are the nodes of a name, a GUID, or both, as the page has nodes that share a name.
func (m *Memory) called(name string) (out []GUID) {
	for guid, n := range m.nodes {
		if n.Description == name || guid.String() == name || n.Description+" "+guid.String() == name {
			out = append(out, guid)
		}
	}
	return out
}

// named is what a name says: a node that is not reached, or a port whose link is gone.
func (m *Memory) named(f *Fabric, name string) (nodes []GUID, ends []End, err error) {
	if of := m.called(name); len(of) > 0 {
		switch {
		case len(of) > 1:
			return nil, nil, fmt.Errorf("%s: %d nodes are called so: say the GUID", name, len(of))
		case f.Nodes[of[0]] != nil:
			return nil, nil, fmt.Errorf("%s: the node answers: name a port of it whose link is gone, %s/PORT", name, name)
		}
		return of, nil, nil
	}
	at := strings.LastIndexByte(name, '/')
	if at < 0 {
		return nil, nil, fmt.Errorf("%s: no node of that name or GUID is remembered: say NODE or NODE/PORT as the page has them", name)
	}
	port, err := strconv.Atoi(name[at+1:])
	of := m.called(name[:at])
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %q is no number of a port: say NODE/PORT", name, name[at+1:])
	case len(of) == 0:
		return nil, nil, fmt.Errorf("%s: no node of the name or GUID %s is remembered: say NODE/PORT as the page has it", name, name[:at])
	case len(of) > 1:
		return nil, nil, fmt.Errorf("%s: %d nodes are called %s: say the GUID, GUID/PORT", name, len(of), name[:at])
	}
	e := End{of[0], port}
	if !slices.Contains(m.missing(f), e) {
		return nil, nil, fmt.Errorf("%s: no link of that port is gone", name)
	}
	return nil, []End{e}, nil
}
