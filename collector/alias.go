package collector

import (
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
)

// What the program needs of a collector, by the name of this package.
type (
	// Collector measures one domain.
	Collector = shared.Collector
	// Options are what all collectors share.
	Options = shared.Options
	// Desc describes a metric family.
	Desc = metric.Desc
	// Sink takes samples.
	Sink = metric.Sink
	// EBPF is whether registrations of memory are observed by eBPF programs.
	EBPF = shared.EBPF
	// MADCounters is when counters are read by management datagrams.
	MADCounters = shared.MADCounters
)

// Values of EBPF and MADCounters.
const (
	EBPFAuto = shared.EBPFAuto
	EBPFOn   = shared.EBPFOn
	EBPFOff  = shared.EBPFOff

	CountersOfFiles     = shared.CountersOfFiles
	CountersRecorded    = shared.CountersRecorded
	CountersIfPermitted = shared.CountersIfPermitted
	CountersByMAD       = shared.CountersByMAD
)
