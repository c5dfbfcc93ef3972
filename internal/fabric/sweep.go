package fabric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
)

// workers is the number of concurrent requests. The client limits those in flight.
const workers = 64

// maxTries limits the routes that are tried to a node that does not answer.
const maxTries = 3

// errCableMoved: a link leads elsewhere than in the previous sweep, although its port was up in both.
var errCableMoved = errors.New("cable moved")

// Sweep sweeps the subnet. known is the previous sweep: NodeInfo is not queried again behind links that have not
// changed. nil queries everything. Each sweep finds its routes anew, so that a lost link hides no node that has another
// route. The error means that there is no result: the local port does not answer or does not lead into a subnet.
func Sweep(ctx context.Context, c *mad.Client, known *Fabric, o Options) (*Fabric, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	start := o.Now()
	s := &sweep{client: c, known: known, o: o, f: newFabric(start), tries: map[End]int{}}
	err := s.run(ctx)
	if errors.Is(err, errCableMoved) {
		return Sweep(ctx, c, nil, o)
	}
	if err != nil {
		return nil, err
	}
	s.f.Full = known == nil
	s.f.Took = o.Now().Sub(start)
	return s.f, nil
}

// Options select what a sweep queries.
type Options struct {
	// Adapters also queries the counters of ports that are not switch ports. The exporters of their hosts expose them too.
	Adapters bool
	// Also selects ports without a link whose counters are queried: those that had a link.
	Also func(End) bool
	// Within is the time after which a sweep queries no more counters. 0: no limit.
	Within time.Duration
	// MaxPorts limits the number of switch ports, since answers may be wrong. 0: 500,000. A subnet has 49,151 unicast
	// addresses (IBA 4.1.3), and three levels of switches for that many hosts have 250,000 ports.
	MaxPorts int
	// Now is the clock. nil: that of this host.
	Now func() time.Time
}

const (
	defaultMaxPorts = 500_000
	maxHops         = 50 // of at most 63 in a directed route
)

type sweep struct {
	client *mad.Client
	known  *Fabric
	o      Options
	f      *Fabric
	tries  map[End]int
	ports  int // switch ports so far
}

// target is a node that the sweep has found a route to and is about to query.
type target struct {
	to     End           // the port that the routes lead to
	info   *mad.NodeInfo // nil: known from the previous sweep
	routes []mad.Route   // the first that works is used
	node   *Node         // set once it has answered
}

// key returns the unit that a target queries: a whole switch, or one port of another node.
func (s *sweep) key(to End, kind mad.NodeType) End {
	if kind == mad.Switch {
		to.Port = 0
	}
	return to
}

