package gpudirect

import (
	"context"
	"maps"
	"slices"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

var (
	gdrRegistrations = metric.Host("rdma_gdr_live_registrations",
		"Current use of GPU memory by NICs, as far as reported. source: name of the peer memory module (its references), memory_peers/CLIENT (registered memory regions, MLNX_OFED up to 23.10), dmabuf (attachments to DMA-BUFs of GPUs, only with --collector.gdr.bufinfo and while sampled).",
		"/sys/module/{nvidia_peermem,nv_peer_mem}/refcnt, /sys/kernel/mm/memory_peers/CLIENT/{num_alloc_mrs,num_dealloc_mrs}, /sys/kernel/debug/dma_buf/bufinfo",
		"source")
	gdrRegistered = metric.Host("rdma_gdr_registered_bytes",
		"Memory currently registered with an RDMA device. mechanism: dmabuf and peermem (GPU memory), dmabuf_host (DMA-BUFs of host memory), dmabuf_other (DMA-BUFs of an unknown exporter), host (host memory, including queues). gpu and UUID are those of the registering process if it holds one GPU only, else empty. By eBPF programs: exact for what was registered since rdma_gdr_trace_start_time_seconds. Without them, the total of peermem only, with an empty device (MLNX_OFED up to 23.10).",
		"eBPF programs at dma_buf_dynamic_attach, ib_umem_get and functions of peer memory clients; /sys/kernel/mm/memory_peers/CLIENT/{num_reg_bytes,num_dereg_bytes}",
		"device", "gpu", "UUID", "mechanism")
	gdrLockedMemory = metric.Of("rdma_gdr_gpu_info", metric.Beside("rdma_gdr_gpu_info", metric.Asks(source.Processes,
		metric.Host("rdma_gdr_locked_memory_limit_bytes",
			"Lowest locked memory limit (RLIMIT_MEMLOCK) of the processes that hold an RDMA device, on hosts with GPUs. Absent where no process has a limit, and where processes are not visible.",
			"/proc/PID/fd, /proc/PID/limits (needs CAP_SYS_PTRACE)"))))
)

const (
	// processTimeout is how long a round waits for the process list, with the data of RDMA netlink: a process stuck in the
	// kernel may delay it.
	processTimeout = time.Second
	// processRetention is how long processes are kept that cannot be read again.
	processRetention = 10 * time.Minute
)

// gdrJobs are the processes that use RDMA devices, or GPUs with NCCL, at the last successful read.
type gdrJobs struct {
	read  reading.Last
	seen  time.Time // of found
	found []accel.Process
	ports []accel.DeviceJobs
	all   []accel.JobInfo
	pods  podNames
}

// update reads the processes, first those listed by RDMA netlink and NVML. If both list all users of devices and GPUs,
// there are no others.
func (j *gdrJobs) update(
	ctx context.Context, h *host.Host, n *snapshot.Node, names []string, gpus []gdrGPU, devices []snapshot.Device,
) {
	defer func() { n.Issues = append(n.Issues, j.pods.failed...) }()
	if now := h.Now(); h.Processes == nil || !j.read.Due(now, shared.SlowInterval) {
		return
	}
	j.read.Read(h.Now())
	pods, listed := j.pods.list(ctx, h)
	ctx, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	holders := readHolders(ctx, h, n, names, devices)
	named, only := holders.pids(), holders.named
	for i := range gpus {
		only = only && gpus[i].processes != nil
		named = append(named, gpus[i].processes...)
	}
	slices.Sort(named)
	named = slices.Compact(named)
	var found []accel.Process
	var refused bool
	err := reading.Request(ctx, h, "processes", source.Processes, func() (err error) {
		found, refused, err = h.Processes.Processes(ctx, named, only)
		return err
	})
	if err == nil {
		holders.addMemory(found)
		j.pods.apply(found, devicesOfPods(found, podGPUs(gpus), verbsFunctions(h, found)), pods, listed)
		j.seen, j.ports, j.all = j.read.Time(), holders.jobs(h, found, names, devices), jobsOn(found, gpus)
		j.found = slices.DeleteFunc(found, func(p accel.Process) bool { return p.Hidden })
		if refused {
			err = access.Denied("proc/PID/fd")
		}
	}
	if j.read.Time().Sub(j.seen) > processRetention {
		j.found, j.ports, j.all = nil, nil, nil
	}
	if err != nil {
		n.Issues = append(n.Issues, reading.IssueOf(source.Processes, err))
	}
}

// holderSearch are the processes listed by RDMA netlink, with their registered memory.
type holderSearch struct {
	regions map[int]host.RDMAHolder      // by process, of all devices
	devices map[string][]host.RDMAHolder // of the devices that answered
	whole   bool                         // all devices answered, each region with its process
	named   bool                         // all devices answered, each context with its process
}

// readHolders queries all devices, for at most half of processTimeout. A kernel without the command, or without
// netlink, is no issue.
func readHolders(
	ctx context.Context, h *host.Host, n *snapshot.Node, names []string, devices []snapshot.Device,
) holderSearch {
	out := holderSearch{
		regions: map[int]host.RDMAHolder{}, devices: map[string][]host.RDMAHolder{}, whole: true, named: true,
	}
	ctx, cancel := context.WithTimeout(ctx, processTimeout/2)
	defer cancel()
	for _, device := range names {
		qps := listsQPs(device, devices)
		var found []host.RDMAHolder
		err := reading.Request(ctx, h, "holders/"+device, source.Holders, func() (err error) {
			found, err = h.RDMA.Holders(ctx, device, qps)
			return err
		})
		if err != nil {
			out.whole, out.named = false, false
			if reason := access.ReasonOf(err); reason != access.Absent && reason != access.Unsupported &&
				reason != access.Invalid {
				issue := reading.IssueOf(source.Holders, err)
				issue.Device = device
				n.Issues = append(n.Issues, issue)
			}
			continue
		}
		out.devices[device] = found
		for _, one := range found {
			if one.PID == 0 {
				out.whole, out.named = out.whole && one.Regions == 0, out.named && one.Contexts == 0
				continue
			}
			sum := out.regions[one.PID]
			sum.Regions, sum.RegionBytes = sum.Regions+one.Regions, sum.RegionBytes+one.RegionBytes
			out.regions[one.PID] = sum
		}
	}
	return out
}

func (h holderSearch) pids() []int { return slices.Sorted(maps.Keys(h.regions)) }

// addMemory adds the registered memory to processes: none at all only if all devices answered.
func (h holderSearch) addMemory(found []accel.Process) {
	for i := range found {
		if one, ok := h.regions[found[i].PID]; h.whole || ok && one.Regions > 0 {
			found[i].Regions, found[i].RegionBytes = &one.Regions, &one.RegionBytes
		}
	}
}

// settings returns the NCCL settings of a process, or those of /etc/nccl.conf if its own files cannot be read.
func settings(p *accel.Process, machine nccl.Env) nccl.Env {
	if p.Conf != nil {
		return nccl.Env(p.Env).With(p.Conf)
	}
	return nccl.Env(p.Env).With(machine)
}

// holderOf returns the process whose settings apply to a GPU: one with NCCL, else one with an RDMA device; nil if there
// is none.
func holderOf(g *gdrGPU, processes []accel.Process) (found *accel.Process) {
	for i := range processes {
		p := &processes[i]
		if !slices.Contains(p.GPUs, g.minor) || !p.HasNCCL && len(p.Verbs) == 0 {
			continue
		}
		if p.HasNCCL {
			return p
		}
		if found == nil {
			found = p
		}
	}
	return found
}

// jobKey is the part of a job that affects a decision.
type jobKey struct {
	nccl, level, read, dmabuf, c2c, hca, topology string
	plugin                                        bool
}

func keyOfJob(p *accel.Process, e nccl.Env) jobKey {
	return jobKey{
		p.NCCL, e["NCCL_NET_GDR_LEVEL"], e["NCCL_NET_GDR_READ"], e["NCCL_DMABUF_ENABLE"], e["NCCL_NET_GDR_C2C"],
		e["NCCL_IB_HCA"], p.Topology, p.Plugin,
	}
}

// evaluateJobs evaluates GPUs held by a process with NCCL again, with its version, settings and topology.
func evaluateJobs(out *accel.GDR, m *gdr.Machine, gpus []gdrGPU, conf nccl.Env, processes []accel.Process) {
	results := map[jobKey]gdr.Result{}
	for i := range out.GPUs {
		p := holderOf(&gpus[i], processes)
		if p == nil || !p.HasNCCL {
			continue
		}
		env := settings(p, conf)
		key := keyOfJob(p, env)
		result, done := results[key]
		if !done {
			result = m.Decide(gdr.Job{NCCL: p.NCCL, Env: env, Plugin: p.Plugin, Topology: shared.TopologyOf(p)})
			results[key] = result
		}
		g := &out.GPUs[i]
		g.Best, g.Process = bestOf(result.Best[i], out.NICs), p
		for k := range m.NICs {
			out.Pairs[i*len(m.NICs)+k] = pairOf(result.Pairs[i*len(m.NICs)+k])
		}
	}
}

// lowestLimit returns the lowest locked memory limit; nil where there is none.
func lowestLimit(processes []accel.Process) (lowest *uint64) {
	for i := range processes {
		if l := processes[i].LockedMemory; l != nil && len(processes[i].Verbs) > 0 && (lowest == nil || *l < *lowest) {
			lowest = l
		}
	}
	return lowest
}

// readRegistrations are read from the module and from MLNX_OFED's list of clients.
func readRegistrations(r reading.Reads, p gdr.Peermem) (out []accel.GDRRegistrations) {
	if p.Module != "" {
		out = append(out, accel.GDRRegistrations{Source: p.Module, Live: r.Number("sys/module/"+p.Module, "refcnt")})
	}
	for _, client := range p.Clients {
		dir := "sys/kernel/mm/memory_peers/" + client
		out = append(out, accel.GDRRegistrations{
			Source: "memory_peers/" + client, Client: client,
			Live:  less(r.Number(dir, "num_alloc_mrs"), r.Number(dir, "num_dealloc_mrs")),
			Bytes: less(r.Number(dir, "num_reg_bytes"), r.Number(dir, "num_dereg_bytes")),
		})
	}
	return out
}

// less returns a minus b, of counters read one after the other.
func less(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a - min(*a, *b))
}

func emitRegistrations(s metric.Sink, d *accel.GDR) {
	var peers uint64
	known := false
	for _, reg := range d.Registrations {
		metric.EmitNumber(s, gdrRegistrations, reg.Live, reg.Source)
		if reg.Bytes != nil && (d.Trace == nil || !d.Trace.Peermem) {
			peers, known = peers+*reg.Bytes, true
		}
	}
	if known {
		s.Emit(gdrRegistered, float64(peers), "", "", "", string(gdr.PeerMem))
	}
	metric.EmitNumber(s, gdrLockedMemory, lowestLimit(d.Processes))
}
