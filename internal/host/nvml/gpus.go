package nvml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

const (
	// nvidiactl exists while the driver is loaded. Without it the library would run nvidia-modprobe.
	nvidiactl = "/dev/nvidiactl"
	// nvmlOpenTime limits initialisation: without persistence mode the driver wakes up every GPU, seconds each.
	nvmlOpenTime = 60 * time.Second
	// nvmlGPUTime limits all calls for one GPU together.
	nvmlGPUTime = 5 * time.Second
	// After a library error or a lost GPU, NVML is initialised again after nvmlFirstPause, then twice that, up to
	// nvmlLastPause.
	nvmlFirstPause = time.Minute
	nvmlLastPause  = 15 * time.Minute
	// nvmlEventTime is the duration of one wait for events. Releasing the driver takes as long.
	nvmlEventTime = 500 * time.Millisecond
)

// errReleased is the error while NVML is let go of.
var errReleased = fmt.Errorf("NVML is released on request: %w", syscall.EBUSY)

// nvmlGPUs reads GPUs through NVML. One thread makes all calls except the waits for events. A call that does not return
// blocks only that thread, and no other call is made until it returns.
type nvmlGPUs struct {
	load    func() (nvmlLibrary, error)
	control string // nvidiactl
	now     func() time.Time
	turns   *access.Turns
	jobs    chan func()
	start   sync.Once
	inside  atomic.Value // string: the current call

	mu       sync.Mutex
	lib      nvmlLibrary
	session  *nvmlSession // nil while NVML is not initialised
	failed   error        // error of the last attempt
	pause    time.Duration
	retryAt  time.Time            // earliest time of the next initialisation
	released gpuRelease           // nothing is held until its end
	xids     map[string]*xidCount // by UUID
}

// nvmlSession is the time between Init and Shutdown.
type nvmlSession struct {
	nvml  accel.NVML    // without GPUs
	seats []*nvmlSeat   // nil for a GPU without a handle
	errs  []error       // of GPUs without a handle
	quit  chan struct{} // closed when the session is about to end
	heard chan struct{} // closed when there is no listener; nil if there was none
}

// Open returns the GPUs of this machine. The library is loaded at the first read.
func Open() host.GPUs { return newGPUs(newNVML, nvidiactl) }

func newGPUs(load func() (nvmlLibrary, error), control string) *nvmlGPUs {
	return &nvmlGPUs{
		load: load, control: control, now: time.Now, turns: access.NewTurns(), jobs: make(chan func()),
		xids: map[string]*xidCount{},
	}
}

