package collector

import (
	"path"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
)

// identity reads what a device is. It changes when the device registers again only.
func (r *reader) identity(name string) snapshot.Device {
	dir := classDir + "/" + name
	d := snapshot.Device{
		Name:     name,
		NodeType: r.number(dir + "/node_type"),
		NodeGUID: r.optional(dir + "/node_guid"),
		HCAType:  r.optional(dir + "/hca_type"),
		BoardID:  r.optional(dir + "/board_id"),
		Firmware: r.optional(dir + "/fw_ver"),
	}
	real, err := r.h.Files.Resolve(dir + "/device")
	if err != nil { // rxe and siw have no device; rxe names its netdev
		d.FunctionType, d.Driver = snapshot.Software, "siw"
		if r.optional(dir+"/parent") != "" {
			d.Driver = "rxe"
		}
		return d
	}
	d.FunctionType = snapshot.Physical
	if strings.Contains(path.Base(real), ".sf.") {
		d.FunctionType = snapshot.SubFunction
	}
	for real != "." && !pci.IsAddress(path.Base(real)) {
		real = path.Dir(real)
	}
	if real == "." {
		d.Driver = r.driver(dir + "/device")
		return d
	}
	d.PCIAddress = path.Base(real)
	d.Driver = r.driver(real)
	if n := r.optional(real + "/numa_node"); n != "-1" {
		d.NUMANode = n
	}
	if _, err := r.h.Files.Link(real + "/physfn"); err == nil || isVirtualID(r.optional(real+"/vendor"), r.optional(real+"/device")) {
		if d.FunctionType == snapshot.Physical {
			d.FunctionType = snapshot.Virtual
		}
	}
	return d
}

// driver is the name behind the link driver of a device directory.
func (r *reader) driver(dir string) string {
	target, err := r.h.Files.Link(dir + "/driver")
	if err != nil {
		return ""
	}
	return path.Base(target)
}

// isVirtualID knows virtual functions by their PCI ids: a guest sees no physfn link.
func isVirtualID(vendor, device string) bool {
	switch vendor + device {
	case "0x15b30x1012", "0x15b30x1014", "0x15b30x1016", "0x15b30x1018", "0x15b30x101a", "0x15b30x101c", "0x15b30x101e", "0x15b30xa2d3", // mlx5
		"0x15b30x1004",                                 // mlx4
		"0x14e40x1806", "0x14e40x1807", "0x14e40x1819", // bnxt
		"0x80860x145c", // idpf
		"0x1dd80x1003", // ionic
		"0x14140x00ba": // mana
		return true
	}
	return false
}

// gpus returns the paths of all GPUs in the PCI tree.
func gpus(h *host.Host, r *reader) []string {
	const bus = "sys/bus/pci/devices"
	names, err := h.Files.List(bus)
	if err != nil {
		return nil
	}
	var out []string
	for _, n := range names {
		dir := bus + "/" + n
		vendor := r.optional(dir + "/vendor")
		if !pci.IsGPU(vendor, "0x03") {
			continue
		}
		if !pci.IsGPU(vendor, r.optional(dir+"/class")) {
			continue
		}
		if real, err := h.Files.Resolve(dir); err == nil {
			out = append(out, real)
		}
	}
	return out
}
