package nvml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"rdma_exporter/internal/host/access"
)

// checkSession ends a session that has lost a GPU or was shut down elsewhere, so that the next reading begins another
// one.
func (n *nvmlGPUs) checkSession(ctx context.Context, s *nvmlSession, errs []error) {
	dead := nvmlDead(errs)
	n.mu.Lock()
	switch {
	case dead == nil:
		n.pause, n.retryAt = 0, time.Time{}
	case n.retryAt.IsZero():
		n.backOff(dead)
	}
	over := errors.Is(dead, nvmlUninitialized) || dead != nil && !n.now().Before(n.retryAt)
	n.mu.Unlock()
	if over {
		_ = n.close(ctx, s) // the error is reported by the next reading
	}
}

// backOff records an error and doubles the pause before the next initialisation; n.mu is held.
func (n *nvmlGPUs) backOff(err error) {
	n.pause = min(max(2*n.pause, nvmlFirstPause), nvmlLastPause)
	n.failed, n.retryAt = err, n.now().Add(n.pause)
}

// open initialises NVML unless it is initialised or paused. A release that failed earlier is completed here.
func (n *nvmlGPUs) open(ctx context.Context) (*nvmlSession, error) {
	n.mu.Lock()
	s, failed, retryAt, released := n.session, n.failed, n.retryAt, n.released.at(n.now()) != nil
	n.mu.Unlock()
	switch {
	case released && s != nil:
		return nil, errors.Join(errReleased, n.close(ctx, s))
	case released:
		return nil, errReleased
	case s != nil:
		return s, nil
	}
	if _, err := os.Stat(n.control); err != nil {
		return nil, &access.Error{Op: "stat", Path: n.control, Err: errors.Unwrap(err)}
	}
	if n.now().Before(retryAt) {
		return nil, failed
	}
	if err := n.Do(ctx, nvmlOpenTime, "nvmlInit", n.begin); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.session == nil {
		return nil, n.failed
	}
	return n.session, nil
}

// begin initialises NVML on its thread. It may return late: the result is stored in n.
func (n *nvmlGPUs) begin() {
	s, err := n.beginSession()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.backOff(err)
		return
	}
	n.session, n.failed, n.retryAt = s, nil, time.Time{}
	if dead := nvmlDead(s.errs); dead != nil {
		n.backOff(dead)
	}
}

func (n *nvmlGPUs) beginSession() (*nvmlSession, error) {
	if n.lib == nil {
		lib, err := n.load()
		if err != nil {
			return nil, err
		}
		n.lib = lib
	}
	if err := n.lib.Init(); err != nil {
		return nil, explained(err)
	}
	s := &nvmlSession{quit: make(chan struct{})}
	r := nvmlReading{}
	var err error
	s.nvml.Driver, err = n.lib.DriverVersion()
	r.keep(err)
	cuda, err := n.lib.CUDAVersion()
	if r.keep(err) {
		s.nvml.CUDA = cudaVersion(cuda)
	}
	count, err := n.lib.Count()
	if err != nil {
		return nil, errors.Join(err, n.lib.Shutdown())
	}
	s.nvml.Count = new(uint64(count))
	for i := range count {
		device, err := n.lib.Device(i)
		if err != nil {
			s.seats, s.errs = append(s.seats, nil), append(s.errs, fmt.Errorf("GPU %d: %w", i, err))
			continue
		}
		at, errs := readSeat(i, device)
		s.seats, s.errs = append(s.seats, at), append(s.errs, errs...)
	}
	s.errs = append(s.errs, r.errs...)
	return s, nil
}

// explained adds the remedy to errors.
func explained(err error) error {
	switch {
	case errors.Is(err, nvmlReturn(18)):
		return fmt.Errorf("%w: the driver was updated, the loaded library is the old one: restart the exporter", err)
	case errors.Is(err, nvmlLibraryNotFound):
		return fmt.Errorf("%w: in a container, have the NVIDIA runtime mount the library (NVIDIA_DRIVER_CAPABILITIES=utility)", err)
	}
	return err
}

// close ends a session and releases everything that it holds.
func (n *nvmlGPUs) close(ctx context.Context, s *nvmlSession) error {
	n.mu.Lock()
	if n.session != s || s == nil {
		n.mu.Unlock()
		return nil
	}
	select {
	case <-s.quit:
	default:
		close(s.quit)
	}
	heard := s.heard
	n.mu.Unlock()
	if heard != nil {
		wait, cancel := context.WithTimeout(ctx, nvmlEventTime+nvmlGPUTime)
		defer cancel()
		select {
		case <-heard:
		case <-wait.Done():
			return fmt.Errorf("nvmlEventSetWait: %w", access.ErrStuck)
		}
	}
	var err error
	if stuck := n.Do(ctx, nvmlOpenTime, "nvmlShutdown", func() { err = n.end(s) }); stuck != nil {
		return stuck
	}
	return err
}

// end ends a session, on the NVML thread.
func (n *nvmlGPUs) end(s *nvmlSession) error {
	if !n.current(s) {
		return nil
	}
	err := n.lib.Shutdown()
	if errors.Is(err, nvmlUninitialized) {
		err = nil
	}
	if err == nil {
		n.mu.Lock()
		n.session = nil
		n.mu.Unlock()
	}
	return err
}
