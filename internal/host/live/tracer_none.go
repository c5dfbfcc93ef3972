//go:build noebpf

package live

import (
	"context"
	"errors"
	"syscall"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/qp"
)

// noTracer is the tracer of a build without eBPF programs.
type noTracer struct{}

// errNoEBPF is the error of what is asked of it.
var errNoEBPF = host.LastingError{
	Err: &access.Error{
		Op: "observe", Path: "registrations by eBPF",
		Err: errors.New("this build leaves eBPF out (tag noebpf): build without the tag"),
	},
	Errno: syscall.EOPNOTSUPP,
}

// newTracer returns a tracer that observes nothing.
func newTracer(*rooted.Tree) host.Tracer { return noTracer{} }

// Trace returns errNoEBPF.
func (noTracer) Trace(context.Context) error { return errNoEBPF }

// Traced returns errNoEBPF.
func (noTracer) Traced(context.Context) (accel.Trace, error) { return accel.Trace{}, errNoEBPF }

// Pairs returns errNoEBPF.
func (noTracer) Pairs(context.Context, uint64) (qp.Pairs, error) { return qp.Pairs{}, errNoEBPF }

// MayTrace reports false, so that nothing is asked of it unless the configuration demands it.
func (noTracer) MayTrace() bool { return false }
