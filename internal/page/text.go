package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// bits writes a rate in bits per second.
func bits(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "Tb/s"}, {1e9, "Gb/s"}, {1e6, "Mb/s"}, {1e3, "kb/s"}} {
		if v >= u.size && (u.size != 1e12 || v >= 10e12) {
			return digits(v/u.size) + " " + u.name
		}
	}
	return digits(v) + " b/s"
}

// digits writes three digits at most, but no fewer than the whole part has.
func digits(v float64) string {
	for _, n := range []int{0, 1, 2} {
		limit := []float64{100, 10, 0}[n]
		if v >= limit {
			s := strconv.FormatFloat(v, 'f', n, 64)
			if strings.Contains(s, ".") {
				s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
			}
			return s
		}
	}
	return "0"
}

// percent writes a ratio; one that is not 0 is not written as 0.
func percent(v float64) string {
	switch {
	case v > 0 && v < 0.001:
		return "<0.1%"
	case v < 0.1:
		return digits(float64(int(v*1000+0.5))/10) + "%"
	}
	return fmt.Sprintf("%.0f%%", 100*v)
}

// large writes a count with blanks between thousands.
func large(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// short cuts a text to n letters.
func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return strings.TrimSpace(string(r[:max(0, n-1)])) + "…"
}

// ago writes a duration for people: 12s, 4m, 1h5m, 3d.
func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour && int(d.Minutes())%60 == 0:
		return fmt.Sprintf("%dh", int(d.Hours()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC, 2 Jan 2006") }

// value is the text of a cell. What is unknown, and what does not apply, has a class of its own.
type value struct{ Text, Class string }

const classUnknown = "unknown"

// unknown has the reason why there is no value.
func unknown(reason string) value { return value{"unknown: " + reason, classUnknown} }

// notApplicable is for what a port of its kind or in its state does not have.
var notApplicable = value{"n/a", classUnknown}
