package rounds

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"rdma_exporter/collector"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// TestPanics: a fault of a collector, in its reading or its telling, costs its own data only, in each round.
func TestPanics(t *testing.T) {
	reads := &counting{do: func(context.Context, *snapshot.Node) error { panic("reads") }}
	tells := (&counting{}).collector("tells")
	tells.Emit = func(_ *snapshot.Node, s collector.Sink) {
		s.Emit(probe, 1, "half")
		panic("tells")
	}
	s := scheduler(t, 0, reads.collector("reads"), tells, (&counting{}).collector("good"))
	for _, n := range []string{"1", "2"} {
		p, err := s.Collect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`probe{device="good"} 1`, `rdma_scrape_collector_success{collector="good"} 1`,
			`rdma_scrape_collector_success{collector="reads"} 0`, `rdma_scrape_collector_success{collector="tells"} 0`,
			`rdma_scrape_errors_total{collector="reads",reason="failed"} ` + n, `rdma_scrape_errors_total{collector="tells",reason="failed"} ` + n,
		} {
			if !strings.Contains(text(p), want+"\n") {
				t.Errorf("lacks %s\n%s", want, text(p))
			}
		}
	}
}

// TestPanicOfListener: it is started again, as after any other failure.
func TestPanicOfListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		c := (&counting{}).collector("c")
		c.Run = func(context.Context, *host.Host) error {
			if runs.Add(1) < 3 {
				panic(errors.New("odd frame"))
			}
			return nil
		}
		scheduler(t, 0, c).Listen(t.Context())
		if n := runs.Load(); n != 3 {
			t.Errorf("ran %d times", n)
		}
	})
}
