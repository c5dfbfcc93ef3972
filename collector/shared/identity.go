package shared

import (
	"path"
	"slices"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// identify reads what the device of a reader is. Netdevs of virtual functions and sub-functions show at most the port
// of their physical function and are left out, as are those of functions that manage NVLink switches.
func (v *nvlink) identify(r *reading.Reader) *reading.Device {
	id, files, name := r.From(source.Identity), r.Host.Files, r.Device
	dir := sysfs.ClassDir + "/" + name
	d := &reading.Device{Device: snapshot.Device{Name: name}}
	d.FunctionType, d.Path = sysfs.PCIFunction(id, dir)
	d.Driver, d.BoardID = sysfs.DriverOf(id, &d.Device), id.Optional(dir+"/board_id")
	if d.Path != "" {
		d.PCIAddress = path.Base(d.Path)
	}
	d.ManagesNVLink, d.MaxRate = v.manages(r, &d.Device), v.limit(name)
	physical := !d.ManagesNVLink &&
		(d.FunctionType == snapshot.Physical || d.FunctionType == snapshot.Virtual && exposesPhysicalPort[d.Driver])
	for _, n := range sysfs.PortNumbers(id, name) {
		p := snapshot.Port{Number: n, LinkLayer: id.Optional(sysfs.PortDir(name, n) + "/link_layer")}
		if physical || d.FunctionType == snapshot.Software {
			p.Netdev = sysfs.NetdevsOf(r, &d.Device, n, p.LinkLayer, "")
		}
		for i := 0; physical && i < len(p.Netdev); i++ {
			netdev := p.Netdev[i].Name
			d.Netdevs = append(d.Netdevs, reading.PortNetdev{
				Port: n, Layer: p.LinkLayer, Name: netdev, Driver: sysfs.BoundDriver(files, sysfs.NetDir+netdev+"/device"),
			})
		}
		d.Ports = append(d.Ports, p)
	}
	return d
}

// exposesPhysicalPort are drivers whose virtual functions expose the physical port behind them: mana has no other
// functions.
var exposesPhysicalPort = map[string]bool{"mana": true}

// PortsOf returns the names of a device and those of its ports with one of the link layers; none if the function is of
// another kind.
func PortsOf(d *reading.Device, kinds []snapshot.FunctionType, layers ...string) snapshot.Device {
	out := snapshot.Device{Name: d.Name}
	if !slices.Contains(kinds, d.FunctionType) {
		return out
	}
	out.FunctionType, out.BoardID, out.PCIAddress = d.FunctionType, d.BoardID, d.PCIAddress
	for i := range d.Ports {
		if slices.Contains(layers, d.Ports[i].LinkLayer) {
			out.Ports = append(out.Ports, d.Ports[i])
		}
	}
	return out
}
