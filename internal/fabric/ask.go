package fabric

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
)

// maxSilent is how many counter requests a node may leave unanswered before it is skipped: each costs all timeouts.
const maxSilent = 2

// counters queries the counters of all ports until the time limit of the sweep.
func (s *sweep) counters(ctx context.Context) {
	if s.o.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.o.Within-s.o.Now().Sub(s.f.At))
		defer cancel()
	}
	nodes := sortedNodes(s.f.Nodes)
	unanswered := make([]int, len(nodes))
	parallel(len(nodes), func(i int) { unanswered[i] = s.countersOf(ctx, s.f.Nodes[nodes[i]]) })
	for _, n := range unanswered {
		s.f.Unanswered[AskCounters] += n
	}
	s.ticks(ctx)
}

// countersOf queries the ports of a node one after the other, and returns for how many there is no answer.
func (s *sweep) countersOf(ctx context.Context, n *Node) (unanswered int) {
	silent := 0
	for number := 1; number <= n.NumPorts; number++ {
		if !s.counted(n, End{n.GUID, number}) {
			continue
		}
		if silent < maxSilent {
			err := s.count(ctx, n, number)
			if err == nil {
				continue
			}
			if errors.Is(err, mad.ErrTimeout) {
				silent++
			}
		}
		unanswered++
	}
	return unanswered
}

// tickProbes is how many switches are queried for the length of a tick before the others: if none answers, the
// attribute is not supported, and each query would cost all timeouts.
const tickProbes = 4

// ticks queries switches whose agent has answered for the length of a tick of TransmitWait, once. A failure costs the
// share of time until the next full sweep.
func (s *sweep) ticks(ctx context.Context) {
	var switches []*Node
	for _, guid := range sortedNodes(s.f.Nodes) {
		if n := s.f.Nodes[guid]; n.Type == mad.Switch && n.performance != nil && !n.ticked {
			n.ticked = true
			switches = append(switches, n)
		}
	}
	var answers, silent atomic.Int64
	ask := func(n *Node) {
		tick, err := s.client.Tick(ctx, mad.ToLID(n.lid(0)), 1)
		switch {
		case err == nil:
			n.tick = tick
			answers.Add(1)
		case errors.Is(err, mad.ErrTimeout):
			silent.Add(1)
		}
	}
	defer s.tickBytes()
	first := switches[:min(tickProbes, len(switches))]
	parallel(len(first), func(i int) { ask(first[i]) })
	if answers.Load() == 0 {
		return
	}
	rest := switches[len(first):]
	parallel(len(rest), func(i int) {
		if silent.Load() < tickProbes {
			ask(rest[i])
		}
	})
}

func (s *sweep) tickBytes() {
	for _, n := range s.f.Nodes {
		for _, p := range n.Ports {
			p.TickBytes = n.tick.Bytes(p.Info.Active.Widths.Lanes())
		}
	}
}

// count queries the counters of a port.
func (s *sweep) count(ctx context.Context, n *Node, number int) error {
	r := mad.ToLID(n.lid(number))
	if n.performance == nil {
		info, err := s.client.PerformanceInfo(ctx, r)
		if err != nil {
			return err
		}
		n.performance = &info
	}
	c, err := s.client.Counters(ctx, r, number, *n.performance)
	if err != nil {
		return err
	}
	p := n.Ports[number]
	p.Counters, p.Read = &c, s.o.Now()
	s.details(ctx, n, number)
	s.fec(ctx, n, number)
	return nil
}

// details queries the causes of receive errors, where there are any. A node that rejects the attribute is not queried
// again.
func (s *sweep) details(ctx context.Context, n *Node, number int) {
	p := n.Ports[number]
	if v, _ := p.Counters.Get(perf.ReceiveErrors); v == 0 || n.plain {
		return
	}
	d, err := s.client.ReceiveErrorDetails(ctx, mad.ToLID(n.lid(number)), number)
	if err == nil {
		p.Details = &d
	}
	var status mad.StatusError
	n.plain = errors.As(err, &status)
}

