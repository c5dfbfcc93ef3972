// Package collector holds the collectors of metrics. A collector is one domain: its Descs, its Read (fills a section of
// snapshot.Node from the host) and its Emit (turns that section into samples). To add one, copy an existing one and add
// it to All.
package collector

import (
	"context"
	"regexp"
	"time"

	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

// Collector measures one domain. Read is called by one goroutine at a time; Emit is pure.
type Collector struct {
	Name  string // label value and flag name
	Help  string // one line for --help
	Descs []*Desc
	// Run, if set, covers events and reads between the rounds of a long-running program, until ctx ends. It is started
	// again after an error; nil means that there is nothing to run.
	Run func(ctx context.Context, h *host.Host) error
	// Read fills its own section of the node and calls done once: with the complete section, or with the available part
	// when ctx ends. A failed item becomes an Issue and costs its own sample; an error means that there is no section. A
	// read that hangs in the kernel blocks Read, but not done.
	Read readFunc
	Emit func(*snapshot.Node, Sink)
	// Derive, if set, adds to the complete node what follows from the sections of several collectors, and emits it. It is
	// called by several goroutines.
	Derive func(*snapshot.Node, Sink)
}

// Short names for the metric types of exposition.
type (
	// Desc describes a metric family.
	Desc = exposition.Desc
	// Sink takes samples.
	Sink = *exposition.Sink
)

const (
	gauge   = exposition.Gauge
	counter = exposition.Counter
	untyped = exposition.Untyped

	scopeHost     = exposition.ScopeHost
	scopeDevice   = exposition.ScopeDevice
	scopePort     = exposition.ScopePort
	scopeFunction = exposition.ScopeFunction
	scopeBond     = exposition.ScopeBond
	scopeGPU      = exposition.ScopeGPU
)

// Options are what all collectors share.
type Options struct {
	Include *regexp.Regexp // devices to read; nil: all
	Exclude *regexp.Regexp // devices never to open; nil: none
	// Site is the site configuration at present, queried in each round. Nil: none.
	Site     *site.Store
	Hostname string // of the machine, for Site; empty if unknown
	// SampleInterval is the interval of PFC samples on ports that are being paused; 0 disables.
	SampleInterval time.Duration
	// ModuleInterval is the interval at which Run reads transceivers; 0: Read reads them, in a program that runs once.
	ModuleInterval time.Duration
	// NCCL is the job for which GPUDirect RDMA is evaluated.
	NCCL gdr.Job
	// GPUInterval is the interval of GPU reads in the background; 0: one in each round.
	GPUInterval time.Duration
	GPUFull     bool // all GPU metrics, not only those of NVLinks, PCIe and faults
	// Bufinfo permits a read of the host's DMA-BUF list if a GPU is suspected of staging. It blocks jobs briefly.
	Bufinfo bool
	// EBPF permits Run to observe registrations of memory by eBPF programs.
	EBPF EBPF
	// AskSubnet permits subnet management datagrams to both ends of InfiniBand links. Requires privileges.
	AskSubnet bool
	// MADCounters permits performance management datagrams to the host's own InfiniBand ports.
	MADCounters MADCounters
	// ListenLLDP permits Run to receive LLDP frames, for which it joins multicast groups on the NICs.
	ListenLLDP bool
	// Memory outlives the collectors; nil: an empty one.
	Memory *expect.Memory
	// PartMetrics returns the metrics that are read of virtual functions and subfunctions beside their physical function;
	// nil: all.
	PartMetrics func() map[string]bool
	// MaxDevices is the maximum number of devices to read; 0: no limit.
	MaxDevices int
}

// All returns new collectors, in the order in which they appear everywhere.
func All(o Options) []*Collector {
	if o.Memory == nil {
		o.Memory = expect.NewMemory(expect.Data{})
	}
	conf := &siteConfig{o.Site, o.Hostname}
	// What collectors share: who provides it -> who uses it.
	devices := newRoster(o)            // RDMA devices of a round: the first that reads -> all
	nvlink := newNVLink(conf.settings) // those that manage NVLink switches: the first that asks -> all
	stats := newNetdevStats()          // statistics of netdevs: ethernet -> infiniband
	common := newCommonLinks()         // modes of both ends of InfiniBand links: neighbour -> infiniband
	// Devices and GPUs: infiniband -> gdr, pcie, kernellog; jobs: gdr -> infiniband, kernellog.
	last := &lastRound{}
	gpus := newGPUReadings(o) // NVML: gpu -> gdr, pcie
	return []*Collector{
		newInfiniBand(o, devices, conf, nvlink, stats, common, last),
		newHWCounters(devices, nvlink),
		newEthernet(o.SampleInterval, devices, nvlink, stats),
		newModules(conf),
		newHealth(devices, nvlink),
		newQoS(devices, conf),
		newPCIe(devices, last, gpus),
		newSensors(devices),
		newTransceivers(o.ModuleInterval, devices, nvlink),
		newNeighbours(o, devices, conf, nvlink, common),
		newGPU(conf, gpus, o.Memory),
		newGDR(o, devices, last, gpus),
		newSetup(conf),
		newKernelLog(last),
	}
}

// Ports by their link layer, for Desc.Of and Desc.Never.
const (
	ethernetPorts   = `rdma_port_info{link_layer="Ethernet"}`
	infinibandPorts = `rdma_port_info{link_layer="InfiniBand"}`
	// physicalFunctions have a place in the PCI tree and sensors. Software devices and virtual functions have neither.
	physicalFunctions = `rdma_device_info{function_type="physical"}`
)

const classDir = "sys/class/infiniband"

// slowInterval is how long data is kept that changes only with a link or a configuration: identity, GID and P_Key
// tables, the netdev of a port, link modes.
const slowInterval = time.Minute

// readFunc is Collector.Read.
type readFunc = func(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error))

