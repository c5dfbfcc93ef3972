package access

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clocks are the clocks of the kernel since boot.
type Clocks struct {
	began time.Time     // with its monotonic reading
	ran   time.Duration // CLOCK_MONOTONIC at that time
}

// NewClocks starts to read the clocks.
func NewClocks() Clocks {
	return Clocks{began: time.Now(), ran: clockTime(unix.CLOCK_MONOTONIC)}
}

// Read returns the wall clock, the time since boot (CLOCK_BOOTTIME), and that without suspension (CLOCK_MONOTONIC), of
// one moment. Only the time of suspension is read from the kernel each time, so that the others are those of a test
// with a virtual clock.
func (c Clocks) Read() (wall time.Time, up, ran time.Duration) {
	now := time.Now()
	ran = c.ran + now.Sub(c.began)
	suspended := clockTime(unix.CLOCK_BOOTTIME) - clockTime(unix.CLOCK_MONOTONIC)
	return now.Round(0), ran + suspended, ran
}

// clockTime returns the time of a clock. The clocks used here exist in every supported kernel.
func clockTime(clock int32) time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts)
	return time.Duration(ts.Nano())
}
