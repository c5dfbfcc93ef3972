// Package pci derives facts from the PCI tree in sysfs: the path of a function below /sys/devices contains every bridge
// up to its host bridge. It is pure: paths in, facts out.
package pci

import (
	"regexp"
	"strings"
)

// Role is the purpose of a NIC, derived from its position.
type Role string

// The roles.
const (
	Compute Role = "compute" // shares a PCIe switch or root port with a GPU
	Other   Role = "other"   // the machine has GPUs, but none near: storage or management
	Unknown Role = "unknown" // no GPU, no PCI function, or no real bridge (virtual machine)
	// NVLinkManagement manages NVLink switches (HGX B200, B300) and carries no traffic: VPD.ManagesNVLink.
	NVLinkManagement Role = "nvlink_management"
)

var address = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// IsAddress reports whether s is a PCI address DDDD:BB:DD.F. Domains created by drivers have more than four digits
// (pci_setup_device: "%04x").
func IsAddress(s string) bool { return address.MatchString(s) }

// Functions returns the PCI addresses on a path below /sys/devices, from the root port to the function itself.
func Functions(path string) []string {
	var out []string
	for part := range strings.SplitSeq(path, "/") {
		if IsAddress(part) {
			out = append(out, part)
		}
	}
	return out
}

// RoleOf returns the role of the NIC at a path, given the paths of all GPUs.
func RoleOf(nic string, gpus []string) Role {
	chain := Functions(nic)
	if len(gpus) == 0 || len(chain) < 2 {
		return Unknown
	}
	for _, g := range gpus {
		other := Functions(g)
		if len(other) > 1 && other[0] == chain[0] {
			return Compute
		}
	}
	return Other
}

// IsGPU reports whether a function is a GPU, by its vendor and class files: display controllers and accelerators of GPU
// vendors. The display of a management controller (ASPEED, Matrox) is not.
func IsGPU(vendor, class string) bool {
	switch strings.TrimSpace(vendor) {
	case "0x10de", "0x1002", "0x1da3": // NVIDIA, AMD, Habana
	default:
		return false
	}
	class = strings.TrimSpace(class)
	return strings.HasPrefix(class, "0x03") || strings.HasPrefix(class, "0x12")
}
