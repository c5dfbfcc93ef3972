package pci

import "strings"

// Virtual reports whether a machine is virtual, by vendor and product of its firmware (/sys/class/dmi/id/sys_vendor and
// product_name). Bare-metal machines of clouds differ only in the product.
func Virtual(vendor, product string) bool {
	vendor, product = strings.ToLower(vendor), strings.ToLower(product)
	if strings.Contains(product, "metal") {
		return false
	}
	for _, v := range []string{
		"qemu", "vmware", "xen", "amazon ec2", "google", "openstack", "red hat", "parallels", "innotek",
		"nutanix", "alibaba cloud",
	} {
		if strings.HasPrefix(vendor, v) {
			return true
		}
	}
	return vendor == "microsoft corporation" && strings.HasPrefix(product, "virtual machine") ||
		strings.Contains(product, "kvm") || strings.Contains(product, "hvm domu")
}

// qemu is the vendor of QEMU's emulated bridges, nvidia that of GPUs and of the root ports of NVIDIA's processors.
const (
	qemu   = "0x1b36"
	nvidia = "0x10de"
)

// Emulated reports whether a bridge is emulated by a hypervisor, by its vendor file.
func Emulated(vendor string) bool { return strings.TrimSpace(vendor) == qemu }

// Coupled reports whether a GPU is coupled to its CPU by NVLink-C2C (GH200, GB200, GB300): by their vendor files, both
// the GPU and the root port above it are NVIDIA's.
func Coupled(gpu, rootPort string) bool {
	return strings.TrimSpace(gpu) == nvidia && strings.TrimSpace(rootPort) == nvidia
}

// Translates reports whether an IOMMU group translates DMA addresses, by the group's type file: identity does not, nor
// does a machine without IOMMU. ok is false for other types (drivers/iommu/iommu.c).
func Translates(groupType string) (translates, ok bool) {
	switch strings.TrimSpace(groupType) {
	case "DMA", "DMA-FQ":
		return true, true
	case "identity":
		return false, true
	}
	return false, false
}
