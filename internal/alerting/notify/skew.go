package notify

import (
	"time"

	"github.com/prometheus/prometheus/notifier"
)

// maxSkew is the tolerated difference to the clock of an Alertmanager. An alert that ends before its present is
// resolved for it: a host whose clock is six minutes behind would notify nothing.
const maxSkew = time.Minute

// peerClock is the clock of an Alertmanager, by the header Date of its responses.
type peerClock struct {
	report func(ahead time.Duration) // of a change

	date     time.Time // of the last response; zero: unknown
	at       time.Time // its time here, with the monotonic reading: it stays right if the clock of this host is set
	reported bool      // a difference
	again    bool      // alerts were sent again after the last response
}

// ahead returns the difference to the clock of this host; 0 up to maxSkew.
func (c *peerClock) ahead() time.Duration {
	if c.date.IsZero() {
		return 0
	}
	now := time.Now()
	ahead := c.date.Add(now.Sub(c.at)).Sub(now.Round(0))
	if ahead.Abs() <= maxSkew {
		return 0
	}
	return ahead
}

// note takes the date of a response, and reports whether its alerts were sent with the wrong times and have to be sent
// again: once, since an address may have several Alertmanagers.
func (c *peerClock) note(date time.Time, used time.Duration) (again bool) {
	if date.IsZero() {
		return false
	}
	c.date, c.at = date, time.Now()
	ahead := c.ahead()
	if differs := ahead != 0; differs != c.reported {
		c.reported = differs
		c.report(ahead)
	}
	c.again = (ahead-used).Abs() > maxSkew && !c.again
	return c.again
}

// later returns alerts with their times by a clock that is ahead.
func later(alerts []*notifier.Alert, ahead time.Duration) []*notifier.Alert {
	if ahead == 0 {
		return alerts
	}
	out := make([]*notifier.Alert, len(alerts))
	for i, a := range alerts {
		moved := *a
		moved.StartsAt, moved.EndsAt = a.StartsAt.Add(ahead), a.EndsAt.Add(ahead)
		out[i] = &moved
	}
	return out
}
