package collector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// subnetAnswer is the data received over an InfiniBand port. Immutable.
type subnetAnswer struct {
	end      *farEnd // nil where there is none
	guid     string  // of the node there
	agent    host.Agent
	counters []snapshot.Stat
	fec      *snapshot.IBFEC
	lanes    *uint64 // of the link; nil: unknown
	manager  *snapshot.SubnetManager
	settings []snapshot.LinkSetting
}

// subnetEnds queries both ends of an InfiniBand link, if permitted: node, supported and enabled modes, counters of the
// far end, and the subnet manager.
func (c *neighbours) subnetEnds(r *reading.Reader, port int, last subnetAnswer) (out subnetAnswer) {
	if !c.askSubnet || r.Host.Subnet == nil {
		return out
	}
	r.Begin(host.SourceSubnet)
	l, err := overSubnet(r, port,
		&host.Agent{}, func(s host.Subnet, ctx context.Context, device string, port int, _ *host.Agent) (host.IBLink, error) {
			return s.Ends(ctx, device, port)
		})
	r.Ask(max(1, l.Requests)) // unknown for a query that has not returned
	if err == nil {
		out.settings = settingsOf(&l)
	}
	if err == nil && l.SMLID != nil && isLID(*l.SMLID) {
		out.manager = askManager(r, port, uint16(*l.SMLID))
	}
	if err != nil || l.FarPort == nil {
		c.common.set(r.Device, port, commonLink{})
		return out
	}
	out.end, out.guid = answeredEnd(&l), l.FarGUID
	c.common.set(r.Device, port, commonOf(l.Common(), c.nvlink.limit(r.Device)))
	if l.FarLID != nil && isLID(*l.FarLID) {
		out.agent = host.Agent{LID: uint16(*l.FarLID), Port: int(*l.FarPort), Far: true}
		if last.guid == out.guid && last.agent.LID == out.agent.LID && last.agent.Port == out.agent.Port {
			out.agent = last.agent // its capabilities are known
		}
		out.counters = askFar(r, port, &out.agent)
		out.fec = askFarFEC(r, port, &out.agent)
		if n := uint64(l.Own.Active.Link().Widths.Lanes()); n > 0 {
			out.lanes = &n
		}
	}
	return out
}

func isLID(v uint64) bool { return v >= firstLID && v <= lastLID }

func askFar(r *reading.Reader, port int, a *host.Agent) []snapshot.Stat {
	r.Ask(a.Requests())
	answer, _ := overSubnet(r, port, a, host.Subnet.Counters)
	return answer.Stats
}

// askFarFEC queries the FEC at the far end; nil without an answer.
func askFarFEC(r *reading.Reader, port int, a *host.Agent) *snapshot.IBFEC {
	r.Ask(a.FECRequests())
	answer, err := overSubnet(r, port, a, host.Subnet.PortFEC)
	if err != nil {
		return nil
	}
	return &answer
}

func askManager(r *reading.Reader, port int, lid uint16) *snapshot.SubnetManager {
	r.Ask(1)
	m, err := overSubnet(r, port, &host.Agent{},
		func(s host.Subnet, ctx context.Context, device string, port int, _ *host.Agent) (host.IBManager, error) {
			return s.Manager(ctx, device, port, lid)
		})
	if err != nil {
		return nil
	}
	return &snapshot.SubnetManager{GUID: m.GUID, State: m.State, Priority: m.Priority, Activity: m.Activity}
}

// subnetTimeout bounds all answers to a query: those of both ends of a link, 200 ms each, with one retry.
const subnetTimeout = time.Second

// overSubnet queries over a port, and records failures, except that no node is there.
func overSubnet[T any](r *reading.Reader, port int, a *host.Agent, query agentQuery[T]) (T, error) {
	got, err := askAgent(r, fmt.Sprintf("subnet/%s/%d", r.Device, port), subnetTimeout, port, a, query)
	r.IssueUnless(err, host.Absent)
	return got, err
}

// answeredEnd is the far end that has answered.
func answeredEnd(l *host.IBLink) *farEnd {
	number := strconv.FormatUint(*l.FarPort, 10)
	return &farEnd{
		End:     snapshot.End{System: l.System(), Port: number},
		systems: []string{l.System(), l.FarDescription, l.FarGUID}, ports: []string{number},
	}
}

// settingsOf lists the settings reported by the ends.
func settingsOf(l *host.IBLink) (out []snapshot.LinkSetting) {
	for _, end := range []struct {
		name string
		host.IBEnd
	}{{"own", l.Own}, {"neighbour", l.Far}} {
		for _, s := range []struct {
			name string
			sets host.IBSets
		}{{"supported", end.Supported}, {"enabled", end.Enabled}, {"active", end.Active}} {
			if link := s.sets.Link(); link.Rate() > 0 {
				out = append(out,
					snapshot.LinkSetting{End: end.name, Setting: s.name, Rate: link.Rate(), Lanes: link.Widths.Lanes()})
			}
		}
	}
	return out
}

// commonLink is the rate and width enabled at both ends of a link.
type commonLink struct {
	bits    float64 // per second; 0: unknown
	lanes   uint64
	limited bool // by the card: bits at the fastest speed with these lanes, or at a slower one with more
}

// commonOf is l, limited by the card: an HDR100 card has four lanes and HDR enabled, and never runs at both. 0 is no
// limit.
func commonOf(l mad.Link, limit float64) commonLink {
	c := commonLink{bits: 8 * l.Rate(), lanes: uint64(l.Widths.Lanes())}
	if limit == 0 || c.bits <= limit {
		return c
	}
	for bit := range 8 {
		one := mad.Link{Widths: l.Widths & (1 << bit), Speeds: l.Speeds}
		if 8*one.Rate() >= limit {
			c.lanes = min(c.lanes, uint64(one.Widths.Lanes()))
		}
	}
	c.bits, c.limited = limit, true
	return c
}

// commonLinks holds the rates and widths enabled at both ends of InfiniBand links. The collector neighbour queries
// them, infiniband uses them.
type commonLinks struct {
	mu    sync.Mutex
	links map[snapshot.PortID]commonLink
}

func newCommonLinks() *commonLinks { return &commonLinks{links: map[snapshot.PortID]commonLink{}} }

func (c *commonLinks) set(device string, port int, l commonLink) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := snapshot.PortID{Device: device, Number: port}
	if l.bits == 0 {
		delete(c.links, id)
		return
	}
	c.links[id] = l
}

// drop removes the links of devices that are gone.
func (c *commonLinks) drop(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.links, func(id snapshot.PortID, _ commonLink) bool { return !slices.Contains(names, id.Device) })
}

// of sets them in the ports of devices.
func (c *commonLinks) of(devices []snapshot.Device) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for d, p := range snapshot.PortsOf(devices) {
		l, ok := c.links[snapshot.PortID{Device: d.Name, Number: p.Number}]
		p.CommonRate, p.CommonLanes = nil, nil
		if ok {
			p.CommonRate = &l.bits
		}
		if ok && !(l.limited && p.Rate != nil && *p.Rate >= l.bits) { // it may run on other lanes without being degraded
			p.CommonLanes = &l.lanes
		}
	}
}
