// Package infiniband reads RDMA devices and ports: identity, state, rate, role, place, what is expected of them.
package infiniband

import (
	"context"
	"slices"
	"strconv"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/infiniband/pma"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

var (
	deviceInfo = metric.Of("rdma_device_info", metric.Asks(source.Identity, metric.Device("rdma_device_info",
		"Identity of an RDMA device, always 1. function_type: physical, virtual, subfunction or software. function_type and driver are empty where unknown.",
		"/sys/class/infiniband/DEV/{hca_type,board_id,fw_ver,node_guid}, device/driver, device/numa_node", "driver",
		"hca_type", "board_id", "firmware_version", "node_guid", "pci_address", "numa_node", "function_type")))
	devicePresent = metric.Asks(source.Identity, metric.Device("rdma_device_present",
		"1 for an RDMA device that is present, 0 for one that is missing although the inventory or --config.file lists it. A device that was renamed, or moved to a container or a virtual machine, is not missing. device is the PCI address where another device has the name now.",
		"entries of /sys/class/infiniband; the inventory in the state directory", "pci_address"))
	deviceMissing = metric.Beside("rdma_device_present", metric.Device("rdma_device_missing_info",
		"Reason why a device is missing, always 1. reason: not_on_pci (no PCI function), no_driver (no driver bound), no_rdma_device (driver bound, no RDMA device registered). seen: this_boot, earlier_boot, never (only pinned in --config.file).",
		"/sys/bus/pci/devices, RDMA netlink SYS_GET netns_mode; the inventory in the state directory", "pci_address",
		"node_guid", "reason", "seen"))
	deviceRenamed = metric.Beside("rdma_device_present", metric.Device("rdma_device_renamed_info",
		"Device whose PCI function had another name (earlier_device) in an earlier boot, always 1 until the names are accepted (rdma_exporter accept). Only where another function has that name now, or had the present one before.",
		"/sys/class/infiniband/DEV/device, boot_id; the inventory in the state directory", "earlier_device",
		"pci_address"))
	deviceDataAge = metric.Device("rdma_device_data_age_seconds",
		"Age of the device state served, 0 while it is read in each round. For a device that cannot be read, the last state is served for 10m, without counters.",
		"the exporter")
	deviceNodeType = metric.Asks(source.Identity, metric.Device("rdma_device_node_type_id",
		"Node type: 1 CA, 2 switch, 3 router, 4 RNIC (iWARP), 5 and 6 usNIC, 7 unspecified (EFA).",
		"/sys/class/infiniband/DEV/node_type, enum rdma_node_type"))
	deviceRegistrations = metric.Device("rdma_device_registrations_total",
		"Registrations of the device (by GUID and PCI address) since the exporter started: driver loads and function resets. A name taken over by another device has the count of that device. Absent where the kernel does not report registrations.",
		"RDMA netlink, RDMA_NLDEV_CMD_MONITOR of group RDMA_NL_GROUP_NOTIFY (since Linux 6.12)")
	hostUptime = metric.Host("rdma_host_uptime_seconds",
		"Time since the host booted, also in a container. boot_id: boot ID of the kernel.",
		"/proc/uptime, /proc/sys/kernel/random/boot_id", "boot_id")
)

// infiniBand is the state that outlives a round: slow facts and history.
type infiniBand struct {
	agents shared.MADCounters
	memory *expect.Memory
	nccl   gdr.Job // for its topology file

	roster    *shared.Roster
	conf      *shared.SiteConfig
	stats     *counters.NetdevStats
	common    *shared.CommonLinks
	lastRound *shared.LastRound

	devices   reading.Devices[deviceState, snapshot.Device]
	ports     map[deviceKey]map[int]*portHistory
	evaluated evaluated
	absent    absent
	facts     map[string][]site.Subject // arguments of ignored for devices and their ports, by name of the device
	last      map[string]*lastDevice    // by name
	machine   machineFacts
	roles     roles
	boot      bootClock
	stack     stack
	baselines baselines

	links      *linkWatch
	registered *deviceWatch
}

// deviceState belongs to the reader of its device, one at a time.
type deviceState struct {
	of    *reading.Device // that id is of
	id    snapshot.Device // without its ports, if they are queried
	ports map[int]*portState
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := &infiniBand{
		agents: with.MADCounters, memory: with.Memory, nccl: with.NCCL, roster: with.Devices, conf: with.Site,
		stats: with.Stats, common: with.Links, lastRound: with.Last,
		ports: map[deviceKey]map[int]*portHistory{}, facts: map[string][]site.Subject{}, last: map[string]*lastDevice{},
		links: newLinkWatch(), registered: newDeviceWatch(), roles: roles{ports: map[roleKey]*roleState{}},
	}
	c.devices = reading.Devices[deviceState, snapshot.Device]{
		Collector: "infiniband", New: func() *deviceState { return &deviceState{ports: map[int]*portState{}} },
		Quarantines: true, Changed: c.deviceChanged,
	}
	return &shared.Collector{
		Name: "infiniband",
		Help: "RDMA devices and ports: identity, state, rate, GIDs, PMA counters",
		Descs: slices.Concat([]*metric.Desc{
			deviceInfo, devicePresent, deviceMissing, deviceRenamed, deviceNodeType, deviceVFs, deviceDataAge, deviceIgnored,
			portIgnored, deviceRegistrations, hostUptime, placeInfo,
		}, portDescs, expectedDescs, stackDescs, pma.Descs(), pma.FECDescs, baselineDescs),
		Run:  c.run,
		Read: c.read,
		Emit: emitInfiniBand,
		Derive: func(n *snapshot.Node, s metric.Sink) {
			c.deriveBaselines(n, s)
			c.derivePlaces(n, s)
		},
	}
}

func (c *infiniBand) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	roster, err := c.roster.Of(h, n)
	if err != nil {
		done(err)
		return
	}
	c.lastRound.Begin()
	c.devices.Keep(h, roster)
	c.readMachine(ctx, h)
	c.readStack(ctx, h)
	now, boot := h.Now(), c.readBoot(h)
	c.baselines.setNow(now)
	c.devices.ReadAll(ctx, h, n, roster, c.readDevice, func(devices []snapshot.Device) {
		markSubDevices(devices)
		same := c.remember(now, devices)
		c.count(devices, now)
		comparePKeys(c.conf, devices)
		missing := c.missing(ctx, h, boot.ID, slices.Concat(roster.Names, n.Reduced.LeftOut), devices, same)
		ignored := c.ignored(roster.Names, devices, missing)
		devices, ages := c.withLast(n.Devices, devices, now)
		found := c.stackOf(now, boot, devices)
		c.lastRound.Publish(now, devices, c.machine.gpus)
		n.InfiniBand = &snapshot.InfiniBand{
			Devices: devices, Missing: missing, Renamed: c.absent.renamed, Ignored: ignored, Ages: ages,
			Boot: boot, Stack: found, None: c.noDevice(h), Bare: c.stack.bare,
		}
	}, done)
}

