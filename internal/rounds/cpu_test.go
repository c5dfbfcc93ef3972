package rounds

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// TestCPUWaitIsNotAStuckDevice: the same read that misses its deadline is late if this process waits for a CPU, and
// stuck if it does not.
func TestCPUWaitIsNotAStuckDevice(t *testing.T) {
	for _, c := range []struct {
		name       string
		share      float64
		has, lacks []string
	}{
		{
			"waits", 0.8,
			[]string{
				`rdma_scrape_collector_late{collector="c",device="mlx5_0"} 1`,
				`rdma_scrape_errors_total{collector="c",device="mlx5_0",reason="late"} 1`, `rdma_exporter_cpu_wait_seconds_total `,
			},
			[]string{"rdma_scrape_collector_stuck{", `reason="stuck"`},
		},
		{
			"does not wait", 0,
			[]string{
				`rdma_scrape_collector_stuck{collector="c",device="mlx5_0"} 1`,
				`rdma_scrape_errors_total{collector="c",device="mlx5_0",reason="stuck"} 1`,
			},
			[]string{"rdma_scrape_collector_late{", `reason="late"`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				turns := access.NewTurns()
				turns.CPU = access.NewCPUWait(func() (access.CPUTimes, error) {
					waited := time.Duration(c.share * float64(time.Since(start)))
					return access.CPUTimes{Threads: map[int]time.Duration{1: waited}}, nil
				})
				s := scheduler(t, 0, (&counting{do: func(ctx context.Context, n *snapshot.Node) error {
					err := turns.Do(ctx, "c/mlx5_0", func() { time.Sleep(time.Minute) })
					n.Devices = append(n.Devices, reading.Ended("mlx5_0", err))
					n.Issues = append(n.Issues, snapshot.Issue{Device: "mlx5_0", Reason: string(access.ReasonOf(err)), Err: err})
					return nil
				}}).collector("c"))
				s.Host.CPU = turns.CPU
				p, err := s.Collect(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				got := textOf(p)
				for _, want := range c.has {
					if !strings.Contains(got, want) {
						t.Errorf("lacks %s\n%s", want, got)
					}
				}
				for _, not := range c.lacks {
					if strings.Contains(got, not) {
						t.Errorf("has %s", not)
					}
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestCancelledCollectionIsNoFailure: a collection that is cancelled at the start counts no failure and logs nothing.
func TestCancelledCollectionIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		turns := access.NewTurns()
		c := (&counting{do: func(ctx context.Context, n *snapshot.Node) error {
			err := turns.Do(ctx, "c/mlx5_0", func() { time.Sleep(time.Minute) })
			n.Issues = append(n.Issues, snapshot.Issue{Device: "mlx5_0", Reason: string(access.ReasonOf(err)), Err: err})
			return err
		}}).collector("c")
		s := scheduler(t, 0, c)
		s.ctx, s.faults.log = ctx, slog.New(slog.NewTextHandler(&logged, nil))
		time.AfterFunc(8*time.Millisecond, cancel)
		p, err := s.Collect(ctx, nil)
		if p != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%+v %v", p, err)
		}
		if keys, _ := s.faults.listTotals(); len(keys) > 0 || logged.Len() > 0 {
			t.Errorf("counted %v, logged %s", keys, logged.String())
		}
		time.Sleep(time.Minute)
	})
}
