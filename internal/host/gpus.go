package host

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

	"rdma_exporter/internal/snapshot"
)

const (
	// nvidiactl is there while the driver is loaded. Without it the library would run nvidia-modprobe.
	nvidiactl = "/dev/nvidiactl"
	// nvmlOpenTime is what initialising gets: without persistence the driver wakes every GPU, seconds each.
	nvmlOpenTime = 60 * time.Second
	// nvmlGPUTime is what the calls for one GPU get together.
	nvmlGPUTime = 5 * time.Second
	// A library that fails, or has lost a GPU, is initialised again after nvmlFirstPause, then twice that, up to nvmlLastPause.
	nvmlFirstPause = time.Minute
	nvmlLastPause  = 15 * time.Minute
	// nvmlEventTime is how long a wait for events takes, and letting go of the driver with it.
	nvmlEventTime = 500 * time.Millisecond
)

// errReleased is the error while NVML is let go of.
var errReleased = fmt.Errorf("NVML is released on request: %w", syscall.EBUSY)

// nvmlDoor is the way to NVML. One thread makes all calls but the waits for events, so that a call that does not return costs that
// thread only: no other call is made until it does.
type nvmlDoor struct {
	load    func() (nvmlLibrary, error)
	control string // nvidiactl
	now     func() time.Time
	lanes   *Lanes
	jobs    chan func()
	start   sync.Once
	inside  atomic.Value // string: what is being asked

	mu       sync.Mutex
	lib      nvmlLibrary
	session  *nvmlSession // nil while NVML is not initialised
	failed   error        // of the last attempt
	pause    time.Duration
	retryAt  time.Time            // when it may be initialised again
	released time.Time            // until when nothing may be held
	xids     map[string]*xidCount // by UUID
}

// nvmlSession is between Init and Shutdown.
type nvmlSession struct {
	nvml  snapshot.NVML // without GPUs
	seats []*nvmlSeat   // nil for a GPU that gave no handle
	errs  []error       // of those that gave none
	quit  chan struct{} // closed when it is about to end
	heard chan struct{} // closed when nobody waits for its events any more; nil if nobody did
}

func newNVMLDoor(load func() (nvmlLibrary, error), control string) *nvmlDoor {
	return &nvmlDoor{load: load, control: control, now: time.Now, lanes: NewLanes(), jobs: make(chan func()), xids: map[string]*xidCount{}}
}

// do runs f on the thread of NVML and waits for it until d has passed or ctx ends. The error wraps ErrStuck if it has not returned,
// or one before it has not. What a late f gives must not be looked at.
func (n *nvmlDoor) do(ctx context.Context, d time.Duration, what string, f func()) error {
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
	err := n.lanes.Do(ctx, "NVML", func() {
		done := make(chan struct{})
		var fault error
		n.jobs <- func() {
			defer close(done)
			n.inside.Store(what)
			fault = Guard(func() error { f(); return nil })
		}
		<-done
		if fault != nil {
			panic(fault) // in the lane, which is guarded
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", n.inside.Load(), err)
	}
	return nil
}

// ReadGPUs reads the GPUs one after the other. One that does not answer in time ends the reading.
func (n *nvmlDoor) ReadGPUs(ctx context.Context, full bool) (snapshot.NVML, []error, error) {
	s, err := n.open(ctx)
	if err != nil {
		return snapshot.NVML{}, nil, err
	}
	out, errs := s.nvml, append([]error{}, s.errs...)
	for i, seat := range s.seats {
		if seat == nil {
			continue
		}
		g, failed, err := n.readGPU(ctx, s, seat, full)
		if err != nil {
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
			break
		}
	}
	n.judge(ctx, s, errs)
	return out, errs, nil
}

func (n *nvmlDoor) readGPU(ctx context.Context, s *nvmlSession, seat *nvmlSeat, full bool) (g snapshot.GPU, failed []error, err error) {
	err = n.do(ctx, nvmlGPUTime, fmt.Sprintf("figures of GPU %d (%s)", seat.identity.Index, seat.identity.PCIAddress), func() {
		if !n.current(s) {
			failed = []error{nvmlUninitialized}
			return
		}
		g, failed = seat.read(full)
	})
	if err != nil { // f may still be at it
		return snapshot.GPU{}, nil, err
	}
	return g, failed, nil
}

// current says whether a session has not ended. On the thread of NVML it stays so.
func (n *nvmlDoor) current(s *nvmlSession) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.session == s
}

// ReleaseGPUs shuts NVML down for a time, and looks whether the process holds a device of the driver after that.
func (n *nvmlDoor) ReleaseGPUs(ctx context.Context, d time.Duration) error {
	n.mu.Lock()
	n.released = time.Time{}
	if d > 0 {
		n.released = n.now().Add(d)
	}
	n.pause, n.retryAt = 0, time.Time{}
	n.mu.Unlock()
	if d <= 0 {
		return nil
	}
	var s *nvmlSession
	if err := n.do(ctx, nvmlOpenTime, "waiting for NVML", func() { // which may be about to be initialised
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

// GPUsReleased is for how long NVML is released yet.
func (n *nvmlDoor) GPUsReleased() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(0, n.released.Sub(n.now()))
}

// heldDevices are the devices of the NVIDIA driver that this process has open.
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

// NoNVML answers as a machine without an NVIDIA driver.
type NoNVML struct{}

// ReadGPUs answers ENOENT.
func (NoNVML) ReadGPUs(context.Context, bool) (snapshot.NVML, []error, error) {
	return snapshot.NVML{}, nil, &Error{"look at", nvidiactl, syscall.ENOENT}
}

// WatchGPUs has nothing to listen to.
func (NoNVML) WatchGPUs(context.Context) error { return nil }

// ReleaseGPUs holds nothing.
func (NoNVML) ReleaseGPUs(context.Context, time.Duration) error { return nil }

// GPUsReleased is never.
func (NoNVML) GPUsReleased() time.Duration { return 0 }
