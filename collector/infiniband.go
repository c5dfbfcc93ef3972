package collector

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/host"
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
	deviceRegistrations = &Desc{
		Name: "rdma_device_registrations_total", Type: counter, Scope: scopeDevice,
		Help:   "Times that the device registered since the exporter started, as a driver that is loaded or a function that is reset does; absent where the kernel does not tell.",
		Labels: []string{"device"},
		Source: "RDMA netlink, RDMA_NLDEV_CMD_MONITOR of group RDMA_NL_GROUP_NOTIFY (since Linux 6.12)",
	}
	hostUptime = &Desc{
		Name: "rdma_host_uptime_seconds", Type: gauge, Unit: "seconds", Scope: scopeHost,
		Help:   "Time since the host booted, also in a container. boot_id is the kernel's name of this boot.",
		Labels: []string{"boot_id"},
		Source: "/proc/uptime, /proc/sys/kernel/random/boot_id",
	}
)

// infiniBand keeps what outlives a round: slow facts, and what was seen before.
type infiniBand struct {
	Options
	devices map[string]*deviceState
	seen    map[string]snapshot.DeviceID // by identity
	ports   map[string]map[int]*portHistory
	gpus    []string
	gpusAt  time.Time
	bootID  string

	links      *linkWatch
	registered *deviceWatch
}

// portHistory is what a port was, by identity of its device.
type portHistory struct {
	active    bool // at the last reading of its state
	wasActive bool // at any
	snapshot.Transitions
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
	c := &infiniBand{Options: o, devices: map[string]*deviceState{}, seen: map[string]snapshot.DeviceID{}, ports: map[string]map[int]*portHistory{}, links: newLinkWatch(), registered: newDeviceWatch()}
	return &Collector{
		Name:    "infiniband",
		Help:    "RDMA devices and ports: identity, state, rate, GIDs, PMA counters",
		Default: true,
		Descs:   slices.Concat([]*Desc{deviceInfo, devicePresent, deviceNodeType, deviceRegistrations, hostUptime}, portDescs, pmaDescs()),
		Run:     c.run,
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
	gpus, now, boot := c.gpus, h.Now(), c.readBoot(h)
	eachDevice(ctx, h, n, "infiniband", names, func(r *reader, name string) (snapshot.Device, bool) {
		return readDevice(r, name, states[name], gpus)
	}, func(devices []snapshot.Device) {
		c.remember(devices)
		c.count(devices, now)
		n.InfiniBand = &snapshot.InfiniBand{Devices: devices, Vanished: c.vanished(names, devices), Boot: boot}
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

// remember tells of each port whether it was ACTIVE before, and counts the transitions of InfiniBand ports.
func (c *infiniBand) remember(devices []snapshot.Device) {
	for i := range devices {
		id := identityOf(&devices[i])
		if c.ports[id] == nil {
			c.ports[id] = map[int]*portHistory{}
		}
		for j := range devices[i].Ports {
			p := &devices[i].Ports[j]
			history := c.ports[id][p.Number]
			if history == nil {
				if p.State == nil {
					continue
				}
				history = &portHistory{active: isActive(p)}
				c.ports[id][p.Number] = history
			}
			history.note(p)
			p.WasActive = history.wasActive
			if t := history.Transitions; p.LinkLayer == "InfiniBand" {
				p.Transitions = &t
			}
		}
	}
}

func (h *portHistory) note(p *snapshot.Port) {
	if p.State == nil {
		return
	}
	now := isActive(p)
	switch {
	case now && !h.active:
		h.Ups++
	case !now && h.active:
		h.Downs++
	}
	h.active, h.wasActive = now, h.wasActive || now
}

// count tells how often the carriers of Ethernet netdevs came and went. That of an IPoIB netdev says more of the subnet manager
// and of multicast than of the link.
func (c *infiniBand) count(devices []snapshot.Device, now time.Time) {
	for i := range devices {
		for j := range devices[i].Ports {
			p := &devices[i].Ports[j]
			for k := range p.Netdev {
				nd := &p.Netdev[k]
				if p.LinkLayer != "Ethernet" || nd.Index == nil || nd.CarrierUps == nil || nd.CarrierDowns == nil {
					continue
				}
				read := carrier{ups: *nd.CarrierUps, downs: *nd.CarrierDowns, admin: nd.Admin == nil || *nd.Admin}
				ups, downs := c.links.transitions(nd.Name, *nd.Index, read, now)
				nd.Transitions = &snapshot.Transitions{Ups: ups, Downs: downs}
			}
		}
		devices[i].Registrations = c.registered.registrations(devices[i].Name)
	}
	c.links.forget(now)
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
	maps.DeleteFunc(c.ports, func(key string, _ map[int]*portHistory) bool {
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
	if b := n.InfiniBand.Boot; b.Uptime != nil {
		s.Emit(hostUptime, *b.Uptime, b.ID)
	}
	for i := range n.InfiniBand.Devices {
		d := &n.InfiniBand.Devices[i]
		s.Emit(deviceInfo, 1, d.Name, d.Driver, d.HCAType, d.BoardID, d.Firmware, d.NodeGUID, d.PCIAddress, d.NUMANode, string(d.FunctionType))
		s.Emit(devicePresent, 1, d.Name, d.PCIAddress)
		emitUint(s, deviceNodeType, d.NodeType, d.Name)
		emitUint(s, deviceRegistrations, d.Registrations, d.Name)
		for j := range d.Ports {
			p := &d.Ports[j]
			port := strconv.Itoa(p.Number)
			emitPort(s, d, p, port)
			emitPMA(s, d, p, port)
		}
	}
	for _, id := range n.InfiniBand.Vanished {
		s.Emit(devicePresent, 0, id.Name, id.PCIAddress)
	}
}
