package host

import (
	"context"
	"fmt"
	"sync"
)

// Lanes keeps one reader at a time where a system call may block in the kernel. Such a call cannot be cancelled: its lane
// stays taken until it returns, nobody enters it meanwhile, and everybody else goes on.
type Lanes struct {
	mu    sync.Mutex
	lanes map[string]*lane
}

type lane struct {
	turn chan struct{} // holds one token while nobody is inside
	mu   sync.Mutex
	late chan struct{} // closed while whoever is inside has outlived its deadline: waiting for the turn is in vain
}

func (ln *lane) lateness() <-chan struct{} {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.late
}

// NewLanes returns lanes that are all free.
func NewLanes() *Lanes { return &Lanes{lanes: map[string]*lane{}} }

// Enter takes a lane that must be free, and returns how to leave it. The error wraps ErrStuck: whoever is inside has not come
// back.
func (l *Lanes) Enter(name string) (leave func(), err error) {
	ln := l.get(name)
	select {
	case <-ln.turn:
		return func() { ln.turn <- struct{}{} }, nil
	default:
		return nil, fmt.Errorf("%s: %w", name, ErrStuck)
	}
}

// Do runs f in a lane that several take in turn, and waits for it until ctx ends. The error wraps ErrStuck if f did not
// return in time, or was not started because another is still inside, and ErrPanic if it panicked. What f produces must not be looked at then.
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
			return fmt.Errorf("%s: %w: its turn did not come in time", name, ErrStuck)
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
	case <-done: // both were ready: it is not stuck
		return fault
	default:
		close(ln.late)
		return fmt.Errorf("%s: %w: no answer in time", name, ErrStuck)
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
