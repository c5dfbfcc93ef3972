package app

import (
	"sync/atomic"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/rounds"
)

// daemonStats are the statistics of the last round. A scrape does not wait for the engine.
type daemonStats struct {
	last atomic.Pointer[rounds.AlertingState]
}

func (s *daemonStats) note(d *daemon, took time.Duration) {
	e := d.engine.Stats()
	x := rounds.AlertingState{
		Rounds: float64(e.Rounds), Failures: float64(e.Failures), Took: took, Series: float64(e.Series),
		Degraded: e.Degraded || d.memory != nil && d.memory.store == nil,
	}
	if d.notifier != nil {
		x.QueueCapacity = alerting.QueueCapacity
		for _, a := range d.notifier.Deliveries() {
			x.Alertmanagers = append(x.Alertmanagers, rounds.AlertmanagerState{
				URL: a.Alertmanager, Queued: a.Queued, Sent: a.Sent, Errors: a.Errors, Dropped: a.Dropped,
			})
		}
	}
	s.last.Store(&x)
}

// current is the state of the engine; false without one, and before its first round.
func (d *daemon) current() (x rounds.AlertingState, ok bool) {
	if d == nil {
		return x, false
	}
	if last := d.stats.last.Load(); last != nil {
		x, ok = *last, true
	}
	return x, ok
}
