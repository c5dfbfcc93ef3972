package pci

import "strings"

// Virtual says whether a machine is a virtual one, by the maker and the product that its firmware names (/sys/class/dmi/id/sys_vendor
// and product_name). Clouds name their bare-metal machines alike, but for the product.
func Virtual(vendor, product string) bool {
	vendor, product = strings.ToLower(vendor), strings.ToLower(product)
	if strings.Contains(product, "metal") {
		return false
	}
	for _, v := range []string{"qemu", "vmware", "xen", "amazon ec2", "google", "openstack", "red hat", "parallels", "innotek", "nutanix", "alibaba cloud"} {
		if strings.HasPrefix(vendor, v) {
			return true
		}
	}
	return vendor == "microsoft corporation" && strings.HasPrefix(product, "virtual machine") ||
		strings.Contains(product, "kvm") || strings.Contains(product, "hvm domu")
}

// qemu is the vendor of QEMU's emulated bridges, nvidia that of GPUs and of the root ports of NVIDIA's own processors.
const (
	qemu   = "0x1b36"
	nvidia = "0x10de"
)

// Emulated says of a bridge, by its vendor file, that a hypervisor made it.
func Emulated(vendor string) bool { return strings.TrimSpace(vendor) == qemu }

// Coupled says whether a GPU is coupled to its CPU by NVLink-C2C (GH200, GB200, GB300): both it and the root port above it are
// NVIDIA's, by their vendor files.
func Coupled(gpu, rootPort string) bool {
	return strings.TrimSpace(gpu) == nvidia && strings.TrimSpace(rootPort) == nvidia
}

// Translates says whether an IOMMU group translates what its devices send, by the group's type file: identity does not, nor does a
// machine without IOMMU. It is not ok where the type tells nothing (drivers/iommu/iommu.c).
func Translates(groupType string) (translates, ok bool) {
	switch strings.TrimSpace(groupType) {
	case "DMA", "DMA-FQ":
		return true, true
	case "identity":
		return false, true
	}
	return false, false
}
