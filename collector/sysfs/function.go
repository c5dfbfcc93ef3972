package sysfs

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// PCIFunction returns the kind of function of a device directory and the path of the PCI function, for a sub-function
// that of its parent; an empty path where there is none. A device without a function is software only with positive
// evidence.
func PCIFunction(r reading.Reads, dir string) (snapshot.FunctionType, string) {
	real, err := r.Host.Files.Resolve(dir + "/device")
	if err != nil {
		if own, err := r.Host.Files.Resolve(dir); err == nil && strings.HasPrefix(own, virtualDevices) ||
			softwareDriver(r, dir) != "" {
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
		if _, err := r.Host.Files.Link(real + "/physfn"); err == nil ||
			isVirtualID(r.Optional(real+"/vendor"), r.Optional(real+"/device")) {
			kind = snapshot.Virtual
		}
	}
	return kind, real
}

// virtualDevices is the kernel's directory of devices without hardware.
const virtualDevices = "sys/devices/virtual/"

// DriverOf returns the driver of a device whose function is known: that of its function, else one deduced from other
// evidence; empty where there is none.
func DriverOf(r reading.Reads, d *snapshot.Device) string {
	dir, kind := ClassDir+"/"+d.Name, d.FunctionType
	switch {
	case d.Path != "":
		return BoundDriver(r.Host.Files, d.Path)
	case kind != snapshot.Software && kind != snapshot.FunctionUnknown:
		return BoundDriver(r.Host.Files, dir+"/device")
	}
	return cmp.Or(softwareDriver(r, dir), driverOfType(r.Optional(dir+"/hca_type")), driverNamed(d.Name))
}

// siwNodeDesc is the node description of siw devices; the user library of siw identifies them by it
// (include/uapi/rdma/siw-abi.h).
const siwNodeDesc = "Software iWARP stack"

// softwareDriver returns the driver of a software device: only rxe has its netdev in the file parent.
func softwareDriver(r reading.Reads, dir string) string {
	switch {
	case r.Optional(dir+"/parent") != "":
		return "rxe"
	case r.Optional(dir+"/node_desc") == siwNodeDesc:
		return "siw"
	}
	return ""
}

// nvidiaIDs are the PCI device ids of NVIDIA's (Mellanox's) devices by driver; mthca has 5a44h and 6274h to 6282h.
var nvidiaIDs = []struct {
	first, last uint64
	driver      string
}{
	{0x1002, 0x1010, "mlx4_core"},
	{0x6340, 0x67ff, "mlx4_core"},
	{0x1011, 0x2fff, "mlx5_core"},
	{0xa2d2, 0xa2ff, "mlx5_core"},
}

// driverOfType returns the driver of a hca_type. The type of mlx4 and mlx5 devices is MT and the PCI device id in
// decimal.
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

// driverNamed returns the driver of a device with a kernel name: udev names, such as rocep24s0, contain no driver.
func driverNamed(name string) string {
	for _, k := range kernelNames {
		if number, ok := strings.CutPrefix(name, k.prefix); ok && number != "" && strings.Trim(number, "0123456789") == "" {
			return k.driver
		}
	}
	return ""
}

// BoundDriver returns the name behind the link driver of a device directory.
func BoundDriver(files host.Files, dir string) string {
	target, err := files.Link(dir + "/driver")
	if err != nil {
		return ""
	}
	return path.Base(target)
}

// PortNumbers lists the port numbers of a device. The directory may appear a moment after the device.
func PortNumbers(r reading.Reads, dev string) []int {
	names, err := r.Host.Files.List(ClassDir + "/" + dev + "/ports")
	if err != nil {
		r.IssueUnless(err, access.Absent)
		return nil
	}
	var out []int
	for _, n := range names {
		if i, err := strconv.Atoi(n); err == nil && i > 0 {
			out = append(out, i)
		}
	}
	return out
}

// virtualIDs are the PCI ids of virtual functions, vendor and device.
var virtualIDs = []string{
	"0x15b30x1012", "0x15b30x1014", "0x15b30x1016", "0x15b30x1018", "0x15b30x101a", "0x15b30x101c", "0x15b30x101e",
	"0x15b30xa2d3",                                 // mlx5
	"0x15b30x1004",                                 // mlx4
	"0x14e40x1806", "0x14e40x1807", "0x14e40x1819", // bnxt
	"0x80860x145c", // idpf
	"0x1dd80x1003", // ionic
	"0x14140x00ba", // mana
}

// isVirtualID reports whether PCI ids are those of a virtual function: a guest has no physfn link.
func isVirtualID(vendor, device string) bool { return slices.Contains(virtualIDs, vendor+device) }

// GPUs returns the paths of all GPUs in the PCI tree; nil if the tree is empty: it was not read.
func GPUs(h *host.Host, r reading.Reads) []string {
	const bus = "sys/bus/pci/devices"
	names, err := h.Files.List(bus)
	if err != nil || len(names) == 0 {
		return nil
	}
	out := []string{}
	for _, n := range names {
		dir := bus + "/" + n
		vendor := r.Optional(dir + "/vendor")
		if !pci.IsGPU(vendor, "0x03") {
			continue
		}
		if !pci.IsGPU(vendor, r.Optional(dir+"/class")) {
			continue
		}
		if real, err := h.Files.Resolve(dir); err == nil {
			out = append(out, real)
		}
	}
	return out
}
