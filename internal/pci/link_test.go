package pci

import (
	"slices"
	"testing"
)

func hop(function string, speed float64, width uint64, maxSpeed float64, maxWidth uint64) Hop {
	return Hop{function, Link{speed * 1e9, width, maxSpeed * 1e9, maxWidth}}
}

func TestParseLink(t *testing.T) {
	for text, want := range map[string]float64{
		"2.5 GT/s PCIe": 2.5e9, "32.0 GT/s PCIe": 32e9, "8 GT/s": 8e9, "Unknown": 0, "Unknown speed": 0, "": 0,
		"-5.0 GT/s PCIe": 0, "NaN GT/s PCIe": 0, "1e9 GT/s PCIe": 0,
	} {
		if got := ParseSpeed(text); got != want {
			t.Errorf("%q: %g, want %g", text, got, want)
		}
	}
	for text, want := range map[string]uint64{"16": 16, "0": 0, "255": 0, "256": 0, "-1": 0, "x16": 0, "": 0} {
		if got := ParseWidth(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestAvailable(t *testing.T) {
	gen5 := []Hop{
		hop("root", 32, 16, 32, 16), hop("up", 32, 16, 32, 16), hop("down", 32, 16, 32, 16), hop("nic", 32, 16, 32, 16),
	}
	change := func(i int, h Hop) []Hop {
		out := slices.Clone(gen5)
		out[i] = h
		return out
	}
	for _, c := range []struct {
		name  string
		path  []Hop
		bits  float64
		limit string
	}{
		{"all alike: the root port", gen5, 16 * 31507e6, "root"},
		{"a Gen4 slot: both ends say so", slices.Concat(gen5[:2], []Hop{hop("down", 16, 16, 16, 16), hop("nic", 16, 16, 32, 16)}), 16 * 15753e6, "down"},
		{"a narrow uplink", change(1, hop("up", 32, 8, 32, 16)), 8 * 31507e6, "up"},
		{"a hop that does not tell", change(2, Hop{Address: "down"}), 0, ""},
		{"an unknown speed", change(0, hop("root", 128, 16, 128, 16)), 0, ""},
		{"no path", nil, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bits, limit, ok := Available(c.path)
			if bits != c.bits || limit != c.limit || ok != (c.limit != "") {
				t.Errorf("%g %q %v, want %g %q", bits, limit, ok, c.bits, c.limit)
			}
		})
	}
	if got := Capable(gen5[3]); got != 16*31507e6 {
		t.Errorf("capable of %g", got)
	}
	if got := Capable(hop("vf", 0, 0, 0, 0)); got != 0 {
		t.Errorf("capable of %g", got)
	}
}

func TestPairs(t *testing.T) {
	path := []Hop{
		hop("root", 32, 16, 32, 16), hop("up", 32, 16, 64, 16), hop("down", 16, 8, 32, 8), hop("nic", 16, 8, 32, 16),
	}
	want := []Pair{
		{"up", "root", Link{32e9, 16, 32e9, 16}},
		{"nic", "down", Link{16e9, 8, 32e9, 8}},
	}
	if got := Pairs(path); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := Pairs(path[:3]); got != nil {
		t.Errorf("a path that is none: %+v", got)
	}
	if got := Pairs([]Hop{hop("root", 32, 16, 32, 16), hop("vf", 0, 0, 0, 0)}); got != nil {
		t.Errorf("a virtual function: %+v", got)
	}
	if got := Pairs([]Hop{hop("root", 0, 0, 0, 0), hop("nic", 32, 16, 32, 16)}); len(got) != 1 || got[0].MaxWidth != 0 ||
		got[0].MaxSpeed != 0 {
		t.Errorf("an upper end that does not tell: %+v", got)
	}
}

func FuzzParseLink(f *testing.F) {
	for _, text := range []string{
		"16.0 GT/s PCIe", "8 GT/s", "Unknown", "16", "255", "0", "-1 GT/s", "NaN GT/s", "1e309 GT/s",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v := ParseSpeed(text); !(v >= 0 && v <= 1024e9) {
			t.Errorf("%q: %g transfers per second", text, v)
		}
		if n := ParseWidth(text); n >= noLink {
			t.Errorf("%q: %d lanes", text, n)
		}
	})
}
