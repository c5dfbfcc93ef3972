// Package gpudirect reads what decides whether GPU data goes to NICs directly, and which way it takes.
package gpudirect

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

var (
	gdrMechanism = metric.New(exposition.ScopeDevice, "rdma_gdr_mechanism_available",
		"Whether a mechanism for access of NICs to GPU memory is available. mechanism: dmabuf (per RDMA device; by its driver, the kernel and the GPU driver), peermem (kernel module, or peer memory client of amdgpu, for all devices; device is empty). Absent where unknown, and on hosts without GPUs.",
		"/sys/module/{nvidia_peermem,nv_peer_mem}, /proc/kallsyms, /proc/driver/nvidia/version; AMD: memory_peers/amdkfd, /boot/config-RELEASE, /proc/config.gz",
		"mechanism", "device")
	gdrDirect = metric.Unknown(directUnknown, metric.Host("rdma_gdr_gpu_direct",
		"Whether NCCL would move data of a GPU directly over its best eligible NIC (1) or through host memory (0). direction: transmit, receive. Eligible: ACTIVE and of role compute, or of any role where no NIC is of role compute. NCCL version and settings are those of the process that holds the GPU; without one, or where processes are not visible, a current NCCL with /etc/nccl.conf. Absent where unknown (see reason of rdma_gdr_gpu_info).",
		"the decision of NCCL (ncclTopoCheckGdr, src/graph/paths.cc)", "gpu", "UUID", "direction"))
	gdrNearestDown = metric.Beside("rdma_gdr_gpu_info", metric.Host("rdma_gdr_gpu_nearest_down_info",
		"Nearest RDMA device of a GPU without an ACTIVE port, always 1: the GPU stages over a more distant one (reason nearest_port_down of rdma_gdr_gpu_info).",
		"as rdma_gdr_gpu_direct",
		"gpu",
		"UUID",
		"device",
	))
	gdrPossible = ofDecision(metric.Host(
		"rdma_gdr_gpu_possible",
		"Whether data of a GPU could go directly with the hardware of this host (1): settings, ports, modules and drivers apart, and a NIC in a wrong slot. 0: GPUs that do not support it, or without a NIC near enough. direction: transmit, receive. Absent where unknown.",
		"as rdma_gdr_gpu_direct", "gpu", "UUID", "direction"))
	gdrObstacle = ofDecision(metric.Host(
		"rdma_gdr_gpu_obstacle_info",
		"Reason why data of a GPU does not go directly, always 1; several at the same time. step: order in which to remove them, from 1. kind: settings (of the job, or nccl.conf), port, mechanism, place. reason: as in rdma_gdr_gpu_info. after: the path once it and those before it are removed, direct or the next reason.",
		"as rdma_gdr_gpu_direct", "gpu", "UUID", "step", "kind", "reason", "after"))
	gdrInfo = metric.Of(
		"rdma_gdr_gpu_info",
		metric.Asks(source.PCI, metric.Host(
			"rdma_gdr_gpu_info",
			"Best eligible NIC (device) of a GPU, always 1. distance: PIX, PXB, P2C, PHB, SYS (terms of NCCL). mechanism: peermem, dmabuf, none. reason: why the path is not direct, explained in docs/gpudirect.md.",
			"as rdma_gdr_gpu_direct",
			"gpu",
			"UUID",
			"device",
			"distance",
			"mechanism",
			"reason",
		)),
	)
	pcieSettings = metric.Of(
		metric.PhysicalFunctions,
		metric.Asks(source.PCIConfig, metric.Device(
			"rdma_device_pcie_settings_info",
			"PCIe settings of an RDMA device, always 1. max_payload and max_read_request: bytes; relaxed_ordering: true, false; all empty where configuration space cannot be read. acs_redirect: whether ACS at a port between the device and a GPU below the same switch redirects their traffic to the root; empty without such a GPU. iommu: type of the IOMMU group, empty without IOMMU. virtual: true in a virtual machine.",
			"/sys/bus/pci/devices/ADDRESS/config (needs CAP_SYS_ADMIN), iommu_group/type",
			"max_payload",
			"max_read_request",
			"relaxed_ordering",
			"acs_redirect",
			"iommu",
			"virtual",
		),
			"max_payload", "max_read_request", "relaxed_ordering", "acs_redirect"),
	)
)

