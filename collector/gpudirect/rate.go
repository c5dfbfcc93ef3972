package gpudirect

import (
	"time"

	"rdma_exporter/collector/counters"
)

const (
	// meterSpan is the span of a rate: jobs compute between exchanges.
	meterSpan = time.Minute
	// meterLeast is the shortest span that gives a rate.
	meterLeast = 5 * time.Second
)

// meter computes the rate of a counter from readings at irregular times.
type meter struct {
	readings []meterReading // oldest first
}

type meterReading struct {
	at    time.Time
	value float64
}

// add adds a reading. A counter reset starts again; a repeated reading is ignored.
func (m *meter) add(at time.Time, value float64) {
	if n := len(m.readings); n > 0 {
		last := m.readings[n-1]
		if !at.After(last.at) {
			return
		}
		if value < last.value {
			m.readings = nil
		}
	}
	m.readings = append(m.readings, meterReading{at, value})
	for len(m.readings) > 2 && at.Sub(m.readings[1].at) >= meterSpan {
		m.readings = m.readings[1:]
	}
}

// perSecond returns the rate over the last minute, or over the last two readings if they are further apart. Nil: not
// yet known.
func (m *meter) perSecond() *float64 {
	if len(m.readings) < 2 {
		return nil
	}
	first, last := m.readings[0], m.readings[len(m.readings)-1]
	span := last.at.Sub(first.at)
	if span < meterLeast {
		return nil
	}
	return new((last.value - first.value) / span.Seconds())
}

// meters are the meters of counters, by name.
type meters map[string]*meter

func (m meters) add(name string, at time.Time, value float64) {
	counters.Entry(m, name).add(at, value)
}

// keep drops meters without a reading at this time.
func (m meters) keep(at time.Time) {
	for name, one := range m {
		if n := len(one.readings); n == 0 || one.readings[n-1].at.Before(at) {
			delete(m, name)
		}
	}
}

// above reports whether one of the named counters rises faster than limit. Nil: none does, and at least one is unknown.
func (m meters) above(limit float64, names ...string) *bool {
	fast, known := false, len(names) > 0
	for _, name := range names {
		var rate *float64
		if one := m[name]; one != nil {
			rate = one.perSecond()
		}
		known = known && rate != nil
		fast = fast || rate != nil && *rate > limit
	}
	if !fast && !known {
		return nil
	}
	return &fast
}
