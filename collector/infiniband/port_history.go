package infiniband

import (
	"time"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/snapshot"
)

// portHistory is the state history of a port, by identity of its device.
type portHistory struct {
	active    bool // at the last reading of its state
	wasActive bool // at any
	transient bool // its device has no lasting identity: not kept
	snapshot.Transitions
}

// history updates the history of a port, and counts the transitions of InfiniBand ports.
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
		history = &portHistory{active: sysfs.IsActive(p), transient: d.FunctionType != snapshot.Physical}
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
	now := sysfs.IsActive(p)
	switch {
	case now && !h.active:
		h.Ups++
	case !now && h.active:
		h.Downs++
	}
	h.active, h.wasActive = now, h.wasActive || now
}

// fullLinkDowned is where link_downed of an InfiniBand port saturates.
const fullLinkDowned = 255

// countDowns sets the link-down count from the driver's own statistics where LINKSTATE_GET has none: on an InfiniBand
// port only when its own counter may be saturated.
func (c *infiniBand) countDowns(d *snapshot.Device, p *snapshot.Port, nd *snapshot.Netdev, now time.Time) {
	if nd.DownEvents != nil {
		return
	}
	if n := c.stats.LinkDowns(d.Name, p.Number, nd.Name, now); n != nil &&
		(p.LinkLayer == "Ethernet" || *n >= fullLinkDowned) {
		nd.DownEvents = n
	}
}

// count sets the carrier transitions of Ethernet netdevs. The carrier of an IPoIB netdev depends on the subnet manager
// and multicast more than on the link.
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
	c.links.drop(now)
}
