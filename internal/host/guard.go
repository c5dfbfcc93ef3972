package host

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanic is wrapped by the error of a Guard whose function panicked.
var ErrPanic = errors.New("a fault of rdma_exporter itself, please report it")

// Guard calls f, and makes an error of a panic, with where it was: a fault in the reading of one device costs that device, and
// not the view of all others. Locks that f holds without defer stay taken.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v\n%s", ErrPanic, p, debug.Stack())
		}
	}()
	return f()
}
