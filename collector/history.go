package collector

import (
	"time"

	"rdma_exporter/internal/snapshot"
)

// portHistory is what a port was, by identity of its device.
type portHistory struct {
	active    bool // at the last reading of its state
	wasActive bool // at any
	passing   bool // its device comes and goes: nothing is kept of it
	snapshot.Transitions
}

// history is what a port was, and counts the transitions of InfiniBand ports.
func (c *infiniBand) history(d *snapshot.Device, p *snapshot.Port) {
	id := keyOf(d)
	if c.ports[id] == nil {
		c.ports[id] = map[int]*portHistory{}
	}
	history := c.ports[id][p.Number]
	if history == nil {
		if p.State == nil {
			return
		}
		history = &portHistory{active: isActive(p), passing: d.FunctionType != snapshot.Physical}
		c.ports[id][p.Number] = history
	}
	history.note(p)
	p.WasActive = history.wasActive
	if t := history.Transitions; p.LinkLayer == "InfiniBand" {
		p.Transitions = &t
	}
}

func (h *portHistory) note(p *snapshot.Port) {
	if p.State == nil {
		return
	}
	now := isActive(p)
	switch {
	case now && !h.active:
		h.Ups++
	case !now && h.active:
		h.Downs++
	}
	h.active, h.wasActive = now, h.wasActive || now
}

// fullLinkDowned is where link_downed of an InfiniBand port stops.
const fullLinkDowned = 255

// countDowns takes the losses of the link from the driver's own statistics where LINKSTATE_GET has none: those of an InfiniBand port only
// when its own counter may be full.
func (c *infiniBand) countDowns(d *snapshot.Device, p *snapshot.Port, nd *snapshot.Netdev, now time.Time) {
	if nd.DownEvents != nil {
		return
	}
	if n := c.wires.linkDowns(d.Name, p.Number, nd.Name, now); n != nil && (p.LinkLayer == "Ethernet" || *n >= fullLinkDowned) {
		nd.DownEvents = n
	}
}

// count tells how often the carriers of Ethernet netdevs came and went. That of an IPoIB netdev says more of the subnet manager
// and of multicast than of the link.
func (c *infiniBand) count(devices []snapshot.Device, now time.Time) {
	for i := range devices {
		for j := range devices[i].Ports {
			p := &devices[i].Ports[j]
			for k := range p.Netdev {
				nd := &p.Netdev[k]
				c.countDowns(&devices[i], p, nd, now)
				if p.LinkLayer != "Ethernet" || nd.Index == nil || nd.CarrierUps == nil || nd.CarrierDowns == nil {
					continue
				}
				read := carrier{ups: *nd.CarrierUps, downs: *nd.CarrierDowns, admin: nd.Admin == nil || *nd.Admin}
				ups, downs := c.links.transitions(nd.Name, *nd.Index, read, now)
				nd.Transitions = &snapshot.Transitions{Ups: ups, Downs: downs}
			}
		}
		devices[i].Registrations = c.registered.registrations(&devices[i])
	}
	c.links.forget(now)
}
