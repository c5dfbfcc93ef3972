package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad/perf"
	"rdma_exporter/internal/words"
)

// linkErrors are the counters of a bad link; of the others some rise in good order, or for what happens elsewhere.
var linkErrors = []perf.Counter{
	perf.SymbolErrors, perf.LinkErrorRecoveries, perf.LinkDowned, perf.ReceiveErrors, perf.LocalLinkIntegrityErrors,
	perf.ExcessiveBufferOverrunErrors,
}

// discards are the counters of packets that a port dropped for another reason.
var discards = []perf.Counter{
	perf.TransmitDiscards, perf.TransmitConstraintErrors, perf.ReceiveConstraintErrors, perf.ReceiveRemotePhysicalErrors,
}

// noErrors are counters that rise in good order.
var noErrors = []perf.Counter{perf.TransmitWait, perf.TransmitData, perf.ReceiveData, perf.ReceiveSwitchRelayErrors}

// rose is the sum of some counters.
func (e *LinkEnd) rose(counters []perf.Counter) (n uint64) {
	for _, k := range counters {
		n += e.Risen[fabric.CounterName(k)]
	}
	return n
}

func (l *FabricLink) rose(counters []perf.Counter) uint64 {
	return l.Ends[0].rose(counters) + l.Ends[1].rose(counters)
}

// risen are the counters of errors that rose.
func risen(p *fabric.Picture, e fabric.End) map[string]uint64 {
	c, ok := p.Risen[e]
	if !ok {
		return nil
	}
	return errorCounts(&c)
}

// errorCounts are the counters of errors that are not 0, by name.
func errorCounts(c *perf.Counters) map[string]uint64 {
	out := map[string]uint64{}
	for k := range perf.NumCounters {
		if v, ok := c.Get(k); ok && v > 0 && fabric.CounterName(k) != "" && !slices.Contains(noErrors, k) {
			out[fabric.CounterName(k)] = v
		}
	}
	return out
}

// errorText lists the counters of both ends that rose, each with its rate.
func errorText(over time.Duration, near, far map[string]uint64) string {
	var out []string
	for i, risen := range []map[string]uint64{near, far} {
		for _, name := range slices.Sorted(maps.Keys(risen)) {
			text := large(float64(risen[name])) + " " + words.Spaced(name) + perTime(risen[name], over)
			if i == 1 {
				text += " at the far end"
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

// perTime writes a rate in the largest unit of time in which it is 1 or more: " (12/s)".
func perTime(n uint64, over time.Duration) string {
	if over <= 0 {
		return ""
	}
	perSecond := float64(n) / over.Seconds()
	switch {
	case perSecond >= 1:
		return fmt.Sprintf(" (%s/s)", digits(perSecond))
	case perSecond >= 1./60:
		return fmt.Sprintf(" (%s/min)", digits(60*perSecond))
	}
	return fmt.Sprintf(" (%s/h)", digits(3600*perSecond))
}

// standing are counters that did not rise, with the value that they have had since they were cleared.
func standing(c *perf.Counters, risen map[string]uint64) string {
	if c == nil {
		return ""
	}
	totals := errorCounts(c)
	maps.DeleteFunc(totals, func(name string, _ uint64) bool { _, rose := risen[name]; return rose })
	return errorText(0, totals, nil)
}

// window is how long errors were counted for.
func (f *Fabric) window() time.Duration {
	if f.Since.IsZero() {
		return 0
	}
	return f.Time.Sub(f.Since)
}
