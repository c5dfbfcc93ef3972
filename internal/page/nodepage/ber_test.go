package nodepage

import (
	"math"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
)

// TestBER: rates are drawn in decades with their limit; a rate without errors has no point, a port without counters has
// no plot.
func TestBER(t *testing.T) {
	from := time.Unix(0, 0)
	line := func(values ...float64) (out []alerting.Point) {
		for i, v := range values {
			out = append(out, alerting.Point{At: from.Add(time.Duration(i) * time.Minute), Value: v})
		}
		return out
	}
	a, quiet, none := PortKey{"a", "1"}, PortKey{"quiet", "1"}, PortKey{"none", "1"}
	h := &History{
		From: from, To: from.Add(4 * time.Minute), Step: time.Minute, Lines: map[string]map[PortKey][]alerting.Point{
			rawBER:    {a: line(1e-8, 0, 1e-7, 1e-6, math.NaN()), quiet: line(0, 0, 0, 0, 0)},
			farRawBER: {a: line(1e-9, 1e-9, 1e-9, 1e-9, 2e-9)},
			limitBER:  {a: line(1e-5, 1e-5, 1e-5, 1e-5, 1e-5), quiet: line(1e-5, 1e-5, 1e-5, 1e-5, 1e-5)},
		},
	}
	s := h.findScales([]Port{{Device: "a", Number: 1}, {Device: "quiet", Number: 1}, {Device: "none", Number: 1}})[kind{}]
	if s.lowest != -9 || s.highest != -4 {
		t.Errorf("from 1e%v to 1e%v", s.lowest, s.highest)
	}
	for k, want := range map[PortKey]struct {
		text  string
		lines int
	}{a: {"raw BER 2.0e-09 (limit 1.0e-05)", 2}, quiet: {"no bit error in 10m (limit 1.0e-05)", 0}, none: {"", 0}} {
		r := h.findRecent(k.Device, 1)
		if got := describeBER(r); got != want.text {
			t.Errorf("%s: %q, want %q", k.Device, got, want.text)
		}
		got := h.plotBER(k, s, r)
		if want.lines == 0 {
			if got != nil {
				t.Errorf("%s is drawn: %+v", k.Device, got)
			}
			continue
		}
		if len(got.Lines) != want.lines || got.Scale != "1e-09 to 1e-04" || got.Limit != yPosition(-5, -9, -4) ||
			strings.Count(got.Lines[0].D, "M") != 2 {
			t.Errorf("%s: %+v", k.Device, got)
		}
	}
}
