package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Turns allows one reader at a time where a system call may block in the kernel. Such a call cannot be cancelled: its
// turn does not end until it returns, and other names are unaffected.
type Turns struct {
	// CPU tells a blocked reader from one that waits for a CPU; nil: every late one counts as blocked.
	CPU *CPUWait

	mu    sync.Mutex
	names map[string]*turn
}

type turn struct {
	free chan struct{} // holds one token while nobody reads
	mu   sync.Mutex
	late chan struct{} // closed once the reader has exceeded its deadline: waiting is pointless
	busy bool          // a reader has begun
	read pending       // its read
}

// begin begins a read in a turn that was free.
func (t *turn) begin(c *CPUWait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy, t.read = true, newPending(c)
}

// leave ends it.
func (t *turn) leave() {
	t.mu.Lock()
	t.busy = false
	t.mu.Unlock()
	t.free <- struct{}{}
}

// missed is the error of the reader in the turn, or of one that waits for it.
func (t *turn) missed(c *CPUWait) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read.missed(c)
}

func (t *turn) lateness() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.late
}

// NewTurns returns turns that are all free.
func NewTurns() *Turns { return &Turns{names: map[string]*turn{}} }

// Enter takes a turn that has to be free, and returns the function that ends it. A reader has not returned if the error
// wraps ErrStuck or ErrLate.
func (all *Turns) Enter(name string) (leave func(), err error) {
	t := all.get(name)
	select {
	case <-t.free:
		t.begin(all.CPU)
		return t.leave, nil
	default:
		return nil, fmt.Errorf("%s: %w", name, t.missed(all.CPU))
	}
}

// Missed is the error of a reader that has not ended by its deadline: that of Enter if it is in its turn, else it has
// not begun since a time.
func (all *Turns) Missed(name string, since Moment) error {
	t := all.get(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.busy {
		return fmt.Errorf("%s: %w", name, all.CPU.Late(since))
	}
	return fmt.Errorf("%s: %w", name, t.read.missed(all.CPU))
}

// Cancelled reports whether ctx has ended because the program stops or a request is given up, not at a deadline. What
// was not read then is no failure.
func Cancelled(ctx context.Context) bool { return errors.Is(context.Cause(ctx), context.Canceled) }

// Do waits for its turn, runs f, and waits for it until ctx ends. If f has not returned or could not be started in
// time, the error wraps ErrStuck or ErrLate, or context.Canceled without a deadline. It wraps ErrPanic if f panicked.
// After an error the results of f must not be read.
func (all *Turns) Do(ctx context.Context, name string, f func()) error {
	t := all.get(name)
	select {
	case <-t.free:
	default:
		select {
		case <-t.free:
		case <-t.lateness():
			return fmt.Errorf("%s: %w", name, t.missed(all.CPU))
		case <-ctx.Done():
			if Cancelled(ctx) {
				return fmt.Errorf("%s: %w", name, context.Canceled)
			}
			return fmt.Errorf("%s: another read: %w", name, t.missed(all.CPU))
		}
	}
	t.begin(all.CPU)
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
			t.leave()
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
	case <-done: // both were ready: not late
		return fault
	default:
	}
	close(t.late)
	if Cancelled(ctx) {
		return fmt.Errorf("%s: %w", name, context.Canceled)
	}
	return fmt.Errorf("%s: %w", name, t.read.missed(all.CPU))
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
