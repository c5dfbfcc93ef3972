package rounds

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestCollectWithin: an evaluation every 15 s reuses a scrape of the last half of the interval, with the time of its
// reading.
func TestCollectWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		s := scheduler(t, time.Second, c.collector("x"))
		begin := time.Now()
		if _, err := s.Collect(t.Context(), nil); err != nil { // a scrape
			t.Fatal(err)
		}
		for _, step := range []struct {
			after time.Duration
			read  time.Duration // since the start
			count int
		}{
			{7 * time.Second, 0, 1},
			{8 * time.Second, 8 * time.Second, 2},
		} {
			time.Sleep(step.after - time.Since(begin))
			p, err := s.CollectWithin(t.Context(), nil, 7500*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if read := p.Read.Sub(begin); read != step.read || c.collections() != step.count || !p.At.Equal(time.Now()) {
				t.Errorf("after %s: read at %s, %d collections, want %s, %d",
					step.after, read, c.collections(), step.read, step.count)
			}
		}
	})
}

// TestEngineState: the engine's state is in every picture, and nothing if there is no engine.
func TestEngineState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler(t, 0, (&counting{}).collector("x"))
		p, err := s.Collect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		without := len(p.Families)
		s.Alerting = func() (AlertingState, bool) { return AlertingState{Rounds: 3}, true }
		if p, err = s.Collect(t.Context(), nil); err != nil || len(p.Families) != without+len(alertingDescs) {
			t.Errorf("%v: %d families, %d without an engine", err, len(p.Families), without)
		}
	})
}
