package collector

import (
	"slices"
	"strconv"
	"sync"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/snapshot"
)

// askSubnet asks both ends of an InfiniBand link, if that is permitted: who is there, and what both have enabled.
func (c *neighbours) askSubnet(r *reader, port int, ends map[int]farEnd) {
	if !c.AskSubnet || r.h.Subnet == nil {
		return
	}
	r.begin(host.SourceSubnet)
	r.asked++
	l, err := r.h.Subnet.Ends(r.ctx, r.device, port)
	if err != nil && !host.IsAbsent(err) {
		r.issue(err)
	}
	if err != nil || l.FarPort == nil {
		c.common.set(r.device, port, mad.Link{})
		return
	}
	ends[port] = answeredEnd(&l)
	c.common.set(r.device, port, l.Common())
}

// answeredEnd is the far end that has answered.
func answeredEnd(l *host.IBLink) farEnd {
	number := strconv.FormatUint(*l.FarPort, 10)
	return farEnd{
		End:     snapshot.End{System: l.System(), Port: number},
		systems: []string{l.System(), l.FarDescription, l.FarGUID}, ports: []string{number},
	}
}

// commonLinks is what both ends of InfiniBand links have enabled. The collector of neighbours asks, that of devices judges by it.
type commonLinks struct {
	mu    sync.Mutex
	links map[snapshot.PortID]mad.Link
}

func newCommonLinks() *commonLinks { return &commonLinks{links: map[snapshot.PortID]mad.Link{}} }

func (c *commonLinks) set(device string, port int, l mad.Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := snapshot.PortID{Device: device, Number: port}
	if l.Rate() == 0 {
		delete(c.links, id)
		return
	}
	c.links[id] = l
}

// forget drops the links of devices that are gone.
func (c *commonLinks) forget(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.links {
		if !slices.Contains(names, id.Device) {
			delete(c.links, id)
		}
	}
}

// of puts it into the ports of devices.
func (c *commonLinks) of(devices []snapshot.Device) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range devices {
		for j := range devices[i].Ports {
			p := &devices[i].Ports[j]
			l, ok := c.links[snapshot.PortID{Device: devices[i].Name, Number: p.Number}]
			if !ok {
				p.CommonRate, p.CommonLanes = nil, nil
				continue
			}
			bits, lanes := 8*l.Rate(), uint64(l.Widths.Lanes())
			p.CommonRate, p.CommonLanes = &bits, &lanes
		}
	}
}
