package account

import (
	"cmp"
	"fmt"
	"strconv"

	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
)

const layerIB = "InfiniBand"

// host holds the evidence on a host by which its ports are classified.
type host struct {
	ib *snapshot.InfiniBand
	// linked are the places (board and port number) at which a port has a link.
	linked map[place]bool
	// fastest are the highest rates of ACTIVE compute ports by place, in bits per second.
	fastest map[place]float64
}

// place is a port number on all cards of one board type.
type place struct {
	board string // or model, else driver
	port  int
}

func hostOf(n *snapshot.InfiniBand) *host {
	h := &host{ib: n, linked: map[place]bool{}, fastest: map[place]float64{}}
	for d, p := range snapshot.PortsOf(n.Devices) {
		at := placeOf(d, p)
		h.linked[at] = h.linked[at] || hasLink(p)
		if isActive(p) && p.Rate != nil && p.Role == string(pci.Compute) {
			h.fastest[at] = max(h.fastest[at], *p.Rate)
		}
	}
	return h
}

// placeOf returns the place of a port. The functions of a card count as its ports: the second port of a card is port 2,
// or port 1 of function 1.
func placeOf(d *snapshot.Device, p *snapshot.Port) place {
	number := p.Number
	if n := len(d.PCIAddress); n > 0 && len(d.Ports) == 1 {
		if f, err := strconv.Atoi(d.PCIAddress[n-1:]); err == nil {
			number += f
		}
	}
	return place{cmp.Or(d.BoardID, d.HCAType, d.Driver), number}
}

func isActive(p *snapshot.Port) bool {
	return p.State != nil && (*p.State == snapshot.PortActive || *p.State == snapshot.PortActiveDefer)
}

func hasLink(p *snapshot.Port) bool {
	return p.State != nil && *p.State > snapshot.PortDown ||
		p.PhysicalState != nil && *p.PhysicalState == snapshot.PhysicalLinkUp
}

// classifyPort returns the object of a port, classified by what was read of it. why is the error of a failed read of
// its device.
func (h *host) classifyPort(d *snapshot.Device, p *snapshot.Port, why string) Object {
	o := Object{
		Kind: Port, Name: fmt.Sprintf("%s/%d", d.Name, p.Number), Class: Healthy, device: d.Name,
		port: strconv.Itoa(p.Number), address: d.PCIAddress, compute: p.Role == string(pci.Compute),
	}
	part := d.FunctionType == snapshot.SubFunction || d.PhysicalFunction != ""
	o.Compute = p.Role != string(pci.Other) && !part && d.FunctionType != snapshot.Software
	if len(d.Ports) > snapshot.Planes {
		o.Kind = Plane
	}
	switch {
	case h.ib.IsIgnored(d.Name, p.Number):
		o.set(NotExpected, "ignored by the configuration")
	case p.Unread || p.State == nil:
		o.set(Unknown, "state could not be read%s", why)
	case isActive(p) && o.compute && !part && !p.RateConfirmed() && h.isSlow(d, p):
		o.set(Unknown, "slower than others of its board, and nothing says which rate is right")
	case isActive(p):
	case p.Idle != "":
		o.set(NotExpected, "%s as not in use", p.Idle)
	case p.PinnedActive:
		o.set(Faulty, "%s, pinned as ACTIVE", stateName(p))
	case part:
		o.set(NotExpected, "virtual function or subfunction, %s", stateName(p))
	case isDisabled(p):
		o.set(NotExpected, "interface administratively down")
	case p.WasActive:
		o.set(Faulty, "%s, was ACTIVE", stateName(p))
	case p.PeersActive:
		o.set(Faulty, "%s, ACTIVE on most ports like it", stateName(p))
	case o.Kind == Plane && isWhole(d):
		o.set(NotExpected, "plane not in use, %s", stateName(p))
	case o.Kind == Port && placeOf(d, p).port > 1 && !h.linked[placeOf(d, p)]:
		o.set(NotExpected, "second port, none of its kind has a link")
	case p.Role == string(pci.Other):
		o.set(NotExpected, "not a compute port, never ACTIVE")
	default:
		o.set(Unknown, "%s, never ACTIVE", stateName(p))
		o.Unused = true
	}
	return o
}

// isSlow reports whether a compute port at the same place is faster.
func (h *host) isSlow(d *snapshot.Device, p *snapshot.Port) bool {
	return p.Rate != nil && *p.Rate < h.fastest[placeOf(d, p)]
}

// isWhole reports whether the ACTIVE planes of a device are a complete set: one to four times three planes, or one to
// three times four.
func isWhole(d *snapshot.Device) bool {
	n := 0
	for i := range d.Ports {
		if isActive(&d.Ports[i]) {
			n++
		}
	}
	return n > 0 && (n%3 == 0 || n%4 == 0)
}

// isDisabled reports whether every interface of an Ethernet port is administratively down.
func isDisabled(p *snapshot.Port) bool {
	if p.LinkLayer == layerIB || len(p.Netdev) == 0 {
		return false
	}
	for i := range p.Netdev {
		if up := p.Netdev[i].Admin; up == nil || *up {
			return false
		}
	}
	return true
}

// stateName returns the kernel's name of the state of a port: "DOWN".
func stateName(p *snapshot.Port) string {
	if n := *p.State; n > 0 && n < uint64(len(snapshot.PortStates)) {
		return snapshot.PortStates[n]
	}
	return fmt.Sprintf("state %d", *p.State)
}
