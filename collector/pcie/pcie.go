// Package pcie reads the PCIe links between devices or GPUs and their root ports.
package pcie

import (
	"context"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

// ofPCIeLinks is for metrics of the links on the path to a physical function.
func ofPCIeLinks(d *metric.Desc) *metric.Desc {
	return metric.Of(metric.PhysicalFunctions, metric.Asks(source.PCILink, d))
}

var (
	pcieSpeed = ofPCIeLinks(metric.New(exposition.ScopeDevice, "rdma_pcie_link_speed_transfers_per_second",
		"Current speed of a PCIe link on the path to an RDMA device, in transfers per second and lane. pci_address: downstream end. Absent for links that lead only to GPUs (an idle GPU reduces the link speed).",
		"/sys/bus/pci/devices/ADDRESS/current_link_speed", "pci_address"))
	pcieMaxSpeed = ofPCIeLinks(metric.New(exposition.ScopeDevice, "rdma_pcie_link_max_speed_transfers_per_second",
		"Highest speed that both ends of the PCIe link support, in transfers per second and lane.",
		"max_link_speed of both ends", "pci_address"))
	pcieWidth = ofPCIeLinks(metric.New(exposition.ScopeDevice, "rdma_pcie_link_width_lanes",
		"Lanes in use by a PCIe link on the path to an RDMA device or a GPU.",
		"/sys/bus/pci/devices/ADDRESS/current_link_width", "pci_address"))
	pcieMaxWidth = ofPCIeLinks(metric.New(exposition.ScopeDevice, "rdma_pcie_link_max_width_lanes",
		"Most lanes that both ends of the PCIe link support: 8 for any card in an x8 slot.",
		"max_link_width of both ends", "pci_address"))
	pcieLinkInfo = ofPCIeLinks(metric.Device("rdma_device_pcie_link_info",
		"PCIe link on the path from a root port to an RDMA device, always 1. pci_address: downstream end. upstream: upstream end.",
		"the path below /sys/devices", "pci_address", "upstream"))
	pcieErrors = ofPCIeLinks(metric.New(exposition.ScopeDevice, "rdma_pcie_aer_errors_total",
		"PCIe advanced error reporting (AER) errors of RDMA devices, GPUs and the bridges above them, since the function was enumerated. severity: correctable, nonfatal, fatal. fatal of a root port with a single device below it includes those of the device, which the kernel does not count (its link may be down).",
		"/sys/bus/pci/devices/ADDRESS/aer_dev_{correctable,nonfatal,fatal}, aer_rootport_total_err_fatal of root ports",
		"pci_address", "severity"))
	pcieAvailable = ofPCIeLinks(metric.Device("rdma_device_pcie_available_bytes_per_second",
		"Bandwidth of the narrowest link between the device and its root port at current speed and width, packet overhead included.",
		"pcie_bandwidth_available, drivers/pci/pci.c"))
	pcieCapable = metric.Device("rdma_device_pcie_capable_bytes_per_second",
		"Bandwidth of the device at its own maximum speed and width.", "pcie_bandwidth_capable, drivers/pci/pci.c")
	pciePathInfo = metric.Device("rdma_device_pcie_path_info",
		"PCI function of an RDMA device and the function whose link limits its bandwidth (bottleneck), always 1.",
		"pcie_bandwidth_available, drivers/pci/pci.c", "pci_address", "bottleneck")
)

// pcie keeps the data of each device and of the GPUs: links change with the hardware, and errors are evaluated over
// minutes.
type pcie struct {
	lastRound *shared.LastRound
	gpus      *shared.GPUReadings
	devices   reading.Devices[reading.Kept[accel.PCIePath], accel.PCIePath]
	ways      gpuWays
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := &pcie{
		lastRound: with.Last, gpus: with.GPUs,
		devices: reading.Devices[reading.Kept[accel.PCIePath], accel.PCIePath]{Collector: "pcie"},
	}
	return &shared.Collector{
		Name: "pcie",
		Help: "PCIe links between RDMA devices or GPUs and their root ports: speed, width, bandwidth, errors",
		Descs: []*metric.Desc{
			pcieSpeed, pcieMaxSpeed, pcieWidth, pcieMaxWidth, pcieLinkInfo, gpuLinkInfo, pcieErrors, pcieAvailable,
			pcieCapable, pciePathInfo,
		},
		Read: with.Devices.Read(c.read),
		Emit: metric.EmitSection(func(n *snapshot.Node) *accel.PCIe { return n.PCIe }, emitPCIe),
	}
}

func (c *pcie) read(ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error)) {
	gpus := make(chan gpuPaths, 1)
	go func() { // a GPU that has fallen off its bus must not delay the devices
		var out gpuPaths
		if err := access.Guard(func() error { out = c.gpuPaths(ctx, h); return nil }); err != nil {
			out = unreadGPUPaths(err)
		}
		gpus <- out
	}()
	c.devices.ReadAll(ctx, h, n, roster, readPCIe, func(devices []accel.PCIePath) {
		g := <-gpus
		n.PCIe = &accel.PCIe{Devices: devices, GPUs: g.paths}
		n.Issues = append(n.Issues, g.issues...)
	}, done)
}

