package reading

import (
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/test/played"
)

func readsOf(t testing.TB, entries string) Reads {
	t.Helper()
	return New(t.Context(), played.Machine(t, entries), "mlx5_0").From(source.Identity)
}

func value(v *uint64) any {
	if v == nil {
		return nil
	}
	return *v
}

func TestParseNumber(t *testing.T) {
	for s, want := range map[string]uint64{
		"4: ACTIVE": 4, "5: LinkUp": 5, "1: CA": 1, "9: <unknown>": 9, "0": 0, "17": 17, "0x11": 17, "0xffff": 65535,
		"0x2651e848": 0x2651e848, "0x0000": 0, "18446744073709551615": 1<<64 - 1, "7 : x": 7,
	} {
		if got, ok := parseNumber([]byte(s)); !ok || got != want {
			t.Errorf("%q: %d, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", ":", "ACTIVE", "-1", "1.5", "4 ACTIVE", "0x", "0xg", "18446744073709551616", ": 4"} {
		if got, ok := parseNumber([]byte(s)); ok {
			t.Errorf("%q: %d", s, got)
		}
	}
}

var decimals = []string{
	"", "0", "7", "42", "007", "18446744073709551615", "18446744073709551616", "18446744073709551625",
	"99999999999999999999", "00000000000000000001",
	"-1", "+1", "1 ", " 1", "1.0", "0x1", "1_000", "N/A (no PMA)", "\x00", "١",
}

func TestParseDecimal(t *testing.T) {
	for _, s := range decimals {
		want, err := strconv.ParseUint(s, 10, 64)
		if got, ok := parseDecimal([]byte(s)); ok != (err == nil) || ok && got != want {
			t.Errorf("%q: %d, %v, want %d, %v", s, got, ok, want, err)
		}
	}
	if _, ok := parseDecimal([]byte(strings.Repeat("0", 21))); ok {
		t.Error("longer than any number")
	}
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range decimals {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		want, err := strconv.ParseUint(string(b), 10, 64)
		if got, ok := parseDecimal(b); ok != (err == nil && len(b) <= 20) || ok && got != want {
			t.Errorf("%q: %d, %v, want %d, %v", b, got, ok, want, err)
		}
	})
}

func TestReaderTellsAbsentFromFaulty(t *testing.T) {
	r := readsOf(t,
		"-- sys/n --\n0x11\n-- sys/padded --\n  7  \n-- sys/words --\nup\n-- sys/empty --\n-- sys/bad !EINVAL --\n")
	for _, c := range []struct {
		name   string
		number any
		text   string
		issues []access.Reason // of number, text and optional
	}{
		{"n", uint64(17), "0x11", nil},
		{"padded", uint64(7), "7", nil},
		{"words", nil, "up", []access.Reason{access.Malformed}},
		{"empty", nil, "", []access.Reason{access.Malformed, access.Malformed}}, // an empty optional file is no fault
		{"missing", nil, "", []access.Reason{access.Absent, access.Absent}},     // nor is a missing one
		{"bad", nil, "", []access.Reason{access.Invalid, access.Invalid, access.Invalid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.Issues = nil
			if got := value(r.Number("sys", c.name)); got != c.number {
				t.Errorf("number %v", got)
			}
			if got := r.Text("sys", c.name); got != c.text {
				t.Errorf("text %q", got)
			}
			if got := r.Optional("sys/" + c.name); got != c.text {
				t.Errorf("optional %q", got)
			}
			var got []string
			for _, i := range r.Issues {
				got = append(got, i.Reason)
				if i.Device != "mlx5_0" || i.Err == nil {
					t.Errorf("%+v", i)
				}
			}
			var want []string
			for _, reason := range c.issues {
				want = append(want, string(reason))
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("issues %q, want %q", got, want)
			}
		})
	}
}

func TestStatsLoseFaultyFilesOnly(t *testing.T) {
	r := readsOf(t, "-- sys/counters/a --\n1\n-- sys/counters/b !EINVAL --\n-- sys/counters/c --\nN/A (no PMA)\n-- sys/counters/d --\n18446744073709551615\n-- sys/counters/e --\n-- sys/counters/f @nonl --\n6\n")
	got := r.Stats("sys/counters", []string{"f", "a", "b", "c", "d", "e", "gone"})
	if len(got) != 3 || got[0].Name != "f" || got[0].Value != 6 || got[1].Name != "a" || got[1].Value != 1 ||
		got[2].Value != 1<<64-1 {
		t.Errorf("%v", got)
	}
	var reasons []string
	for _, i := range r.Issues {
		reasons = append(reasons, i.Reason)
	}
	if strings.Join(reasons, " ") != "invalid unsupported malformed absent" {
		t.Errorf("%q", reasons)
	}
}

func FuzzParseNumber(f *testing.F) {
	for _, s := range []string{"4: ACTIVE", "0x2651e848", "9: <unknown>", "0_1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := parseNumber([]byte(s)); !ok && n != 0 && n != 1<<64-1 {
			t.Errorf("%q: %d", s, n)
		}
	})
}