func (s *sweep) run(ctx context.Context) error {
	own, err := s.client.NodeInfo(ctx, mad.Local())
	if err != nil {
		return fmt.Errorf("the local port does not answer: %w", err)
	}
	s.f.start = End{GUID(own.GUID), own.LocalPort}
	level := []*target{{to: s.f.start, info: &own, routes: []mad.Route{mad.Local()}}}
	for hops := 0; len(level) > 0 && ctx.Err() == nil; hops++ {
		if hops > maxHops {
			return fmt.Errorf("the fabric is deeper than %d hops", maxHops)
		}
		if err := s.read(ctx, level); err != nil {
			return err
		}
		level = s.explore(ctx, level)
	}
	s.prune()
	s.managers(ctx)
	s.speeds(ctx)
	s.counters(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.confirm(ctx); err != nil {
		return err
	}
	return s.checkLocal(ctx)
}

// checkLocal returns an error if the local port no longer answers or has no link at the end of the sweep. Otherwise its
// fault would show as all nodes unreachable.
func (s *sweep) checkLocal(ctx context.Context) error {
	own, err := s.client.PortInfo(ctx, mad.Local(), s.f.start.Port)
	switch {
	case err != nil:
		return fmt.Errorf("the local port does not answer: %w", err)
	case s.f.start.Port != 0 && !own.Up(): // port 0 of a switch has no link
		return errors.New("the local port has no link")
	case len(s.f.Nodes) < 2:
		return errors.New("the node behind the local port does not answer")
	}
	return nil
}

// parallel calls f for 0 … n-1. It passes a panic of f on to the caller.
func parallel(n int, f func(int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	var fault atomic.Pointer[error]
	for range min(n, workers) {
		all.Go(func() {
			err := access.Guard(func() error {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					f(i)
				}
				return nil
			})
			if err != nil {
				fault.Store(&err)
			}
		})
	}
	all.Wait()
	if err := fault.Load(); err != nil {
		panic(*err)
	}
}

// read queries the nodes of a level and their ports.
func (s *sweep) read(ctx context.Context, level []*target) error {
	parallel(len(level), func(i int) { s.enter(ctx, level[i]) })
	var nodes []*Node
	var ends []int
	for _, v := range level {
		if v.node == nil {
			continue
		}
		if there := s.f.Nodes[v.node.GUID]; there != nil { // an adapter, reached through another of its ports
			there.Ports[v.to.Port] = v.node.Ports[v.to.Port]
			continue
		}
		s.f.Nodes[v.node.GUID] = v.node
		if !v.node.named {
			s.f.Unanswered[AskNode]++
		}
		if v.node.Type == mad.Switch {
			for p := range v.node.NumPorts + 1 {
				nodes, ends = append(nodes, v.node), append(ends, p)
			}
		}
	}
	most := cmp.Or(s.o.MaxPorts, defaultMaxPorts)
	if s.ports += len(ends); s.ports > most {
		return fmt.Errorf("the fabric has more than %d ports of switches", most)
	}
	infos := make([]*Port, len(nodes))
	parallel(len(nodes), func(i int) {
		if info, err := s.client.PortInfo(ctx, nodes[i].route, ends[i]); err == nil {
			infos[i] = &Port{Info: info}
		}
	})
	for i, p := range infos {
		if p == nil {
			s.f.Unanswered[AskPort]++
			continue
		}
		nodes[i].Ports[ends[i]] = p
	}
	return nil
}

// enter finds the route that works, and queries what is not known of the node.
func (s *sweep) enter(ctx context.Context, v *target) {
	n := s.cached(v)
	for _, r := range v.routes {
		n.route = r
		if n.Type == mad.Switch {
			info, err := s.client.SwitchInfo(ctx, r)
			if err != nil {
				continue
			}
			n.changed = info.Changed
		} else {
			info, err := s.client.PortInfo(ctx, r, v.to.Port)
			if err != nil {
				continue
			}
			n.Ports[v.to.Port] = &Port{Info: info}
		}
		if v.info != nil || !n.named {
			name, err := s.client.NodeDescription(ctx, r)
			if n.named = err == nil; n.named {
				n.Description = name
			}
		}
		v.node = n
		return
	}
}

// cached returns a node as reported by NodeInfo or by the previous sweep.
func (s *sweep) cached(v *target) *Node {
	n := &Node{GUID: v.to.GUID, Ports: map[int]*Port{}}
	if s.known != nil {
		if before := s.known.Nodes[v.to.GUID]; before != nil {
			*n = *before
			n.Ports, n.route, n.changed = map[int]*Port{}, mad.Route{}, false
		}
	}
	if v.info != nil {
		n.Type, n.NumPorts, n.vendor = v.info.Type, v.info.Ports, v.info.MayHaveMellanoxPort()
		n.VendorID, n.DeviceID = v.info.VendorID, v.info.DeviceID
	}
	return n
}

// edge is a port with a link whose far end is to be discovered.
type edge struct {
	from  End
	route mad.Route // to the far end
}

// explore discovers the far ends of the links of a level, and returns the next level.
func (s *sweep) explore(ctx context.Context, level []*target) []*target {
	var edges, unknown []edge
	for _, v := range level {
		if v.node != nil {
			edges = append(edges, s.edges(v)...)
		}
	}
	next := &frontier{sweep: s, at: map[End]*target{}}
	for _, d := range edges {
		if to, ok := s.remembered(d.from); ok {
			next.add(d, to, nil)
		} else {
			unknown = append(unknown, d)
		}
	}
	infos := make([]*mad.NodeInfo, len(unknown))
	parallel(len(unknown), func(i int) {
		if info, err := s.client.NodeInfo(ctx, unknown[i].route); err == nil {
			infos[i] = &info
		}
	})
	for i, info := range infos {
		if info == nil {
			s.f.Unanswered[AskNode]++
			continue
		}
		next.add(unknown[i], End{GUID(info.GUID), info.LocalPort}, info)
	}
	return next.list
}

// edges returns the links of a node that the sweep follows: all links of a switch, and the local link.
func (s *sweep) edges(v *target) (out []edge) {
	for number := range v.node.NumPorts + 1 {
		from := End{v.node.GUID, number}
		p := v.node.Ports[number]
		_, found := s.f.Links[from]
		through := v.node.Type == mad.Switch && number > 0 || from == s.f.start
		if p == nil || !p.Info.Up() || found || !through {
			continue
		}
		if r, ok := v.node.route.Hop(uint8(number)); ok {
			out = append(out, edge{from, r})
		}
	}
	return out
}

// remembered returns the far end of a link in the previous sweep, unless there is a sign of change.
func (s *sweep) remembered(from End) (End, bool) {
	if s.known == nil || s.f.Nodes[from.GUID].changed {
		return End{}, false
	}
	to, ok := s.known.Links[from]
	before := s.known.Port(from)
	return to, ok && before != nil && before.Info.Up() && s.known.Port(to) != nil
}

// prune removes links behind which no node has answered: their far end is unknown. Switch ports that do not answer are
// counted in read.
func (s *sweep) prune() {
	for from, to := range s.f.Links {
		n := s.f.Nodes[to.GUID]
		switch {
		case n == nil:
			s.f.Unanswered[AskNode]++
			delete(s.f.Links, from)
			delete(s.f.Links, to)
		case n.Type != mad.Switch && n.Ports[to.Port] == nil:
			s.f.Unanswered[AskPort]++
		}
	}
}

// frontier is the next level.
type frontier struct {
	*sweep
	list []*target
	at   map[End]*target
}

// add adds a link, and its far end unless that has been queried.
func (n *frontier) add(d edge, to End, info *mad.NodeInfo) {
	n.f.connect(d.from, to)
	kind := mad.NodeType(0)
	if info != nil {
		kind = info.Type
	} else {
		kind = n.known.Nodes[to.GUID].Type
	}
	key := n.key(to, kind)
	if there := n.f.Nodes[to.GUID]; there != nil && (kind == mad.Switch || there.Ports[to.Port] != nil) ||
		n.tries[key] >= maxTries {
		return
	}
	n.tries[key]++
	v := n.at[key]
	if v == nil {
		v = &target{to: to, info: info}
		n.at[key], n.list = v, append(n.list, v)
	}
	v.info = cmp.Or(v.info, info)
	v.routes = append(v.routes, d.route)
}

// confirm queries NodeInfo again behind links that were or may have been down between the two sweeps, and links whose
// far end has another LID.
func (s *sweep) confirm(ctx context.Context) error {
	if s.known == nil {
		return nil
	}
	var edges []edge
	for from, to := range s.f.Links {
		n := s.f.Nodes[from.GUID]
		if n == nil || n.Type != mad.Switch || !s.wasDown(from) && !s.isOther(to) {
			continue
		}
		if r, ok := n.route.Hop(uint8(from.Port)); ok {
			edges = append(edges, edge{from, r})
		}
	}
	var moved atomic.Bool
	parallel(len(edges), func(i int) {
		info, err := s.client.NodeInfo(ctx, edges[i].route)
		if err == nil && (End{GUID(info.GUID), info.LocalPort}) != s.f.Links[edges[i].from] {
			moved.Store(true)
		}
	})
	if moved.Load() {
		return errCableMoved
	}
	return nil
}

// wasDown reports whether LinkDownedCounter has changed since the previous sweep. An unknown counter may have, and so
// may an 8-bit one at its maximum.
func (s *sweep) wasDown(e End) bool {
	a, b := s.known.Port(e), s.f.Port(e)
	if a == nil || b == nil || a.Counters == nil || b.Counters == nil {
		return true
	}
	before, _ := a.Counters.Get(perf.LinkDowned)
	after, _ := b.Counters.Get(perf.LinkDowned)
	return before != after || after == math.MaxUint8
}

// isOther reports whether a port has another LID than before: it may be another port.
func (s *sweep) isOther(e End) bool {
	a, b := s.known.Port(e), s.f.Port(e)
	return a != nil && b != nil && a.Info.LID != b.Info.LID
}
