package snapshot

import "slices"

// Planes is how many ports a device has at most; more are the planes of one link, of which some are in use.
const Planes = 2

// NotExpected returns the ports that are down with nothing that says they ought to be up: they were never ACTIVE, no peer is, the
// configuration does not name them. A port in INIT waits for a subnet manager or an address. Parts of other devices, planes and what is
// ignored are left out.
func (n *InfiniBand) NotExpected() (out []PortID) {
	if n == nil {
		return nil
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.ManagesNVLink || len(d.Ports) > Planes || d.FunctionType == SubFunction || d.PhysicalFunction != "" {
			continue
		}
		for j := range d.Ports {
			p := &d.Ports[j]
			id := PortID{Device: d.Name, Number: p.Number}
			ignored := slices.ContainsFunc(n.Ignored, func(o PortID) bool { return o.Device == d.Name && (o.Number == 0 || o == id) })
			if p.State != nil && *p.State == portDown && !p.WasActive && !p.PeersActive && !p.PinnedActive && !ignored {
				out = append(out, id)
			}
		}
	}
	return out
}

// portDown is DOWN of enum ib_port_state.
const portDown = 1
