package pci

import (
	"slices"
	"strings"
)

// Place is the position of a function in the PCI tree.
type Place struct {
	Root  string   // directory of the host bridge: pci0000:15
	Chain []string // functions from the root port to the function itself
	NUMA  int      // numa_node; negative if unknown
}

// PlaceOf parses a path below /sys/devices. The chain begins below the last directory that is not a function: a domain
// behind an Intel VMD has its own host bridge.
func PlaceOf(path string, numa int) Place {
	p := Place{NUMA: numa}
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case IsAddress(part):
			p.Chain = append(p.Chain, part)
		case strings.HasPrefix(part, "pci"):
			p.Root, p.Chain = part, nil
		}
	}
	return p
}

// Bridged reports whether there is a bridge above the function. Virtual machines place functions on a bus without one,
// and their position is not that of the real functions.
func (p Place) Bridged() bool { return len(p.Chain) > 1 }

// Distance is the PCI distance of two functions.
type Distance string

// The distances, named as in nvidia-smi topo -m and NCCL (src/graph/topo.h), nearest first. NODE is only in nvidia-smi,
// P2C only in NCCL.
const (
	PIX  Distance = "PIX"  // through one switch
	PXB  Distance = "PXB"  // through several switches, without a host bridge
	P2C  Distance = "P2C"  // through the CPU that the GPU is coupled to by NVLink-C2C
	PHB  Distance = "PHB"  // through a host bridge
	NODE Distance = "NODE" // through host bridges of one NUMA node
	SYS  Distance = "SYS"  // from one NUMA node to another
)

// DistanceOf returns the distance of two functions as in nvidia-smi.
func DistanceOf(a, b Place) Distance {
	common := shared(a, b)
	switch {
	case common > 0 && common >= max(len(a.Chain), len(b.Chain))-2:
		// The last two of a chain are the port of a switch and the function.
		return PIX
	case common > 0:
		return PXB
	case a.Root == b.Root:
		return PHB
	case a.NUMA >= 0 && a.NUMA == b.NUMA:
		return NODE
	}
	return SYS
}

// shared returns the number of functions above both.
func shared(a, b Place) int {
	n := 0
	for a.Root == b.Root && n < min(len(a.Chain), len(b.Chain)) && a.Chain[n] == b.Chain[n] {
		n++
	}
	return n
}

// Between returns the bridges that peer-to-peer traffic of two functions passes below their common bridge; none if they
// have no common bridge.
func Between(a, b Place) []string {
	n := shared(a, b)
	if n == 0 {
		return nil
	}
	var out []string
	for _, p := range []Place{a, b} {
		if n < len(p.Chain) {
			out = append(out, p.Chain[n:len(p.Chain)-1]...)
		}
	}
	return out
}

// Bridge identifies the model of a switch: vendor, device, subsystem_vendor and subsystem_device.
type Bridge struct {
	Vendor, Device, SubVendor, SubDevice uint64
}

// NCCLPlace is the place of a function as in NCCL: the switches above it, nearest first, and its NUMA node.
type NCCLPlace struct {
	Switches []string
	NUMA     int
}

// AsNCCL walks up the tree as NCCL does (ncclTopoGetXmlFromSys, src/graph/xml.cc): two functions per switch, so that a
// root port does not count if a switch or device is below it. As in NCCL, an unknown NUMA node is 0. models has the
// bridges; nil: unknown.
func (p Place) AsNCCL(models map[string]Bridge) NCCLPlace {
	f := NCCLPlace{NUMA: max(0, p.NUMA)}
	for i := len(p.Chain) - 3; i >= 0; i -= 2 {
		f.Switches = append(f.Switches, p.Chain[i])
	}
	f.Switches = flat(f.Switches, models)
	return f
}

// flat removes the lower halves of Broadcom switches that appear as two levels (ncclTopoFlattenBcmSwitches,
// src/graph/topo.cc).
func flat(switches []string, models map[string]Bridge) []string {
	var out []string
	for i, s := range switches {
		if i+1 < len(switches) && (len(out) == i) && generation(models[s], 1) != 0 &&
			generation(models[s], 1) == generation(models[switches[i+1]], 0) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// generation returns the PCIe generation of a Broadcom PEX switch, 0 for other bridges. Gen5 switches have their level
// in the subsystem ID.
func generation(b Bridge, level uint64) int {
	switch {
	case b.Vendor != 0x1000 || b.SubVendor != 0x1000:
		return 0
	case b.Device == 0xc010 && b.SubDevice&0xf000 == 0xa000:
		return 4
	case b.Device == 0xc030 && b.SubDevice&0xf000 == level<<12:
		return 5
	}
	return 0
}

// DistanceTo returns the distance of a GPU and a NIC as in NCCL (ncclTopoSetPaths, src/graph/paths.cc). A GPU coupled
// to its CPU (c2c) reaches the NICs of that CPU through it.
func (f NCCLPlace) DistanceTo(nic NCCLPlace, c2c bool) Distance {
	switch {
	case len(f.Switches) > 0 && len(nic.Switches) > 0 && f.Switches[0] == nic.Switches[0]:
		return PIX
	case slices.ContainsFunc(f.Switches, func(s string) bool { return slices.Contains(nic.Switches, s) }):
		return PXB
	case f.NUMA != nic.NUMA:
		return SYS
	case c2c:
		return P2C
	}
	return PHB
}
