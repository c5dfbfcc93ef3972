package collector

import (
	"context"
	"slices"
	"time"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

var (
	gdrRegistrations = &Desc{
		Name: "rdma_gdr_live_registrations", Type: gauge, Scope: scopeHost,
		Help:   "Use of GPU memory by NICs now, as far as the peer memory mechanism tells: references to the module (source is its name), or registered memory regions by client of MLNX_OFED up to 23.10 (memory_peers). DMA-BUFs do not show here.",
		Labels: []string{"source"},
		Source: "/sys/module/{nvidia_peermem,nv_peer_mem}/refcnt, /sys/kernel/mm/memory_peers/CLIENT/{num_alloc_mrs,num_dealloc_mrs}",
	}
	gdrRegistered = &Desc{
		Name: "rdma_gdr_registered_bytes", Type: gauge, Unit: "bytes", Scope: scopeHost,
		Help:   "GPU memory that NICs have registered now, by client of MLNX_OFED up to 23.10.",
		Labels: []string{"client"},
		Source: "/sys/kernel/mm/memory_peers/CLIENT/{num_reg_bytes,num_dereg_bytes}",
	}
	gdrLockedMemory = &Desc{
		Name: "rdma_gdr_locked_memory_limit_bytes", Of: "rdma_gdr_gpu_info", Beside: "rdma_gdr_gpu_info", Asks: host.SourceProcesses.Name(), Type: gauge, Unit: "bytes", Scope: scopeHost,
		Help:   "Lowest limit of locked memory among the processes that hold an RDMA device, on hosts with GPUs. Absent where there is none that has a limit, or processes cannot be seen.",
		Source: "/proc/PID/fd, /proc/PID/limits (needs CAP_SYS_PTRACE)",
	}
)

// processPatience is how long a round waits for a look at the processes: one that is stuck in the kernel may hold it up.
const processPatience = time.Second

// gdrJobs are the processes that use RDMA devices, as they were at the last look.
type gdrJobs struct {
	at    time.Time
	found []snapshot.Process
}

func (j *gdrJobs) read(ctx context.Context, h *host.Host, n *snapshot.Node) {
	if now := h.Now(); h.Processes == nil || !j.at.IsZero() && now.Sub(j.at) < slowInterval {
		return
	}
	j.at = h.Now()
	ctx, cancel := context.WithTimeout(ctx, processPatience)
	defer cancel()
	var found []snapshot.Process
	var refused bool
	var failed error
	err := h.Lanes.Do(ctx, "processes", func() {
		h.Meter.Begin(host.SourceProcesses, host.SourceProcesses.Lock(), 1)
		start := time.Now()
		found, refused, failed = h.Processes.Processes(ctx)
		h.Meter.Spend(host.SourceProcesses, host.SourceProcesses.Lock(), time.Since(start))
	})
	if err == nil {
		j.found, err = found, failed
		if err == nil && refused {
			err = host.Denied("proc/PID/fd")
		}
	}
	if err != nil {
		n.Issues = append(n.Issues, snapshot.Issue{Source: host.SourceProcesses.Name(), Needs: host.SourceProcesses.Needs(), Reason: string(host.ReasonOf(err)), Err: err})
	}
}

// jobKey is what of a job changes a decision.
type jobKey struct {
	nccl, level, read, dmabuf, c2c, hca string
	plugin                              bool
}

func keyOfJob(p *snapshot.Process) jobKey {
	return jobKey{
		p.NCCL, p.Env["NCCL_NET_GDR_LEVEL"], p.Env["NCCL_NET_GDR_READ"], p.Env["NCCL_DMABUF_ENABLE"], p.Env["NCCL_NET_GDR_C2C"], p.Env["NCCL_IB_HCA"], p.Plugin,
	}
}

// judgeJobs judges GPUs anew that a process with NCCL holds: by its version and its settings.
func judgeJobs(out *snapshot.GDR, m *gdr.Machine, gpus []gdrGPU, conf gdr.Env, processes []snapshot.Process) {
	results := map[jobKey]gdr.Result{}
	for i := range out.GPUs {
		at := slices.IndexFunc(processes, func(p snapshot.Process) bool { return p.HasNCCL && slices.Contains(p.GPUs, gpus[i].minor) })
		if at < 0 {
			continue
		}
		p := &processes[at]
		key := keyOfJob(p)
		result, done := results[key]
		if !done {
			result = m.Decide(gdr.Job{NCCL: p.NCCL, Env: gdr.Env(p.Env).With(conf), Plugin: p.Plugin})
			results[key] = result
		}
		g := &out.GPUs[i]
		g.Best, g.Process = pairOf(result.Best[i]), p
		for k := range m.NICs {
			out.Pairs[i*len(m.NICs)+k] = pairOf(result.Pairs[i*len(m.NICs)+k])
		}
	}
}

// lowestLimit is the lowest limit of locked memory; nil where there is none.
func lowestLimit(processes []snapshot.Process) (lowest *uint64) {
	for i := range processes {
		if l := processes[i].LockedMemory; l != nil && (lowest == nil || *l < *lowest) {
			lowest = l
		}
	}
	return lowest
}

// registrations are read from the module and from MLNX_OFED's list of clients.
func (r *reader) registrations(p gdr.Peermem) (out []snapshot.GDRRegistrations) {
	if p.Module != "" {
		out = append(out, snapshot.GDRRegistrations{Source: p.Module, Live: r.number("sys/module/"+p.Module, "refcnt")})
	}
	for _, client := range p.Clients {
		dir := "sys/kernel/mm/memory_peers/" + client
		out = append(out, snapshot.GDRRegistrations{
			Source: "memory_peers/" + client, Client: client,
			Live:  less(r.number(dir, "num_alloc_mrs"), r.number(dir, "num_dealloc_mrs")),
			Bytes: less(r.number(dir, "num_reg_bytes"), r.number(dir, "num_dereg_bytes")),
		})
	}
	return out
}

// less is a minus b, of counters that are read one after the other.
func less(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return nil
	}
	d := *a - min(*a, *b)
	return &d
}

func emitRegistrations(s Sink, d *snapshot.GDR) {
	for _, reg := range d.Registrations {
		emitUint(s, gdrRegistrations, reg.Live, reg.Source)
		emitUint(s, gdrRegistered, reg.Bytes, reg.Client)
	}
	emitUint(s, gdrLockedMemory, lowestLimit(d.Processes))
}