func readPCIe(r *reading.Reader, d *reading.Device, kept *reading.Kept[accel.PCIePath]) (accel.PCIePath, bool) {
	if kept.DueOf(r, shared.SlowInterval) {
		p, _ := readPCIePath(r, d)
		kept.Keep(p, r.Now())
	}
	return kept.Value, kept.Value.Device != ""
}

// readPCIePath reads the path to a device. Virtual functions have no link of their own: their path is that of the
// physical function, a device of this host or invisible to a guest.
func readPCIePath(r *reading.Reader, d *reading.Device) (accel.PCIePath, bool) {
	if d.Path == "" || d.FunctionType != snapshot.Physical {
		return accel.PCIePath{}, false
	}
	return accel.PCIePath{Device: d.Name, Hops: readPCIeHops(r.From(source.PCILink), d.Path)}, true
}

// readPCIeHops returns the functions of a path below /sys/devices, with the errors that each has counted: errors of a
// link may be counted at either end.
func readPCIeHops(r reading.Reads, function string) (out []accel.PCIeHop) {
	functions := pci.Functions(function)
	for i, address := range functions {
		dir := sysfs.PCIDir + address
		hop := sysfs.ReadPCIeHop(r, dir, address)
		hop.AER = accel.AER{
			Correctable: readAER(r, dir+"/aer_dev_correctable"), NonFatal: readAER(r, dir+"/aer_dev_nonfatal"),
			Fatal: readAER(r, dir+"/aer_dev_fatal"),
		}
		if i == 0 && len(functions) == 2 {
			hop.AER.Fatal = readFatalBelow(r, dir, hop.AER.Fatal)
		}
		out = append(out, hop)
	}
	return out
}

func readAER(r reading.Reads, file string) *uint64 {
	return reading.Parsed(r, file, pci.ParseAER)
}

// readFatalBelow returns the number of fatal errors reported to a root port, its own included; own where it is not
// exposed. For an endpoint that reports a fatal error the kernel reads no status and counts nothing, because its link
// may be down (aer_get_device_error_info, drivers/pci/pcie/aer.c). Used only for a root port with a single device below
// it: below a switch the source of the error is unknown.
func readFatalBelow(r reading.Reads, dir string, own *uint64) *uint64 {
	n := r.Decimal(dir + "/aer_rootport_total_err_fatal")
	if n == nil || own != nil && *own > *n {
		return own
	}
	return n
}

func emitPCIe(paths *accel.PCIe, s metric.Sink) {
	e := pcieEmitter{Sink: s, links: map[string]bool{}, functions: map[string]bool{}}
	for i := range paths.Devices {
		d := &paths.Devices[i]
		hops := e.hops(d.Hops)
		for _, p := range pci.Pairs(hops) {
			s.Emit(pcieLinkInfo, 1, d.Device, p.Lower, p.Upper)
			if !e.links[p.Lower] {
				e.links[p.Lower] = true
				e.speed(p)
				e.width(p)
			}
		}
		emitPath(s, d.Device, hops)
	}
	e.gpus(paths.GPUs)
}

// pcieEmitter emits each link and each function once: devices and GPUs share those above a switch.
type pcieEmitter struct {
	metric.Sink
	links     map[string]bool // by the lower end
	functions map[string]bool
}

// hops emits the error counts of the functions of a path.
func (e *pcieEmitter) hops(path []accel.PCIeHop) []pci.Hop {
	hops := make([]pci.Hop, len(path))
	for i, h := range path {
		hops[i] = pci.Hop{
			Address: h.Address, Link: pci.Link{Speed: h.Speed, Width: h.Width, MaxSpeed: h.MaxSpeed, MaxWidth: h.MaxWidth},
		}
		if !e.functions[h.Address] {
			e.functions[h.Address] = true
			emitAER(e.Sink, &path[i])
		}
	}
	return hops
}

func (e *pcieEmitter) speed(p pci.Pair) {
	e.Emit(pcieSpeed, p.Speed, p.Lower)
	if p.MaxSpeed != 0 {
		e.Emit(pcieMaxSpeed, p.MaxSpeed, p.Lower)
	}
}

func (e *pcieEmitter) width(p pci.Pair) {
	e.Emit(pcieWidth, float64(p.Width), p.Lower)
	if p.MaxWidth != 0 {
		e.Emit(pcieMaxWidth, float64(p.MaxWidth), p.Lower)
	}
}

func emitAER(s metric.Sink, h *accel.PCIeHop) {
	metric.EmitNumber(s, pcieErrors, h.AER.Correctable, h.Address, "correctable")
	metric.EmitNumber(s, pcieErrors, h.AER.NonFatal, h.Address, "nonfatal")
	metric.EmitNumber(s, pcieErrors, h.AER.Fatal, h.Address, "fatal")
}

func emitPath(s metric.Sink, device string, hops []pci.Hop) {
	if len(hops) < 2 { // a flat virtual machine: the virtual bus is no evidence of the real one
		return
	}
	own := hops[len(hops)-1]
	if capable := pci.Capable(own); capable != 0 {
		s.Emit(pcieCapable, capable/8, device)
	}
	if available, bottleneck, ok := pci.Available(hops); ok {
		s.Emit(pcieAvailable, available/8, device)
		s.Emit(pciePathInfo, 1, device, own.Address, bottleneck)
	}
}
