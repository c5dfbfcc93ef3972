package collector

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

var (
	deviceInfo = &Desc{
		Name: "rdma_device_info", Type: gauge, Scope: scopeDevice,
		Help:   "Identity of an RDMA device, always 1. function_type is physical, virtual, subfunction or software.",
		Labels: []string{"device", "driver", "hca_type", "board_id", "firmware_version", "node_guid", "pci_address", "numa_node", "function_type"},
		Source: "/sys/class/infiniband/DEV/{hca_type,board_id,fw_ver,node_guid}, device/driver, device/numa_node",
	}
	devicePresent = &Desc{
		Name: "rdma_device_present", Type: gauge, Scope: scopeDevice,
		Help:   "Whether an RDMA device that was seen in this run of the exporter is there now (1) or has vanished (0). A rename is no loss.",
		Labels: []string{"device", "pci_address"},
		Source: "entries of /sys/class/infiniband",
	}
	deviceNodeType = &Desc{
		Name: "rdma_device_node_type_id", Type: gauge, Scope: scopeDevice,
		Help:   "Kind of node: 1 CA, 2 switch, 3 router, 4 RNIC (iWARP), 5 and 6 usNIC, 7 unspecified (EFA).",
		Labels: []string{"device"},
		Source: "/sys/class/infiniband/DEV/node_type, enum rdma_node_type",
	}
)

// infiniBand keeps what outlives a round: slow facts, and what was seen before.
type infiniBand struct {
	Options
	devices map[string]*deviceState
	seen    map[string]snapshot.DeviceID // by identity
	active  map[string]map[int]bool      // ports that were ACTIVE, by identity of their device
	facts   map[string][]site.Subject    // of devices and their ports, by name of the device: ignored
	gpus    []string
	gpusAt  time.Time
}

// deviceState belongs to the lane of its device.
type deviceState struct {
	at      time.Time // when identity was read
	id      snapshot.Device
	numbers []int // of its ports; none while the kernel is still making them
	ports   map[int]*portState

	quarantine quarantine
	inode      uint64 // of the device's directory, for which the quarantine stands
}

func newInfiniBand(o Options) *Collector {
	c := &infiniBand{Options: o, devices: map[string]*deviceState{}, seen: map[string]snapshot.DeviceID{}, active: map[string]map[int]bool{}, facts: map[string][]site.Subject{}}
	return &Collector{
		Name:    "infiniband",
		Help:    "RDMA devices and ports: identity, state, rate, GIDs, PMA counters",
		Default: true,
		Descs:   slices.Concat([]*Desc{deviceInfo, devicePresent, deviceNodeType, deviceVFs, deviceIgnored, portIgnored}, portDescs, pmaDescs()),
		Read:    c.read,
		Emit:    emitInfiniBand,
	}
}

func (c *infiniBand) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	names, err := c.Options.devices(h)
	if err != nil {
		done(err)
		return
	}
	c.forget(names)
	if len(names) > 0 {
		c.readGPUs(ctx, h)
	}
	states := make(map[string]*deviceState, len(names))
	for _, name := range names {
		if c.devices[name] == nil {
			c.devices[name] = &deviceState{ports: map[int]*portState{}}
		}
		states[name] = c.devices[name]
	}
	gpus := c.gpus
	eachDevice(ctx, h, n, "infiniband", names, func(r *reader, name string) (snapshot.Device, bool) {
		return readDevice(r, name, states[name], gpus)
	}, func(devices []snapshot.Device) {
		c.remember(devices)
		c.comparePKeys(devices)
		vanished := c.vanished(names, devices)
		n.InfiniBand = &snapshot.InfiniBand{Devices: devices, Vanished: vanished, Ignored: c.ignored(names, devices, vanished)}
		done(nil)
	})
}

// forget drops the state of devices that are gone; a device that comes back is read afresh.
func (c *infiniBand) forget(names []string) {
	for name := range c.devices {
		if !slices.Contains(names, name) {
			delete(c.devices, name)
			c.gpusAt = time.Time{}
		}
	}
}

// readGPUs finds the GPUs, whose place in the PCI tree gives a NIC its role.
func (c *infiniBand) readGPUs(ctx context.Context, h *host.Host) {
	if now := h.Now(); c.gpusAt.IsZero() || now.Sub(c.gpusAt) >= slowInterval {
		var found []string
		if h.Lanes.Do(ctx, "pci", func() { found = gpus(h, &reader{ctx: ctx, h: h}) }) == nil {
			c.gpus, c.gpusAt = found, now
		}
	}
}

