package fabric

import (
	"maps"
	"slices"

	"rdma_exporter/internal/mad"
)

const (
	loopWait = 0.5 // share of time: each link of a suspected credit loop waits for more
	slowWait = 0.1 // a host behind a port that waits for more is a slow receiver, and the cause of what waits before it
	fullLink = 0.9 // share of its rate: a link that carries more is full, and the cause of what waits before it
)

// Loops returns the suspected credit loops: cycles of links between switches that all wait for credits, each as its
// sending ports in order. Other waiting links lead to a cause: a waiting port to a host (a slow receiver), or a full
// link. A cycle from which waiting links lead to such a cause is not a credit loop. A port without data does not wait.
func (f *Fabric) Loops(waits map[End]float64, traffic map[End]Traffic) (out [][]End) {
	g := &waiting{f: f, waits: waits, traffic: traffic, after: map[End][]End{}}
	g.build()
	g.trim()
	for _, e := range slices.SortedFunc(maps.Keys(g.after), End.compare) {
		if _, left := g.after[e]; !left {
			continue
		}
		cycle := g.cycle(g.walk(e))
		all := g.reached(cycle)
		if !slices.ContainsFunc(all, g.cause) {
			out = append(out, cycle)
		}
		for _, x := range all { // one congestion, one loop
			delete(g.after, x)
		}
		g.trim()
	}
	return out
}

// waiting is the graph of links between switches that wait: a link depends on those that lead on from its far end.
type waiting struct {
	f       *Fabric
	waits   map[End]float64
	traffic map[End]Traffic
	after   map[End][]End // each sorted
}

func (g *waiting) build() {
	at := map[GUID][]End{}
	for _, e := range slices.SortedFunc(maps.Keys(g.waits), End.compare) {
		if g.waits[e] > loopWait && g.toSwitch(e) {
			at[e.GUID] = append(at[e.GUID], e)
		}
	}
	for _, ends := range at {
		for _, e := range ends {
			g.after[e] = nil
			for _, x := range at[g.f.Links[e].GUID] {
				if g.f.Links[x].GUID != e.GUID { // no route turns back
					g.after[e] = append(g.after[e], x)
				}
			}
		}
	}
}

// toSwitch reports whether the link of a port is one between switches.
func (g *waiting) toSwitch(e End) bool {
	to, ok := g.f.Links[e]
	n, far := g.f.Nodes[e.GUID], g.f.Nodes[to.GUID]
	return ok && n != nil && far != nil && n.Type == mad.Switch && far.Type == mad.Switch
}

// trim removes links from which none leads on, until each of the rest leads into a cycle.
func (g *waiting) trim() {
	for again := true; again; {
		again = false
		for e, next := range g.after {
			if !slices.ContainsFunc(next, g.left) {
				delete(g.after, e)
				again = true
			}
		}
	}
}

func (g *waiting) left(e End) bool {
	_, ok := g.after[e]
	return ok
}

// walk follows the lowest links from e on, and returns one that it meets twice.
func (g *waiting) walk(e End) End {
	seen := map[End]bool{}
	for !seen[e] {
		seen[e] = true
		e = g.after[e][slices.IndexFunc(g.after[e], g.left)]
	}
	return e
}

// cycle returns the shortest through e, from its lowest link on.
func (g *waiting) cycle(e End) []End {
	from := map[End]End{}
	queue := []End{e}
	for i := 0; i < len(queue); i++ { // queue grows
		for _, x := range g.after[queue[i]] {
			if _, seen := from[x]; seen || !g.left(x) {
				continue
			}
			from[x] = queue[i]
			queue = append(queue, x)
		}
	}
	out := []End{e}
	for x := from[e]; x != e; x = from[x] {
		out = append(out, x)
	}
	slices.Reverse(out)
	lowest := slices.Index(out, slices.MinFunc(out, End.compare))
	return slices.Concat(out[lowest:], out[:lowest])
}

// reached returns the waiting links that can be reached from some links, these included. Trimmed links count too.
func (g *waiting) reached(from []End) []End {
	queue, seen := slices.Clone(from), map[End]bool{}
	for _, e := range from {
		seen[e] = true
	}
	for i := 0; i < len(queue); i++ { // queue grows
		for _, x := range g.from(g.f.Links[queue[i]].GUID) {
			if g.waits[x] > loopWait && g.toSwitch(x) && g.f.Links[x].GUID != queue[i].GUID && !seen[x] {
				seen[x] = true
				queue = append(queue, x)
			}
		}
	}
	return queue
}

// from returns the ports of a node with a link.
func (g *waiting) from(guid GUID) (out []End) {
	n := g.f.Nodes[guid]
	for number := 1; n != nil && number <= n.NumPorts; number++ {
		if _, ok := g.f.Links[End{guid, number}]; ok {
			out = append(out, End{guid, number})
		}
	}
	return out
}

// cause reports whether the switch behind a link has a port that explains why the link waits.
func (g *waiting) cause(e End) bool {
	return slices.ContainsFunc(g.from(g.f.Links[e].GUID), func(x End) bool {
		if p := g.f.Port(x); p != nil && g.traffic[x].Transmit > fullLink*8*p.Info.Active.Rate() {
			return true
		}
		return !g.toSwitch(x) && g.waits[x] > slowWait
	})
}
