package shared

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/snapshot"
)

func TestLastWaitsForTheFirstRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &LastRound{}
		start := time.Now()
		if d, _, _ := f.Last(t.Context()); d != nil || time.Since(start) != 0 {
			t.Errorf("%v after %s: nobody reads", d, time.Since(start))
		}
		f.Begin()
		go func() {
			time.Sleep(time.Second)
			f.Publish(start, []snapshot.Device{{Name: "mlx5_0"}}, []string{"gpu"})
		}()
		if d, g, _ := f.Last(t.Context()); len(d) != 1 || len(g) != 1 || time.Since(start) != time.Second {
			t.Errorf("%v %v after %s", d, g, time.Since(start))
		}
		f.Begin()
		f.Publish(start, nil, nil)
		if d, _, _ := f.Last(t.Context()); d != nil || time.Since(start) != time.Second {
			t.Errorf("%v after %s", d, time.Since(start))
		}

		slow := &LastRound{}
		slow.Begin()
		start = time.Now()
		if _, _, _ = slow.Last(t.Context()); time.Since(start) != firstRoundTimeout {
			t.Errorf("waited %s", time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if _, _, _ = slow.Last(ctx); time.Since(start) != time.Second {
			t.Errorf("waited %s", time.Since(start))
		}
	})
}