// identityOf outlives a rename and a driver that is loaded again.
func identityOf(d *snapshot.Device) string {
	if d.NodeGUID == "" && d.PCIAddress == "" {
		return d.Name
	}
	return d.NodeGUID + "/" + d.PCIAddress
}

// remember marks the ports that are ACTIVE, and tells those that were.
func (c *infiniBand) remember(devices []snapshot.Device) {
	for i := range devices {
		id := identityOf(&devices[i])
		if c.active[id] == nil {
			c.active[id] = map[int]bool{}
		}
		for j := range devices[i].Ports {
			p := &devices[i].Ports[j]
			if isActive(p) {
				c.active[id][p.Number] = true
			}
			p.WasActive = c.active[id][p.Number]
		}
	}
}

// vanished compares with what was seen before. A device that is listed and could not be read is there. Virtual functions and
// sub-functions come and go with the jobs that use them: their going is no loss, and nothing is kept of them.
func (c *infiniBand) vanished(names []string, devices []snapshot.Device) []snapshot.DeviceID {
	present := map[string]bool{}
	for i := range devices {
		d := &devices[i]
		key := identityOf(d)
		present[key] = true
		if d.FunctionType != snapshot.Virtual && d.FunctionType != snapshot.SubFunction {
			c.seen[key] = snapshot.DeviceID{Name: d.Name, PCIAddress: d.PCIAddress}
		}
	}
	maps.DeleteFunc(c.active, func(key string, _ map[int]bool) bool {
		_, lasting := c.seen[key]
		return !present[key] && !lasting
	})
	var out []snapshot.DeviceID
	for key, id := range c.seen {
		if !present[key] && !slices.Contains(names, id.Name) {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(a, b snapshot.DeviceID) int {
		return slices.Compare([]string{a.Name, a.PCIAddress}, []string{b.Name, b.PCIAddress})
	})
	return out
}

// readDevice reads one device. A device that is listed and has no directory any more has just gone.
func readDevice(r *reader, name string, st *deviceState, gpus []string) (snapshot.Device, bool) {
	r.keep(&st.quarantine, &st.inode)
	now := r.h.Now()
	if len(st.numbers) == 0 || now.Sub(st.at) >= slowInterval {
		if _, err := r.h.Files.List(classDir + "/" + name); err != nil {
			if !host.IsAbsent(err) {
				r.issue(err)
			}
			return snapshot.Device{}, false
		}
		st.id, st.numbers, st.at = r.identity(name, gpus), r.ports(name), now
	}
	d := st.id
	for _, n := range st.numbers {
		p := st.ports[n]
		if p == nil {
			p = &portState{}
			st.ports[n] = p
		}
		d.Ports = append(d.Ports, p.read(r, &d, n))
	}
	if goneMeanwhile(r, name) {
		st.numbers, r.issues = nil, nil
		return snapshot.Device{}, false
	}
	return d, true
}

// goneMeanwhile tells a device that went during its read from one whose reads fail.
func goneMeanwhile(r *reader, name string) bool {
	if !slices.ContainsFunc(r.issues, func(i snapshot.Issue) bool { return i.Reason == string(host.Gone) || i.Reason == string(host.Absent) }) {
		return false
	}
	_, err := r.h.Files.List(classDir + "/" + name)
	return err != nil && host.IsAbsent(err)
}

func emitInfiniBand(n *snapshot.Node, s Sink) {
	if n.InfiniBand == nil {
		return
	}
	for i := range n.InfiniBand.Devices {
		d := &n.InfiniBand.Devices[i]
		s.Emit(deviceInfo, 1, d.Name, d.Driver, d.HCAType, d.BoardID, d.Firmware, d.NodeGUID, d.PCIAddress, d.NUMANode, string(d.FunctionType))
		s.Emit(devicePresent, 1, d.Name, d.PCIAddress)
		emitUint(s, deviceNodeType, d.NodeType, d.Name)
		emitVirtualFunctions(s, d)
		for j := range d.Ports {
			p := &d.Ports[j]
			port := strconv.Itoa(p.Number)
			emitPort(s, d, p, port)
			emitPMA(s, d, p, port)
		}
	}
	emitWires(s, n.InfiniBand.Devices)
	emitIgnored(s, n.InfiniBand.Ignored)
	for _, id := range n.InfiniBand.Vanished {
		s.Emit(devicePresent, 0, id.Name, id.PCIAddress)
	}
}
