package collector

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

const (
	// gpuTime bounds a read of all GPUs, initialisation of NVML included.
	gpuTime = 2 * time.Minute
	// gpuRound is how long one reading is shared by the collectors of a round without background reads.
	gpuRound = time.Second
)

// gpuReading is one read of NVML.
type gpuReading struct {
	at   time.Time
	nvml snapshot.NVML
	errs []error // each for a missing GPU or value
	err  error   // no data at all
}

// gpuReadings reads the GPUs for all collectors that need them: in the background of a long-running program, because a
// GPU that has fallen off its bus may block NVML for long; otherwise once in a round.
type gpuReadings struct {
	interval time.Duration // 0: once in a round
	full     bool

	mu   sync.Mutex
	last *gpuReading
}

func newGPUReadings(o Options) *gpuReadings {
	return &gpuReadings{interval: o.GPUInterval, full: o.GPUFull}
}

// run reads every interval until ctx ends, and counts XID errors in between.
func (g *gpuReadings) run(ctx context.Context, h *host.Host) error {
	if g.interval <= 0 {
		return nil
	}
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	watch.Go(func() { failed <- host.Guard(func() error { return h.GPUs.WatchGPUs(ctx) }) })
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
func (g *gpuReadings) read(ctx context.Context, h *host.Host) *gpuReading {
	ctx, cancel := context.WithTimeout(ctx, gpuTime)
	defer cancel()
	start := time.Now()
	r := &gpuReading{}
	r.nvml, r.errs, r.err = h.GPUs.ReadGPUs(ctx, g.full)
	if r.err == nil { // else nothing was asked
		h.Meter.Begin(host.SourceNVML, host.SourceNVML.Lock(), 1)
		h.Meter.Spend(host.SourceNVML, host.SourceNVML.Lock(), time.Since(start))
	}
	r.at = h.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = r
	return r
}

// latest is the newest reading. It does not wait where the background reads; nil: there is none yet.
func (g *gpuReadings) latest(ctx context.Context, h *host.Host) *gpuReading {
	if g.interval > 0 {
		return g.kept()
	}
	var r *gpuReading
	err := h.Turns.Do(ctx, "gpus", func() {
		if r = g.kept(); r == nil || h.Now().Sub(r.at) >= gpuRound {
			r = g.read(ctx, h)
		}
	})
	if err != nil {
		return &gpuReading{at: h.Now(), err: err}
	}
	return r
}

func (g *gpuReadings) kept() *gpuReading {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// failed is all errors of the reading; nil: none.
func (r *gpuReading) failed() error { return errors.Join(append(r.errs, r.err)...) }

// issues are the errors of a reading. A host without NVIDIA driver, and NVML released on request, are none.
func (r *gpuReading) issues(released bool) (out []snapshot.Issue) {
	for _, err := range append(slices.Clone(r.errs), r.err) {
		if err == nil || released || r.err != nil && host.IsAbsent(err) {
			continue
		}
		out = append(out, reading.IssueOf(host.SourceNVML, err))
	}
	return out
}