// Do runs f on the NVML thread and waits for it until d has passed or ctx ends. The error wraps ErrStuck if f or an
// earlier call has not returned. In that case the results of f must not be read.
func (n *nvmlGPUs) Do(ctx context.Context, d time.Duration, what string, f func()) error {
	n.start.Do(func() {
		go func() {
			runtime.LockOSThread()
			for job := range n.jobs {
				job()
			}
		}()
	})
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := n.turns.Do(ctx, "NVML", func() {
		done := make(chan struct{})
		var fault error
		n.jobs <- func() {
			defer close(done)
			n.inside.Store(what)
			fault = access.Guard(func() error { f(); return nil })
		}
		<-done
		if fault != nil {
			panic(fault) // in a turn, which has a Guard
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", n.inside.Load(), err)
	}
	return nil
}

// ReadGPUs reads the GPUs one after the other. The first one that times out ends the reading.
func (n *nvmlGPUs) ReadGPUs(ctx context.Context, full bool) (accel.NVML, []error, error) {
	s, err := n.open(ctx)
	if err != nil {
		return accel.NVML{}, nil, err
	}
	out, errs := s.nvml, append([]error{}, s.errs...)
	for i, seat := range s.seats {
		if seat == nil {
			continue
		}
		g, failed, err := n.readGPU(ctx, s, seat, full)
		if err != nil {
			out.Count = nil
			return out, append(errs, err), nil
		}
		for _, err := range failed {
			errs = append(errs, fmt.Errorf("GPU %d (%s): %w", i, seat.identity.PCIAddress, err))
		}
		dead := nvmlDead(failed)
		if dead == nil {
			n.countXIDs(&g)
			out.GPUs = append(out.GPUs, g)
		}
		if errors.Is(dead, nvmlUninitialized) {
			out.Count = nil
			break
		}
	}
	n.checkSession(ctx, s, errs)
	return out, errs, nil
}

func (n *nvmlGPUs) readGPU(
	ctx context.Context, s *nvmlSession, seat *nvmlSeat, full bool,
) (g accel.GPU, failed []error, err error) {
	err = n.Do(ctx, nvmlGPUTime,
		fmt.Sprintf("reading GPU %d (%s)", seat.identity.Index, seat.identity.PCIAddress), func() {
			if !n.current(s) {
				failed = []error{nvmlUninitialized}
				return
			}
			g, failed = seat.read(full)
		})
	if err != nil { // f may still be running
		return accel.GPU{}, nil, err
	}
	return g, failed, nil
}

// current reports whether a session has not ended. On the NVML thread the result remains valid.
func (n *nvmlGPUs) current(s *nvmlSession) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.session == s
}

// ReleaseGPUs shuts NVML down for a time, and then checks whether the process still holds a device of the driver.
func (n *nvmlGPUs) ReleaseGPUs(ctx context.Context, d time.Duration, by string) error {
	if err := n.release(d, by); err != nil || d <= 0 {
		return err
	}
	var s *nvmlSession
	if err := n.Do(ctx, nvmlOpenTime, "waiting for NVML", func() { // which may be about to be initialised
		n.mu.Lock()
		defer n.mu.Unlock()
		s = n.session
	}); err != nil {
		return err
	}
	if err := n.close(ctx, s); err != nil {
		return err
	}
	if held := heldDevices(); len(held) > 0 {
		return fmt.Errorf("NVML is shut down, but %s is still open: %w", strings.Join(held, ", "), syscall.EBUSY)
	}
	return nil
}

// release begins, extends or ends the release.
func (n *nvmlGPUs) release(d time.Duration, by string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	next, err := n.released.next(n.now(), d, by)
	if err != nil {
		return err
	}
	n.released, n.pause, n.retryAt = next, 0, time.Time{}
	return nil
}

// GPUsReleased returns the current release.
func (n *nvmlGPUs) GPUsReleased() *accel.GPURelease {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.released.at(n.now())
}

// heldDevices returns the devices of the NVIDIA driver that this process has open.
func heldDevices() (held []string) {
	const fds = "/proc/self/fd"
	entries, err := os.ReadDir(fds)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if to, err := os.Readlink(fds + "/" + e.Name()); err == nil && strings.HasPrefix(to, "/dev/nvidia") {
			held = append(held, to)
		}
	}
	return held
}

// NoNVML is a machine whose GPUs are not read: a copied tree.
type NoNVML struct{}

// ReadGPUs returns ENOENT.
func (NoNVML) ReadGPUs(context.Context, bool) (accel.NVML, []error, error) {
	return accel.NVML{}, nil, &access.Error{Op: "stat", Path: nvidiactl, Err: syscall.ENOENT}
}

// WatchGPUs does nothing.
func (NoNVML) WatchGPUs(context.Context) error { return nil }

// ReleaseGPUs is not supported.
func (NoNVML) ReleaseGPUs(context.Context, time.Duration, string) error {
	return fmt.Errorf("no GPU is read: the root is not that of a running kernel: %w", syscall.EOPNOTSUPP)
}

// GPUsReleased is always nil.
func (NoNVML) GPUsReleased() *accel.GPURelease { return nil }

// MeasureCPU sets the measurement that tells a stuck call from a late one.
func (n *nvmlGPUs) MeasureCPU(c *access.CPUWait) { n.turns.CPU = c }
