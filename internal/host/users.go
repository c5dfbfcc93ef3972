package host

import (
	"context"
	"errors"
	"syscall"

	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/snapshot/qp"
)

// Processes finds the processes that use RDMA devices.
type Processes interface {
	// Processes checks which files processes have open, for at most scanTime: first those in first, then the others,
	// continuing at the next call where this one has stopped. only means that no others need to be checked; it is ignored
	// if one of first is not visible. The result is the processes that hold an RDMA device, or a GPU with NCCL. It waits a
	// little longer for their configuration files; late ones are in the result of the next call. Processes of other users
	// require CAP_SYS_PTRACE. Without it refused is true, and they are left out but for those in first, which are Hidden.
	// A process blocked in the kernel may block the call: it has to be made in a turn.
	Processes(ctx context.Context, first []int, only bool) (found []accel.Process, refused bool, err error)
}

// Pods lists the devices that the kubelet has allocated to pods.
type Pods interface {
	// Pods is List of the kubelet's PodResources API (v1, since Kubernetes 1.20): the pods with devices that their IDs
	// identify, sorted by namespace and name. Kubelets before 1.34 may list pods that have ended beside the current ones.
	// It takes at most podsTime. The error is ENOENT without the socket, EACCES without permission to write to it,
	// EOPNOTSUPP from a kubelet without the API. There is no incomplete list: a pod that is left out might have a device
	// that another one seems to have alone.
	Pods(ctx context.Context) ([]accel.Pod, error)
}

// Launchers finds the services that start jobs.
type Launchers interface {
	// Launchers returns the processes with these names that init has started, one for each name, with their limits. whole
	// is false if the search was stopped after launcherTime. It requires no permission, unless /proc is mounted with
	// hidepid.
	Launchers(ctx context.Context, names []string) (found []hostdata.Launcher, whole bool, err error)
}

// Tracer observes, by eBPF programs, which process registers which memory with which RDMA device, asynchronous events
// of RDMA devices, and the peers of queue pairs.
type Tracer interface {
	// Trace attaches the programs and follows their events until ctx ends, which is not an error. They are detached when
	// it returns. After too many events they are detached for some minutes. A LastingError will recur.
	Trace(ctx context.Context) error
	// Traced is what has been seen. The error is ErrNotTracing while no programs are attached, or that of the last Trace.
	Traced(ctx context.Context) (accel.Trace, error)
	// Pairs is what has been seen of queue pairs, with the events after one by its number; the latest 32,768 are kept.
	// The errors are those of Traced.
	Pairs(ctx context.Context, after uint64) (qp.Pairs, error)
	// MayTrace reports whether this process has the capabilities that Trace requires.
	MayTrace() bool
}

// ErrNotTracing is the error of Traced before the programs are attached.
var ErrNotTracing = errors.New("eBPF programs are not attached")

// LastingError is an error that recurs until the program is started again: repeating the attempt only costs time.
type LastingError struct {
	Err   error
	Errno syscall.Errno // that it counts as
}

func (e LastingError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e LastingError) Unwrap() error { return e.Err }

// Is reports whether target is its errno.
func (e LastingError) Is(target error) bool { return target == e.Errno }

// RDMAHolder is a process that uses a device, and its resources there, as listed by RDMA netlink.
type RDMAHolder struct {
	// PID is in this process's PID namespace; 0 stands for all processes that are not visible there or have ended.
	PID         int
	Contexts    uint64
	Regions     uint64 // memory regions
	RegionBytes uint64
	QPs         *uint64 // queue pairs; nil: not requested
}

// BufinfoFile is the list of DMA-BUFs, of which BufinfoSize bytes are read. The kernel formats the whole text before it
// returns the first byte.
const (
	BufinfoFile = "sys/kernel/debug/dma_buf/bufinfo"
	BufinfoSize = 64 << 10
)
