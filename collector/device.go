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
		Name:       name,
		NodeType:   r.within(dir+"/node_type", r.number(dir, "node_type"), nodeTypes),
		NodeGUID:   r.identityText(dir+"/node_guid", nameLength, guids),
		SystemGUID: r.identityText(dir+"/sys_image_guid", nameLength, guids),
		HCAType:    r.identityText(dir+"/hca_type", nameLength, nil),
		BoardID:    r.identityText(dir+"/board_id", nameLength, nil),
		Firmware:   r.identityText(dir+"/fw_ver", firmwareLength, firmwares),
	}
	var function string
	d.FunctionType, function = r.function(dir)
	d.Driver = r.driverOf(name)
	if function == "" {
		return d
	}
	d.PCIAddress, d.Path = path.Base(function), function
	d.Emulated = pci.Emulated(r.optional(pciDir + pci.Functions(function)[0] + "/vendor"))
	if n := r.optional(function + "/numa_node"); n != "-1" {
		d.NUMANode = n
	}
	d.VirtualFunctions = r.virtualFunctions(function)
	if target, err := r.h.Files.Link(function + "/physfn"); err == nil {
		d.PhysicalFunction = path.Base(target)
	}
	return d
}

// function tells what kind of function a device directory is on, and the path of the PCI function, the parent's for a
// sub-function; an empty path where there is none.
func (r *reader) function(dir string) (snapshot.FunctionType, string) {
	real, err := r.h.Files.Resolve(dir + "/device")
	if err != nil {
		return snapshot.Software, ""
	}
	kind := snapshot.Physical
	if strings.Contains(path.Base(real), ".sf.") {
		kind = snapshot.SubFunction
	}
	for !pci.IsAddress(path.Base(real)) {
		if real = path.Dir(real); real == "." {
			return kind, "" // on-die: hns on Kunpeng
		}
	}
	if kind == snapshot.Physical {
		if _, err := r.h.Files.Link(real + "/physfn"); err == nil || isVirtualID(r.optional(real+"/vendor"), r.optional(real+"/device")) {
			kind = snapshot.Virtual
		}
	}
	return kind, real
}

// driverOf names the driver of a device: that of its function. Software devices have no function; rxe names its netdev in
// parent, siw names nothing.
func (r *reader) driverOf(name string) string {
	dir := classDir + "/" + name
	kind, function := r.function(dir)
	switch {
	case function != "":
		return r.driver(function)
	case kind != snapshot.Software:
		return r.driver(dir + "/device")
	case r.optional(dir+"/parent") != "":
		return "rxe"
	}
	return "siw"
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
