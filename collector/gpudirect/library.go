package gpudirect

import (
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/gdr/library"
	"rdma_exporter/internal/gdr/transport"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot/accel"
)

var jobLibrary = metric.Of("rdma_port_job_info", metric.Beside("rdma_port_job_info", metric.Asks(source.Processes,
	metric.Host("rdma_job_library_transport_info",
		"Transport of a communication library to other hosts in a workload, always 1; at most 64. library: nccl, rccl, ucx, nixl, mooncake, nvshmem, deepep, libfabric, mscclpp. transport: gdr (NICs access GPU memory), rdma (memory is registered with NICs), tcp, none, unknown. reason: why it is no better one. scheduler and job_id as in rdma_port_job_info.",
		"/proc/PID/{maps,fd,environ,limits,root}; RDMA netlink RES_MR_GET; /proc/driver/nvidia/params",
		"scheduler", "job_id", "library", "transport", "reason"))))

// librariesNamed limits the series: users may start any number of jobs.
const librariesNamed = 64

// readPeerMapping returns whether the GPU driver maps memory of other devices for every process: PeerMappingOverride in
// the option RegistryDwords (nv_procfs_read_params). Nil: unknown.
func readPeerMapping(r reading.Reads) *bool {
	return parsePeerMapping(r.Optional("proc/driver/nvidia/params"))
}

func parsePeerMapping(params string) *bool {
	for line := range strings.Lines(params) {
		list, ok := strings.CutPrefix(line, "RegistryDwords:")
		if !ok {
			continue
		}
		for entry := range strings.SplitSeq(strings.Trim(strings.TrimSpace(list), `"`), ";") {
			if key, value, _ := strings.Cut(entry, "="); strings.TrimSpace(key) == "PeerMappingOverride" {
				n, err := strconv.ParseUint(strings.TrimSpace(value), 0, 32)
				return new(err == nil && n != 0)
			}
		}
		return new(false)
	}
	return nil
}

// librariesOf returns the libraries of the processes.
func librariesOf(
	d *accel.GDR, m *gdr.Machine, gpus []gdrGPU, conf nccl.Env, peerMapping *bool,
) (out []accel.ProcessLibrary) {
	host := library.Process{Peermem: d.Peermem != "" || d.PeerClient != "" && d.PeerClient != peerUnknown}
	host.PeerMapping, host.DMABUF = peerMapping, gdr.Staging
	for i := range m.NICs {
		nic := &m.NICs[i]
		host.Devices, host.MLX5 = append(host.Devices, nic.Device), host.MLX5 || nic.Driver == "mlx5_core"
		if state, _ := m.HasDMABUF(nic.Driver); host.DMABUF == gdr.Staging || state == gdr.Direct {
			host.DMABUF = state
		}
	}
	if host.DMABUF == gdr.Staging && d.PeerClient == peerUnknown {
		host.DMABUF = gdr.Unknown
	}
	for i := range d.Processes {
		p := &d.Processes[i]
		one := host
		one.Libraries, one.Env = mappedBy(p), settings(p, conf)
		one.GPU, one.Container, one.Verbs, one.Cut = len(p.GPUs) > 0, p.Container != "", len(p.Verbs) > 0, p.Cut
		one.Regions, one.Locked, one.GPUMemory = p.Regions, p.LockedMemory, gpuMemory(d, p, host.DMABUF)
		one.Nodes, one.MayOpen, one.Channels = p.RDMANodes, p.MayOpen, p.IMEXChannels
		one.Capabilities, one.Domain = p.Capabilities, domainOf(p, gpus)
		for _, r := range one.Decide() {
			out = append(out, libraryOf(d, p, r))
		}
	}
	return out
}

// mappedBy returns the libraries of a process: captures of former versions list NCCL only.
func mappedBy(p *accel.Process) []string {
	if len(p.Libraries) == 0 && p.HasNCCL {
		return []string{library.NCCL}
	}
	return p.Libraries
}

// libraryOf returns a result. The transport of NCCL is that of its GPU, which is decided with more evidence.
func libraryOf(d *accel.GDR, p *accel.Process, r library.Result) accel.ProcessLibrary {
	g := slices.IndexFunc(d.GPUs, func(g accel.GDRGPU) bool { return g.Transport != nil && g.Transport.Process == p })
	if r.Library == library.NCCL && g >= 0 && r.Reason != library.NoChannel {
		t := d.GPUs[g].Transport
		r.InUse, r.Reason = ofNCCL[t.State], library.Reason(t.Reason)
	}
	out := accel.ProcessLibrary{
		Process: p, Library: r.Library, InUse: string(r.InUse), Reason: string(r.Reason), Words: r.Reason.Words(),
		Remedy: r.Reason.Remedy(),
	}
	for _, t := range r.Possible {
		out.Possible = append(out.Possible, accel.LibraryTransport{
			Transport: string(t.Transport), Possible: string(t.State), Reason: string(t.Reason),
		})
	}
	return out
}

// ofNCCL are the transports of GPUs as transports of NCCL.
var ofNCCL = map[string]library.Transport{
	string(transport.OverGDR): library.GDR, string(transport.OverStaging): library.RDMA,
	string(transport.OverTCP): library.TCP, string(transport.OverHostOnly): library.None,
	string(transport.OverUnknown): library.Unknown,
}

// gpuMemory reports whether a process has GPU memory registered with RDMA devices. Nil: unknown.
func gpuMemory(d *accel.GDR, p *accel.Process, dmabuf gdr.State) *bool {
	var use transport.Process
	traced(&use, d, p, "")
	peermem := peermemInUse(d)
	none := func(n *uint64) bool { return n != nil && *n == 0 }
	some := func(n *uint64) bool { return n != nil && *n > 0 }
	switch {
	case len(p.DMABUFs) > 0, some(use.DMABUF), some(use.Peermem):
		return new(true)
	case use.Unclear:
		return nil
	case (none(use.DMABUF) || dmabuf == gdr.Staging) && (none(use.Peermem) || none(peermem)):
		return new(false)
	}
	return nil
}

// domainOf reports whether a GPU of a process is in an NVLink domain of several hosts. Nil: unknown.
func domainOf(p *accel.Process, gpus []gdrGPU) *bool {
	in := new(false)
	for i := range gpus {
		switch g := &gpus[i]; {
		case !slices.Contains(p.GPUs, g.minor):
		case g.domain == nil:
			in = nil
		case *g.domain:
			return g.domain
		}
	}
	return in
}

// emitLibraries emits each combination of a workload once.
func emitLibraries(s metric.Sink, d *accel.GDR) {
	type series [5]string
	var all []series
	for i := range d.Libraries {
		l := &d.Libraries[i]
		who := l.Process.Workload()
		all = append(all, series{who.Scheduler, who.ID, l.Library, l.InUse, l.Reason})
	}
	slices.SortFunc(all, func(a, b series) int { return slices.Compare(a[:], b[:]) })
	all = slices.Compact(all)
	for _, one := range all[:min(librariesNamed, len(all))] {
		s.Emit(jobLibrary, 1, one[:]...)
	}
}
