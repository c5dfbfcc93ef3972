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

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/mad"
)

// workers make requests at a time; how many are on their way the client bounds.
const workers = 64

// maxTries bounds the ways by which a node that does not answer is tried.
const maxTries = 3

// errRewired says that a link leads elsewhere than it did, while its port was up at both looks.
var errRewired = errors.New("a cable was moved")

// Sweep looks at the whole fabric. With what the sweep before has found, nodes behind links that have not changed are not asked again who
// they are; nil asks for everything. Ways are laid afresh in each sweep, so that a link that is gone takes none with it that can be reached
// otherwise. The error is for no fabric at all, and for an own port that does not lead into it.
func Sweep(ctx context.Context, c *mad.Client, known *Fabric, o Options) (*Fabric, error) {
	start := time.Now()
	s := &sweep{client: c, known: known, o: o, f: newFabric(start), tries: map[End]int{}}
	err := s.run(ctx)
	if errors.Is(err, errRewired) {
		return Sweep(ctx, c, nil, o)
	}
	if err != nil {
		return nil, err
	}
	s.f.Full = known == nil
	s.f.Took = time.Since(start)
	return s.f, nil
}

// Options say what a sweep asks for.
type Options struct {
	// Adapters also asks for the counters of ports that are not a switch's, which exporters on the nodes tell.
	Adapters bool
	// Also are ports whose counters are wanted though they have no link: they had one.
	Also func(End) bool
	// Within bounds a sweep: after that no counters are asked for any more. 0: they all are.
	Within time.Duration
	// MaxPorts is how many ports of switches there may be: answers may be wrong. 0: 500,000; a subnet has 49,151 addresses (IBA 4.1.3), and three
	// levels of switches for as many hosts have 250,000.
	MaxPorts int
}

const (
	defaultMaxPorts = 500_000
	maxHops         = 50 // of the 63 that a directed route can have
)

type sweep struct {
	client *mad.Client
	known  *Fabric
	o      Options
	f      *Fabric
	tries  map[End]int
	ports  int // of switches
}

// visit is a node that the sweep has come to the door of.
type visit struct {
	to     End           // the port that it is entered by
	info   *mad.NodeInfo // nil: it is known
	routes []mad.Route   // the first that works is taken
	node   *Node         // once it has answered
}

// key is what a visit reads: the whole of a switch, a port of another node.
func (s *sweep) key(to End, kind mad.NodeType) End {
	if kind == mad.Switch {
		to.Port = 0
	}
	return to
}

func (s *sweep) run(ctx context.Context) error {
	own, err := s.client.NodeInfo(ctx, mad.Local())
	if err != nil {
		return fmt.Errorf("the own port does not answer: %w", err)
	}
	s.f.start = End{GUID(own.GUID), own.LocalPort}
	level := []*visit{{to: s.f.start, info: &own, routes: []mad.Route{mad.Local()}}}
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
	return s.sighted(ctx)
}

// sighted is an error where the own port, at the end, does not answer or leads nowhere: that is its fault, not that of all it does not reach.
func (s *sweep) sighted(ctx context.Context) error {
	own, err := s.client.PortInfo(ctx, mad.Local(), s.f.start.Port)
	switch {
	case err != nil:
		return fmt.Errorf("the own port does not answer: %w", err)
	case s.f.start.Port != 0 && !own.Up(): // port 0 of a switch has no link
		return errors.New("the own port has no link")
	case len(s.f.Nodes) < 2:
		return errors.New("the node behind the own port does not answer")
	}
	return nil
}

