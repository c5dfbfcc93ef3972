package host

import (
	"context"
	"fmt"
	"sync"
)

// Turns allows one reader at a time where a system call may block in the kernel. Such a call cannot be cancelled: its
// turn does not end until it returns, and other names are unaffected.
type Turns struct {
	mu    sync.Mutex
	names map[string]*turn
}

type turn struct {
	free chan struct{} // holds one token while nobody reads
	mu   sync.Mutex
	late chan struct{} // closed once the reader has exceeded its deadline: waiting is pointless
}

func (t *turn) lateness() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.late
}

// NewTurns returns turns that are all free.
func NewTurns() *Turns { return &Turns{names: map[string]*turn{}} }

// Enter takes a turn that has to be free, and returns the function that ends it. The error wraps ErrStuck: a reader has
// not returned.
func (all *Turns) Enter(name string) (leave func(), err error) {
	t := all.get(name)
	select {
	case <-t.free:
		return func() { t.free <- struct{}{} }, nil
	default:
		return nil, fmt.Errorf("%s: %w", name, ErrStuck)
	}
}

// Do waits for its turn, runs f, and waits for it until ctx ends. The error wraps ErrStuck if f has not returned or
// could not be started in time, and ErrPanic if it panicked. After an error the results of f must not be read.
func (all *Turns) Do(ctx context.Context, name string, f func()) error {
	t := all.get(name)
	select {
	case <-t.free:
	default:
		select {
		case <-t.free:
		case <-t.lateness():
			return fmt.Errorf("%s: %w", name, ErrStuck)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: timed out waiting for its turn", name, ErrStuck)
		}
	}
	done := make(chan struct{})
	var fault error
	go func() {
		defer func() {
			t.mu.Lock()
			select {
			case <-t.late:
				t.late = make(chan struct{})
			default:
			}
			close(done)
			t.mu.Unlock()
			t.free <- struct{}{}
		}()
		fault = Guard(func() error { f(); return nil })
	}()
	select {
	case <-done:
		return fault
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-done: // both were ready: not stuck
		return fault
	default:
		close(t.late)
		return fmt.Errorf("%s: %w: timed out", name, ErrStuck)
	}
}

func (all *Turns) get(name string) *turn {
	all.mu.Lock()
	defer all.mu.Unlock()
	t := all.names[name]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1), late: make(chan struct{})}
		t.free <- struct{}{}
		all.names[name] = t
	}
	return t
}
