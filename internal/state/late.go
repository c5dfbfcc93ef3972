package state

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// OpenLimit is how long the start of the program waits for a directory.
const OpenLimit = 10 * time.Second

// ErrLate is in the error of an opening that has not returned in time, or that waits for an earlier one.
var ErrLate = errors.New("no answer")

// Late opens what may hang in the kernel, such as a directory of a network file system. Its zero value is ready. Open
// must not be called concurrently.
type Late[T any] struct {
	pending chan struct{} // of an opening that was given up: closed when it returns; nil: none
}

// Pending reports whether an opening that was given up has not returned yet.
func (l *Late[T]) Pending() bool {
	if l.pending == nil {
		return false
	}
	select {
	case <-l.pending:
		l.pending = nil
		return false
	default:
		return true
	}
}

// Open returns what open returns, or ErrLate if ctx ends or the limit (0: OpenLimit) is exceeded first. What is opened
// later than that is passed to undo. While it hangs, no other is begun.
func (l *Late[T]) Open(
	ctx context.Context, limit time.Duration, open func() (T, error), undo func(T, error),
) (T, error) {
	var none T
	if l.Pending() {
		return none, fmt.Errorf("%w yet from an earlier attempt: check the file system that it is on", ErrLate)
	}
	if limit == 0 {
		limit = OpenLimit
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type opened struct {
		value T
		err   error
	}
	results := make(chan opened, 1)
	go func() {
		value, err := open()
		results <- opened{value, err}
	}()
	select {
	case o := <-results:
		return o.value, o.err
	case <-ctx.Done():
	}
	returned := make(chan struct{})
	l.pending = returned
	go func() {
		defer close(returned)
		o := <-results
		undo(o.value, o.err)
	}()
	if errors.Is(ctx.Err(), context.Canceled) {
		return none, fmt.Errorf("%w before the program was stopped", ErrLate)
	}
	return none, fmt.Errorf("%w within %s: check the file system that it is on", ErrLate, limit)
}
