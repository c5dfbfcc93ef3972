package collector

import (
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// physicalNetdevs finds the netdevs of a device that belong to a physical port. Those of virtual functions and
// sub-functions show at most the port of their physical function and are left out, as are those of functions that
// manage NVLink switches. Ports appear a moment after the device: whole is false without any, and the next round reads
// again.
func physicalNetdevs(r *reading.Reader, nvlink *nvlink, device string) (out []portNetdev, whole bool) {
	kind, function := pciFunction(r, classDir+"/"+device)
	if kind != snapshot.Physical && !(kind == snapshot.Virtual && exposesPhysicalPort[boundDriver(r, function)]) ||
		nvlink.manages(r, device) {
		return nil, true
	}
	numbers := portNumbers(r, device)
	d := &snapshot.Device{Name: device}
	for _, n := range numbers {
		r.Begin(host.SourceIdentity)
		layer := r.Optional(portDir(device, n) + "/link_layer")
		r.Begin(host.SourceNetdev)
		for _, nd := range netdevsOf(r, d, n, layer, "") {
			out = append(out, portNetdev{n, layer, nd.Name, boundDriver(r, netDir+nd.Name+"/device")})
		}
	}
	return out, len(numbers) > 0
}

// exposesPhysicalPort are drivers whose virtual functions expose the physical port behind them: mana has no other
// functions.
var exposesPhysicalPort = map[string]bool{"mana": true}
