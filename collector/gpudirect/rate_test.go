package gpudirect

import (
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1000, 0).Add(time.Duration(seconds) * time.Second) }
	type reading struct {
		second int
		value  float64
	}
	for _, c := range []struct {
		name     string
		readings []reading
		want     float64 // -1: not known
	}{
		{"none", nil, -1},
		{"one", []reading{{0, 100}}, -1},
		{"two", []reading{{0, 100}, {15, 250}}, 10},
		{"the same twice", []reading{{0, 100}, {15, 250}, {15, 250}}, 10},
		{"an earlier one", []reading{{0, 100}, {15, 250}, {10, 500}}, 10},
		{"too near", []reading{{0, 100}, {2, 250}}, -1},
		{"a pause within the minute", []reading{{0, 0}, {15, 900}, {30, 900}, {45, 900}, {60, 900}}, 15},
		{"a pause of more than a minute", []reading{{0, 0}, {15, 900}, {30, 900}, {45, 900}, {60, 900}, {75, 900}}, 0},
		{"rounds of two minutes", []reading{{0, 0}, {120, 120}, {240, 360}}, 2},
		{"cleared", []reading{{0, 500}, {15, 100}}, -1},
		{"cleared, and on", []reading{{0, 500}, {15, 100}, {30, 250}}, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m meter
			for _, r := range c.readings {
				m.add(at(r.second), r.value)
			}
			got := -1.0
			if r := m.perSecond(); r != nil {
				got = *r
			}
			if got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if len(m.readings) > 6 {
				t.Errorf("keeps %d readings", len(m.readings))
			}
		})
	}
}

func TestMeters(t *testing.T) {
	m := meters{}
	start := time.Unix(1000, 0)
	for i, at := range []time.Time{start, start.Add(15 * time.Second)} {
		m.add("fast", at, float64(i*3000))
		m.add("slow", at, float64(i))
	}
	m.add("new", start.Add(15*time.Second), 1)
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"slow and fast", []string{"slow", "fast"}, "true"},
		{"slow", []string{"slow"}, "false"},
		{"fast and new", []string{"fast", "new"}, "true"},
		{"slow and new", []string{"slow", "new"}, "none"},
		{"slow and absent", []string{"slow", "absent"}, "none"},
		{"none", nil, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tell(m.above(100, c.names...)); got != c.want {
				t.Errorf("%v: %s, want %s", c.names, got, c.want)
			}
		})
	}
	m.add("fast", start.Add(30*time.Second), 9000)
	if m.keep(start.Add(30 * time.Second)); len(m) != 1 || m["fast"] == nil {
		t.Errorf("%v", m)
	}
}