// fec queries the FEC of a port and its errors, if the node has the capability. The FEC in use is that of the previous
// sweep while the link has stayed up at the same rate. A failure costs this port's FEC.
func (s *sweep) fec(ctx context.Context, n *Node, number int) {
	p := n.Ports[number]
	if !n.performance.FEC || !p.Info.Up() || !n.extended(number) {
		return
	}
	mode, known := s.lastFEC(End{n.GUID, number}, p)
	if !known {
		x, err := s.client.PortInfoExtended(ctx, n.route, number)
		if err != nil || !x.Known || x.FEC.String() == "" {
			return
		}
		mode = x.FEC
	}
	counts, err := s.client.FECCounts(ctx, mad.ToLID(n.lid(number)), number, mode)
	if err != nil {
		return
	}
	width := p.Info.Active.Widths.Lanes()
	p.FEC = &FEC{mode, slices.DeleteFunc(counts, func(c mad.FECCount) bool { return c.Lane >= width })}
}

// extended reports whether a port has PortInfoExtended. A switch has the capability at port 0.
func (n *Node) extended(number int) bool {
	if n.Type == mad.Switch {
		number = 0
	}
	p := n.Ports[number]
	return p != nil && p.Info.Extended
}

// lastFEC returns the FEC in use in the previous sweep, if the link has not been down since.
func (s *sweep) lastFEC(e End, p *Port) (mad.FECMode, bool) {
	if s.known == nil {
		return 0, false
	}
	before := s.known.Port(e)
	if before == nil || before.FEC == nil || before.Counters == nil || before.Info.Active != p.Info.Active {
		return 0, false
	}
	then, _ := before.Counters.Get(perf.LinkDowned)
	now, ok := p.Counters.Get(perf.LinkDowned)
	return before.FEC.Mode, ok && then == now
}

// counted reports whether the counters of a port are queried: it is reachable, and has or had a link.
func (s *sweep) counted(n *Node, e End) bool {
	p := n.Ports[e.Port]
	if p == nil || n.lid(e.Port) == 0 || n.Type != mad.Switch && !s.o.Adapters {
		return false
	}
	return p.Info.Up() || s.o.Also != nil && s.o.Also(e)
}

// speeds queries whether links shown as QDR run at FDR10. A node that rejects the attribute is queried again in the
// next full sweep.
func (s *sweep) speeds(ctx context.Context) {
	var ends []End
	for _, guid := range sortedNodes(s.f.Nodes) {
		n := s.f.Nodes[guid]
		for number, p := range n.Ports {
			if n.vendor && number > 0 && p.Info.MayBeFDR10() {
				ends = append(ends, End{guid, number})
			}
		}
	}
	refused := make([]bool, len(ends))
	parallel(len(ends), func(i int) {
		n := s.f.Nodes[ends[i].GUID]
		m, err := s.client.MellanoxPort(ctx, n.route, ends[i].Port)
		if err == nil {
			n.Ports[ends[i].Port].Info.Add(m)
		}
		var status mad.StatusError
		refused[i] = errors.As(err, &status)
	})
	for i, e := range ends {
		if refused[i] {
			s.f.Nodes[e.GUID].vendor = false
		}
	}
}

// managers queries the subnet manager that configured the local port, and all ports that announce one.
func (s *sweep) managers(ctx context.Context) {
	var lids []uint16
	at := map[uint16]GUID{}
	for guid, n := range s.f.Nodes {
		for number, p := range n.Ports {
			if p.Info.LID != 0 {
				at[p.Info.LID] = guid
				if p.Info.IsSM() {
					lids = append(lids, p.Info.LID)
				}
			}
			if own := s.f.start == (End{guid, number}) ||
				s.f.start.GUID == guid && n.Type == mad.Switch; own && p.Info.SMLID != 0 {
				lids = append(lids, p.Info.SMLID)
			}
		}
	}
	slices.Sort(lids)
	lids = slices.Compact(lids)
	found := make([]*mad.SMInfo, len(lids))
	parallel(len(lids), func(i int) {
		if info, err := s.client.SMInfo(ctx, mad.ToLID(lids[i])); err == nil {
			found[i] = &info
		}
	})
	for i, info := range found {
		if info == nil {
			s.f.Unanswered[AskManager]++
			continue
		}
		s.f.Managers = append(s.f.Managers, Manager{at[lids[i]], *info})
	}
}
