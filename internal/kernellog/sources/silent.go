package main

import (
	"regexp"
	"slices"
)

// subsystems are the parts of the kernel whose messages concern devices, ports, firmware, commands, resets, queues or
// PCIe links.
var subsystems = []subsystem{
	{driver: "mlx5_core", dirs: []string{"drivers/net/ethernet/mellanox/mlx5", "drivers/infiniband/hw/mlx5"}},
	{driver: "mlx4_core", dirs: []string{"drivers/net/ethernet/mellanox/mlx4", "drivers/infiniband/hw/mlx4"}},
	{driver: "bnxt_en", dirs: []string{"drivers/net/ethernet/broadcom/bnxt", "drivers/infiniband/hw/bnxt_re"}},
	{driver: "ice", dirs: []string{"drivers/net/ethernet/intel/ice", "drivers/infiniband/hw/irdma"}},
	{driver: "i40e", dirs: []string{"drivers/net/ethernet/intel/i40e"}},
	{driver: "idpf", dirs: []string{"drivers/net/ethernet/intel/idpf"}},
	{driver: "ionic", dirs: []string{"drivers/net/ethernet/pensando", "drivers/infiniband/hw/ionic"}},
	{driver: "efa", dirs: []string{"drivers/infiniband/hw/efa"}},
	{driver: "ena", dirs: []string{"drivers/net/ethernet/amazon"}},
	{driver: "hns3", dirs: []string{"drivers/net/ethernet/hisilicon/hns3", "drivers/infiniband/hw/hns"}},
	{driver: "mana", dirs: []string{"drivers/net/ethernet/microsoft", "drivers/infiniband/hw/mana"}},
	{driver: "erdma", dirs: []string{"drivers/infiniband/hw/erdma"}},
	{driver: "ib_core", dirs: []string{"drivers/infiniband/core", "drivers/infiniband/ulp/ipoib"}},
	{driver: "pcieport", dirs: []string{
		"drivers/pci/pcie", "drivers/pci/hotplug/pciehp.h", "drivers/pci/hotplug/pciehp_core.c", "drivers/pci/hotplug/pciehp_ctrl.c",
		"drivers/pci/hotplug/pciehp_hpc.c", "drivers/pci/hotplug/pciehp_pci.c", "drivers/pci/pci.c", "drivers/pci/probe.c",
		"drivers/pci/setup-res.c", "drivers/pci/setup-bus.c", "drivers/pci/iov.c", "drivers/pci/pci-driver.c",
		"drivers/pci/access.c", "drivers/pci/vpd.c", "drivers/pci/ats.c", "drivers/base/dd.c",
	}},
	{driver: "iommu", dirs: []string{"drivers/iommu/intel", "drivers/iommu/amd", "drivers/iommu/arm/arm-smmu-v3", "drivers/iommu/iommu.c"}},
	{driver: "ghes", dirs: []string{"drivers/acpi/apei/ghes.c", "drivers/firmware/efi/cper.c"}},
	{driver: "nvidia", dirs: []string{"kernel-open/nvidia", "kernel-open/nvidia-peermem", "src/nvidia/arch/nvalloc/unix/src", "src/common/nvswitch/kernel"}},
}

// quiet are messages that no pattern matches on purpose, by what they say or where they are printed.
type quiet struct {
	driver   string         // empty: of any
	form     *regexp.Regexp // of the format
	function *regexp.Regexp // of "FILE FUNCTION"; nil: any
	reason   string
}

var silent = slices.Concat(quietOfAll, quietOfVendors)

var quietOfAll = []quiet{
	{
		form:   regexp.MustCompile(`(?i)\b(?:can't|cannot|couldn't|could not|unable to|fail(?:ed|ure)? (?:to|in|on)?)? ?(?:k?v?[mz]alloc|alloc(?:ate)?) ?(?:memory|mem)\b|out of memory|no memory`),
		reason: "the kernel had no memory: it says so itself",
	},
}
