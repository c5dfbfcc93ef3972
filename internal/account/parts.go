package account

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

// listMembers returns the member interfaces of a port's bond. port is the object of the port.
func listMembers(p *snapshot.Port, port Object) (out []Object) {
	for i := range p.Netdev {
		n := &p.Netdev[i]
		if !n.Member {
			continue
		}
		o := port
		o.Kind, o.Name, o.Class, o.Reason, o.Unused, o.netdev = Member, n.Name, Healthy, "", false, n.Name
		switch {
		case port.Class == NotExpected:
			o.set(NotExpected, "%s", port.Reason)
		case n.Admin != nil && !*n.Admin:
			o.set(NotExpected, "administratively down")
		case n.Up == nil:
			o.set(Unknown, "its state in the bond could not be read")
		case !*n.Up:
			o.set(Faulty, "no link")
		}
		out = append(out, o)
	}
	return out
}

// listCages returns the cages whose driver reports modules. They are not compute objects: a fault of a module shows on
// its port.
func listCages(n *wire.Optics) (out []Object) {
	if n == nil {
		return nil
	}
	for i := range n.Cages {
		c := &n.Cages[i]
		port := fmt.Sprintf("%s/%d", c.Device, c.Port)
		o := Object{
			Kind: Cage, Name: cmp.Or(c.Netdev, port), Class: Healthy, device: c.Device, port: strconv.Itoa(c.Port),
			netdev: c.Netdev,
		}
		switch c.State {
		case wire.CageUnread, wire.CageUnsupported, wire.CageNoAnswer: // its module is unknown
			continue
		case wire.CageEmpty:
			o.set(NotExpected, "empty cage")
		case wire.CageBusy:
			o.set(Unknown, "its module is busy")
		case wire.CageUnreadable, wire.CageUnknown:
			o.set(Unknown, "its module could not be read")
		case wire.CagePresent:
		}
		out = append(out, o)
	}
	return out
}

// isModuleAlert reports whether an alert is about the transceiver or cable in a cage.
func isModuleAlert(alert string) bool {
	return strings.Contains(alert, "Transceiver") || strings.Contains(alert, "Optics")
}
