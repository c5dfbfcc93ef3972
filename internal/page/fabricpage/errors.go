package fabricpage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad/perf"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/words"
)

// linkErrors are the counters of a bad link; others also increase on a healthy link, or because of an event elsewhere.
var linkErrors = []perf.Counter{
	perf.SymbolErrors, perf.LinkErrorRecoveries, perf.LinkDowned, perf.ReceiveErrors, perf.LocalLinkIntegrityErrors,
	perf.ExcessiveBufferOverrunErrors,
}

// discards are the counters of packets that a port dropped for another reason.
var discards = []perf.Counter{
	perf.TransmitDiscards, perf.TransmitConstraintErrors, perf.ReceiveConstraintErrors, perf.ReceiveRemotePhysicalErrors,
}

// noErrors are counters that increase on a healthy link.
var noErrors = []perf.Counter{perf.TransmitWait, perf.TransmitData, perf.ReceiveData, perf.ReceiveSwitchRelayErrors}

// sumRisen returns the sum of the increases of some counters.
func (e *LinkEnd) sumRisen(counters []perf.Counter) (n uint64) {
	for _, k := range counters {
		n += e.Risen[fabric.CounterName(k)]
	}
	return n
}

// sumRisen returns the sum of the increases of some counters at both ends.
func (l *Link) sumRisen(counters []perf.Counter) uint64 {
	return l.Ends[0].sumRisen(counters) + l.Ends[1].sumRisen(counters)
}

// risenErrors returns the increases of the error counters of a port, by name.
func risenErrors(p *fabric.Picture, e fabric.End) map[string]uint64 {
	c, ok := p.Risen[e]
	if !ok {
		return nil
	}
	return countErrors(&c)
}

// countErrors returns the error counters that are not 0, by name.
func countErrors(c *perf.Counters) map[string]uint64 {
	out := map[string]uint64{}
	for k := range perf.NumCounters {
		if v, ok := c.Get(k); ok && v > 0 && fabric.CounterName(k) != "" && !slices.Contains(noErrors, k) {
			out[fabric.CounterName(k)] = v
		}
	}
	return out
}

// describeErrors returns the increases at both ends in words, each with its rate.
func describeErrors(over time.Duration, near, far map[string]uint64) string {
	var out []string
	for i, risen := range []map[string]uint64{near, far} {
		for _, name := range slices.Sorted(maps.Keys(risen)) {
			text := page.FormatCount(float64(risen[name])) + " " + words.Spaced(name) + formatFrequency(risen[name], over)
			if i == 1 {
				text += " at the far end"
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

// formatFrequency formats a rate in the largest unit of time in which it is 1 or more: " (12/s)".
func formatFrequency(n uint64, over time.Duration) string {
	if over <= 0 {
		return ""
	}
	perSecond := float64(n) / over.Seconds()
	switch {
	case perSecond >= 1:
		return fmt.Sprintf(" (%s/s)", page.FormatDigits(perSecond))
	case perSecond >= 1./60:
		return fmt.Sprintf(" (%s/min)", page.FormatDigits(60*perSecond))
	}
	return fmt.Sprintf(" (%s/h)", page.FormatDigits(3600*perSecond))
}

// describeStanding returns the counters that did not rise in words, with their values since they were cleared.
func describeStanding(c *perf.Counters, risen map[string]uint64) string {
	if c == nil {
		return ""
	}
	totals := countErrors(c)
	maps.DeleteFunc(totals, func(name string, _ uint64) bool { _, ok := risen[name]; return ok })
	return describeErrors(0, totals, nil)
}

// errorWindow returns the time over which errors were counted.
func (f *Fabric) errorWindow() time.Duration {
	if f.Since.IsZero() {
		return 0
	}
	return f.Time.Sub(f.Since)
}
