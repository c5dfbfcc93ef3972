package fault

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/words"
)

// Plain returns a number without needless digits.
func Plain(v float64) string { return fmt.Sprint(v) }

// Whole returns a number without decimals.
func Whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// When returns the second text if a condition holds, else empty.
func When(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// Percent returns a share in percent.
func Percent(share float64) string { return fmt.Sprintf("%.4g%%", share*100) }

// Roughly returns a share in percent, from two of its digits.
func Roughly(share float64) string {
	rounded, _ := strconv.ParseFloat(fmt.Sprintf("%.2g", share), 64)
	return Percent(rounded)
}

// RoundCount returns a number with its noun, without decimals.
func RoundCount(v float64, one string) string { return words.Count(int(math.RoundToEven(v)), one) }

// Binary returns a number with a binary prefix: "1.5Gi".
func Binary(v float64) string {
	prefix := ""
	for _, p := range []string{"ki", "Mi", "Gi", "Ti", "Pi"} {
		if math.Abs(v) < 1024 {
			break
		}
		prefix, v = p, v/1024
	}
	return fmt.Sprintf("%.4g%s", v, prefix)
}

// UTC returns a time, from seconds since 1970.
func UTC(seconds float64) string {
	return time.Unix(int64(seconds), 0).UTC().Format("2006-01-02 15:04:05 MST")
}

// Lasting returns a duration: "1h 5m 0s".
func Lasting(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.4gs", seconds)
	}
	n := int64(seconds)
	out := fmt.Sprintf("%dm %ds", n/60%60, n%60)
	if n >= 3600 {
		out = fmt.Sprintf("%dh ", n/3600%24) + out
	}
	if n >= 24*3600 {
		out = fmt.Sprintf("%dd ", n/(24*3600)) + out
	}
	return out
}

// Listed returns values in a format.
func Listed(rows []Sample, format string) string {
	return strings.Join(words.Map(rows, func(r Sample) string { return fmt.Sprintf(format, r.Value) }), ", ")
}

// ListedByLane returns values in a format, each with its lane.
func ListedByLane(rows []Sample, format string) string {
	return strings.Join(words.Map(rows, func(r Sample) string {
		return "lane " + r.Labels["lane"] + " " + fmt.Sprintf(format, r.Value)
	}), ", ")
}

// Lines collects evidence.
type Lines []Line

// Add adds a line, if its text is not empty.
func (l *Lines) Add(name, text string) {
	if text != "" {
		*l = append(*l, Line{name, text})
	}
}

// AddKnown adds a line of a value and what follows it, if there is a value.
func (l *Lines) AddKnown(name, value, rest string) { l.Add(name, When(value != "", value+rest)) }
