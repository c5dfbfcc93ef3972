package collector

import (
	"context"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/expect"
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
		Help:   "Whether an RDMA device is there (1), or is missing (0): the inventory or a pin names it, and it is gone. A device that was renamed, or moved to a container or a virtual machine, is not missing. Where another device has the name now, device is the PCI address.",
		Labels: []string{"device", "pci_address"},
		Source: "entries of /sys/class/infiniband; the inventory in the state directory",
	}
	deviceMissing = &Desc{
		Name: "rdma_device_missing_info", Type: gauge, Scope: scopeDevice,
		Help:   "Why a device is missing, always 1. reason: not_on_pci the PCI function is gone, no_driver none is bound to it, no_rdma_device its driver has made none. seen: this_boot, earlier_boot, never (only pinned).",
		Labels: []string{"device", "pci_address", "node_guid", "reason", "seen"},
		Source: "/sys/bus/pci/devices, RDMA netlink SYS_GET netns_mode; the inventory in the state directory",
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
	active  map[string]map[int]bool   // ports of passing devices that were ACTIVE, by identity of their device
	boot    string                    // boot id
	facts   map[string][]site.Subject // of devices and their ports, by name of the device: ignored
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
	c := &infiniBand{Options: o, devices: map[string]*deviceState{}, active: map[string]map[int]bool{}, facts: map[string][]site.Subject{}}
	if c.Memory == nil {
		c.Memory = expect.NewMemory(expect.Data{})
	}
	return &Collector{
		Name:    "infiniband",
		Help:    "RDMA devices and ports: identity, state, rate, GIDs, PMA counters",
		Default: true,
		Descs:   slices.Concat([]*Desc{deviceInfo, devicePresent, deviceMissing, deviceNodeType, deviceIgnored, portIgnored}, portDescs, expectedDescs, pmaDescs()),
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
		c.remember(h.Now(), devices)
		missing := c.missing(ctx, h, names, devices)
		n.InfiniBand = &snapshot.InfiniBand{Devices: devices, Missing: missing, Ignored: c.ignored(names, devices, missing)}
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
		for j := range d.Ports {
			p := &d.Ports[j]
			port := strconv.Itoa(p.Number)
			emitPort(s, d, p, port)
			emitExpected(s, d, p, port)
			emitPMA(s, d, p, port)
		}
	}
	emitIgnored(s, n.InfiniBand.Ignored)
	for _, m := range n.InfiniBand.Missing {
		s.Emit(devicePresent, 0, m.Name, m.PCIAddress)
		s.Emit(deviceMissing, 1, m.Name, m.PCIAddress, m.NodeGUID, m.Reason, m.Seen)
	}
}
