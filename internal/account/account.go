// Package account puts every object of a host into one class: healthy, faulty, not expected or unknown, with the
// reason. A host is ok only if the state of every compute object is known. The package is pure.
package account

import (
	"cmp"
	"fmt"
	"slices"

	"rdma_exporter/internal/snapshot"
)

// Kind is the kind of an object.
type Kind string

// The kinds, in the order in which they are listed.
const (
	Function Kind = "function"    // PCI function that supports RDMA and has no RDMA device; name: PCI address
	Device   Kind = "device"      // RDMA device; name: mlx5_0
	Port     Kind = "port"        // name: mlx5_0/1
	Plane    Kind = "plane"       // port of a device with more than snapshot.Planes of them; name: mlx5_0/3
	Member   Kind = "bond_member" // interface of a port's bond; name: enp24s0np0
	Cage     Kind = "cage"        // of a port whose driver reads modules; name: its interface
	GPU      Kind = "gpu"         // name: PCI address
)

var kinds = []Kind{Function, Device, Port, Plane, Member, Cage, GPU}

// Class is the state of an object, as far as it is known.
type Class string

// The classes.
const (
	Healthy     Class = "healthy"      // read, without a finding
	Faulty      Class = "faulty"       // it has a finding, or is below an object that has one
	NotExpected Class = "not_expected" // not in use for a known reason
	Unknown     Class = "unknown"      // it could not be read, or its data decides nothing
)

// Classes are all classes.
var Classes = []Class{Healthy, Faulty, NotExpected, Unknown}

// Object is one object of a host, with its class.
type Object struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name"`
	Class  Class  `json:"class"`
	Reason string `json:"reason,omitempty"` // of a class other than healthy
	// Compute is set for objects that jobs use: ports that are not known to have another purpose, devices with such a
	// port, GPUs.
	Compute bool `json:"compute"`

	// Unused is set for a port that is not ACTIVE and for which there is no evidence whether it should be.
	Unused bool `json:"-"`

	compute bool   // a port of role compute
	device  string // RDMA device that it belongs to
	uuid    string // of a GPU
	port    string // number; empty: not of a port
	netdev  string // of a member of a bond
	address string // of its PCI function
}

// Failure is a failed read.
type Failure struct {
	Device string // RDMA device; empty: of the host
	Text   string
}

// Objects returns the objects of the host by kind and name, each classified by what was read of it.
func Objects(n *snapshot.Node, failures []Failure) (out []Object) {
	if n == nil {
		return nil
	}
	out = slices.Concat(listFunctions(n.InfiniBand), listDevices(n, failures), listCages(n.Optics), listGPUs(n))
	slices.SortStableFunc(out, func(a, b Object) int {
		return cmp.Or(
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(len(a.Name), len(b.Name)),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return out
}

// set classifies an object that is not healthy.
func (o *Object) set(c Class, format string, args ...any) {
	o.Class, o.Reason = c, fmt.Sprintf(format, args...)
}

// listDevices returns the RDMA devices with their ports.
func listDevices(n *snapshot.Node, failures []Failure) (out []Object) {
	if n.InfiniBand == nil {
		return nil
	}
	h := hostOf(n.InfiniBand)
	for i := range n.InfiniBand.Devices {
		d := &n.InfiniBand.Devices[i]
		o := Object{Kind: Device, Name: d.Name, Class: Healthy, device: d.Name, address: d.PCIAddress}
		stuck := slices.ContainsFunc(n.Devices, func(r snapshot.DeviceRead) bool { return r.Device == d.Name && r.Stuck })
		switch {
		case n.InfiniBand.IsIgnored(d.Name, 0):
			o.set(NotExpected, "ignored by the configuration")
		case d.ManagesNVLink:
			o.set(NotExpected, "manages NVLink switches")
		case stuck:
			o.set(Unknown, "a read has not returned")
		case len(d.Ports) == 0:
			o.set(Unknown, "its ports could not be read%s", errorSuffix(failures, d.Name))
		}
		ports := make([]Object, 0, len(d.Ports))
		for j := range d.Ports {
			p := h.classifyPort(d, &d.Ports[j], errorSuffix(failures, d.Name))
			if o.Class == NotExpected {
				p.Class, p.Reason = o.Class, o.Reason
			}
			o.Compute = o.Compute || p.Compute
			ports = append(append(ports, p), listMembers(&d.Ports[j], p)...)
		}
		out = append(append(out, o), ports...)
	}
	return out
}

// errorSuffix returns the error of a failed read of a device, after a colon; empty if there is none.
func errorSuffix(failures []Failure, device string) string {
	for _, f := range failures {
		if f.Device == device {
			return ": " + f.Text
		}
	}
	return ""
}

// listFunctions returns the functions without an RDMA device that should have one, and those that might.
func listFunctions(n *snapshot.InfiniBand) (out []Object) {
	if n == nil {
		return nil
	}
	for _, m := range n.Missing {
		o := Object{
			Kind: Function, Name: cmp.Or(m.PCIAddress, m.Name), Compute: true, device: m.Name, address: m.PCIAddress,
		}
		o.set(Faulty, "no RDMA device: %s", m.Reason)
		if n.IsIgnored(m.Name, 0) {
			o.set(NotExpected, "ignored by the configuration")
		}
		out = append(out, o)
	}
	for i := range n.Bare {
		f := &n.Bare[i]
		missing := func(m snapshot.MissingDevice) bool { return m.PCIAddress == f.PCIAddress }
		if f.Like || slices.ContainsFunc(n.Missing, missing) {
			continue
		}
		o := Object{Kind: Function, Name: f.PCIAddress, Compute: true, address: f.PCIAddress}
		if f.Driver == "" {
			o.set(Unknown, "supports RDMA, no driver bound")
		} else {
			o.set(Unknown, "supports RDMA, no RDMA device of driver %s", f.Driver)
		}
		out = append(out, o)
	}
	return out
}
