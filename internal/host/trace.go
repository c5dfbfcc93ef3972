package host

import (
	"context"
	"errors"
	"syscall"

	"rdma_exporter/internal/snapshot"
)

// Tracer observes, by eBPF programs, which process registers which memory with which RDMA device, and asynchronous
// events of RDMA devices.
type Tracer interface {
	// Trace attaches the programs and follows their events until ctx ends, which is not an error. They are detached when
	// it returns. An error of which Lasting is true will recur.
	Trace(ctx context.Context) error
	// Traced is what has been seen. The error is ErrNotTracing while no programs are attached, or that of the last Trace.
	Traced(ctx context.Context) (snapshot.Trace, error)
	// MayTrace reports whether this process has the capabilities that Trace requires.
	MayTrace() bool
}

// ErrNotTracing is the error of Traced before the programs are attached.
var ErrNotTracing = errors.New("eBPF programs are not attached")

// lastingError is an error that will recur: repeating the attempt only costs time.
type lastingError struct {
	error
	errno syscall.Errno // that it counts as
}

// Is reports whether target is its errno.
func (e lastingError) Is(target error) bool { return target == e.errno }

// Lasting reports whether an error will recur until the program is started again.
func Lasting(err error) bool { return errors.As(err, &lastingError{}) }