// parallel calls f for 0 … n-1. The panic of one of them is the caller's.
func parallel(n int, f func(int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	var fault atomic.Pointer[error]
	for range min(n, workers) {
		all.Go(func() {
			err := host.Guard(func() error {
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

// read asks the nodes of a level for themselves and their ports.
func (s *sweep) read(ctx context.Context, level []*visit) error {
	parallel(len(level), func(i int) { s.enter(ctx, level[i]) })
	var nodes []*Node
	var ends []int
	for _, v := range level {
		if v.node == nil {
			continue
		}
		if there := s.f.Nodes[v.node.GUID]; there != nil { // an adapter, by another of its ports
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

// enter finds the way that works, and asks for what is not known of the node.
func (s *sweep) enter(ctx context.Context, v *visit) {
	n := s.acquaintance(v)
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

// acquaintance is what is known of a node at its door.
func (s *sweep) acquaintance(v *visit) *Node {
	n := &Node{GUID: v.to.GUID, Ports: map[int]*Port{}}
	if s.known != nil {
		if before := s.known.Nodes[v.to.GUID]; before != nil {
			n.Type, n.NumPorts, n.performance, n.vendor = before.Type, before.NumPorts, before.performance, before.vendor
			n.Description, n.named = before.Description, before.named
		}
	}
	if v.info != nil {
		n.Type, n.NumPorts, n.vendor = v.info.Type, v.info.Ports, v.info.TellsFDR10()
	}
	return n
}

// door is a port with a link, whose other end is to be found.
type door struct {
	from  End
	route mad.Route // to the other end
}

// explore finds the other ends of the links of a level, and says who is to be visited next.
func (s *sweep) explore(ctx context.Context, level []*visit) []*visit {
	var doors, unknown []door
	for _, v := range level {
		if v.node != nil {
			doors = append(doors, s.doors(v)...)
		}
	}
	next := &visits{sweep: s, at: map[End]*visit{}}
	for _, d := range doors {
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

// doors are the links of a node that the sweep goes on by: those of a switch, and the own one.
func (s *sweep) doors(v *visit) (out []door) {
	for number := range v.node.NumPorts + 1 {
		from := End{v.node.GUID, number}
		p := v.node.Ports[number]
		_, found := s.f.Links[from]
		through := v.node.Type == mad.Switch && number > 0 || from == s.f.start
		if p == nil || !p.Info.Up() || found || !through {
			continue
		}
		if r, ok := v.node.route.Hop(uint8(number)); ok {
			out = append(out, door{from, r})
		}
	}
	return out
}

// remembered is where a link led in the sweep before, if nothing says that it leads elsewhere.
func (s *sweep) remembered(from End) (End, bool) {
	if s.known == nil || s.f.Nodes[from.GUID].changed {
		return End{}, false
	}
	to, ok := s.known.Links[from]
	before := s.known.Port(from)
	return to, ok && before != nil && before.Info.Up() && s.known.Port(to) != nil
}

// prune leaves links out behind which nobody has answered: it is not known any more where they lead. Ports of switches that do not answer are
// counted where they are asked.
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

// visits are those of the next level.
type visits struct {
	*sweep
	list []*visit
	at   map[End]*visit
}

// add takes a link, and its other end if nobody has been there.
func (n *visits) add(d door, to End, info *mad.NodeInfo) {
	n.f.connect(d.from, to)
	kind := mad.NodeType(0)
	if info != nil {
		kind = info.Type
	} else {
		kind = n.known.Nodes[to.GUID].Type
	}
	key := n.key(to, kind)
	if there := n.f.Nodes[to.GUID]; there != nil && (kind == mad.Switch || there.Ports[to.Port] != nil) || n.tries[key] >= maxTries {
		return
	}
	n.tries[key]++
	v := n.at[key]
	if v == nil {
		v = &visit{to: to, info: info}
		n.at[key], n.list = v, append(n.list, v)
	}
	if v.info == nil {
		v.info = info
	}
	v.routes = append(v.routes, d.route)
}

// confirm looks again behind links that have been down between two sweeps and come back, or may have, and behind which another LID is.
func (s *sweep) confirm(ctx context.Context) error {
	if s.known == nil {
		return nil
	}
	var doors []door
	for from, to := range s.f.Links {
		n := s.f.Nodes[from.GUID]
		if n == nil || n.Type != mad.Switch || !s.wasDown(from) && !s.isOther(to) {
			continue
		}
		if r, ok := n.route.Hop(uint8(from.Port)); ok {
			doors = append(doors, door{from, r})
		}
	}
	var rewired atomic.Bool
	parallel(len(doors), func(i int) {
		info, err := s.client.NodeInfo(ctx, doors[i].route)
		if err == nil && (End{GUID(info.GUID), info.LocalPort}) != s.f.Links[doors[i].from] {
			rewired.Store(true)
		}
	})
	if rewired.Load() {
		return errRewired
	}
	return nil
}

// wasDown says whether LinkDownedCounter has moved since the sweep before. One that is not known may have, and one of 8 bits that stands at
// its end.
func (s *sweep) wasDown(e End) bool {
	a, b := s.known.Port(e), s.f.Port(e)
	if a == nil || b == nil || a.Counters == nil || b.Counters == nil {
		return true
	}
	before, _ := a.Counters.Get(mad.LinkDowned)
	after, _ := b.Counters.Get(mad.LinkDowned)
	return before != after || after == math.MaxUint8
}

// isOther says whether a port has another LID than it had: it may be another one in its place.
func (s *sweep) isOther(e End) bool {
	a, b := s.known.Port(e), s.f.Port(e)
	return a != nil && b != nil && a.Info.LID != b.Info.LID
}
