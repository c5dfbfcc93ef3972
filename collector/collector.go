// Package collector holds the collectors of metrics. A collector is one domain: its Descs, its Read (fills a section of snapshot.Node
// from the host) and its Emit (turns that section into samples). To add one, copy an existing one and add it to All.
package collector

import (
	"cmp"
	"context"
	"regexp"
	"time"

	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

// Collector measures one domain. Read is called by one goroutine at a time; Emit is pure.
type Collector struct {
	Name    string // label value and flag name
	Help    string // one line for --help
	Default bool   // on unless switched off
	Descs   []*Desc
	// Run, if set, covers events and reads between the rounds of a long-running program, until ctx ends. It is started again after an
	// error; nil means that there is nothing to run.
	Run func(ctx context.Context, h *host.Host) error
	// Read fills its own section of the node and calls done once: with the complete section, or with the available part when ctx ends. A
	// failed item becomes an Issue and costs its own sample; an error means that there is no section. A read that hangs in the kernel
	// blocks Read, but not done.
	Read func(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error))
	Emit func(*snapshot.Node, Sink)
	// Derive, if set, adds to the complete node what follows from the sections of several collectors, and emits it. It is called by several goroutines.
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
	GPUFull     bool // all GPU metrics, not only those of the fabric
	// Bufinfo permits a read of the host's DMA-BUF list if a GPU is suspected of staging. It blocks jobs briefly.
	Bufinfo bool
	// AskSubnet permits subnet management datagrams to both ends of InfiniBand links. Requires privileges.
	AskSubnet bool
	// MADCounters permits performance management datagrams to the host's own InfiniBand ports.
	MADCounters MADCounters
	// ListenLLDP permits Run to receive LLDP frames, for which it joins multicast groups on the NICs.
	ListenLLDP bool
	// Memory outlives the collectors; nil: an empty one.
	Memory *expect.Memory
	// PartMetrics returns the metrics that are read of virtual functions and subfunctions beside their physical function; nil: all.
	PartMetrics func() map[string]bool
	// MaxDevices is the maximum number of devices to read; 0: no limit.
	MaxDevices int

	nvlink    *nvlink      // NVLink management devices: only their identity is read
	wires     *wires       // netdev statistics
	lastRound *lastRound   // devices and GPUs of the last round
	common    *commonLinks // rates and widths enabled at both ends of InfiniBand links
	gpus      *gpuReadings
	functions *functions // kinds of devices
}

// All returns new collectors, in the order in which they appear everywhere.
func All(o Options) []*Collector {
	o.nvlink, o.wires, o.lastRound = newNVLink(o.siteSettings), newWires(), &lastRound{}
	o.common, o.functions = newCommonLinks(), &functions{limit: o.MaxDevices, metrics: o.PartMetrics}
	o.gpus = &gpuReadings{interval: o.GPUInterval, full: o.GPUFull}
	return []*Collector{
		newInfiniBand(o),
		newHWCounters(o),
		newEthernet(o),
		newModules(o),
		newHealth(o),
		newQoS(o),
		newPCIe(o),
		newSensors(o),
		newTransceivers(o),
		newNeighbours(o),
		newGPU(o),
		newGDR(o),
		newSetup(o),
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

// devices lists the RDMA devices to be read, and notes in n what is left out. A host without the class has none.
func (o Options) devices(h *host.Host, n *snapshot.Node) ([]string, error) {
	n.Reduced = &snapshot.Reduced{}
	names, err := h.Devices()
	if err != nil {
		if host.IsAbsent(err) {
			return nil, nil
		}
		return nil, err
	}
	var out []string
	for _, n := range names {
		if o.wanted(n) {
			out = append(out, n)
		}
	}
	out, n.Reduced = o.functions.reduce(h, out)
	return out, nil
}

func (o Options) wanted(device string) bool {
	return (o.Include == nil || o.Include.MatchString(device)) && (o.Exclude == nil || !o.Exclude.MatchString(device))
}

// perDevice is the state that a collector keeps for devices between rounds, by device name. It is discarded with the device and when the names
// of its netdevs change: names are reused.
type perDevice[T any] struct {
	states        map[string]*T
	registrations map[string]uint64
	netdevs       map[string]uint64
}

// of discards the state of devices that are gone, have registered again or have other netdevs, and returns the state of the present ones,
// new ones included. The result belongs to a round, which may outlast the next one.
func (k *perDevice[T]) of(h *host.Host, names []string, fresh func() *T) map[string]*T {
	states, registrations, netdevs := make(map[string]*T, len(names)), make(map[string]uint64, len(names)), make(map[string]uint64, len(names))
	for _, name := range names {
		registration := h.Registration(name)
		netdevs[name] = h.NetdevChanges(name)
		state := k.states[name]
		if state == nil || registration != k.registrations[name] && registration != 0 || netdevs[name] != k.netdevs[name] {
			state = fresh()
		}
		states[name], registrations[name] = state, cmp.Or(registration, k.registrations[name])
	}
	k.states, k.registrations, k.netdevs = states, registrations, netdevs
	return states
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// emitUint emits a value that may be absent.
func emitUint(s Sink, d *Desc, v *uint64, labels ...string) {
	if v != nil {
		s.Emit(d, float64(*v), labels...)
	}
}
