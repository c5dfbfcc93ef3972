package serve

import (
	"context"
	"hash/fnv"
	"time"
)

// phase is a constant offset of a host within an interval. It spreads the load of hosts that start together, such as a
// cluster after an outage, on Alertmanagers and switches.
func phase(hostname string, interval time.Duration) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(hostname))
	return time.Duration(h.Sum64() % uint64(interval))
}

// nextTick is the next time at a host's phase, half an interval to one and a half after now.
func nextTick(now time.Time, interval, phase time.Duration) time.Time {
	earliest := now.Add(interval / 2)
	late := time.Duration((earliest.UnixNano() - int64(phase)) % int64(interval))
	if late == 0 {
		return earliest
	}
	return earliest.Add(interval - late)
}

// tick calls f immediately and then at the host's phase until ctx ends. A call that takes longer delays the next one.
func tick(ctx context.Context, interval, phase time.Duration, f func()) {
	for {
		next := nextTick(time.Now(), interval, phase)
		f()
		if !pause(ctx, time.Until(next)) {
			return
		}
	}
}
