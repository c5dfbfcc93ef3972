package check

import "testing"

// TestFigure: a number with a unit, and nothing else, is one.
func TestFigure(t *testing.T) {
	for text, want := range map[string]*quantity{
		"200 Gb/s": {200, "Gb/s"}, "97%": {97, "%"}, "3": {3, ""}, "-4.5 dBm": {-4.5, "dBm"}, "1e-05": {1e-05, ""},
		"71.3 °C": {71.3, "°C"},
		"":        nil, "unknown": nil, "+Inf": nil, "1e999": nil, "NaN Gb/s": nil,
	} {
		got := figure(text)
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
