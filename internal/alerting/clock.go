package alerting

import (
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

const (
	// clockTolerance is the deviation of the wall clock that is ignored. Slewing by NTP adds up until it is reached.
	clockTolerance = time.Second
	// uptimeMetric is the uptime of the host at each round: the next run compares it with the wall clock.
	uptimeMetric = "rdma_alerting_uptime_seconds"
	bootLabel    = "boot_id"
)

// Clock is a reading of the clocks of the host at one moment.
type Clock struct {
	Wall time.Time
	Boot string        // boot ID; empty: unknown
	Up   time.Duration // since boot (CLOCK_BOOTTIME)
	Ran  time.Duration // since boot without suspension (CLOCK_MONOTONIC)
}

// since returns by how much the wall clock was set, and how long the host was suspended, since an earlier reading of
// the same boot. Both are 0 below clockTolerance.
func (c Clock) since(before Clock) (step, suspended time.Duration) {
	up, ran := c.Up-before.Up, c.Ran-before.Ran
	if step = c.Wall.Sub(before.Wall) - up; step.Abs() < clockTolerance {
		step = 0
	}
	if suspended = up - ran; suspended < clockTolerance {
		suspended = 0
	}
	return step, suspended
}

// followClock moves alerts and samples if the wall clock was set since the previous round, also of an earlier run since
// the same boot, and excludes suspension from pending times. It returns the time of suspension.
func (e *Engine) followClock() (suspended time.Duration) {
	if e.opts.Clock == nil {
		return 0
	}
	before := e.clock
	e.now = e.opts.Clock()
	if before.Wall.IsZero() {
		before = e.storedClock()
	}
	step, suspended := e.now.since(before)
	if step != 0 || suspended != 0 || e.clock.Wall.IsZero() {
		e.clock = e.now
	}
	if suspended != 0 {
		e.opts.Logger.Info("host was suspended, excluding it from the pending times of alerts",
			"duration", suspended.Round(time.Second))
		e.skip(suspended)
	}
	if step != 0 {
		e.move(step)
	}
	return suspended
}

// storedClock returns the clocks of the last round in the store, or those of this round if the last one was before the
// boot, or is unknown.
func (e *Engine) storedClock() Clock {
	if e.now.Boot == "" || e.to.IsZero() {
		return e.now
	}
	up, ok := e.store.Last(e.to, labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, uptimeMetric),
		labels.MustNewMatcher(labels.MatchEqual, bootLabel, e.now.Boot))
	if !ok {
		return e.now
	}
	before := Clock{Wall: e.to, Up: time.Duration(up * float64(time.Second))}
	before.Ran = e.now.Ran - (e.now.Up - before.Up) // there were no rounds anyway
	return before
}

// addUptime stores the uptime of the host at the time of a round.
func (e *Engine) addUptime(round *roundAppender, ts time.Time) error {
	if e.now.Boot == "" {
		return nil
	}
	name := bootLabel
	return round.add(uptimeMetric, []*dto.LabelPair{{Name: &name, Value: &e.now.Boot}}, "", "",
		(e.now.Up - e.now.Wall.Sub(ts)).Seconds())
}

// move moves all times with a wall clock that was set. Samples stay where they are if it is by a round at most: a round
// later than now is waited for, and a gap of a round is common.
func (e *Engine) move(by time.Duration) {
	direction := "forward"
	if by < 0 {
		direction = "back"
	}
	e.opts.Logger.Info("clock was set, moving the times of alerts and samples", "direction", direction,
		"by", by.Abs().Round(time.Second/10))
	e.shift(by)
	if by.Abs() <= e.opts.Interval || e.to.IsZero() {
		return
	}
	if err := e.store.Move(by, isTime); err != nil {
		e.opts.Logger.Warn("moving the samples failed", "err", err)
		if e.store.Renew(err) != nil { // the caller finds no database
			return
		}
	}
	e.series.renumber()
	e.from, e.to = e.storedSpan()
}

// isTime reports whether the values of a series are times of the wall clock: those of ALERTS_FOR_STATE, and of
// recording rules named so. Times that are announced (end of a maintenance) do not move with the clock.
func isTime(name string) bool {
	return name == forStateMetric ||
		strings.Contains(name, ":") && (strings.HasSuffix(name, "_time") || strings.HasSuffix(name, ":since"))
}
