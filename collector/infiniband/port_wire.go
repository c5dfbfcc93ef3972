package infiniband

import (
	"bytes"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

var wireInfo = metric.Port("rdma_wire_info",
	"Physical port behind a port of an RDMA device, always 1. wire: identifier of the physical port, unique within the host. shared: true where several functions of a card report the same physical port; its link counters then appear on each of them, and rules aggregate max by (instance, wire). Absent for virtual functions and sub-functions.",
	"/sys/class/net/NETDEV/{phys_port_id,phys_switch_id,phys_port_name}; sys_image_guid and the number of the PCI function",
	"netdev", "wire", "shared")

// wireDuplicate lets rules select one of the ports that report a physical port: PromQL cannot select by name.
var wireDuplicate = metric.Beside("rdma_port_info", metric.Port("rdma_wire_duplicate_info",
	"Port that reports the same physical port (wire) as another device, always 1. first: device whose port carries the alerts. Absent for that device, and where no other device reports the physical port.",
	"as rdma_wire_info", "netdev", "first"))

// portWiresInterval is how long the identifier of a physical port is kept. It changes with the mode of an embedded
// switch, and the kernel takes rtnl to read it.
const portWiresInterval = time.Hour

// portWires are the identifiers of a port's physical ports, kept between rounds.
type portWires struct {
	asked  reading.Last
	netdev []string // the netdevs that they belong to
	names  []string
}

// physicalPort is the driver's data on the port behind a netdev; empty where not reported.
type physicalPort struct {
	id, switchID, name string
}

// physicalName is the phys_port_name of a physical port: p0, or p0s1 where a cage is split.
var physicalName = regexp.MustCompile(`^p\d+(s\d+)?$`)

// wireOf returns the identifier of a physical port: the port's own id, or card and port. The card is the switch id,
// else the system image GUID. The port is the driver's port number, else the number of the PCI function. All functions
// of a port have the same number: functions for other sockets are on other buses.
func (p physicalPort) wireOf(systemGUID, address string, port int) string {
	card := knownGUID(systemGUID)
	if p.switchID != "" && !isSameID(p.switchID, systemGUID) {
		card = p.switchID
	}
	switch {
	case p.id != "":
		return p.id
	case card != "" && physicalName.MatchString(p.name):
		return card + "/" + p.name
	case knownGUID(systemGUID) == "" || !pci.IsAddress(address):
		return ""
	}
	return systemGUID + "/f" + address[strings.LastIndexByte(address, '.')+1:] + "/" + strconv.Itoa(port)
}

// knownGUID returns a GUID; empty for one that is not set, which is all zeros.
func knownGUID(guid string) string {
	if strings.Trim(guid, "0:") == "" {
		return ""
	}
	return guid
}

// isSameID reports whether a switch id is the GUID: mlx5 prints the number in memory order. Not every function of a
// card reports its switch, but all report the GUID.
func isSameID(switchID, guid string) bool {
	a, errA := hex.DecodeString(switchID)
	b, errB := hex.DecodeString(strings.ReplaceAll(guid, ":", ""))
	if errA != nil || errB != nil {
		return false
	}
	if slices.Equal(a, b) {
		return true
	}
	slices.Reverse(a)
	return slices.Equal(a, b)
}

// read sets the physical ports of a port's netdevs, or of an InfiniBand port without a netdev. IPoIB has no data on the
// port behind it. The previous ones are kept if rtnl is unavailable.
func (w *portWires) read(r *reading.Reader, d *snapshot.Device, n int, p *snapshot.Port, mayAsk bool) {
	if d.FunctionType != snapshot.Physical {
		return
	}
	if p.LinkLayer == "InfiniBand" {
		wire := physicalPort{}.wireOf(d.SystemGUID, d.PCIAddress, n)
		for i := range p.Netdev {
			p.Netdev[i].Wire = wire
		}
		if len(p.Netdev) == 0 {
			p.Wire = wire
		}
		return
	}
	netdevs := make([]string, len(p.Netdev))
	for i := range p.Netdev {
		netdevs[i] = p.Netdev[i].Name
	}
	if !slices.Equal(netdevs, w.netdev) {
		*w = portWires{netdev: netdevs, names: make([]string, len(netdevs))}
	}
	if mayAsk && w.asked.Due(r.Now(), portWiresInterval) {
		w.ask(r, d, n)
	}
	for i := range p.Netdev {
		p.Netdev[i].Wire = w.names[i]
	}
}

// ask queries the ports behind the netdevs; again in the next round after a failure.
func (w *portWires) ask(r *reading.Reader, d *snapshot.Device, n int) {
	w.asked.Read(r.Now())
	for i, netdev := range w.netdev {
		port, asked := readPhysicalPort(r, netdev)
		if !asked {
			w.asked.Expire()
			return
		}
		w.names[i] = port.wireOf(d.SystemGUID, addressOf(r, netdev, d), n)
	}
}

// readPhysicalPort queries the port behind a netdev; drivers without support return EOPNOTSUPP, which is no failure.
// The kernel takes rtnl, and restarts the read while the lock is held elsewhere.
func readPhysicalPort(r *reading.Reader, netdev string) (p physicalPort, asked bool) {
	files, dir := r.Host.Files, sysfs.NetDir+netdev+"/"
	var got physicalPort
	names := []struct {
		name string
		to   *string
	}{{"phys_port_id", &got.id}, {"phys_switch_id", &got.switchID}, {"phys_port_name", &got.name}}
	if r.UnderRTNL(source.PortNames, len(names), func() {
		for _, f := range names {
			if b, err := files.Read(dir+f.name, nil); err == nil {
				*f.to = string(bytes.TrimSpace(b))
			}
		}
	}) != nil {
		return physicalPort{}, false // got may still be written to
	}
	return got, true
}

// addressOf returns the PCI address of a netdev's function: the second member of a bond has another function than the
// RDMA device.
func addressOf(r *reading.Reader, netdev string, d *snapshot.Device) string {
	if real, err := r.Host.Files.Resolve(sysfs.NetDir + netdev + "/device"); err == nil && pci.IsAddress(path.Base(real)) {
		return path.Base(real)
	}
	return d.PCIAddress
}

// emitWires emits which ports share a physical port. An InfiniBand port without a netdev is emitted only if it shares
// one.
func emitWires(s metric.Sink, devices []snapshot.Device) {
	shown := map[string][]string{} // the devices that show a wire
	eachWire(devices, func(d *snapshot.Device, _ *snapshot.Port, _, wire string) {
		if !slices.Contains(shown[wire], d.Name) {
			shown[wire] = append(shown[wire], d.Name)
		}
	})
	eachWire(devices, func(d *snapshot.Device, p *snapshot.Port, netdev, wire string) {
		shared := len(shown[wire]) > 1
		if netdev != "" || shared {
			s.Emit(wireInfo, 1, d.Name, strconv.Itoa(p.Number), netdev, wire, strconv.FormatBool(shared))
		}
		if first := slices.Min(shown[wire]); first != d.Name {
			s.Emit(wireDuplicate, 1, d.Name, strconv.Itoa(p.Number), netdev, first)
		}
	})
}

// eachWire visits the physical ports of all ports.
func eachWire(devices []snapshot.Device, visit func(d *snapshot.Device, p *snapshot.Port, netdev, wire string)) {
	for d, p := range snapshot.PortsOf(devices) {
		if p.Wire != "" {
			visit(d, p, "", p.Wire)
		}
		for _, nd := range p.Netdev {
			if nd.Wire != "" {
				visit(d, p, nd.Name, nd.Wire)
			}
		}
	}
}
