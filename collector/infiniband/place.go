package infiniband

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/transceiver"
	"rdma_exporter/internal/words"
)

var placeInfo = metric.Host("rdma_place_info",
	"Where a port, an RDMA device (port is empty), a GPU or the host (device, port and gpu are empty) is, always 1; also of a missing device and a lost GPU, as far as it is remembered. pci_address: PCI function; upstream: port above it. card: PCI slot that its functions share, of several slots with one adapter the first. pcie_switch: upstream port of the nearest PCIe switch; empty without one. rail: number of a device with a compute port among those, by PCI address, from 0. leaf: switch at the far end of the link, the last known one while the link is down; the members of a bond joined by +. rack: that of the host, from the site configuration. subnet: prefix of an InfiniBand subnet. part: vendor and part number of the module or cable; lot: with its date and lot code. firmware: board and firmware of the device of a port. name: what identifies the part for a person. Labels are empty where unknown.",
	"/sys/devices, sys_image_guid, ports/N/gids/0; rdma_port_neighbour_info; the state directory; --config.file",
	"device", "port", "gpu", "UUID", "pci_address", "upstream", "card", "pcie_switch", "rail", "leaf", "rack", "subnet",
	"part", "lot", "firmware", "name")

// place is where a part of a host is: a port, a device (Number 0), a GPU, or with none of them the host itself. Empty:
// unknown.
type place struct {
	snapshot.PortID
	gpu          accel.GPUName
	path         []string // PCI functions from the root port to its own
	address      string   // of its function, also where the path is unknown
	card         string
	rail         string
	leaf, subnet string
	part, lot    string // of the module or cable of a port
	firmware     string // of its device, with the board
	name         string
}

// derivePlaces emits the places of the host and of each part of a complete node. All are in the rack of the host.
func (c *infiniBand) derivePlaces(n *snapshot.Node, s metric.Sink) {
	rack := c.conf.Current().Rack(c.conf.Hostname)
	for _, p := range append([]place{{name: c.conf.Hostname}}, placesOf(n, c.memory)...) {
		if n.Reduced.LeavesOut(p.Device, placeInfo.Name) {
			continue
		}
		port := ""
		if p.Number > 0 {
			port = strconv.Itoa(p.Number)
		}
		s.Emit(placeInfo, 1, p.Device, port, p.gpu.Index, p.gpu.UUID, p.address, p.upstream(), p.card, p.pcieSwitch(),
			p.rail, p.leaf, rack, p.subnet, p.part, p.lot, p.firmware, p.name)
	}
}

// placesOf returns the places of all parts: devices with their ports, present ones and missing ones, then GPUs. The
// present places are remembered.
func placesOf(n *snapshot.Node, m *expect.Memory) []place {
	devices := locate(n, m)
	numberPlaces(devices)
	var out []place
	for i := range devices {
		d := &devices[i]
		out = append(out, d.place)
		for _, p := range d.ports {
			p.path, p.address, p.card, p.rail = d.path, d.address, d.card, d.rail
			out = append(out, p)
		}
	}
	return append(out, gpuPlaces(n, m)...)
}

// placedDevice is a device with the places of its ports.
type placedDevice struct {
	place
	ports   []place
	image   string // sys_image_guid, the same for all functions of an adapter; empty: unknown
	whole   string // address of the device that it is a part of; its own, if it is no part
	part    bool
	compute bool
}

