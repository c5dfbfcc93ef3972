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
	kind, function := sysfs.PCIFunction(r, sysfs.ClassDir+"/"+device)
	if kind != snapshot.Physical && !(kind == snapshot.Virtual && exposesPhysicalPort[sysfs.BoundDriver(r, function)]) ||
		nvlink.Manages(r, device) {
		return nil, true
	}
	numbers := sysfs.PortNumbers(r, device)
	d := &snapshot.Device{Name: device}
	for _, n := range numbers {
		r.Begin(source.Identity)
		layer := r.Optional(sysfs.PortDir(device, n) + "/link_layer")
		r.Begin(source.Netdev)
		for _, nd := range sysfs.NetdevsOf(r, d, n, layer, "") {
			out = append(out, counters.PortNetdev{
				Port: n, Layer: layer, Name: nd.Name, Driver: sysfs.BoundDriver(r, sysfs.NetDir+nd.Name+"/device"),
			})
		}
	}
	return out, len(numbers) > 0
}

// exposesPhysicalPort are drivers whose virtual functions expose the physical port behind them: mana has no other
// functions.
var exposesPhysicalPort = map[string]bool{"mana": true}
