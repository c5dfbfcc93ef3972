package shared

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

const (
	// gpuTime bounds a read of all GPUs, initialisation of NVML included.
	gpuTime = 2 * time.Minute
	// gpuRound is how long one reading is shared by the collectors of a round without background reads.
	gpuRound = time.Second
)

// GPUReading is one read of NVML.
type GPUReading struct {
	At   time.Time
	NVML accel.NVML
	Errs []error // each for a missing GPU or value
	Err  error   // no data at all
}

// GPUReadings reads the GPUs for all collectors that need them: in the background of a long-running program, because a
// GPU that has fallen off its bus may block NVML for long; otherwise once in a round.
type GPUReadings struct {
	interval time.Duration // 0: once in a round
	Full     bool

	mu   sync.Mutex
	Last *GPUReading
}

// NewGPUReadings returns readings of which none is made yet.
func NewGPUReadings(o Options) *GPUReadings {
	return &GPUReadings{interval: o.GPUInterval, Full: o.GPUFull}
}

// Run reads every interval until ctx ends, and counts XID errors in between.
func (g *GPUReadings) Run(ctx context.Context, h *host.Host) error {
	if g.interval <= 0 {
		return nil
	}
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	watch.Go(func() { failed <- access.Guard(func() error { return h.GPUs.WatchGPUs(ctx) }) })
	tick := time.NewTicker(g.interval)
	defer tick.Stop()
	for {
		g.read(ctx, h)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			if err != nil {
				return err
			}
			failed = nil
		case <-tick.C:
		}
	}
}

// read reads NVML and keeps the result.
func (g *GPUReadings) read(ctx context.Context, h *host.Host) *GPUReading {
	ctx, cancel := context.WithTimeout(ctx, gpuTime)
	defer cancel()
	start := time.Now()
	r := &GPUReading{}
	r.NVML, r.Errs, r.Err = h.GPUs.ReadGPUs(ctx, g.Full)
	if r.Err == nil { // else nothing was asked
		h.Meter.Begin(source.NVML, source.NVML.Lock(), 1)
		h.Meter.Spend(source.NVML, source.NVML.Lock(), time.Since(start))
	}
	r.At = h.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Last = r
	return r
}

// Latest returns the newest reading; nil before the first. It does not wait if GPUs are read in the background.
func (g *GPUReadings) Latest(ctx context.Context, h *host.Host) *GPUReading {
	if g.interval > 0 {
		return g.kept()
	}
	var r *GPUReading
	err := h.Turns.Do(ctx, "gpus", func() {
		if r = g.kept(); r == nil || h.Now().Sub(r.At) >= gpuRound {
			r = g.read(ctx, h)
		}
	})
	if err != nil {
		return &GPUReading{At: h.Now(), Err: err}
	}
	return r
}

func (g *GPUReadings) kept() *GPUReading {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Last
}

// Failed is all errors of the reading; nil: none.
func (r *GPUReading) Failed() error { return errors.Join(append(r.Errs, r.Err)...) }

// Issues returns the errors of a reading. A host without NVIDIA driver, or NVML released on request, is not an error.
func (r *GPUReading) Issues(released bool) (out []snapshot.Issue) {
	for _, err := range append(slices.Clone(r.Errs), r.Err) {
		if err == nil || released || r.Err != nil && access.IsAbsent(err) {
			continue
		}
		out = append(out, reading.IssueOf(source.NVML, err))
	}
	return out
}
