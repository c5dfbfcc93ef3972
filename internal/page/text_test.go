package page

import (
	"testing"
	"time"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{FormatRate(400e9), "400 Gb/s"},
		{FormatRate(97.64e9), "97.6 Gb/s"},
		{FormatRate(2400e9), "2400 Gb/s"},
		{FormatRate(0), "0 b/s"},
		{FormatRate(1234), "1.23 kb/s"},
		{FormatPercent(0), "0%"},
		{FormatPercent(0.0004), "<0.1%"},
		{FormatPercent(0.034), "3.4%"},
		{FormatPercent(0.97), "97%"},
		{FormatPercent(1), "100%"},
		{FormatCount(1234567), "1\u202f234\u202f567"},
		{FormatCount(12), "12"},
		{FormatCount(481), "481"},
		{FormatAge(70 * time.Minute), "1h10m"},
		{FormatAge(3 * time.Hour), "3h"},
		{FormatAge(90 * time.Second), "1m"},
		{FormatAge(72 * time.Hour), "3d"},
		{FormatAge(0), "0s"},
		{Shorten("NVIDIA H200", 6), "NVIDI…"},
		{Shorten("x", 0), "…"},
		{FormatDirections("1 Gb/s", "2 Gb/s"), "↑ 1 ↓ 2 Gb/s"},
		{FormatDirections("1 Gb/s", "2 Mb/s"), "↑ 1 Gb/s ↓ 2 Mb/s"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