// deviceChanged forgets a device that is gone, so that it is read again from scratch when it returns, or is another
// one.
func (c *infiniBand) deviceChanged(h *host.Host, name string, gone bool) {
	delete(c.last, name)
	c.machine.last.Expire()
	if gone {
		h.Budget.Forget(name)
	}
}

// deviceKey survives a rename and a driver reload.
type deviceKey struct{ guid, pci, name string }

func keyOf(d *snapshot.Device) deviceKey {
	if d.NodeGUID == "" && d.PCIAddress == "" {
		return deviceKey{name: d.Name}
	}
	return deviceKey{guid: d.NodeGUID, pci: d.PCIAddress}
}

// readDevice reads one device. A device that is listed but has no directory has just been removed.
func (c *infiniBand) readDevice(r *reading.Reader, of *reading.Device, st *deviceState) (snapshot.Device, bool) {
	id, name := r.From(source.Identity), r.Device
	if st.of != of {
		if _, err := r.Host.Files.List(sysfs.ClassDir + "/" + name); err != nil {
			if !access.IsAbsent(err) {
				id.Issue(err)
			}
			return snapshot.Device{}, false
		}
		st.of, st.id = of, readIdentity(id, of)
	}
	d := st.id
	if d.ManagesNVLink {
		d.Ports = slices.Clone(d.Ports)
		return d, true
	}
	d.Ports = slices.Grow([]snapshot.Port(nil), len(of.Ports))
	for i := range of.Ports {
		n := of.Ports[i].Number
		p := st.ports[n]
		if p == nil {
			dir := sysfs.PortDir(name, n)
			agent := pma.Agent{Mode: c.agents, Files: pma.Files{Path: dir + "/counters"}}
			p = &portState{dir: dir, netlink: sysfs.NetlinkDir(name, n), agent: agent}
			st.ports[n] = p
		}
		d.Ports = append(d.Ports, p.read(r, &d, n))
	}
	return d, true
}

func emitInfiniBand(n *snapshot.Node, s metric.Sink) {
	if n.InfiniBand == nil {
		return
	}
	if b := n.InfiniBand.Boot; b.Uptime != nil {
		s.Emit(hostUptime, *b.Uptime, b.ID)
	}
	for i := range n.InfiniBand.Devices {
		d := &n.InfiniBand.Devices[i]
		s.Emit(deviceInfo, 1, d.Name, d.Driver, d.HCAType, d.BoardID, d.Firmware, d.NodeGUID, d.PCIAddress, d.NUMANode,
			string(d.FunctionType))
		s.Emit(devicePresent, 1, d.Name, d.PCIAddress)
		metric.EmitNumber(s, deviceNodeType, d.NodeType, d.Name)
		metric.EmitNumber(s, deviceRegistrations, d.Registrations, d.Name)
		emitVirtualFunctions(s, d)
		for j := range d.Ports {
			p := &d.Ports[j]
			port := strconv.Itoa(p.Number)
			if d.ManagesNVLink {
				s.Emit(portInfo, 1, d.Name, port, "", p.LinkLayer, p.Role, p.RoleSource)
				continue
			}
			emitPort(s, d, p, port)
			emitExpected(s, d, p, port)
			pma.Emit(s, d, p, port)
			pma.EmitFEC(s, d, p, port)
		}
	}
	emitWires(s, n.InfiniBand.Devices)
	emitIgnored(s, n.InfiniBand.Ignored)
	emitStack(s, n.InfiniBand.Stack)
	for _, a := range n.InfiniBand.Ages {
		s.Emit(deviceDataAge, a.Age.Seconds(), a.Device)
	}
	for _, d := range n.InfiniBand.Renamed {
		s.Emit(deviceRenamed, 1, d.Name, d.Earlier, d.PCIAddress)
	}
	for _, m := range n.InfiniBand.Missing {
		s.Emit(devicePresent, 0, m.Name, m.PCIAddress)
		s.Emit(deviceMissing, 1, m.Name, m.PCIAddress, m.NodeGUID, m.Reason, m.Seen)
	}
}
