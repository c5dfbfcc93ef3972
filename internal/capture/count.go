package capture

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/lazy"
)

// Counters are the monotonic values of a machine. After the last round a replay continues them at the rate of their
// last step, and a variant continues those of its base.
type Counters struct {
	last  map[string]values // by path
	steps map[string]values // increase in the newest round, by path
}

// values are the counters of one entry by line name; "" in a file that is one number.
type values map[string]uint64

func NewCounters() Counters { return Counters{map[string]values{}, map[string]values{}} }

// NextRound discards the steps of the previous round.
func (c Counters) NextRound() { clear(c.steps) }

// Count records the values of an entry in a new round.
func (c Counters) Count(e Entry) {
	before, now, steps := c.last[e.Path], values{}, values{}
	mapCounters(e.Path, e.Data, func(name string, n uint64) uint64 {
		if old, ok := before[name]; ok && n > old {
			steps[name] = n - old
		}
		now[name] = n
		return n
	})
	if len(now) > 0 {
		c.last[e.Path] = now
	}
	if len(steps) > 0 {
		c.steps[e.Path] = steps
	}
}

// Forget discards a path and everything below it.
func (c Counters) Forget(name string) {
	maps.DeleteFunc(c.last, func(p string, _ values) bool { return IsBelow(p, name) })
}

// IsBelow reports whether p is a path or is below it.
func IsBelow(p, above string) bool { return p == above || strings.HasPrefix(p, above+"/") }

// After returns the content of an entry a number of intervals after the newest round.
func (c Counters) After(intervals uint64, name string, data []byte) []byte {
	steps := c.steps[name]
	if intervals == 0 || steps == nil {
		return data
	}
	return mapCounters(name, data, func(value string, n uint64) uint64 { return n + steps[value]*intervals })
}

// Intervals returns the number of steps, as between the last two rounds, in the time since the last round. A single
// round has no step.
func Intervals(rounds []Round, at time.Duration) uint64 {
	n := len(rounds)
	if n < 2 || at < rounds[n-1].At {
		return 0
	}
	return uint64((at - rounds[n-1].At) / (rounds[n-1].At - rounds[n-2].At))
}

// mapCounters returns the content of an entry with each counter replaced by f of its name and value. It does not modify
// data.
func mapCounters(p string, data []byte, f func(name string, n uint64) uint64) []byte {
	switch {
	case p == "proc/uptime":
		return mapHundredths(data, f)
	case counterFile().MatchString(p):
		n, err := strconv.ParseUint(string(bytes.TrimSpace(data)), 10, 64)
		if err != nil || answer.IsReading(path.Base(p)) {
			return data
		}
		if now := f("", n); now != n {
			return fmt.Appendf(nil, "%d\n", now)
		}
		return data
	}
	if is := answer.CounterLines(p); is != nil {
		return mapLines(data, is, f)
	}
	return data
}

func mapLines(data []byte, is func(name string) bool, f func(name string, n uint64) uint64) []byte {
	var out []byte
	changed := false
	for line := range strings.Lines(string(data)) {
		name, value, ok := answer.SplitLine(strings.TrimSuffix(line, "\n"))
		n, err := strconv.ParseUint(value, 10, 64)
		if ok && err == nil && is(name) {
			if now := f(name, n); now != n {
				line, changed = fmt.Sprintf("%s: %d\n", name, now), true
			}
		}
		out = append(out, line...)
	}
	if !changed {
		return data
	}
	return out
}

// mapHundredths handles /proc/uptime: two times in seconds with two decimals.
func mapHundredths(data []byte, f func(name string, n uint64) uint64) []byte {
	words := strings.Fields(string(data))
	changed := false
	for i, w := range words {
		whole, fraction, _ := strings.Cut(w, ".")
		n, err := strconv.ParseUint(whole+fraction, 10, 64)
		if err != nil || len(fraction) != 2 {
			return data
		}
		if now := f(strconv.Itoa(i), n); now != n {
			words[i] = fmt.Sprintf("%d.%02d", now/100, now%100)
			changed = true
		}
	}
	if !changed {
		return data
	}
	return []byte(strings.Join(words, " ") + "\n")
}

var counterFile = lazy.Regexp(`/(counters|hw_counters|statistics)/[^/]+$`)
