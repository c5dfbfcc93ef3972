package shared

import (
	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// PhysicalNetdevs finds the netdevs of a device that belong to a physical port. Those of virtual functions and
// sub-functions show at most the port of their physical function and are left out, as are those of functions that
// manage NVLink switches. Ports appear a moment after the device: whole is false without any, and the next round reads
// again.
func PhysicalNetdevs(r *reading.Reader, nvlink *NVLink, device string) (out []counters.PortNetdev, whole bool) {
	id, files := r.From(source.Identity), r.Host.Files
	kind, function := sysfs.PCIFunction(id, sysfs.ClassDir+"/"+device)
	exposed := kind == snapshot.Virtual && exposesPhysicalPort[sysfs.BoundDriver(files, function)]
	if kind != snapshot.Physical && !exposed || nvlink.Manages(r, device) {
		return nil, true
	}
	numbers := sysfs.PortNumbers(id, device)
	d := &snapshot.Device{Name: device}
	for _, n := range numbers {
		layer := id.Optional(sysfs.PortDir(device, n) + "/link_layer")
		for _, nd := range sysfs.NetdevsOf(r, d, n, layer, "") {
			out = append(out, counters.PortNetdev{
				Port: n, Layer: layer, Name: nd.Name, Driver: sysfs.BoundDriver(files, sysfs.NetDir+nd.Name+"/device"),
			})
		}
	}
	return out, len(numbers) > 0
}

// exposesPhysicalPort are drivers whose virtual functions expose the physical port behind them: mana has no other
// functions.
var exposesPhysicalPort = map[string]bool{"mana": true}
