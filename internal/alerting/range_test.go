package alerting_test

import (
	"fmt"
	"testing"
	"time"
)

// TestRange: a series has a point at each step with a value, and none at others.
func TestRange(t *testing.T) {
	e := newTestEngine(t, downRule)
	for i := range 5 {
		now := timeAt(time.Duration(i) * 15 * time.Second)
		if i == 2 {
			stepTo(t, e, now, gauge("other", 1))
			continue
		}
		stepTo(t, e, now, gauge("heat", float64(40+i), "device", "mlx5_0"))
	}
	series, err := e.Range(t.Context(), "heat", timeAt(0), timeAt(time.Minute), 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, s := range series {
		got += s.Labels["device"] + ":"
		for _, p := range s.Points {
			got += fmt.Sprintf(" %s=%g", p.At.Sub(timeAt(0)), p.Value)
		}
	}
	if want := "mlx5_0: 0s=40 15s=41 45s=43 1m0s=44"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := e.Range(t.Context(), "heat[", timeAt(0), timeAt(time.Minute), 15*time.Second); err == nil {
		t.Error("takes what is no query")
	}
}
