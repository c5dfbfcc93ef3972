// Package collector holds what is measured. A collector is one domain: its Descs, its Read, which fills a section of
// snapshot.Node from the host, and its Emit, which turns that section into samples. To add one, copy a neighbour and put it
// into All.
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
	// Run, where there is one, owns what happens between the readings, in a program that stays. It listens until ctx ends and
	// is started again after an error; nil means that there is nothing to listen to.
	Run func(ctx context.Context, h *host.Host) error
	// Read fills its own section of the node and calls done, once: when the section is whole or, with what there is, when
	// ctx ends. What cannot be read becomes an Issue and costs its own sample; an error means that there is no section at
	// all. A read that does not return from the kernel keeps Read, but not done.
	Read func(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error))
	Emit func(*snapshot.Node, Sink)
}

// What a collector says of its metrics, in short names.
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
	// Site is what the operator says of devices and ports, as of now: to be asked in each round. Nil: nothing.
	Site     *site.Store
	Hostname string // of the machine, for Site; empty if it does not tell
	// SampleInterval is how often ports are sampled that are being paused; 0: never.
	SampleInterval time.Duration
	// ModuleInterval is how often Run reads the modules in the cages of ports; 0: Read does, where it is a program that does not stay.
	ModuleInterval time.Duration
	// NCCL is the job that GPUDirect RDMA is judged for.
	NCCL gdr.Job
	// GPUInterval is how often the GPUs are read in the background; 0: in each round.
	GPUInterval time.Duration
	GPUFull     bool // all figures of GPUs, not only those of the fabric
	// Bufinfo permits a look at the DMA-BUFs of the machine, which holds up jobs for a moment, where one of them is suspected of staging.
	Bufinfo bool
	// AskSubnet permits datagrams of subnet management, which ask both ends of InfiniBand links, and need rights.
	AskSubnet bool
	// MADCounters permits datagrams of performance management, which ask the own InfiniBand ports for their counters, and need rights.
	MADCounters MADCounters
	// ListenLLDP permits Run to hear what neighbours announce, for which it joins multicast groups on the NICs.
	ListenLLDP bool
	// Memory outlives the collectors; nil: they begin with an empty one.
	Memory *expect.Memory

	nvlink *nvlink      // devices of which the identity alone is read
	wires  *wires       // what netdevs count
	fabric *fabric      // what there is in the last round
	common *commonLinks // what both ends of InfiniBand links have enabled
	gpus   *gpuReadings
}

// All returns new collectors, in the order in which they appear everywhere.
func All(o Options) []*Collector {
	o.nvlink, o.wires, o.fabric = newNVLink(o.said), newWires(), &fabric{}
	o.common = newCommonLinks()
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
	}
}

// Ports by their link layer, for Desc.Of and Desc.Never.
const (
	ethernetPorts   = `rdma_port_info{link_layer="Ethernet"}`
	infinibandPorts = `rdma_port_info{link_layer="InfiniBand"}`
	// physicalFunctions have a place in the PCI tree and sensors, which software devices and virtual functions have not.
	physicalFunctions = `rdma_device_info{function_type="physical"}`
)

const classDir = "sys/class/infiniband"

// devices lists the RDMA devices that may be read. A host without the class has none.
func (o Options) devices(h *host.Host) ([]string, error) {
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
	return out, nil
}

func (o Options) wanted(device string) bool {
	return (o.Include == nil || o.Include.MatchString(device)) && (o.Exclude == nil || !o.Exclude.MatchString(device))
}

// kept is what a collector keeps of devices between rounds, by name. It is forgotten with the device, and with the names of its netdevs:
// names are given again.
type kept[T any] struct {
	states        map[string]*T
	registrations map[string]uint64
	netdevs       map[string]uint64
}

// of forgets what is kept of devices that are gone or have registered again, or whose netdevs are others, and returns what is kept of those
// that are there, new ones among them. The result belongs to a round, which may outlast the next one.
func (k *kept[T]) of(h *host.Host, names []string, fresh func() *T) map[string]*T {
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
