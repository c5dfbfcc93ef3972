package collector

import (
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/snapshot"
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

// Short names for the metric types of exposition.
type (
	// Desc describes a metric family.
	Desc = exposition.Desc
	// Sink takes samples.
	Sink = *exposition.Sink
)

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

// emitSection is the Emit of a collector: emit of its section of a node, if there is one.
func emitSection[T any](of func(*snapshot.Node) *T, emit func(*T, Sink)) func(*snapshot.Node, Sink) {
	return func(n *snapshot.Node, s Sink) {
		if section := of(n); section != nil {
			emit(section, s)
		}
	}
}

// Ports by their link layer, for Desc.Of and Desc.Never.
const (
	ethernetPorts   = `rdma_port_info{link_layer="Ethernet"}`
	infinibandPorts = `rdma_port_info{link_layer="InfiniBand"}`
	// physicalFunctions have a place in the PCI tree and sensors. Software devices and virtual functions have neither.
	physicalFunctions = `rdma_device_info{function_type="physical"}`
)
