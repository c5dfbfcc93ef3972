package check

import (
	"fmt"
	"testing"

	"rdma_exporter/internal/alerting"
)

// TestFigure: only a number with a unit is parsed as a figure.
func TestFigure(t *testing.T) {
	for text, want := range map[string]*quantity{
		"200 Gb/s": {200, "Gb/s"}, "97%": {97, "%"}, "3": {3, ""}, "-4.5 dBm": {-4.5, "dBm"}, "1e-05": {1e-05, ""},
		"71.3 °C": {71.3, "°C"},
		"":        nil, "unknown": nil, "+Inf": nil, "1e999": nil, "NaN Gb/s": nil,
	} {
		got := parseFigure(text)
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestComparedValue: measured and limit are compared in one unit; otherwise the value is that of the expression.
func TestComparedValue(t *testing.T) {
	for _, c := range []struct{ measured, limit, want string }{
		{"200 Gb/s", "400 Gb/s", `200 of 400 "Gb/s"`},
		{"97%", "50%", `97 of 50 "%"`},
		{"3", "2", `3 of 2 ""`},
		{"200 Gb/s", "97%", `0.5 ""`},
		{"200 Gb/s", "400", `0.5 ""`},
		{"200 Gb/s", "", `0.5 ""`},
		{"unknown", "400 Gb/s", `0.5 ""`},
	} {
		f := findingOf(alerting.Alert{Value: 0.5, Annotations: map[string]string{"measured": c.measured, "limit": c.limit}})
		got := fmt.Sprintf("%v %q", *f.Value, f.Unit)
		if f.Limit != nil {
			got = fmt.Sprintf("%v of %v %q", *f.Value, *f.Limit, f.Unit)
		}
		if got != c.want {
			t.Errorf("measured %q, limit %q: %s, want %s", c.measured, c.limit, got, c.want)
		}
	}
}