// directUnknown and obstaclesUnknown are Desc.Unknown of gdrDirect, and of what requires all of a decision.
var (
	directUnknown = map[string][]string{"": reasonSelectors("rdma_gdr_gpu_info", gdr.KernelUnknown, gdr.FlavourUnknown,
		gdr.ModelUnknown, gdr.LinksUnknown, gdr.NICDriverUnknown, gdr.VirtualTopology, gdr.KernelConfigUnknown,
		gdr.ROCmPeerUnknown, gdr.RCCLHostBridge)}
	obstaclesUnknown = map[string][]string{"": reasonSelectors("rdma_gdr_gpu_info", gdr.KernelUnknown,
		gdr.FlavourUnknown, gdr.ModelUnknown, gdr.NICDriverUnknown, gdr.VirtualTopology, gdr.KernelConfigUnknown,
		gdr.ROCmPeerUnknown)}
)

// ofDecision is for metrics that follow from a decision that is not unknown.
func ofDecision(d *metric.Desc) *metric.Desc {
	return metric.Of("rdma_gdr_gpu_info", metric.Unknown(obstaclesUnknown, metric.Beside("rdma_gdr_gpu_info", d)))
}

// treeInterval is how long data of the PCI tree is kept, which changes with hardware or a boot only.
const treeInterval = time.Hour

// gpuDirect keeps the data of the host, of its GPUs and of each device.
type gpuDirect struct {
	nccl      gdr.Job
	ebpf      shared.EBPF
	lastRound *shared.LastRound
	gpus      *shared.GPUReadings
	devices   reading.Devices[gdrState, gdrNIC]
	machine   gdrHost
	tree      gdrGPUs
	jobs      gdrJobs
	use       gdrUse
	trace     gdrTrace
	answer    *gdrResult // the last one; nil: there is none yet
}

// gdrState belongs to the reader of its device, one at a time.
type gdrState struct {
	read   reading.Last
	nic    gdrNIC
	gidsAt time.Time // of the process list that gids belong to
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := &gpuDirect{
		nccl: with.NCCL, ebpf: with.EBPF, lastRound: with.Last, gpus: with.GPUs,
		use: gdrUse{ports: meters{}, sockets: socketUse{bytes: meters{}}, bufinfo: bufinfo{on: with.Bufinfo}},
	}
	c.devices.Collector = "gdr"
	return &shared.Collector{
		Name: "gdr",
		Help: "GPUDirect RDMA: whether GPU data goes to NICs directly, and why not; PCIe settings",
		Descs: []*metric.Desc{
			gdrMechanism, gdrDirect, gdrInfo, gdrPossible, gdrObstacle, gdrNearestDown, gdrTransport, gdrTransportInfo,
			gdrRegistrations, gdrRegistered, gdrLockedMemory,
			gdrJobGIDMismatch, gdrJobGIDInfo, pcieSettings, gdrTraceSince, gdrTraceLost, gdrTraceRegistrations,
			asyncEvents, qpFatalEvents, portJobInfo, portJobs, portJobsSurviving, gpuJobInfo, jobInfo, gpuAffinity,
			jobLibrary,
		},
		Run:  c.run,
		Read: with.Devices.Read(c.read),
		Emit: metric.EmitSection(func(n *snapshot.Node) *accel.GDR { return n.GDR }, emitGDR),
	}
}

