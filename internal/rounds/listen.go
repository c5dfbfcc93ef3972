package rounds

import (
	"context"
	"errors"
	"sync"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// A collector whose Run fails is restarted after one second, then two, up to five minutes. After a run of more than
// five minutes the delay starts at one second again. An error that will recur (host.LastingError) ends the task.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Minute
)

// Listen runs the background tasks of collectors until ctx ends.
func (s *Scheduler) Listen(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, r := range s.runners {
		if r.c.Run != nil {
			wg.Go(func() { s.listen(ctx, r.c) })
		}
	}
}

// listen runs the background task of a collector until ctx ends, and logs the first of several consecutive failures.
func (s *Scheduler) listen(ctx context.Context, c *collector.Collector) {
	pause := firstPause
	for failed := false; ; failed = true {
		start := time.Now()
		err := access.Guard(func() error { return c.Run(ctx, s.Host) })
		if err == nil || ctx.Err() != nil {
			return
		}
		if time.Since(start) > lastPause {
			failed, pause = false, firstPause
		}
		if errors.As(err, &host.LastingError{}) { // the collector reports it
			return
		}
		if !failed {
			s.faults.log.Warn("background task failed, retrying", "collector", c.Name, "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, lastPause)
	}
}
