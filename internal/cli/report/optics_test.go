package report

import (
	"testing"

	"rdma_exporter/internal/transceiver"
)

func TestBar(t *testing.T) {
	n := func(v float64) *float64 { return &v }
	all := transceiver.Levels{HighAlarm: n(70), LowAlarm: n(0), HighWarning: n(60), LowWarning: n(10)}
	for _, c := range []struct {
		name    string
		reading *float64
		levels  transceiver.Levels
		want    string
	}{
		{"below low alarm", n(-40), all, "[o~~----------~~!]"},
		{"at low alarm", n(0), all, "[!o~----------~~!]"},
		{"in the middle", n(35), all, "[!~~-----o----~~!]"},
		{"below high alarm", n(69.9), all, "[!~~----------~o!]"},
		{"above high alarm", n(71), all, "[!~~----------~~o]"},
		{"far above high alarm", n(1e9), all, "[!~~----------~~o]"},
		{"alarms only", n(35), transceiver.Levels{HighAlarm: n(70), LowAlarm: n(0)}, "[!-------o------!]"},
		{"high alarm only", n(35), transceiver.Levels{HighAlarm: n(70)}, ""},
		{"no reading", nil, all, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := bar(c.reading, &c.levels); got != c.want {
				t.Errorf("%v: %s, want %s", c.reading, got, c.want)
			}
		})
	}
}
