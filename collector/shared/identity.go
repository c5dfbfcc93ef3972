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
	id, name := r.From(source.Identity), r.Device
	d.Name = name
	kind, function := sysfs.PCIFunction(id, sysfs.ClassDir+"/"+name)
	if !slices.Contains(kinds, kind) {
		return d, true
	}
	d.FunctionType, d.BoardID = kind, id.Optional(sysfs.ClassDir+"/"+name+"/board_id")
	if function != "" {
		d.PCIAddress = path.Base(function)
	}
	numbers := sysfs.PortNumbers(id, name)
	for _, n := range numbers {
		p := snapshot.Port{Number: n, LinkLayer: id.Optional(sysfs.PortDir(name, n) + "/link_layer")}
		if !slices.Contains(layers, p.LinkLayer) {
			continue
		}
		p.Netdev = sysfs.NetdevsOf(r, &d, n, p.LinkLayer, "")
		d.Ports = append(d.Ports, p)
	}
	return d, len(numbers) > 0
}
