package alerting_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/alerting/store"
)

// TestQueriesWhileTheStoreIsReplaced: concurrent queries are answered or return ErrUnavailable, whatever happens to the
// store.
func TestQueriesWhileTheStoreIsReplaced(t *testing.T) {
	e, _ := lasting(t, filepath.Join(t.TempDir(), "store"))
	defer closeEngine(t, e)
	now := timeAt(0)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := e.Query(t.Context(), "sum_over_time(state[2h])", timeAt(0)); err != nil &&
					!errors.Is(err, store.ErrUnavailable) {
					t.Error(err)
				}
				e.Alerts()
				e.Groups()
				e.Rules()
				e.Stats()
			}
		})
	}
	for range 10 {
		for range 20 {
			now = now.Add(15 * time.Second)
			stepTo(t, e, now, gauge("state", 1, "device", "mlx5_0"))
		}
		now = now.Add(-time.Hour) // an empty one
	}
	close(stop)
	wg.Wait()
}
