package app

import (
	"context"
	"hash/fnv"
	"time"
)

// phase is a host's own moment within an interval, always the same. Hosts that are started together, as a whole cluster is after an outage,
// come to what they share, the Alertmanagers and the switches, one after the other.
func phase(hostname string, interval time.Duration) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(hostname))
	return time.Duration(h.Sum64() % uint64(interval))
}

// nextBeat is a host's moment after now, half an interval to one and a half away.
func nextBeat(now time.Time, interval, phase time.Duration) time.Time {
	earliest := now.Add(interval / 2)
	late := time.Duration((earliest.UnixNano() - int64(phase)) % int64(interval))
	if late == 0 {
		return earliest
	}
	return earliest.Add(interval - late)
}

// beat calls f at once and then at the host's moments until ctx ends. A call that takes longer puts the next one off.
func beat(ctx context.Context, interval, phase time.Duration, f func()) {
	for {
		next := nextBeat(time.Now(), interval, phase)
		f()
		if !pause(ctx, time.Until(next)) {
			return
		}
	}
}
