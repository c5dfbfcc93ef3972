package shared

import (
	"path"
	"slices"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// PortIdentity reads the names of a device and those of its ports with one of the link layers, with the names of their
// netdevs; none if the function is of another kind. whole is false while the kernel is still creating the ports.
func PortIdentity(r *reading.Reader, kinds []snapshot.FunctionType, layers ...string) (d snapshot.Device, whole bool) {
	name := r.Device
	d.Name = name
	kind, function := sysfs.PCIFunction(r, sysfs.ClassDir+"/"+name)
	if !slices.Contains(kinds, kind) {
		return d, true
	}
	d.FunctionType, d.BoardID = kind, r.Optional(sysfs.ClassDir+"/"+name+"/board_id")
	if function != "" {
		d.PCIAddress = path.Base(function)
	}
	numbers := sysfs.PortNumbers(r, name)
	for _, n := range numbers {
		r.Begin(source.Identity)
		p := snapshot.Port{Number: n, LinkLayer: r.Optional(sysfs.PortDir(name, n) + "/link_layer")}
		if !slices.Contains(layers, p.LinkLayer) {
			continue
		}
		r.Begin(source.Netdev)
		p.Netdev = sysfs.NetdevsOf(r, &d, n, p.LinkLayer, "")
		d.Ports = append(d.Ports, p)
	}
	return d, len(numbers) > 0
}