// locate finds the devices and their ports.
func locate(n *snapshot.Node, m *expect.Memory) (out []placedDevice) {
	if n.InfiniBand == nil {
		return nil
	}
	ends, modules := farEnds(n), modulesOf(n)
	for i := range n.InfiniBand.Devices {
		d := &n.InfiniBand.Devices[i]
		p := placeDevice(d.Name, d.PCIAddress)
		p.image, p.whole, p.part = knownGUID(d.SystemGUID), cmp.Or(d.PhysicalFunction, d.PCIAddress), isPart(d)
		p.path = pci.Functions(d.Path)
		if d.FunctionType == snapshot.Physical && d.PCIAddress != "" {
			p.path = recallPath(m, expect.FunctionID(d.NodeGUID, d.PCIAddress), p.path)
		}
		for j := range d.Ports {
			port := &d.Ports[j]
			p.compute = p.compute || port.Role == string(pci.Compute)
			at := ends[snapshot.PortID{Device: d.Name, Number: port.Number}]
			if id := lastingID(d, port.Number, ""); id != "" {
				r := m.Place(id, expect.PlaceRecord{Leaf: at.System, LeafPort: at.Port})
				at = snapshot.End{System: r.Leaf, Port: r.LeafPort}
			}
			one := portPlace(d.Name, port, at, modules)
			if d.FunctionType == snapshot.Physical && d.Firmware != "" {
				one.firmware = words.Join(" ", d.BoardID, d.Firmware)
			}
			p.ports = append(p.ports, one)
		}
		out = append(out, p)
	}
	for _, d := range n.InfiniBand.Missing {
		out = append(out, missingPlace(d, m))
	}
	return out
}

// placeDevice returns a device that is no part of another one, at an address.
func placeDevice(name, address string) placedDevice {
	return placedDevice{whole: address, place: place{
		PortID: snapshot.PortID{Device: name}, address: address, name: words.Join(" ", name, address),
	}}
}

// recallPath returns the path of a function or GPU, remembered where it is unknown now.
func recallPath(m *expect.Memory, id string, path []string) []string {
	return strings.Fields(m.Place(id, expect.PlaceRecord{Path: strings.Join(path, " ")}).Path)
}

// portPlace has the name "mlx5_3/1 ens3f0np0 at leaf3 Eth1/1, module MT2301X01234".
func portPlace(
	device string, p *snapshot.Port, at snapshot.End, modules map[string]*transceiver.Module,
) place {
	out := place{PortID: snapshot.PortID{Device: device, Number: p.Number}, leaf: at.System, subnet: p.Subnet}
	out.name = device + "/" + strconv.Itoa(p.Number)
	serials := ""
	for i := range p.Netdev {
		out.name = words.Join(" ", out.name, p.Netdev[i].Name)
		if m := modules[p.Netdev[i].Name]; m != nil {
			serials = words.Join(" ", serials, m.SerialNumber)
			if m.PartNumber != "" {
				out.part = words.Join(" ", m.Vendor, m.PartNumber)
			}
			if out.part != "" && m.DateCode != "" {
				out.lot = words.Join(" ", out.part, m.DateCode)
			}
		}
	}
	if at.System != "" {
		out.name = words.Join(" ", out.name, "at", at.System, at.Port)
	}
	if serials != "" {
		out.name += ", module " + serials
	}
	return out
}

// modulesOf returns transceivers and cables, by netdev.
func modulesOf(n *snapshot.Node) map[string]*transceiver.Module {
	out := map[string]*transceiver.Module{}
	if n.Optics != nil {
		for i := range n.Optics.Cages {
			if c := &n.Optics.Cages[i]; c.Module != nil {
				out[c.Netdev] = c.Module
			}
		}
	}
	return out
}

// missingPlace returns the remembered place of a missing device, with its links that were ever ACTIVE.
func missingPlace(d snapshot.MissingDevice, m *expect.Memory) placedDevice {
	p := placeDevice(d.Name, d.PCIAddress)
	if d.PCIAddress == "" {
		return p
	}
	id := expect.FunctionID(d.NodeGUID, d.PCIAddress)
	p.path = recallPath(m, id, nil)
	links := m.LinksOf(id)
	for _, name := range slices.Sorted(maps.Keys(links)) {
		p.compute = p.compute || m.Role(name).Role == pci.Compute
		r := m.Place(name, expect.PlaceRecord{})
		p.ports = append(p.ports, portPlace(d.Name, &snapshot.Port{Number: links[name].Port},
			snapshot.End{System: r.Leaf, Port: r.LeafPort}, nil))
	}
	return p
}

