package host

import (
	"context"
	"fmt"
	"sync"
)

// Lanes allows one reader at a time where a system call may block in the kernel. Such a call cannot be cancelled: its lane stays occupied
// until it returns, and other lanes are unaffected.
type Lanes struct {
	mu    sync.Mutex
	lanes map[string]*lane
}

type lane struct {
	turn chan struct{} // holds one token while the lane is free
	mu   sync.Mutex
	late chan struct{} // closed once the reader in the lane has exceeded its deadline: waiting is pointless
}

func (ln *lane) lateness() <-chan struct{} {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.late
}

// NewLanes returns free lanes.
func NewLanes() *Lanes { return &Lanes{lanes: map[string]*lane{}} }

// Enter occupies a lane that has to be free, and returns the function that leaves it. The error wraps ErrStuck: a reader in the lane has
// not returned.
func (l *Lanes) Enter(name string) (leave func(), err error) {
	ln := l.get(name)
	select {
	case <-ln.turn:
		return func() { ln.turn <- struct{}{} }, nil
	default:
		return nil, fmt.Errorf("%s: %w", name, ErrStuck)
	}
}

// Do waits for its turn in a lane, runs f, and waits for it until ctx ends. The error wraps ErrStuck if f has not returned or could not be
// started in time, and ErrPanic if it panicked. After an error the results of f must not be read.
func (l *Lanes) Do(ctx context.Context, name string, f func()) error {
	ln := l.get(name)
	select {
	case <-ln.turn:
	default:
		select {
		case <-ln.turn:
		case <-ln.lateness():
			return fmt.Errorf("%s: %w", name, ErrStuck)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: timed out waiting for its turn", name, ErrStuck)
		}
	}
	done := make(chan struct{})
	var fault error
	go func() {
		defer func() {
			ln.mu.Lock()
			select {
			case <-ln.late:
				ln.late = make(chan struct{})
			default:
			}
			close(done)
			ln.mu.Unlock()
			ln.turn <- struct{}{}
		}()
		fault = Guard(func() error { f(); return nil })
	}()
	select {
	case <-done:
		return fault
	case <-ctx.Done():
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	select {
	case <-done: // both were ready: not stuck
		return fault
	default:
		close(ln.late)
		return fmt.Errorf("%s: %w: timed out", name, ErrStuck)
	}
}

func (l *Lanes) get(name string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.lanes[name]
	if ln == nil {
		ln = &lane{turn: make(chan struct{}, 1), late: make(chan struct{})}
		ln.turn <- struct{}{}
		l.lanes[name] = ln
	}
	return ln
}
