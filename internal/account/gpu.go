package account

import (
	"fmt"
	"slices"

	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

// listGPUs returns the GPUs of the PCI tree and of NVML.
func listGPUs(node *snapshot.Node) (out []Object) {
	n := node.GPUs
	if n == nil {
		return nil
	}
	alone := findWithoutNIC(node.GDR)
	seen := map[string]bool{}
	add := func(address string) *Object {
		seen[address] = true
		out = append(out, Object{Kind: GPU, Name: address, Class: Healthy, Compute: true, address: address})
		return &out[len(out)-1]
	}
	for i := range n.GPUs {
		g := &n.GPUs[i]
		o := add(g.PCIAddress)
		o.uuid = g.UUID
		if slices.ContainsFunc(n.Ignored, func(name accel.GPUName) bool { return name.UUID == g.UUID }) {
			o.set(NotExpected, "ignored by the configuration")
		} else if why := alone[g.PCIAddress]; why != "" {
			o.set(Unknown, "%s", why)
		}
	}
	for _, l := range n.Lost {
		if !seen[l.PCIAddress] {
			o := add(l.PCIAddress)
			o.uuid = l.UUID
			o.set(Faulty, "lost: %s", l.Reason)
		}
	}
	inUse := slices.ContainsFunc(n.AMD, func(g accel.AMDGPU) bool { return g.Driver == accel.DriverAMD })
	for _, g := range n.AMD {
		if seen[g.PCIAddress] || !inUse { // without amdgpu none of them is for ROCm
			continue
		}
		switch o := add(g.PCIAddress); {
		case slices.ContainsFunc(n.Ignored, func(name accel.GPUName) bool { return g.UUID != "" && name.UUID == g.UUID }):
			o.set(NotExpected, "ignored by the configuration")
		case g.Driver != accel.DriverAMD:
			o.set(NotExpected, "bound to driver %s", g.Driver)
		case alone[g.PCIAddress] != "":
			o.set(Unknown, "%s", alone[g.PCIAddress])
		}
	}
	for _, f := range n.Functions {
		if seen[f.PCIAddress] {
			continue
		}
		switch o := add(f.PCIAddress); f.Driver {
		case "nvidia", "":
			o.set(Unknown, "not listed by NVML")
		default:
			o.set(NotExpected, "bound to driver %s", f.Driver)
		}
	}
	return out
}

const (
	minLike = 3 // GPUs with a NIC at their switch that show that another one should have one
	maxOdd  = 8 // one of this many GPUs may have no NIC
)

// atSwitch are the distances of a NIC at the PCIe switch of a GPU, or at the CPU that it is coupled to.
var atSwitch = []pci.Distance{pci.PIX, pci.PXB, pci.P2C}

// findWithoutNIC returns the GPUs without a NIC at their PCIe switch, by address, where all others have one: their NICs
// may be gone, and the exporter remembers no such NIC. Whether a port is ACTIVE does not count.
func findWithoutNIC(d *accel.GDR) map[string]string {
	if d == nil || len(d.Pairs) != len(d.GPUs)*len(d.NICs) {
		return nil
	}
	var without []string
	for g := range d.GPUs {
		pairs := d.Pairs[g*len(d.NICs) : (g+1)*len(d.NICs)]
		known := func(p accel.GDRPair) bool { return p.Distance != "" }
		near := func(p accel.GDRPair) bool { return slices.Contains(atSwitch, pci.Distance(p.Distance)) }
		if slices.ContainsFunc(pairs, known) && !slices.ContainsFunc(pairs, near) {
			without = append(without, d.GPUs[g].PCIAddress)
		}
	}
	with := len(d.GPUs) - len(without)
	if len(without) == 0 || with < minLike || len(without) > max(1, len(d.GPUs)/maxOdd) {
		return nil
	}
	out := map[string]string{}
	for _, address := range without {
		out[address] = fmt.Sprintf("no NIC at its PCIe switch, as %d other GPUs have", with)
	}
	return out
}
