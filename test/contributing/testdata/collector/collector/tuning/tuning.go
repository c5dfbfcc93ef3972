// Package tuning reads kernel settings that delay RDMA.
package tuning

import (
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

var numaBalancing = metric.Asks(source.Tuning, metric.Host("rdma_kernel_numa_balancing_enabled",
	"Whether the kernel moves pages to the NUMA node of the CPU that uses them. It unmaps pages to find out, and faults of the CPU delay the threads that post work requests.",
	"/proc/sys/kernel/numa_balancing, bit 0 (NUMA_BALANCING_NORMAL)"))

// New returns the collector.
func New(*shared.State) *shared.Collector {
	return &shared.Collector{
		Name:  "tuning",
		Help:  "kernel settings that delay RDMA",
		Descs: []*metric.Desc{numaBalancing},
		Read: shared.ReadHost("tuning", source.Tuning, readTuning,
			func(n *snapshot.Node, t *snapshot.Tuning) { n.Tuning = t }),
		Emit: metric.EmitSection(func(n *snapshot.Node) *snapshot.Tuning { return n.Tuning }, emitTuning),
	}
}

// readTuning leaves out what is not in a kernel that is built without CONFIG_NUMA_BALANCING.
func readTuning(r reading.Reads) *snapshot.Tuning {
	return &snapshot.Tuning{NUMABalancing: r.Decimal("proc/sys/kernel/numa_balancing")}
}

func emitTuning(t *snapshot.Tuning, s metric.Sink) {
	if t.NUMABalancing != nil {
		s.Emit(numaBalancing, float64(*t.NUMABalancing&1))
	}
}
