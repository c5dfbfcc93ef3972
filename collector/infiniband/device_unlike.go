package infiniband

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// nicFunction is a PCI function that may have an RDMA device.
type nicFunction struct {
	address string
	ids     [5]string    // class, vendor, device and subsystem
	kind    pci.RDMAKind // by its IDs; empty: no RDMA, or unknown
	driver  string       // bound driver; empty: none
	path    []string     // from the host bridge to itself; empty: unknown
	place   string       // below its root port: device and function numbers; empty: unknown
	rdma    bool         // it has an RDMA device; else:
	numa    int          // numa_node; -1: unknown
	member  bool         // its interface is in a bond, whose RDMA device may be that of another function
}

// minLike is the number of functions with an RDMA device of which the places show that another one should have one.
const minLike = 3

// isLike reports whether a function should have an RDMA device because others have one: those with the same IDs, or
// where its own are not readable, those of its vendor at the same place below their root ports.
func (f *nicFunction) isLike(others []nicFunction) bool {
	if f.ids[0] != "" {
		return f.kind != "" &&
			slices.ContainsFunc(others, func(o nicFunction) bool { return o.rdma && o.ids == f.ids })
	}
	n := 0
	for i := range others {
		if o := &others[i]; o.rdma && o.ids[1] == f.ids[1] && o.place == f.place && f.place != "" {
			n++
		}
	}
	return n >= minLike
}

// withoutDevice returns the functions without an RDMA device on a host with RDMA devices: functions like one that has a
// device, and other functions that support RDMA and have no driver, or support RDMA only. The device of the latter may
// be in another network namespace (apart).
func withoutDevice(all []nicFunction, apart bool) (out []hostdata.BareFunction) {
	for i := range all {
		f := &all[i]
		like := f.isLike(all)
		unlike := f.kind != "" && (f.driver == "" || f.kind == pci.RDMAOnly && !apart)
		if f.rdma || f.member || slices.Contains(sysfs.PassthroughDrivers, f.driver) || !like && !unlike {
			continue
		}
		b := hostdata.BareFunction{PCIAddress: f.address, Driver: f.driver, NUMA: f.numa, Like: like}
		if len(f.path) > 1 {
			b.Root, b.Path = f.path[0], f.path[1:]
		}
		out = append(out, b)
	}
	return out
}

// functionsForRDMA returns the RDMA-capable functions in use by this kernel.
func functionsForRDMA(all []nicFunction) (out []hostdata.StackFunction) {
	for i := range all {
		if f := &all[i]; f.kind != "" && !slices.Contains(sysfs.PassthroughDrivers, f.driver) {
			out = append(out, hostdata.StackFunction{PCIAddress: f.address, Kind: string(f.kind), Driver: f.driver})
		}
	}
	return out
}

// functionsOfNICs returns the functions of network controllers, and functions whose class is not readable, by address,
// without virtual functions whose physical function is on this host.
func functionsOfNICs(r reading.Reads) (out []nicFunction) {
	names, err := r.Host.Files.List("sys/bus/pci/devices")
	if err != nil {
		return nil
	}
	var bridges []string
	for _, address := range names {
		dir := sysfs.PCIDir + address
		f := nicFunction{address: address, ids: [5]string{r.Optional(dir + "/class")}}
		class := f.ids[0]
		if class != "" && !strings.HasPrefix(class, "0x02") && !strings.HasPrefix(class, "0x0c06") {
			continue
		}
		if _, err := r.Host.Files.Link(dir + "/physfn"); err == nil {
			continue
		}
		for i, file := range []string{"vendor", "device", "subsystem_vendor", "subsystem_device"} {
			f.ids[1+i] = r.Optional(dir + "/" + file)
		}
		f.kind, f.driver = pci.RDMAKindOf(f.ids[1], f.ids[2], class), sysfs.BoundDriver(r.Host.Files, dir)
		if real, err := r.Host.Files.Resolve(dir); err == nil {
			parts := strings.Split(strings.TrimPrefix(real, "sys/devices/"), "/")
			bridges = append(bridges, parts[:len(parts)-1]...)
			f.path = parts
			for _, p := range parts[1:] {
				f.place += "/" + p[strings.LastIndexByte(p, ':')+1:]
			}
		}
		entries, err := r.Host.Files.List(dir + "/infiniband")
		if f.rdma = err == nil && len(entries) > 0; !f.rdma {
			f.numa, f.member = numaOf(r, dir), isBonded(r, dir)
		}
		out = append(out, f)
	}
	return slices.DeleteFunc(out, func(f nicFunction) bool { return slices.Contains(bridges, f.address) })
}

// numaOf returns the NUMA node of a function; -1: unknown.
func numaOf(r reading.Reads, dir string) int {
	n, err := strconv.Atoi(r.Optional(dir + "/numa_node"))
	if err != nil {
		return -1
	}
	return n
}

// isBonded reports whether an interface of a function is in a bond.
func isBonded(r reading.Reads, dir string) bool {
	netdevs, _ := r.Host.Files.List(dir + "/net") // absent: none
	return slices.ContainsFunc(netdevs, func(name string) bool {
		_, err := r.Host.Files.Link(dir + "/net/" + name + "/master")
		return err == nil
	})
}

// unlikeOthers returns the functions without an RDMA device, unlike others, that were never seen with one.
func (c *infiniBand) unlikeOthers(
	ctx context.Context, h *host.Host, devices []snapshot.Device, known []snapshot.MissingDevice,
) (out []snapshot.MissingDevice) {
	for i := range c.stack.bare {
		address := c.stack.bare[i].PCIAddress
		if !c.stack.bare[i].Like ||
			slices.ContainsFunc(known, func(m snapshot.MissingDevice) bool { return m.PCIAddress == address }) ||
			slices.ContainsFunc(devices, func(d snapshot.Device) bool { return d.PCIAddress == address }) ||
			slices.ContainsFunc(c.absent.functions, func(f expect.FunctionRecord) bool { return f.PCIAddress == address }) {
			continue
		}
		var p expect.Presence
		if err := h.Turns.Do(ctx, "pci", func() { p = presence(reading.New(ctx, h, ""), address) }); err != nil {
			continue
		}
		if reason := expect.Missing(expect.FunctionRecord{Driver: p.Driver}, p); reason != "" {
			out = append(out, snapshot.MissingDevice{
				Name: address, PCIAddress: address, Reason: string(reason), Seen: "siblings",
			})
		}
	}
	return out
}
