package gpudirect

import (
	"context"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/gdr/transport"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

var (
	gdrTransport = metric.Of("rdma_gdr_gpu_transport", metric.Asks(source.Processes, metric.Unknown(transportUnknown,
		metric.Host("rdma_gdr_gpu_transport",
			"Current path of a GPU's data to other hosts, 1 for the state it is in; other states have no series. gdr: NICs access GPU memory. staging: NICs use host memory although NCCL selected GPU memory. tcp: sockets between nodes that are connected by RDMA. host_only: the process moves host memory only, or stays on this host. unknown: often so where DMA-BUFs are in use. Absent for GPUs whose process has neither NCCL nor an RDMA device.",
			"docs/gpudirect.md has the conditions", "gpu", "UUID", "state"))))
	gdrTransportInfo = metric.Beside("rdma_gdr_gpu_transport", metric.Host("rdma_gdr_gpu_transport_info",
		"Reason for the state in rdma_gdr_gpu_transport, and the process that holds the GPU, always 1. command: process name. workload: workload name in the scheduler (slurm/JOB, kubernetes/POD).",
		"as rdma_gdr_gpu_transport; /proc/PID", "gpu", "UUID", "reason", "workload", "command", "nccl_version"))
)

// gdrUse measures jobs while they run.
type gdrUse struct {
	ports     meters // bytes, by portKey
	sockets   socketUse
	bufinfo   bufinfo
	suspected bool               // staging can be confirmed only by the DMA-BUF list
	rates     map[string]float64 // bits per second of the ports, by portKey
}

// read records, while there are jobs, the traffic of the ports of the last round and, if a job needs it, of other
// interfaces and the DMA-BUF list.
func (u *gdrUse) read(
	ctx context.Context, h *host.Host, n *snapshot.Node, jobs *gdrJobs, devices []snapshot.Device, at time.Time,
) {
	if len(jobs.found) == 0 {
		clear(u.ports)
		u.sockets.clear()
		return
	}
	u.rates = map[string]float64{}
	for d, p := range snapshot.PortsOf(devices) {
		u.count(d, p, at)
	}
	u.ports.keep(at)
	if slices.ContainsFunc(jobs.found, overSockets) {
		u.sockets.read(ctx, h, n, devices)
	} else {
		u.sockets.clear()
	}
	u.bufinfo.refresh(ctx, h, n, u.suspected)
}

// overSockets reports whether a process may belong to a job over sockets.
func overSockets(p accel.Process) bool { return p.HasNCCL && len(p.Verbs) == 0 }

func portKey(device string, port int, counter string) string {
	return device + "/" + strconv.Itoa(port) + "/" + counter
}

// trafficCounters are the data counters of counters/, in words.
var trafficCounters = []string{"port_xmit_data", "port_rcv_data"}

func (u *gdrUse) count(d *snapshot.Device, p *snapshot.Port, at time.Time) {
	if p.Rate == nil || !sysfs.IsActive(p) {
		return
	}
	u.rates[portKey(d.Name, p.Number, "")] = *p.Rate
	for _, s := range p.Counters {
		if slices.Contains(trafficCounters, s.Name) {
			u.ports.add(portKey(d.Name, p.Number, s.Name), at, float64(s.Value)*counters.WordBytes)
		}
	}
}

// busy reports whether a port of a device exceeds gdr.BusyShare of its rate, in either direction. Nil: unknown.
func (u *gdrUse) busy(nic *gdr.NIC) *bool {
	var any *bool
	for _, p := range nic.Ports {
		rate, ok := u.rates[portKey(nic.Device, p.Number, "")]
		if !ok {
			continue
		}
		var names []string
		for _, c := range trafficCounters {
			names = append(names, portKey(nic.Device, p.Number, c))
		}
		if b := u.ports.above(transport.BusyShare*rate/8, names...); b != nil && (any == nil || *b) {
			any = b
		}
	}
	return any
}

// evaluate sets the transport state of each GPU in use.
func (u *gdrUse) evaluate(
	d *accel.GDR, m *gdr.Machine, gpus []gdrGPU, conf nccl.Env, uptime time.Duration, now time.Time,
) {
	u.suspected = false
	var attached *uint64
	if d.Trace == nil {
		attached = u.bufinfo.of(now, gpus)
	}
	if attached != nil {
		d.Registrations = append(slices.Clone(d.Registrations), accel.GDRRegistrations{Source: "dmabuf", Live: attached})
	}
	peermem := peermemInUse(d)
	for i := range d.GPUs {
		g := &d.GPUs[i]
		p := holderOf(&gpus[i], d.Processes)
		if p == nil {
			continue
		}
		env := settings(p, conf)
		use := transport.Process{
			NCCL: p.HasNCCL, Plugin: p.Plugin, Mover: p.Mover, Other: len(p.Libraries) > 0, Verbs: len(p.Verbs) > 0,
			Cut: p.Cut, Settings: p.Conf != nil, Env: env, Memory: p.Regions, Peers: p.Peers,
			Ready: gdr.State(g.Best.Receive), Peermem: peermem, Kept: len(p.DMABUFs) > 0, Young: isYoung(p, uptime),
			Domain: gpus[i].domain, Sockets: u.sockets.busy(p.PeersOver),
		}
		if g.Best.NIC >= 0 {
			nic := &m.NICs[g.Best.NIC]
			use.Busy = u.busy(nic)
			use.DMABUF = m.Attachments(attached, nic.Driver, env)
			u.suspected = u.suspected || d.Trace == nil && m.Attachments(nil, nic.Driver, env) == nil && use.Suspected()
			traced(&use, d, p, nic.Device)
		}
		state, why := use.Decide()
		g.Transport = &accel.GDRTransport{
			State: string(state), Reason: string(why), Words: why.Words(), Remedy: why.Remedy(), Process: p,
		}
	}
}

// isYoung reports whether a process is known to be younger than gdr.YoungAge.
func isYoung(p *accel.Process, uptime time.Duration) bool {
	return p.Started > 0 && uptime > p.Started && uptime-p.Started < transport.YoungAge
}

// peermemInUse returns the number of registrations of the peer memory module: none where it is not loaded, nil where
// one count is unknown.
func peermemInUse(d *accel.GDR) *uint64 {
	var sum uint64
	for _, r := range d.Registrations {
		if r.Source == "dmabuf" {
			continue
		}
		if r.Live == nil {
			return nil
		}
		sum += *r.Live
	}
	return &sum
}

func emitTransport(s metric.Sink, g *accel.GDRGPU) {
	if t := g.Transport; t != nil {
		s.Emit(gdrTransport, 1, g.Index, g.UUID, t.State)
		s.Emit(gdrTransportInfo, 1, g.Index, g.UUID, t.Reason, t.Process.Job, t.Process.Command, t.Process.NCCL)
	}
}

// transportUnknown are the reasons for which a state of a GPU is unknown, because something could not be read.
var transportUnknown = map[string][]string{
	string(transport.OverStaging): reasonSelectors("rdma_gdr_gpu_transport_info", transport.SettingsUnknown, transport.BusyUnknown, transport.PeermemUnseen, transport.DMABUFUnseen, transport.StartedBefore, transport.EventsLost, transport.ExporterUnknown),
	string(transport.OverTCP):     reasonSelectors("rdma_gdr_gpu_transport_info", transport.FilesCut, transport.DomainUnknown, transport.SocketsUnknown),
}

// reasonSelectors are selectors of an info metric by its reason.
func reasonSelectors[R gdr.Reason | transport.Reason](name string, reasons ...R) (out []string) {
	for _, r := range reasons {
		out = append(out, name+`{reason="`+string(r)+`"}`)
	}
	return out
}
