package collector

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
)

// identity reads the identity of a device. It changes only when the device registers again.
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

// function returns the kind of function of a device directory and the path of the PCI function, for a sub-function that of its parent; an
// empty path where there is none. A device without a function is software only with positive evidence.
func (r *reader) function(dir string) (snapshot.FunctionType, string) {
	real, err := r.h.Files.Resolve(dir + "/device")
	if err != nil {
		if own, err := r.h.Files.Resolve(dir); err == nil && strings.HasPrefix(own, virtualDevices) || r.softwareDriver(dir) != "" {
			return snapshot.Software, ""
		}
		return snapshot.FunctionUnknown, ""
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

// virtualDevices is the kernel's directory of devices without hardware.
const virtualDevices = "sys/devices/virtual/"

// driverOf returns the driver of a device: that of its function, else one deduced from other evidence; empty where there is none.
func (r *reader) driverOf(name string) string {
	dir := classDir + "/" + name
	kind, function := r.function(dir)
	switch {
	case function != "":
		return r.driver(function)
	case kind != snapshot.Software && kind != snapshot.FunctionUnknown:
		return r.driver(dir + "/device")
	}
	return cmp.Or(r.softwareDriver(dir), driverOfType(r.optional(dir+"/hca_type")), driverNamed(name))
}

// siwNodeDesc is the node description of siw devices; the user library of siw identifies them by it (include/uapi/rdma/siw-abi.h).
const siwNodeDesc = "Software iWARP stack"

// softwareDriver returns the driver of a software device: only rxe has its netdev in the file parent.
func (r *reader) softwareDriver(dir string) string {
	switch {
	case r.optional(dir+"/parent") != "":
		return "rxe"
	case r.optional(dir+"/node_desc") == siwNodeDesc:
		return "siw"
	}
	return ""
}

// nvidiaIDs are the PCI device ids of NVIDIA's (Mellanox's) devices by driver; mthca has 5a44h and 6274h to 6282h.
var nvidiaIDs = []struct {
	first, last uint64
	driver      string
}{
	{0x1002, 0x1010, "mlx4_core"}, {0x6340, 0x67ff, "mlx4_core"}, {0x1011, 0x2fff, "mlx5_core"}, {0xa2d2, 0xa2ff, "mlx5_core"},
}

// driverOfType is the driver of a hca_type: that of mlx4 and mlx5 is MT and the PCI device id in decimal.
func driverOfType(hcaType string) string {
	id, ok := strings.CutPrefix(hcaType, "MT")
	n, err := strconv.ParseUint(id, 10, 16)
	if !ok || err != nil {
		return ""
	}
	for _, of := range nvidiaIDs {
		if n >= of.first && n <= of.last {
			return of.driver
		}
	}
	return ""
}

// kernelNames are the names that drivers give to their devices, with those of the PCI drivers. irdma has several.
var kernelNames = []struct{ prefix, driver string }{
	{"mlx5_", "mlx5_core"},
	{"mlx4_", "mlx4_core"},
	{"bnxt_re", "bnxt_en"},
	{"efa_", "efa"},
	{"hfi1_", "hfi1"},
	{"qedr", "qede"},
	{"cxgb4_", "cxgb4"},
	{"hns_", "hns3"},
	{"erdma_", "erdma"},
	{"mana_", "mana"},
	{"ionic_", "ionic"},
	{"ocrdma", "be2net"},
}

// driverNamed is the driver of a device with a kernel name: udev names, such as rocep24s0, contain no driver.
func driverNamed(name string) string {
	for _, k := range kernelNames {
		if number, ok := strings.CutPrefix(name, k.prefix); ok && number != "" && strings.Trim(number, "0123456789") == "" {
			return k.driver
		}
	}
	return ""
}

// driver is the name behind the link driver of a device directory.
func (r *reader) driver(dir string) string {
	target, err := r.h.Files.Link(dir + "/driver")
	if err != nil {
		return ""
	}
	return path.Base(target)
}

// isVirtualID reports whether PCI ids are those of a virtual function: a guest has no physfn link.
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
