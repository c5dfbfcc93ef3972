package rounds

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"rdma_exporter/collector"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
)

// TestPanics: a panic of a collector, while reading or emitting, affects only its own data.
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
			`rdma_scrape_errors_total{collector="reads",reason="failed"} ` + n,
			`rdma_scrape_errors_total{collector="tells",reason="failed"} ` + n,
		} {
			if !strings.Contains(textOf(p), want+"\n") {
				t.Errorf("lacks %s\n%s", want, textOf(p))
			}
		}
	}
}

// panicking is a log handler that panics.
type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("odd text") }

// TestPanicOutsideTheCollector: a panic at the end of a round fails that round only.
func TestPanicOutsideTheCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler(t, 0, (&counting{do: func(context.Context, *snapshot.Node) error {
			return errors.New("no such directory")
		}}).collector("c"))
		s.faults.log = slog.New(panicking{slog.DiscardHandler})
		for _, n := range []string{"1", "2"} {
			p, err := s.Collect(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				`rdma_scrape_collector_success{collector="c"} 0`, `rdma_scrape_errors_total{collector="c",reason="panic"} ` + n,
			} {
				if !strings.Contains(textOf(p), want+"\n") {
					t.Errorf("lacks %s\n%s", want, textOf(p))
				}
			}
		}
	})
}

// TestPanicOfThePicture: the request gets an error.
func TestPanicOfThePicture(t *testing.T) {
	s := scheduler(t, 0, (&counting{}).collector("c"))
	s.State = func() (FileState, bool) { panic("odd file") }
	for range 2 {
		if _, err := s.Collect(t.Context(), nil); !errors.Is(err, access.ErrPanic) {
			t.Errorf("error %v", err)
		}
	}
	s.State = nil
	if p, err := s.Collect(t.Context(), nil); err != nil ||
		!strings.Contains(textOf(p), `rdma_scrape_collector_success{collector="c"} 1`) {
		t.Error(err)
	}
}

// TestPanicOfListener: it is restarted, as after any other failure.
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
