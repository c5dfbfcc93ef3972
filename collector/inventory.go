package collector

import (
	"context"
	"slices"

	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

const pciDir = "sys/bus/pci/devices/"

// missing compares the devices with the inventory. One that is listed and could not be read is there.
func (c *infiniBand) missing(ctx context.Context, h *host.Host, names []string, devices []snapshot.Device) (out []snapshot.MissingDevice) {
	r := &reader{ctx: ctx, h: h}
	if c.boot == "" {
		c.boot = r.optional("proc/sys/kernel/random/boot_id")
	}
	there := functionsOf(devices)
	c.Memory.See(h.Now(), c.boot, there)
	for _, f := range c.Memory.Absent(there) {
		if slices.Contains(names, f.Device) && !slices.ContainsFunc(devices, func(d snapshot.Device) bool { return d.Name == f.Device }) {
			continue
		}
		if !c.wanted(f.Device) {
			continue
		}
		p := expect.Presence{Unknown: true}
		err := h.Lanes.Do(ctx, "pci", func() { p = presence(r, f.PCIAddress) })
		if err != nil {
			continue
		}
		reason := expect.Missing(f, p)
		if reason == "" {
			continue
		}
		m := snapshot.MissingDevice{Name: f.Device, PCIAddress: f.PCIAddress, NodeGUID: f.NodeGUID, Reason: string(reason), Seen: "earlier_boot"}
		if f.Boot == c.boot {
			m.Seen = "this_boot"
		}
		if slices.Contains(names, m.Name) {
			m.Name = f.PCIAddress
		}
		out = append(out, m)
	}
	return out
}

// functionsOf are the physical functions of devices.
func functionsOf(devices []snapshot.Device) (out []expect.FunctionRecord) {
	for i := range devices {
		d := &devices[i]
		if d.FunctionType != snapshot.Physical || d.PCIAddress == "" {
			continue
		}
		f := expect.FunctionRecord{Device: d.Name, PCIAddress: d.PCIAddress, NodeGUID: d.NodeGUID, Driver: d.Driver, BoardID: d.BoardID}
		for j := range d.Ports {
			f.Netdev = f.Netdev || d.Ports[j].LinkLayer == "Ethernet" && len(d.Ports[j].Netdev) > 0
		}
		out = append(out, f)
	}
	return out
}

// presence looks at the function of a device that is not there. Nothing of it asks a driver.
func presence(r *reader, address string) (p expect.Presence) {
	names, err := r.h.Files.List(pciDir + address)
	if err != nil {
		p.Unknown = !host.IsAbsent(err)
		if _, err := r.h.Files.List("sys/bus/pci/devices"); err != nil {
			p.Unknown = true // a tree without PCI says nothing about it
		}
		return p
	}
	p.OnBus, p.Driver = true, r.driver(pciDir+address)
	if slices.Contains(names, "net") {
		netdevs, err := r.h.Files.List(pciDir + address + "/net")
		p.Netdev = err == nil && len(netdevs) > 0
	}
	if s, err := r.h.RDMA.System(r.ctx); err == nil && s.NetnsMode != nil {
		shared := *s.NetnsMode == 1
		p.Shared = &shared
	}
	return p
}