func (c *gpuDirect) read(
	ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error),
) {
	devices, paths, at := c.lastRound.Last(ctx)
	issues, err := reading.OfHost(ctx, h, "gdr", source.Modules, func(r reading.Reads) {
		c.tree.update(r, paths)
		if len(paths) > 0 {
			c.machine.update(r, c.nccl, hasAMD(c.tree.found))
		}
	})
	if err != nil {
		done(err)
		return
	}
	n.Issues = append(n.Issues, issues...)
	machine, gpus := c.machine, slices.Clone(c.tree.found)
	machine.facts.Devices = len(roster.Names)
	if nvml := c.gpus.Latest(ctx, h); len(gpus) > 0 && nvml != nil {
		for i := range gpus {
			gpus[i].applyNVML(nvml.NVML.GPUs)
		}
	}
	c.jobs.update(ctx, h, n, roster.Names, gpus, devices)
	if len(gpus) > 0 {
		c.lastRound.PublishJob(c.jobs.found, c.jobs.read.Time())
		c.use.read(ctx, h, n, &c.jobs, devices, at)
	}
	c.trace.read(ctx, h, n, c.jobs.found)
	indices, searched := gidIndices(c.jobs.found, machine.conf), c.jobs.read.Time()
	c.devices.ReadAll(ctx, h, n, roster, func(r *reading.Reader, d *reading.Device, st *gdrState) (gdrNIC, bool) {
		if st.read.DueOf(r, treeInterval) {
			st.nic = readGDRNIC(r, d)
			st.read.Read(r.Now())
		}
		if st.nic.cut {
			r.From(source.PCIConfig).Issue(access.Denied(sysfs.PCIDir + st.nic.PCIAddress + "/config"))
		}
		if !st.gidsAt.Equal(searched) {
			st.nic.gids, st.gidsAt = readGIDTypes(r, r.Device, devices, indices), searched
		}
		return st.nic, st.nic.PCIAddress != ""
	}, func(nics []gdrNIC) {
		n.GDR = c.evaluate(&machine, gpus, nics, devices)
		c.trace.addTo(n.GDR, gpus)
		c.use.evaluate(n.GDR, &c.answer.facts, gpus, machine.conf, machine.uptime, h.Now())
		n.GDR.PortJobs, n.GDR.Jobs = c.jobs.ports, c.jobs.all
		countSurvivors(n.GDR, nics, machine.conf)
		n.GDR.JobGIDs = jobGIDs(n.GDR, nics, machine.conf)
		n.GDR.Libraries = librariesOf(n.GDR, &c.answer.facts, gpus, machine.conf, machine.peerMapping)
	}, done)
}

// evaluateGDR evaluates the facts, and returns them with the result.
func evaluateGDR(
	machine *gdrHost, gpus []gdrGPU, nics []gdrNIC, processes []accel.Process, what gdr.Job,
) (*accel.GDR, gdr.Machine) {
	m := machine.facts
	m.Bridges = map[string]pci.Bridge{}
	out := &accel.GDR{
		Virtual: m.Virtual, NCCL: what.NCCL, Driver: m.Driver.Version, Flavour: flavourOf(m.Driver.Open),
		Peermem:       m.Peermem.Module,
		Registrations: machine.registrations, Processes: processes,
	}
	for i := range gpus {
		g := &gpus[i]
		m.Virtual = m.Virtual || g.emulated
		maps.Copy(m.Bridges, g.models)
		m.GPUs = append(m.GPUs, g.GPU)
		out.GPUs = append(out.GPUs, g.snapshot())
	}
	out.Virtual = m.Virtual
	if m.HasAMD() {
		machine.describeROCm(out)
	}
	for i := range nics {
		nic := &nics[i]
		maps.Copy(m.Bridges, nic.models)
		m.NICs = append(m.NICs, nic.NIC)
		out.NICs = append(out.NICs, nic.snapshot(gpus))
	}
	asked := what.NCCL != "" || len(what.Env) > 0
	what.Env = what.Env.With(machine.conf)
	result := m.Decide(what)
	out.Pairs = make([]accel.GDRPair, 0, len(result.Pairs))
	for _, p := range result.Pairs {
		out.Pairs = append(out.Pairs, pairOf(p))
	}
	for i, b := range result.Best {
		out.GPUs[i].Best = bestOf(b, out.NICs)
	}
	if !asked {
		evaluateJobs(out, &m, gpus, machine.conf, processes)
	}
	for i := range out.NICs {
		if state, _ := m.HasDMABUF(m.NICs[i].Driver); state != gdr.Unknown && len(gpus) > 0 {
			out.NICs[i].DMABUF = new(state == gdr.Direct)
		}
	}
	return out, m
}

func flavourOf(open *bool) string {
	switch {
	case open == nil:
		return ""
	case *open:
		return "open"
	}
	return "proprietary"
}

