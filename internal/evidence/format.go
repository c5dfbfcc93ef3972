package evidence

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/words"
)

// plain is a number without needless digits.
func plain(v float64) string { return fmt.Sprint(v) }

// whole is a number without decimals.
func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// when is the second text if a condition holds, else empty.
func when(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// percent is a share in percent.
func percent(share float64) string { return fmt.Sprintf("%.4g%%", share*100) }

// roughly is a share in percent, from two of its digits.
func roughly(share float64) string {
	rounded, _ := strconv.ParseFloat(fmt.Sprintf("%.2g", share), 64)
	return percent(rounded)
}

// roundCount is a number with its noun, without decimals.
func roundCount(v float64, one string) string { return words.Count(int(math.RoundToEven(v)), one) }

// binary is a number with a binary prefix: "1.5Gi".
func binary(v float64) string {
	prefix := ""
	for _, p := range []string{"ki", "Mi", "Gi", "Ti", "Pi"} {
		if math.Abs(v) < 1024 {
			break
		}
		prefix, v = p, v/1024
	}
	return fmt.Sprintf("%.4g%s", v, prefix)
}

// utc is a time, from seconds since 1970.
func utc(seconds float64) string {
	return time.Unix(int64(seconds), 0).UTC().Format("2006-01-02 15:04:05 MST")
}

// lasting is a duration: "1h 5m 0s".
func lasting(seconds float64) string {
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

// listed are values in a format.
func listed(rows []Sample, format string) string {
	return strings.Join(words.Of(rows, func(r Sample) string { return fmt.Sprintf(format, r.Value) }), ", ")
}

// listedByLane are values in a format, each with its lane.
func listedByLane(rows []Sample, format string) string {
	return strings.Join(words.Of(rows, func(r Sample) string {
		return "lane " + r.Labels["lane"] + " " + fmt.Sprintf(format, r.Value)
	}), ", ")
}

// lines collects evidence.
type lines []Line

// add adds a line, if its text is not empty.
func (l *lines) add(name, text string) {
	if text != "" {
		*l = append(*l, Line{name, text})
	}
}

// addKnown adds a line of a value and what follows it, if there is a value.
func (l *lines) addKnown(name, value, rest string) { l.add(name, when(value != "", value+rest)) }
