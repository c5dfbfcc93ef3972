package gpudirect

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/gdr/transport"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

var (
	gdrTraceSince = metric.Host("rdma_gdr_trace_start_time_seconds",
		"Time since which eBPF programs have observed all registrations of memory with RDMA devices: of their attachment, or of the last loss of events. Processes that are older may have registered memory before. Absent where no programs are attached.",
		"the clock")
	gdrTraceLost = metric.Host("rdma_gdr_trace_lost_events_total",
		"Events of eBPF programs that were lost because the ring buffer was full.", "map of the eBPF programs")
	gdrTraceRegistrations = metric.Host("rdma_gdr_trace_registrations_total",
		"Registrations of memory with RDMA devices since eBPF programs are attached. A steady increase indicates an application that registers memory per transfer.",
		"as rdma_gdr_registered_bytes")
	asyncEvents = metric.Device("rdma_device_async_events_total",
		"Asynchronous events of an RDMA device, of its ports and of queues of processes, since eBPF programs are attached. event: name of enum ib_event_type. Absent where there was none, and without programs.",
		"eBPF programs at ib_dispatch_event, ib_uverbs_qp_event_handler, ib_uverbs_cq_event_handler", "event")
	qpFatalEvents = metric.Device("rdma_device_qp_fatal_events_total",
		"Queue pairs of processes that failed with a fatal, request or access error (IB_EVENT_QP_FATAL, IB_EVENT_QP_REQ_ERR, IB_EVENT_QP_ACCESS_ERR), since eBPF programs are attached. Exceeded retries are completions with an error and not counted.",
		"eBPF program at ib_uverbs_qp_event_handler")
)

// qpFatalKinds are events after which a queue pair does not work any more.
var qpFatalKinds = []string{"qp_fatal", "qp_request_error", "qp_access_error"}

// deviceWait is how often it is checked whether there is an RDMA device to observe.
const deviceWait = 10 * time.Second

