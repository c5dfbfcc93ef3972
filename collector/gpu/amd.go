package gpu

import (
	"fmt"
	"path"
	"slices"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot/accel"
)

// readAMD lists the GPUs of AMD among those of the PCI tree; nil if it was not read.
func readAMD(r reading.Reads, functions []string) []accel.AMDGPU {
	if functions == nil {
		return nil
	}
	out := []accel.AMDGPU{}
	var nodes []sysfs.KFDNode
	for _, function := range functions {
		if r.Optional(function+"/vendor") != fmt.Sprintf("0x%04x", sysfs.VendorAMD) {
			continue
		}
		if nodes == nil {
			nodes = sysfs.ReadKFDNodes(r)
		}
		g := accel.AMDGPU{PCIAddress: path.Base(function), Driver: sysfs.BoundDriver(r.Host.Files, function)}
		if i := slices.IndexFunc(nodes, func(n sysfs.KFDNode) bool { return n.Address == g.PCIAddress }); i >= 0 {
			g.UUID = nodes[i].Uuid()
		}
		out = append(out, g)
	}
	return out
}

// recordsOf returns the AMD GPUs to remember: those with a driver and a unique ID.
func recordsOf(amd []accel.AMDGPU) (out []expect.GPURecord) {
	for _, g := range amd {
		if g.Driver == accel.DriverAMD && g.UUID != "" {
			out = append(out, expect.GPURecord{UUID: g.UUID, PCIAddress: g.PCIAddress, Driver: accel.DriverAMD})
		}
	}
	return out
}

// lostAMD finds GPUs of AMD that had a driver and are not in the PCI tree, and those without a driver that others have,
// or that they had before. amd is nil if the tree was not read.
func lostAMD(known []expect.GPURecord, amd []accel.AMDGPU) (out []accel.LostGPU) {
	if amd == nil {
		return nil
	}
	bound := slices.ContainsFunc(amd, func(g accel.AMDGPU) bool { return g.Driver == accel.DriverAMD })
	for _, g := range amd {
		l := accel.LostGPU{PCIAddress: g.PCIAddress, Reason: accel.GPUNoDriver}
		i := slices.IndexFunc(known, func(k expect.GPURecord) bool {
			return k.Driver == accel.DriverAMD && k.PCIAddress == g.PCIAddress
		})
		if i >= 0 {
			l.GPUName = nameOf(known[i])
		}
		if g.Driver == "" && (bound || i >= 0) {
			out = append(out, l)
		}
	}
	for _, k := range known {
		is := func(g accel.AMDGPU) bool { return g.PCIAddress == k.PCIAddress || g.UUID == k.UUID }
		if k.Driver == accel.DriverAMD && !slices.ContainsFunc(amd, is) {
			out = append(out, accel.LostGPU{GPUName: nameOf(k), PCIAddress: k.PCIAddress, Reason: accel.GPUOffBus})
		}
	}
	return out
}
