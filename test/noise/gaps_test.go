package main

import (
	"strings"
	"testing"
	"time"
)

func TestGaps(t *testing.T) {
	var g, all gaps
	for _, d := range []time.Duration{
		40, 999, time.Microsecond, 16 * time.Microsecond, 127 * time.Microsecond, 128 * time.Microsecond, 3 * time.Hour,
	} {
		g.note(d)
	}
	all.add(g)
	all.add(g)
	if want := 2 * (3*time.Hour + 272*time.Microsecond); all.lost != want || all.watched != want+2*1039 ||
		all.longest != 3*time.Hour {
		t.Errorf("%+v, want %s lost", all, want)
	}
	for n, want := range map[int]int{0: 10, 1: 8, 4: 8, 5: 6, 7: 4, 8: 2, 13: 2} {
		if got := all.atLeast(n); got != want {
			t.Errorf("%d gaps of 2^%d µs or more, want %d", got, n, want)
		}
	}
}

// TestMeasure: the thread detects that it was displaced, here by itself.
func TestMeasure(t *testing.T) {
	g, err := measure(t.Context(), 0, 200*time.Millisecond)
	if err != nil || g.watched < 200*time.Millisecond || g.lost > g.watched || g.longest > g.lost {
		t.Errorf("%v %+v", err, g)
	}
	if _, err := measure(t.Context(), 1000, time.Second); err == nil || !strings.Contains(err.Error(), "-cpu=1000") {
		t.Errorf("%v", err)
	}
}