// run observes registrations once there is an RDMA device: the observed functions are those of its modules.
func (c *gpuDirect) run(ctx context.Context, h *host.Host) error {
	if c.ebpf == shared.EBPFOff || h.Tracer == nil || c.ebpf != shared.EBPFOn && !h.Tracer.MayTrace() {
		return nil
	}
	for {
		if names, err := h.Files.List(sysfs.ClassDir); err == nil && len(names) > 0 {
			return h.Tracer.Trace(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(deviceWait):
		}
	}
}

// gdrTrace is the observation of the current round.
type gdrTrace struct {
	found *accel.Trace
	jobs  map[int]string // of processes, also of some that have ended
}

// read reads what is observed. That nothing is observed is no issue: not all kernels and not all users can.
func (t *gdrTrace) read(ctx context.Context, h *host.Host, n *snapshot.Node, processes []accel.Process) {
	t.found = nil
	if h.Tracer == nil {
		return
	}
	h.Meter.Begin(source.EBPF, source.EBPF.Lock(), 1)
	start := time.Now()
	found, err := h.Tracer.Traced(ctx)
	h.Meter.Spend(source.EBPF, source.EBPF.Lock(), time.Since(start))
	switch {
	case err == nil:
		t.remember(processes, found.Recent)
		for i := range found.Recent {
			found.Recent[i].Job = t.jobs[found.Recent[i].PID]
		}
		t.found = &found
	case !errors.Is(err, host.ErrNotTracing):
		n.Issues = append(n.Issues, reading.IssueOf(source.EBPF, err))
	}
}

// remember keeps the jobs of present processes, and of those in recent events.
func (t *gdrTrace) remember(processes []accel.Process, recent []accel.AsyncEvent) {
	jobs := map[int]string{}
	for _, e := range recent {
		if job := t.jobs[e.PID]; job != "" {
			jobs[e.PID] = job
		}
	}
	for i := range processes {
		if p := &processes[i]; p.Job != "" {
			jobs[p.PID] = p.Job
		}
	}
	t.jobs = jobs
}

// addTo adds the registrations to the section, with the names of devices, GPUs and jobs.
func (t *gdrTrace) addTo(d *accel.GDR, gpus []gdrGPU) {
	if t.found == nil {
		return
	}
	d.Trace = t.found
	amd := hasAMD(gpus)
	for i := range t.found.Registrations {
		r := &t.found.Registrations[i]
		one := accel.GDRRegistered{
			Device: cmp.Or(r.Device, deviceOn(d.NICs, r.Function)), Mechanism: mechanismOf(r, amd),
			PID: r.PID, Job: t.jobs[r.PID],
			Bytes: r.Bytes, Regions: r.Regions,
		}
		if g := onlyGPU(d, gpus, r.PID); g != nil {
			one.GPU, one.UUID = g.Index, g.UUID
		}
		d.Registered = append(d.Registered, one)
	}
}

// deviceOn returns the RDMA device on a PCI function; empty if there is none, or several.
func deviceOn(nics []accel.GDRNIC, function string) (device string) {
	for i := range nics {
		if nics[i].PCIAddress != function || function == "" {
			continue
		}
		if device != "" {
			return ""
		}
		device = nics[i].Device
	}
	return device
}

// onlyGPU returns the GPU that a process holds; nil if it holds none or several, or is not visible.
func onlyGPU(d *accel.GDR, gpus []gdrGPU, pid int) *accel.GDRGPU {
	i := slices.IndexFunc(d.Processes, func(p accel.Process) bool { return p.PID == pid })
	if pid == 0 || i < 0 || len(d.Processes[i].GPUs) != 1 {
		return nil
	}
	g := slices.IndexFunc(gpus, func(g gdrGPU) bool { return g.minor == d.Processes[i].GPUs[0] })
	if g < 0 {
		return nil
	}
	return &d.GPUs[g]
}

// Mechanisms of registered memory, in addition to those of package gdr.
const (
	ofDMABUF      = "dmabuf"
	ofPeermem     = "peermem"
	ofHost        = "host"
	ofDMABUFHost  = "dmabuf_host"
	ofDMABUFOther = "dmabuf_other"
)

// hostExporters export DMA-BUFs of host memory: udmabuf, and the heaps by their names (drivers/dma-buf).
var hostExporters = []string{"udmabuf", "system", "reserved", "default_cma_region", "linux,cma"}

// mechanismOf distinguishes DMA-BUFs by their exporter. The DRM core exports for amdgpu, and for drivers of other GPUs.
func mechanismOf(r *accel.Registration, amd bool) string {
	switch {
	case r.Mechanism == accel.RegisteredPeermem:
		return ofPeermem
	case r.Mechanism != accel.RegisteredDMABUF:
		return ofHost
	case r.Exporter == accel.ExporterNVIDIA, r.Exporter == accel.ExporterDRM && amd:
		return ofDMABUF
	case slices.Contains(hostExporters, r.Exporter):
		return ofDMABUFHost
	}
	return ofDMABUFOther
}

// traced sets what eBPF programs have observed of a process, on its GPU's best NIC if it holds several GPUs.
func traced(use *transport.Process, d *accel.GDR, p *accel.Process, device string) {
	if d.Trace == nil {
		return
	}
	var dmabuf, peermem uint64
	for i := range d.Registered {
		r := &d.Registered[i]
		if r.PID != p.PID || len(p.GPUs) > 1 && r.Device != "" && r.Device != device {
			continue
		}
		switch r.Mechanism {
		case ofDMABUF:
			dmabuf += r.Regions
		case ofPeermem:
			peermem += r.Regions
		case ofDMABUFOther:
			use.Unclear = true
		}
	}
	use.Trace = traceOf(d.Trace, p)
	whole := use.Trace == transport.TraceWhole
	if whole || dmabuf > 0 {
		use.DMABUF = &dmabuf
	}
	if d.Trace.Peermem && (whole || peermem > 0) {
		use.Peermem = &peermem
	}
}

func traceOf(t *accel.Trace, p *accel.Process) transport.Trace {
	switch {
	case p.Started > t.Complete:
		return transport.TraceWhole
	case t.Lost > 0:
		return transport.TraceLost
	}
	return transport.TraceOlder
}

// registeredKey is the labels of a series.
type registeredKey struct{ device, gpu, uuid, mechanism string }

func emitTrace(s metric.Sink, d *accel.GDR) {
	t := d.Trace
	if t == nil {
		return
	}
	s.Emit(gdrTraceSince, float64(t.Since.UnixMilli())/1000)
	s.Emit(gdrTraceLost, float64(t.Lost))
	s.Emit(gdrTraceRegistrations, float64(t.Begun))
	sums := map[registeredKey]uint64{}
	var order []registeredKey
	for _, r := range d.Registered {
		key := registeredKey{r.Device, r.GPU, r.UUID, r.Mechanism}
		if _, known := sums[key]; !known {
			order = append(order, key)
		}
		sums[key] += r.Bytes
	}
	for _, key := range order {
		s.Emit(gdrRegistered, float64(sums[key]), key.device, key.gpu, key.uuid, key.mechanism)
	}
	emitAsync(s, d, t)
}

func emitAsync(s metric.Sink, d *accel.GDR, t *accel.Trace) {
	type event struct{ device, kind string }
	sums, fatal := map[event]uint64{}, map[string]uint64{}
	var order []event
	for _, e := range t.Totals {
		key := event{e.Device, e.Kind}
		if _, known := sums[key]; !known {
			order = append(order, key)
		}
		sums[key] += e.Count
		if slices.Contains(qpFatalKinds, e.Kind) {
			fatal[e.Device] += e.Count
		}
	}
	for _, e := range order {
		s.Emit(asyncEvents, float64(sums[e]), e.device, e.kind)
	}
	if !t.QPEvents {
		return
	}
	for i := range d.NICs {
		s.Emit(qpFatalEvents, float64(fatal[d.NICs[i].Device]), d.NICs[i].Device)
	}
}
