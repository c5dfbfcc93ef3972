package gpudirect

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

// branch is the path from the root to a function.
type branch struct {
	configs map[string]pci.Config // by address, where they can be read
	models  map[string]pci.Bridge // of the bridges
	iommu   string                // type of the function's IOMMU group
	cpus    string                // local_cpulist
	cut     bool                  // only the unprivileged part of configuration space was readable
}

// gdrGPU is a GPU with its path to the root.
type gdrGPU struct {
	gdr.GPU
	branch
	hops      []accel.PCIeHop // from the root port to itself
	minor     int             // of /dev/nvidiaN
	emulated  bool            // its bridge is a hypervisor's, or there is none
	processes []int           // compute processes listed by NVML; nil: unknown
	domain    *bool           // in an NVLink domain of several hosts; nil: unknown
}

// gdrNIC is an RDMA device with its path to the root.
type gdrNIC struct {
	gdr.NIC
	branch
	PCIAddress string
	at         time.Time         // when its place in the PCI tree was read
	gids       map[gidKey]string // types of the entries selected by jobs: roce_v2, roce_v1, empty
}

// gdrGPUs are the GPUs by address, from sysfs and the driver's files.
type gdrGPUs struct {
	read  reading.Last
	paths []string
	found []gdrGPU
}

func (g *gdrGPUs) update(r reading.Reads, paths []string) {
	if !g.read.Due(r.Now(), treeInterval) && slices.Equal(paths, g.paths) {
		return
	}
	g.read.Read(r.Now())
	g.paths, g.found = paths, nil
	sorted := slices.SortedFunc(slices.Values(paths),
		func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	for i, p := range sorted {
		g.found = append(g.found, readGDRGPU(r, p, i))
	}
	if !hasAMD(g.found) {
		return
	}
	nodes := sysfs.ReadKFDNodes(r)
	for i, p := range sorted {
		if one := &g.found[i]; one.Vendor == sysfs.VendorAMD {
			one.applyKFD(nodes, r.Optional(p+"/product_name"))
		}
	}
}

// readGDRGPU reads a GPU. Its index is its position in the order of addresses, as in NVML.
func readGDRGPU(r reading.Reads, dir string, index int) gdrGPU {
	g := gdrGPU{branch: readBranch(r, dir), minor: index}
	g.GPU, g.emulated = sysfs.ReadGPUPlace(r, dir)
	g.Index, g.Display = strconv.Itoa(index), strings.HasPrefix(r.Optional(dir+"/class"), "0x0300")
	g.Vendor, g.Device = sysfs.HexValue(r.Optional(dir+"/vendor")), sysfs.HexValue(r.Optional(dir+"/device"))
	about := sysfs.GPUInformation(r, g.Address)
	g.Model, g.UUID = about["Model"], about["GPU UUID"]
	if minor, err := strconv.Atoi(about["Device Minor"]); err == nil {
		g.minor = minor
	}
	for _, hop := range g.Place.Chain {
		g.hops = append(g.hops, sysfs.ReadPCIeHop(r, sysfs.PCIDir+hop, hop))
	}
	return g
}

// applyNVML applies the NVML data of the GPU.
func (g *gdrGPU) applyNVML(gpus []accel.GPU) {
	i := slices.IndexFunc(gpus, func(o accel.GPU) bool { return o.PCIAddress == g.Address })
	if i < 0 {
		return
	}
	o := &gpus[i]
	g.Index, g.UUID, g.Model = strconv.Itoa(o.Index), o.UUID, o.Model
	if major, minor, ok := strings.Cut(o.Capability, "."); ok {
		g.Compute = 10*sysfs.Decimal(major) + sysfs.Decimal(minor)
	}
	switch {
	case o.NVLinksUp != nil:
		g.Linked = new(*o.NVLinksUp > 0)
	case o.NVLinks != nil && *o.NVLinks == 0:
		g.Linked = new(bool)
	}
	if o.BAR1Total != nil && o.MemoryTotal != nil && !g.Coupled {
		g.SmallBAR = new(*o.BAR1Total < *o.MemoryTotal)
	}
	g.domain, g.processes = new(o.Fabric != nil && o.Fabric.Cluster != ""), o.Processes
	if o.C2CLinks != nil {
		g.Coupled = *o.C2CLinks > 0
	}
}

// readGDRNIC reads a device; a device that is no PCI function has no address.
func readGDRNIC(reader *reading.Reader, d *reading.Device) gdrNIC {
	if d.Path == "" {
		return gdrNIC{}
	}
	r := reader.From(source.PCILink)
	return gdrNIC{
		NIC: gdr.NIC{
			Device: d.Name,
			Driver: d.Driver,
			Place:  sysfs.ReadPlace(r, d.Path),
		}, branch: readBranch(r, d.Path),
		PCIAddress: d.PCIAddress, at: r.Now(),
	}
}

// readBranch reads the path to a function.
func readBranch(r reading.Reads, dir string) branch {
	f := branch{
		configs: map[string]pci.Config{}, models: map[string]pci.Bridge{}, cpus: r.Optional(dir + "/local_cpulist"),
	}
	chain := pci.PlaceOf(dir, 0).Chain
	for i, address := range chain {
		at := sysfs.PCIDir + address
		c, size, ok := sysfs.ReadConfig(r, at)
		if ok {
			f.configs[address] = c
		}
		f.cut = f.cut || size == sysfs.OpenConfig
		if i < len(chain)-1 {
			f.models[address] = sysfs.ReadBridge(r, at)
		}
	}
	if group, err := r.Host.Files.Resolve(dir + "/iommu_group"); err == nil {
		f.iommu = r.Optional(group + "/type")
	}
	return f
}

// applyPorts applies the device's state of the last round.
func (n *gdrNIC) applyPorts(devices []snapshot.Device) {
	i := slices.IndexFunc(devices, func(d snapshot.Device) bool { return d.Name == n.Device })
	n.Ports = nil
	if i < 0 {
		n.Role = pci.Unknown
		return
	}
	n.Role = pci.Unknown
	if devices[i].ManagesNVLink {
		n.Role = pci.NVLinkManagement
	}
	for j := range devices[i].Ports {
		p := &devices[i].Ports[j]
		if p.Role != "" {
			n.Role = pci.Role(p.Role)
		}
		n.Ports = append(n.Ports, gdr.Port{Number: p.Number, Active: sysfs.IsActive(p)})
	}
}

func (g *gdrGPU) snapshot() accel.GDRGPU {
	return accel.GDRGPU{
		Index: g.Index, UUID: g.UUID, PCIAddress: g.Address, Model: g.Model, NUMA: g.Place.NUMA, Root: g.Place.Root,
		Hops: g.hops, Coupled: g.Coupled, IOMMU: g.iommu,
	}
}

func (n *gdrNIC) snapshot(gpus []gdrGPU) accel.GDRNIC {
	out := accel.GDRNIC{
		Device: n.Device, PCIAddress: n.PCIAddress, Role: string(n.Role), NUMA: n.Place.NUMA, CPUs: n.cpus,
		Root: n.Place.Root, Path: n.Place.Chain, IOMMU: n.iommu,
		Active: slices.ContainsFunc(n.Ports, func(p gdr.Port) bool { return p.Active }),
	}
	for _, p := range n.Ports {
		out.Ports = append(out.Ports, p.Number)
	}
	if c, ok := n.configs[n.PCIAddress]; ok {
		out.Settings = &accel.PCIeSettings{
			MaxPayload: c.MaxPayload, MaxReadRequest: c.MaxReadRequest, RelaxedOrdering: c.RelaxedOrdering,
			ATS: c.ATS, HasATS: c.HasATS,
		}
	}
	out.Redirect, out.RedirectAt = n.redirects(gpus)
	return out
}

// redirects returns the ports between a device and the GPUs below the same switch with ACS redirect. Nil: there is no
// such GPU, or not all of those ports can be read.
func (n *gdrNIC) redirects(gpus []gdrGPU) (found *bool, at []string) {
	for i := range gpus {
		g := &gpus[i]
		for _, address := range pci.Between(g.Place, n.Place) {
			c, ok := n.configs[address]
			if !ok {
				c, ok = g.configs[address]
			}
			if !ok {
				return nil, nil
			}
			if c.Redirect && !slices.Contains(at, address) {
				at = append(at, address)
			}
			found = new(len(at) > 0)
		}
	}
	return found, at
}
