package metric

import (
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/snapshot"
)

// Short names for the metric types of exposition.
type (
	// Desc describes a metric family.
	Desc = exposition.Desc
	// Sink takes samples.
	Sink = *exposition.Sink
)

// BoolValue returns 1 for true and 0 for false.
func BoolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// EmitNumber emits a value that may be absent.
func EmitNumber[T uint64 | float64](s Sink, d *Desc, v *T, labels ...string) {
	if v != nil {
		s.Emit(d, float64(*v), labels...)
	}
}

// EmitIf emits 1 if a condition holds.
func EmitIf(s Sink, holds bool, d *Desc, labels ...string) {
	if holds {
		s.Emit(d, 1, labels...)
	}
}

// EmitBool emits 1 or 0, or nothing if it is unknown.
func EmitBool(s Sink, d *Desc, v *bool, labels ...string) {
	if v != nil {
		s.Emit(d, BoolValue(*v), labels...)
	}
}

// EmitRate emits a rate in bits per second that may be absent, in bytes per second.
func EmitRate(s Sink, d *Desc, bits *float64, labels ...string) {
	if bits != nil {
		s.Emit(d, *bits/8, labels...)
	}
}

// EmitSection returns the Emit of a collector: emit of its section of a node, if there is one.
func EmitSection[T any](of func(*snapshot.Node) *T, emit func(*T, Sink)) func(*snapshot.Node, Sink) {
	return func(n *snapshot.Node, s Sink) {
		if section := of(n); section != nil {
			emit(section, s)
		}
	}
}

// Ports by their link layer, for Desc.Of and Desc.Never.
const (
	EthernetPorts   = `rdma_port_info{link_layer="Ethernet"}`
	InfinibandPorts = `rdma_port_info{link_layer="InfiniBand"}`
	// PhysicalFunctions have a place in the PCI tree and sensors. Software devices and virtual functions have neither.
	PhysicalFunctions = `rdma_device_info{function_type="physical"}`
)