// farEnds returns the switch at the far end of each port. A bond whose members are connected to several switches has
// all of them.
func farEnds(n *snapshot.Node) map[snapshot.PortID]snapshot.End {
	out := map[snapshot.PortID]snapshot.End{}
	if n.Neighbours == nil {
		return out
	}
	for i := range n.Neighbours.Ports {
		p := &n.Neighbours.Ports[i]
		at, e := snapshot.PortID{Device: p.Device, Number: p.Port}, p.End
		if have := out[at]; have.System != "" && e.System != "" {
			systems := append(strings.Split(have.System, "+"), e.System)
			slices.Sort(systems)
			e = snapshot.End{System: strings.Join(slices.Compact(systems), "+"), Port: have.Port + "+" + e.Port}
		} else {
			e.System, e.Port = cmp.Or(e.System, have.System), cmp.Or(e.Port, have.Port)
		}
		out[at] = e
	}
	return out
}

// numberPlaces gives the devices their cards and rails. Parts of a device have those of its physical function.
func numberPlaces(devices []placedDevice) {
	cards := map[string]string{} // by sys_image_guid
	var compute []string
	for i := range devices {
		d := &devices[i]
		slot := slotOf(d.whole)
		if first, ok := cards[d.image]; d.image != "" && slot != "" && (!ok || slot < first) {
			cards[d.image] = slot
		}
		if d.compute && !d.part && d.address != "" {
			compute = append(compute, d.address)
		}
	}
	slices.Sort(compute)
	compute = slices.Compact(compute)
	for i := range devices {
		d := &devices[i]
		d.card = cmp.Or(cards[d.image], slotOf(d.whole))
		if at, ok := slices.BinarySearch(compute, d.whole); ok {
			d.rail = strconv.Itoa(at)
		}
	}
}

// slotOf returns the slot of a PCI function: its address without the function.
func slotOf(address string) string {
	slot, _, _ := strings.Cut(address, ".")
	return slot
}

// upstream returns the port above the function.
func (p *place) upstream() string {
	if len(p.path) < 2 {
		return ""
	}
	return p.path[len(p.path)-2]
}

// pcieSwitch returns the upstream port of the nearest switch, which has a downstream port above the function, below a
// root port.
func (p *place) pcieSwitch() string {
	if len(p.path) < 4 {
		return ""
	}
	return p.path[len(p.path)-3]
}

// gpuPlaces returns the places of GPUs, each address once: GPUs of NVML by their names, lost GPUs, then others in the
// PCI tree.
func gpuPlaces(n *snapshot.Node, m *expect.Memory) (out []place) {
	paths, there := map[string][]string{}, map[string]bool{}
	if n.PCIe != nil {
		for i := range n.PCIe.GPUs {
			hops := n.PCIe.GPUs[i].Hops
			paths[endOf(hops)] = words.Map(hops, func(h accel.PCIeHop) string { return h.Address })
		}
	}
	add := func(name accel.GPUName, address string) {
		if address == "" || there[address] {
			return
		}
		there[address] = true
		path := paths[address]
		if name.UUID != "" {
			path = recallPath(m, expect.GPUID(name.UUID), path)
		}
		out = append(out, place{
			gpu: name, address: address, path: path, card: slotOf(address),
			name: words.Join(" ", "GPU", name.Index, address),
		})
	}
	if n.GPUs != nil {
		for i := range n.GPUs.GPUs {
			g := &n.GPUs.GPUs[i]
			add(accel.GPUName{Index: strconv.Itoa(g.Index), UUID: g.UUID}, g.PCIAddress)
		}
		for _, g := range n.GPUs.Lost {
			add(g.GPUName, g.PCIAddress)
		}
	}
	if n.PCIe != nil {
		for i := range n.PCIe.GPUs {
			g := &n.PCIe.GPUs[i]
			add(accel.GPUName{Index: g.Index, UUID: g.UUID}, endOf(g.Hops))
		}
	}
	return out
}

// endOf returns the address of the function at the end of a path; empty without one.
func endOf(path []accel.PCIeHop) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1].Address
}
