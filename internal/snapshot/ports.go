package snapshot

import (
	"fmt"
	"iter"
	"slices"
)

// Planes is the maximum number of ports of a device; more are the planes of one link, only some of which are in use.
const Planes = 2

// PortsOf returns the ports of devices, in order.
func PortsOf(devices []Device) iter.Seq2[*Device, *Port] {
	return func(yield func(*Device, *Port) bool) {
		for i := range devices {
			d := &devices[i]
			for j := range d.Ports {
				if !yield(d, &d.Ports[j]) {
					return
				}
			}
		}
	}
}

// IsIgnored reports whether the site configuration ignores a port or, with number 0, a device.
func (n *InfiniBand) IsIgnored(device string, number int) bool {
	return slices.ContainsFunc(n.Ignored,
		func(o PortID) bool { return o.Device == device && (o.Number == 0 || o.Number == number) })
}

// UnconfirmedRates returns the number of ACTIVE ports whose rate is not confirmed by the configuration or the far end
// of the link. They are compared only with each other and with their own past. Ports at the highest rate of their NIC
// are left out. more is the highest rate in bits per second that one of the others could have; 0: unknown.
func (n *InfiniBand) UnconfirmedRates() (ports int, more float64) {
	if n == nil {
		return 0, 0
	}
	for _, p := range n.unconfirmed() {
		more = max(more, p.able())
		ports++
	}
	return ports, more
}

// unconfirmed returns the ACTIVE ports whose rate is not confirmed.
func (n *InfiniBand) unconfirmed() iter.Seq2[*Device, *Port] {
	return func(yield func(*Device, *Port) bool) {
		for d, p := range PortsOf(n.Devices) {
			if d.ManagesNVLink || d.FunctionType != Physical || len(d.Ports) > Planes || p.State == nil ||
				*p.State != PortActive || p.Rate == nil || p.RateConfirmed() {
				continue
			}
			if !yield(d, p) {
				return
			}
		}
	}
}

// maxDDR is the rate of a lane of DDR in bits per second, with its line code (IBTA volume 1, 14.2.5.6,
// LinkSpeedActive); QDR has 8 Gb/s without.
const maxDDR = 5e9

// SlowModes names the InfiniBand ports among those of UnconfirmedRates that run one lane, or SDR or DDR: modes to which
// a bad link falls back, and in which the cards of a cluster are not used. "mlx5_0/1 (1X)".
func (n *InfiniBand) SlowModes() (out []string) {
	if n == nil {
		return nil
	}
	for d, p := range n.unconfirmed() {
		if p.LinkLayer != "InfiniBand" || p.Lanes == nil || *p.Lanes == 0 {
			continue
		}
		lane, mode := *p.Rate/float64(*p.Lanes), ""
		switch {
		case *p.Lanes == 1:
			mode = "1X"
		case lane <= maxDDR/2:
			mode = "SDR"
		case lane <= maxDDR:
			mode = "DDR"
		default:
			continue
		}
		out = append(out, fmt.Sprintf("%s/%d (%s)", d.Name, p.Number, mode))
	}
	return out
}

// RateConfirmed reports whether the rate of an ACTIVE port is the highest of its NIC, or compared with what the
// configuration or the far end of its link say, or not compared, as that of a bond.
func (p *Port) RateConfirmed() bool {
	if !ownWord[p.ExpectedRateSource] || slices.ContainsFunc(p.Netdev, func(nd Netdev) bool { return nd.Member }) {
		return true
	}
	able := p.able()
	return able > 0 && p.Rate != nil && able <= *p.Rate
}

// able returns the highest rate that the NIC supports, bits per second; 0: unknown.
func (p *Port) able() (rate float64) {
	for k := range p.Netdev {
		if r := p.Netdev[k].CapableRate; r != nil {
			rate = max(rate, *r)
		}
	}
	return rate
}

// ownWord are the sources of an expected rate (expect.Source) from this host only.
var ownWord = map[string]bool{"": true, "siblings": true, "high_water_mark": true}

// States of a port: enum ib_port_state (include/rdma/ib_verbs.h).
const (
	PortDown = 1 + iota
	PortInit
	PortArmed
	PortActive
	PortActiveDefer
)

// PhysicalLinkUp is the physical state of a port with a link: enum ib_port_phys_state.
const PhysicalLinkUp = 5

// PortStates and PhysicalStates are the names of these states by number.
var (
	PortStates = []string{
		PortDown: "DOWN", PortInit: "INIT", PortArmed: "ARMED", PortActive: "ACTIVE", PortActiveDefer: "ACTIVE_DEFER",
	}
	PhysicalStates = []string{
		1: "Sleep", 2: "Polling", 3: "Disabled", 4: "PortConfigurationTraining", PhysicalLinkUp: "LinkUp",
		6: "LinkErrorRecovery", 7: "PhyTest",
	}
)

// NameOf returns the name of a number in one of these lists; the number itself if it has no name, empty if it is
// unknown.
func NameOf(names []string, n *uint64) string {
	switch {
	case n == nil:
		return ""
	case *n < uint64(len(names)) && names[*n] != "":
		return names[*n]
	}
	return fmt.Sprint(*n)
}