func pairOf(p gdr.Pair) accel.GDRPair {
	v := p.Verdict()
	out := accel.GDRPair{
		GPU: p.GPU, NIC: p.NIC,
		Topology: string(p.SMI), Distance: string(p.Distance), Mechanism: string(p.Mechanism), Eligible: p.Eligible,
		Send: string(p.Send.State), Receive: string(p.Receive.State), Reason: string(v.Reason), Words: v.Reason.Words(),
		Remedy: v.Reason.Remedy(), Tree: string(p.Tree),
	}
	if v.Reason == gdr.TopologyFile {
		out.Words = p.DistancesInWords()
	}
	return out
}

// bestOf is pairOf, with the nearer NIC that is down, and all obstacles.
func bestOf(p gdr.Pair, nics []accel.GDRNIC) accel.GDRPair {
	out := pairOf(p)
	out.CanSend, out.CanReceive = string(p.CanSend), string(p.CanReceive)
	for _, o := range p.Obstacles {
		out.Obstacles = append(out.Obstacles, accel.GDRObstacle{
			Kind: o.Kind, Reason: string(o.Reason), Words: o.Words, Remedy: o.Reason.Remedy(),
			Send: string(o.After.Send.State), Receive: string(o.After.Receive.State), After: string(o.After.Verdict().Reason),
		})
	}
	if p.Down >= 0 {
		out.Down = nics[p.Down].Device
		out.Words = out.Down + ": " + out.Words
	}
	return out
}

func emitGDR(d *accel.GDR, s metric.Sink) {
	for i := range d.GPUs {
		emitGDRGPU(s, d, i)
	}
	emitTrace(s, d)
	emitJobs(s, d)
	emitLibraries(s, d)
	if len(d.GPUs) > 0 {
		if d.PeerClient != peerUnknown {
			s.Emit(gdrMechanism, metric.BoolValue(d.Peermem+d.PeerClient != ""), string(gdr.PeerMem), "")
		}
		emitRegistrations(s, d)
		emitJobGIDs(s, d)
	}
	for i := range d.NICs {
		nic := &d.NICs[i]
		metric.EmitBool(s, gdrMechanism, nic.DMABUF, string(gdr.DMABUF), nic.Device)
		emitSettings(s, nic, d.Virtual)
	}
}

func emitGDRGPU(s metric.Sink, d *accel.GDR, i int) {
	g := &d.GPUs[i]
	for _, c := range []struct{ direction, is, can string }{
		{"transmit", g.Best.Send, g.Best.CanSend}, {"receive", g.Best.Receive, g.Best.CanReceive},
	} {
		if c.is != string(gdr.Unknown) {
			s.Emit(gdrDirect, metric.BoolValue(c.is == string(gdr.Direct)), g.Index, g.UUID, c.direction)
		}
		if c.can != string(gdr.Unknown) {
			s.Emit(gdrPossible, metric.BoolValue(c.can == string(gdr.Direct)), g.Index, g.UUID, c.direction)
		}
	}
	for step, o := range g.Best.Obstacles {
		s.Emit(gdrObstacle, 1, g.Index, g.UUID, strconv.Itoa(step+1), o.Kind, o.Reason, o.After)
	}
	device := ""
	if g.Best.NIC >= 0 {
		device = d.NICs[g.Best.NIC].Device
	}
	s.Emit(gdrInfo, 1, g.Index, g.UUID, device, g.Best.Distance, g.Best.Mechanism, g.Best.Reason)
	metric.EmitIf(s, g.Best.Down != "", gdrNearestDown, g.Index, g.UUID, g.Best.Down)
	emitTransport(s, g)
	emitAffinity(s, d, i)
}

// emitSettings emits nothing for a device without any setting.
func emitSettings(s metric.Sink, nic *accel.GDRNIC, virtual bool) {
	if nic.Settings == nil && nic.Redirect == nil && nic.IOMMU == "" {
		return
	}
	var payload, request, relaxed, redirect string
	if c := nic.Settings; c != nil {
		payload, request, relaxed = strconv.Itoa(c.MaxPayload), strconv.Itoa(c.MaxReadRequest),
			strconv.FormatBool(c.RelaxedOrdering)
	}
	if nic.Redirect != nil {
		redirect = strconv.FormatBool(*nic.Redirect)
	}
	s.Emit(pcieSettings, 1, nic.Device, payload, request, relaxed, redirect, nic.IOMMU, strconv.FormatBool(virtual))
}
