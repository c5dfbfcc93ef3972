package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The kernel serialises network configuration with one lock, rtnl. ethtool requests take it too. A NIC whose firmware
// does not answer holds it, and every process that waits for it is blocked, including container set-up. Therefore only
// one request at a time is made, with a pause after a slow one.
const (
	rtnlSlow      = time.Second
	rtnlFirstWait = time.Minute
	rtnlLastWait  = 5 * time.Minute
)

// ErrBackOff is the error of a request that was not made because an earlier one was slow.
var ErrBackOff = errors.New("backing off after a slow request")

// RTNL serialises requests that take rtnl.
type RTNL struct {
	Turns *Turns

	mu    sync.Mutex
	until time.Time     // no request before this time
	wait  time.Duration // pause after the next slow request
	stats RTNLStats
}

// RTNLStats are statistics of the requests.
type RTNLStats struct {
	Slow    uint64 // requests that took more than a second
	BackOff bool   // no requests at present
}

// NewRTNL returns an RTNL that is not backing off.
func NewRTNL() *RTNL { return &RTNL{Turns: NewTurns(), wait: rtnlFirstWait} }

// Do makes a request and waits for it until ctx ends or the request is slow. The error wraps ErrStuck if this or an
// earlier request has not returned in time, ErrBackOff if an earlier one was slow.
func (r *RTNL) Do(ctx context.Context, f func()) error {
	if err := r.closed(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rtnlSlow)
	defer cancel()
	var slow error // error of the slow request that this one has waited for
	err := r.Turns.Do(ctx, "rtnl", func() {
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

// closed returns the reason for which no request is made at present.
func (r *RTNL) closed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return fmt.Errorf("rtnl: %w: next request at %s", ErrBackOff, r.until.UTC().Format(time.RFC3339))
	}
	return nil
}

// done records a request that has returned. The pause doubles with each consecutive slow one.
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

// Stats returns the statistics so far.
func (r *RTNL) Stats() RTNLStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.BackOff = time.Now().Before(r.until)
	return s
}
