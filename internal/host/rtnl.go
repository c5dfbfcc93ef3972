package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The kernel serialises requests on network configuration with one lock, rtnl, which ethtool requests take as well. A NIC whose
// firmware does not answer holds it for all, and whoever waits for it holds up the setting up of containers. So one request at a
// time is in flight, and after a slow one the next waits.
const (
	rtnlSlow      = time.Second
	rtnlFirstWait = time.Minute
	rtnlLastWait  = 5 * time.Minute
)

// ErrBackOff is the error of a request that was not made, because an earlier one was slow.
var ErrBackOff = errors.New("an earlier request was slow")

// RTNL lets requests that take rtnl through, one at a time.
type RTNL struct {
	lanes *Lanes

	mu    sync.Mutex
	until time.Time     // no request before
	wait  time.Duration // after the next slow one
	stats RTNLStats
}

// RTNLStats says how the requests fare.
type RTNLStats struct {
	Slow    uint64 // requests that took more than a second
	BackOff bool   // none is made at present
}

// NewRTNL returns a way through that is open.
func NewRTNL() *RTNL { return &RTNL{lanes: NewLanes(), wait: rtnlFirstWait} }

// Do makes a request and waits for it until ctx ends or it is slow. The error wraps ErrStuck if an earlier one has not
// returned or this one does not in time, ErrBackOff if an earlier one was slow.
func (r *RTNL) Do(ctx context.Context, f func()) error {
	if err := r.closed(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rtnlSlow)
	defer cancel()
	var slow error // the one that this one has waited for was
	err := r.lanes.Do(ctx, "rtnl", func() {
		if slow = r.closed(); slow != nil {
			return
		}
		start := time.Now()
		f()
		r.done(time.Since(start))
	})
	if err != nil {
		return err // slow may still be written to
	}
	return slow
}

// closed says why no request is made at present.
func (r *RTNL) closed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return fmt.Errorf("rtnl: %w: none before %s", ErrBackOff, r.until.UTC().Format(time.RFC3339))
	}
	return nil
}

// done notes a request that has returned. The wait doubles with each slow one in a row.
func (r *RTNL) done(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if took <= rtnlSlow {
		r.wait = rtnlFirstWait
		return
	}
	r.stats.Slow++
	r.until = time.Now().Add(r.wait)
	r.wait = min(2*r.wait, rtnlLastWait)
}

// Stats says how the requests have fared so far.
func (r *RTNL) Stats() RTNLStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.BackOff = time.Now().Before(r.until)
	return s
}
