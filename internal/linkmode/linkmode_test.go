package linkmode

import (
	"slices"
	"testing"
)

func TestOf(t *testing.T) {
	for bit, want := range map[int]Mode{
		19: {"10000baseKR", 10000, 1}, 18: {"10000baseKX4", 10000, 4}, 20: {"10000baseR_FEC", 10000, 1},
		21: {"20000baseMLD2", 20000, 2},
		31: {"25000baseCR", 25000, 1}, 36: {"100000baseKR4", 100000, 4}, 59: {"100000baseCR2", 100000, 2},
		78: {"100000baseCR", 100000, 1},
		64: {"200000baseLR4_ER4_FR4", 200000, 4}, 89: {"400000baseCR4", 400000, 4}, 71: {"400000baseLR8_ER8_FR8", 400000, 8},
		106: {"200000baseDR_2", 200000, 1}, 118: {"800000baseDR4_2", 800000, 4}, 124: {"1600000baseDR8_2", 1600000, 8},
	} {
		t.Run(want.Name, func(t *testing.T) {
			if got, ok := Of(bit); got != want || !ok {
				t.Errorf("%d: %+v %v, want %+v", bit, got, ok, want)
			}
			if b, ok := Bit(want.Name); b != bit || !ok {
				t.Errorf("%d %v", b, ok)
			}
		})
	}
	for _, bit := range []int{-1, 0, 6, 13, 49, 74, 99, 125, 1 << 20} {
		if m, ok := Of(bit); ok {
			t.Errorf("%d: %+v", bit, m)
		}
	}
	for bit := range names {
		if m, _ := Of(bit); m.Speed < 10000 || m.Lanes < 1 || m.Lanes > 10 {
			t.Errorf("%d: %+v", bit, m)
		}
	}
}

func TestFastest(t *testing.T) {
	ours := SetOf(6, 36, 38, 59, 62, 66, 85, 89, 13)
	for _, c := range []struct {
		name string
		set  Set
		want [2]uint64
	}{
		{"all", ours, [2]uint64{400000, 4}},
		{"a peer of 200G", ours.And(SetOf(6, 38, 66)), [2]uint64{200000, 4}},
		{"one speed, several widths", SetOf(73, 78, 89), [2]uint64{400000, 0}},
		{"a peer with fewer words", ours.And(SetOf(6, 13)), [2]uint64{}},
		{"nothing but ports and pause", SetOf(6, 13), [2]uint64{}},
		{"empty", Set{}, [2]uint64{}},
		{"not sent", nil, [2]uint64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if speed, lanes := c.set.Fastest(); [2]uint64{speed, lanes} != c.want {
				t.Errorf("%d Mb/s over %d lanes, want %v", speed, lanes, c.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	s := SetOf(6, 36, 89, 200)
	const text = "6 100000baseKR4 400000baseCR4 200"
	if s.String() != text {
		t.Errorf("%q", s.String())
	}
	if got, ok := Parse(text); !ok || !slices.Equal(got, s) {
		t.Errorf("%v %v", got, ok)
	}
	for _, bad := range []string{"400000baseXX4", "-1", "70000", "6,7"} {
		if got, ok := Parse(bad); ok {
			t.Errorf("%q: %v", bad, got)
		}
	}
	if got, ok := Parse(""); !ok || got == nil || len(got) != 0 {
		t.Errorf("an empty set: %v %v", got, ok)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("6 100000baseKR4 200")
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := Parse(text)
		if !ok {
			return
		}
		again, ok := Parse(s.String())
		if !ok || !slices.Equal(s.Bits(), again.Bits()) {
			t.Errorf("%q: %v, again %v", text, s, again)
		}
	})
}
