package serve

import (
	"context"
	"hash/fnv"
	"time"
)

// HostPhase returns a constant offset of a host within an interval. It spreads the load of hosts that start together,
// such as a cluster after an outage, on Alertmanagers and switches.
func HostPhase(hostname string, interval time.Duration) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(hostname))
	return time.Duration(h.Sum64() % uint64(interval))
}

// nextTick returns the next time at a host's phase, half an interval to one and a half after now.
func nextTick(now time.Time, interval, phase time.Duration) time.Time {
	earliest := now.Add(interval / 2)
	late := time.Duration((earliest.UnixNano() - int64(phase)) % int64(interval))
	if late == 0 {
		return earliest
	}
	return earliest.Add(interval - late)
}

// Tick calls f immediately and then at the host's phase until ctx ends. A call that takes longer delays the next one.
func Tick(ctx context.Context, interval, phase time.Duration, f func()) {
	for {
		next := nextTick(time.Now(), interval, phase)
		f()
		if !Pause(ctx, time.Until(next)) {
			return
		}
	}
}

// Pause waits for d, and reports whether it did so without being cancelled by ctx.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
