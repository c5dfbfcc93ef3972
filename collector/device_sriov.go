package collector

import (
	"strconv"

	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

var deviceVFs = deviceDesc("rdma_device_virtual_functions",
	"Virtual functions enabled on the PCI function of the device, in use on the host or elsewhere. Absent where SR-IOV is not supported.",
	"/sys/bus/pci/devices/ADDRESS/{sriov_totalvfs,virtfn*}")

// readVirtualFunctions counts the virtual functions of a PCI function. sriov_numvfs has the number as well, but the
// kernel takes the device lock to read it, which enabling of functions and recovery of a device hold for minutes
// (drivers/pci/iov.c).
func readVirtualFunctions(r *reading.Reader, function string) *uint64 {
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

func emitVirtualFunctions(s Sink, d *snapshot.Device) {
	if d.FunctionType == snapshot.Physical {
		emitUint(s, deviceVFs, d.VirtualFunctions, d.Name)
	}
}
