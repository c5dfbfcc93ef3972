package app

import (
	"log/slog"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/state"
)

// TestAlertMemoryWritesNews: the file is written when the alerts are others, and else once a minute; at the end it tells the last round.
func TestAlertMemoryWritesNews(t *testing.T) {
	dir, begin := t.TempDir(), time.Unix(1_700_000_000, 0)
	a := openAlertMemory(dir, slog.New(slog.DiscardHandler))
	round := func(seen time.Duration, devices ...string) (out []alerting.Active) {
		for _, d := range devices {
			out = append(out, alerting.Active{Labels: map[string]string{"alertname": "A", "device": d}, ActiveAt: begin, SeenAt: begin.Add(seen)})
		}
		return out
	}
	for _, c := range []struct {
		seen    time.Duration
		devices []string
		kept    time.Duration // -1: none
	}{
		{0, nil, -1},
		{15 * time.Second, []string{"0"}, 15 * time.Second},
		{30 * time.Second, []string{"0"}, 15 * time.Second},
		{45 * time.Second, []string{"0", "1"}, 45 * time.Second},
		{60 * time.Second, []string{"0", "1"}, 45 * time.Second},
		{105 * time.Second, []string{"0", "1"}, 105 * time.Second},
		{120 * time.Second, []string{"1"}, 120 * time.Second},
		{60 * time.Second, []string{"1"}, 60 * time.Second}, // the clock was set back
		{75 * time.Second, nil, -1},
		{90 * time.Second, []string{"0"}, 90 * time.Second},
		{100 * time.Second, []string{"0"}, 90 * time.Second},
	} {
		a.save(round(c.seen, c.devices...))
		var kept []alerting.Active
		if err := state.Read(dir, &kept); err != nil && c.kept >= 0 {
			t.Fatal(err)
		}
		got := time.Duration(-1)
		if len(kept) > 0 {
			got = kept[0].SeenAt.Sub(begin)
		}
		if got != c.kept {
			t.Errorf("%s: the file is of %s, want %s", c.seen, got, c.kept)
		}
	}
	a.close()
	var kept []alerting.Active
	must(t, state.Read(dir, &kept))
	if len(kept) != 1 || !kept[0].SeenAt.Equal(begin.Add(100*time.Second)) {
		t.Errorf("at the end: %+v", kept)
	}
}
