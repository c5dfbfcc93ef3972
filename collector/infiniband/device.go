package infiniband

import (
	"path"
	"strconv"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// readIdentity reads the rest of the identity of a device. It changes only when the device registers again.
func readIdentity(r reading.Reads, of *reading.Device) snapshot.Device {
	d, dir := of.Device, sysfs.ClassDir+"/"+of.Name
	d.NodeType = within(r, dir, "node_type", r.Number(dir, "node_type"), nodeTypes)
	d.NodeGUID = identityText(r, dir+"/node_guid", nameLength, guids)
	d.SystemGUID = identityText(r, dir+"/sys_image_guid", nameLength, guids)
	d.HCAType = identityText(r, dir+"/hca_type", nameLength, nil)
	d.BoardID = validText(r, dir+"/board_id", of.BoardID, nameLength, nil)
	d.Firmware = identityText(r, dir+"/fw_ver", firmwareLength, firmwares)
	function := of.Path
	if function == "" {
		return d
	}
	d.Emulated = pci.Emulated(r.Optional(sysfs.PCIDir + pci.Functions(function)[0] + "/vendor"))
	if n := r.Optional(function + "/numa_node"); n != "-1" {
		d.NUMANode = n
	}
	d.VirtualFunctions = readVirtualFunctions(r, function)
	if target, err := r.Host.Files.Link(function + "/physfn"); err == nil {
		d.PhysicalFunction = path.Base(target)
	}
	return d
}

var deviceVFs = metric.Device("rdma_device_virtual_functions",
	"Virtual functions enabled on the PCI function of the device, in use on the host or elsewhere. Absent where SR-IOV is not supported.",
	"/sys/bus/pci/devices/ADDRESS/{sriov_totalvfs,virtfn*}")

// readVirtualFunctions counts the virtual functions of a PCI function. sriov_numvfs has the number as well, but the
// kernel takes the device lock to read it, which enabling of functions and recovery of a device hold for minutes
// (drivers/pci/iov.c).
func readVirtualFunctions(r reading.Reads, function string) *uint64 {
	total, err := strconv.ParseUint(r.Optional(function+"/sriov_totalvfs"), 10, 16)
	if err != nil {
		return nil
	}
	var n uint64
	for ; n < total; n++ {
		if _, err := r.Host.Files.Link(function + "/virtfn" + strconv.FormatUint(n, 10)); err != nil {
			break
		}
	}
	return &n
}

func emitVirtualFunctions(s metric.Sink, d *snapshot.Device) {
	if d.FunctionType == snapshot.Physical {
		metric.EmitNumber(s, deviceVFs, d.VirtualFunctions, d.Name)
	}
}
