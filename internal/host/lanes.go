package host

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Lanes keeps one reader at a time on each device. A system call that blocks in the kernel cannot be cancelled: its lane
// stays taken until it returns, nobody enters it meanwhile, and everybody else goes on.
type Lanes struct {
	mu    sync.Mutex
	lanes map[string]*lane
}

type lane struct {
	turn  chan struct{} // holds one token while nobody is inside
	stuck time.Time     // since when somebody inside has outlived a deadline; guarded by Lanes.mu
}

// NewLanes returns lanes that are all free.
func NewLanes() *Lanes { return &Lanes{lanes: map[string]*lane{}} }

// Do runs f in the lane of a device and waits for it until ctx ends. The error wraps ErrStuck if f did not return in time,
// or was not started because an earlier one is still inside. What a late f produces must not be looked at.
func (l *Lanes) Do(ctx context.Context, device string, f func()) error {
	ln, since := l.get(device)
	if !since.IsZero() {
		return fmt.Errorf("%s: %w since %s", device, ErrStuck, since.UTC().Format(time.RFC3339))
	}
	select {
	case <-ln.turn:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w: its turn did not come in time", device, ErrStuck)
	}
	done := make(chan struct{})
	go func() {
		defer l.leave(ln, done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	// Both may be ready; a reader that has finished is not stuck.
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-done:
		return nil
	default:
		ln.stuck = time.Now()
		return fmt.Errorf("%s: %w: no answer in time", device, ErrStuck)
	}
}

func (l *Lanes) leave(ln *lane, done chan struct{}) {
	l.mu.Lock()
	ln.stuck = time.Time{}
	close(done)
	l.mu.Unlock()
	ln.turn <- struct{}{}
}

func (l *Lanes) get(device string) (*lane, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.lanes[device]
	if ln == nil {
		ln = &lane{turn: make(chan struct{}, 1)}
		ln.turn <- struct{}{}
		l.lanes[device] = ln
	}
	return ln, ln.stuck
}