// readDevices is the Read of a collector that reads each device and needs nothing else. fresh is Devices.New.
func readDevices[S, T any](
	ro *roster, name string, fresh func() *S, read func(*reading.Reader, *S) (T, bool), use func(*snapshot.Node, []T),
) readFunc {
	devices := reading.Devices[S, T]{Collector: name, Quarantines: true, New: fresh}
	return ro.read(func(
		ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error),
	) {
		devices.ReadAll(ctx, h, n, roster, read, func(out []T) { use(n, out) }, done)
	})
}

// readHost is the Read of a collector that reads data of the host each slowInterval, one at a time.
func readHost[T any](name string, s host.Source, read func(*reading.Reader) T, use func(*snapshot.Node, T)) readFunc {
	var last reading.Kept[T]
	return func(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
		if now := h.Now(); last.Due(now, slowInterval) {
			var v T
			issues, err := reading.OfHost(ctx, h, name, s, func(r *reading.Reader) { v = read(r) })
			if err != nil {
				done(err)
				return
			}
			last.Keep(v, now)
			n.Issues = append(n.Issues, issues...)
		}
		use(n, last.Value)
		done(nil)
	}
}

// emitSection is the Emit of a collector: emit of its section of a node, if there is one.
func emitSection[T any](of func(*snapshot.Node) *T, emit func(*T, Sink)) func(*snapshot.Node, Sink) {
	return func(n *snapshot.Node, s Sink) {
		if section := of(n); section != nil {
			emit(section, s)
		}
	}
}

// entry is the value of a key, a new one if there is none.
func entry[K comparable, V any](m map[K]*V, key K) *V {
	v := m[key]
	if v == nil {
		v = new(V)
		m[key] = v
	}
	return v
}

// valueOf is a value that may be absent; the zero value if it is.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// emitNumber emits a value that may be absent.
func emitNumber[T uint64 | float64](s Sink, d *Desc, v *T, labels ...string) {
	if v != nil {
		s.Emit(d, float64(*v), labels...)
	}
}

// reads reports whether a metric of the reader's device is read.
func reads(r *reading.Reader, d *Desc) bool { return d != nil && r.Reads(d.Name) }

// emitIf emits 1 if a condition holds.
func emitIf(s Sink, holds bool, d *Desc, labels ...string) {
	if holds {
		s.Emit(d, 1, labels...)
	}
}

// emitBool emits 1 or 0, or nothing if it is unknown.
func emitBool(s Sink, d *Desc, v *bool, labels ...string) {
	if v != nil {
		s.Emit(d, boolValue(*v), labels...)
	}
}

// emitRate emits a rate in bits per second that may be absent, in bytes per second.
func emitRate(s Sink, d *Desc, bits *float64, labels ...string) {
	if bits != nil {
		s.Emit(d, *bits/8, labels...)
	}
}
