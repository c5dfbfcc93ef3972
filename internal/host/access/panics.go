package access

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanic is wrapped by the error of a Guard whose function panicked.
var ErrPanic = errors.New("bug in rdma_exporter, please report it")

// Guard calls f and turns a panic into an error with its stack. A bug in the reading of one device must not affect all
// others. Locks that f holds without defer stay locked.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v\n%s", ErrPanic, p, debug.Stack())
		}
	}()
	return f()
}
