package infiniband

import (
	"cmp"
	"context"
	"slices"
	"time"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// absent is the part of the inventory that was missing in the last round, or renamed.
type absent struct {
	hour      time.Time
	boot      string
	version   uint64 // of the memory
	functions []expect.FunctionRecord
	renamed   []snapshot.RenamedDevice // of the present ones
}

// absentFunctions records the present functions, and returns the remembered ones that are missing. The result is cached
// while nothing changes.
func (c *infiniBand) absentFunctions(
	now time.Time, boot string, devices []snapshot.Device, same bool,
) []expect.FunctionRecord {
	a := &c.absent
	if hour := now.Truncate(time.Hour); !same || hour != a.hour || boot != a.boot || c.memory.Version() != a.version {
		version := c.memory.Version() // anything deleted from here on is recorded again in the next round
		there := functionsOf(devices)
		c.memory.See(now, boot, there)
		*a = absent{hour, boot, version, c.memory.Absent(there), c.memory.Renamed(there)}
	}
	return a.functions
}

// missing compares the devices with the inventory. A device that is listed but could not be read is present.
func (c *infiniBand) missing(
	ctx context.Context, h *host.Host, boot string, names []string, devices []snapshot.Device, same bool,
) (out []snapshot.MissingDevice) {
	r := reading.New(ctx, h, "")
	for _, f := range c.absentFunctions(h.Now(), boot, devices, same) {
		if slices.Contains(names, f.Device) &&
			!slices.ContainsFunc(devices, func(d snapshot.Device) bool { return d.Name == f.Device }) {
			continue
		}
		if !c.roster.Wanted(f.Device) || !pci.IsAddress(f.PCIAddress) { // a replay has a state of others
			continue
		}
		var p expect.Presence
		if err := h.Turns.Do(ctx, "pci", func() { p = presence(r, f.PCIAddress) }); err != nil {
			continue
		}
		reason := expect.Missing(f, p)
		if reason == "" {
			continue
		}
		m := snapshot.MissingDevice{
			Name: f.Device, PCIAddress: f.PCIAddress, NodeGUID: f.NodeGUID, Reason: string(reason), Seen: "earlier_boot",
		}
		if f.Boot == boot {
			m.Seen = "this_boot"
		}
		if slices.Contains(names, m.Name) {
			m.Name = f.PCIAddress
		}
		out = append(out, m)
	}
	out = append(out, c.pinnedMissing(ctx, h, names, devices, out)...)
	return append(out, c.unlikeOthers(ctx, h, devices, out)...)
}

// pinnedMissing returns devices pinned in the configuration that are missing and not in the inventory.
func (c *infiniBand) pinnedMissing(
	ctx context.Context, h *host.Host, names []string, devices []snapshot.Device, known []snapshot.MissingDevice,
) (out []snapshot.MissingDevice) {
	for _, s := range c.conf.Current().Required(c.conf.Hostname) {
		there := slices.ContainsFunc(devices, func(d snapshot.Device) bool {
			return (s.Device == "" || d.Name == s.Device) && (s.PCIAddress == "" || d.PCIAddress == s.PCIAddress)
		})
		listed := slices.ContainsFunc(known, func(m snapshot.MissingDevice) bool {
			return m.PCIAddress == s.PCIAddress || m.Name == s.Device
		})
		if there || listed || s.Device != "" && slices.Contains(names, s.Device) {
			continue
		}
		m := snapshot.MissingDevice{
			Name: cmp.Or(s.Device, s.PCIAddress), Reason: string(expect.NoRDMADevice), Seen: "never",
		}
		if pci.IsAddress(s.PCIAddress) { // as anyone may write it in a configuration
			m.PCIAddress = s.PCIAddress
			var p expect.Presence
			if err := h.Turns.Do(ctx, "pci", func() { p = presence(reading.New(ctx, h, ""), s.PCIAddress) }); err != nil {
				continue
			}
			m.Reason = string(expect.MissingPinned(p))
		}
		if m.Reason == "" {
			continue
		}
		out = append(out, m)
	}
	return out
}

// functionsOf returns the physical functions of devices.
func functionsOf(devices []snapshot.Device) (out []expect.FunctionRecord) {
	for i := range devices {
		d := &devices[i]
		if d.FunctionType != snapshot.Physical || d.PCIAddress == "" {
			continue
		}
		f := expect.FunctionRecord{
			Device: d.Name, PCIAddress: d.PCIAddress, NodeGUID: d.NodeGUID, Driver: d.Driver, BoardID: d.BoardID,
		}
		for j := range d.Ports {
			f.Netdev = f.Netdev || d.Ports[j].LinkLayer == "Ethernet" && len(d.Ports[j].Netdev) > 0
		}
		out = append(out, f)
	}
	return out
}

// presence reads the state of a missing device's function, without a query to a driver.
func presence(r *reading.Reader, address string) (p expect.Presence) {
	names, err := r.Host.Files.List(sysfs.PCIDir + address)
	if err != nil {
		p.Unknown = !access.IsAbsent(err)
		if _, err := r.Host.Files.List("sys/bus/pci/devices"); err != nil {
			p.Unknown = true // a tree without PCI is no evidence
		}
		return p
	}
	p.OnBus, p.Driver = true, sysfs.BoundDriver(r.Host.Files, sysfs.PCIDir+address)
	has := func(class string) bool {
		if !slices.Contains(names, class) {
			return false
		}
		entries, err := r.Host.Files.List(sysfs.PCIDir + address + "/" + class)
		return err == nil && len(entries) > 0
	}
	p.RDMA, p.Netdev = has("infiniband"), has("net")
	if s, err := r.Host.RDMA.System(r.Ctx); err == nil && s.NetnsMode != nil {
		p.Shared = new(*s.NetnsMode == 1)
	}
	return p
}
