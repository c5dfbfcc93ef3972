package sysfs

import (
	"path"

	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot/accel"
)

// ReadPCIeHop reads the link of a PCI function with the one above it.
func ReadPCIeHop(r reading.Reads, dir, address string) accel.PCIeHop {
	return accel.PCIeHop{
		Address:  path.Base(address),
		Speed:    pci.ParseSpeed(r.Optional(dir + "/current_link_speed")),
		MaxSpeed: pci.ParseSpeed(r.Optional(dir + "/max_link_speed")),
		Width:    pci.ParseWidth(r.Optional(dir + "/current_link_width")),
		MaxWidth: pci.ParseWidth(r.Optional(dir + "/max_link_width")),
	}
}
