package page

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// CharWidth is the width of a letter in drawings, in pixels. It is an upper estimate, so that text is cut rather than
// overflows its box.
const CharWidth = 7

// FormatRate formats a rate in bits per second.
func FormatRate(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "Tb/s"}, {1e9, "Gb/s"}, {1e6, "Mb/s"}, {1e3, "kb/s"}} {
		if v >= u.size && (u.size != 1e12 || v >= 10e12) {
			return FormatDigits(v/u.size) + " " + u.name
		}
	}
	return FormatDigits(v) + " b/s"
}

// FormatDigits formats a number with at most three digits, but never fewer than its whole part has.
func FormatDigits(v float64) string {
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

// FormatPercent formats a ratio as a percentage; a small one is not shown as 0.
func FormatPercent(v float64) string {
	switch {
	case v > 0 && v < 0.001:
		return "<0.1%"
	case v < 0.1:
		return FormatDigits(float64(int(v*1000+0.5))/10) + "%"
	}
	return fmt.Sprintf("%.0f%%", 100*v)
}

// FormatCount formats a count with blanks between thousands.
func FormatCount(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// Shorten cuts a text to n letters.
func Shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return strings.TrimSpace(string(r[:max(0, n-1)])) + "…"
}

// FormatAge formats a duration in its largest units: 12s, 4m, 1h5m, 3d.
func FormatAge(d time.Duration) string {
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

// FormatTime formats a time for people.
func FormatTime(t time.Time) string { return t.UTC().Format("15:04:05 UTC, 2 Jan 2006") }

// Cell is the text of a table cell. Unknown and inapplicable values have a class of their own.
type Cell struct{ Text, Class string }

// classUnknown is the class of cells without a value.
const classUnknown = "unknown"

// UnknownCell returns a cell with the reason why there is no value.
func UnknownCell(reason string) Cell { return Cell{"unknown: " + reason, classUnknown} }

// NotApplicable is the cell for a value that does not apply to the kind or the state of a port.
var NotApplicable = Cell{"n/a", classUnknown}

// FormatDirections formats the sent and received values, with the unit once if it is the same.
func FormatDirections(sent, received string) string {
	number, unit, _ := strings.Cut(sent, " ")
	if unit != "" && strings.HasSuffix(received, " "+unit) {
		sent = number
	}
	return fmt.Sprintf("↑ %s ↓ %s", sent, received)
}

// CompareNames orders names by their last number if they are alike before it: mlx5_9, mlx5_10.
func CompareNames(a, b string) int {
	front := func(s string) string { return strings.TrimRight(s, "0123456789") }
	if front(a) != front(b) {
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// MaxName limits a name, in letters: NodeDescription has 64 bytes (IBA 14.2.5.2).
const MaxName = 64
