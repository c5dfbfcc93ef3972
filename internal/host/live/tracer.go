//go:build !noebpf

package live

import (
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/ebpf"
	"rdma_exporter/internal/host/rooted"
)

// newTracer returns the tracer of the kernel that this program runs on.
func newTracer(t *rooted.Tree) host.Tracer { return ebpf.NewTracer(t) }
