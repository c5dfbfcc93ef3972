package shared

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// AgentQuery is a method of host.Subnet. It may learn the capabilities of the agent.
type AgentQuery[T any] = func(s host.Subnet, ctx context.Context, device string, port int, a *host.Agent) (T, error)

// AskAgent runs a query through a port in its own turn with a time limit: a hung driver call costs only this query.
func AskAgent[T any](
	r *reading.Reader, turn string, timeout time.Duration, port int, a *host.Agent, query AgentQuery[T],
) (T, error) {
	ctx, cancel := context.WithTimeout(r.Ctx, timeout)
	defer cancel()
	agent, subnet, device := *a, r.Host.Subnet, r.Device
	var got, none T
	var err error
	if late := r.Host.Turns.Do(ctx, turn, func() { got, err = query(subnet, ctx, device, port, &agent) }); late != nil {
		return none, late // got and agent may still be written to
	}
	if err == nil {
		*a = agent
	}
	return got, err
}

const (
	// AgentTimeout bounds all answers of an agent. An agent of the host's own ports answers within 1 ms.
	AgentTimeout = 300 * time.Millisecond
	// AgentRetryAfter is how long the files are used after a failure of the agent, unless the link changes.
	AgentRetryAfter = 5 * time.Minute

	// LIDs of ports (IBA 4.1.3); those above are multicast.
	firstLID, lastLID = 1, 0xbfff
)

// IsLID reports whether a number is a unicast LID.
func IsLID(v uint64) bool { return v >= firstLID && v <= lastLID }

// CommonLink is the rate and width enabled at both ends of a link.
type CommonLink struct {
	bits    float64 // per second; 0: unknown
	lanes   uint64
	limited bool // by the card: bits at the fastest speed with these lanes, or at a slower one with more
}

// CommonOf is l, limited by the card: an HDR100 card has four lanes and HDR enabled, and never runs at both. 0 is no
// limit.
func CommonOf(l mad.Link, limit float64) CommonLink {
	c := CommonLink{bits: 8 * l.Rate(), lanes: uint64(l.Widths.Lanes())}
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

// CommonLinks holds the rates and widths enabled at both ends of InfiniBand links. The collector neighbour queries
// them, infiniband uses them.
type CommonLinks struct {
	mu    sync.Mutex
	links map[snapshot.PortID]CommonLink
}

// NewCommonLinks returns the modes of no link.
func NewCommonLinks() *CommonLinks { return &CommonLinks{links: map[snapshot.PortID]CommonLink{}} }

func (c *CommonLinks) Set(device string, port int, l CommonLink) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := snapshot.PortID{Device: device, Number: port}
	if l.bits == 0 {
		delete(c.links, id)
		return
	}
	c.links[id] = l
}

// Drop removes the links of devices that are gone.
func (c *CommonLinks) Drop(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.links, func(id snapshot.PortID, _ CommonLink) bool { return !slices.Contains(names, id.Device) })
}

// Of sets them in the ports of devices.
func (c *CommonLinks) Of(devices []snapshot.Device) {
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
