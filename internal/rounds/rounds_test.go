package rounds

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

var probe = &exposition.Desc{Name: "probe", Help: "A test's metric.", Labels: []string{"device"}}

// counting is a collector that counts its collections and calls a function of the test in each.
type counting struct {
	mu    sync.Mutex
	count int
	do    func(context.Context, *snapshot.Node) error
}

func (c *counting) collector(name string) *collector.Collector {
	return &collector.Collector{
		Name: name, Descs: []*exposition.Desc{probe},
		Read: func(ctx context.Context, _ *host.Host, n *snapshot.Node, done func(error)) {
			c.mu.Lock()
			c.count++
			c.mu.Unlock()
			if c.do == nil {
				done(nil)
				return
			}
			done(c.do(ctx, n))
		},
		Emit: func(_ *snapshot.Node, s collector.Sink) { s.Emit(probe, 1, name) },
	}
}

func (c *counting) collections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

func scheduler(t *testing.T, min time.Duration, cs ...*collector.Collector) *Scheduler {
	t.Helper()
	return New(context.WithoutCancel(t.Context()),
		Options{Host: &host.Host{Now: time.Now}, Collectors: cs, Timeout: 10 * time.Second, MinInterval: min})
}

func textOf(p *Picture) string { return string(exposition.AppendText(nil, p.Families)) }

// TestTenScrapesStartOneCollection: requests during a collection get its result.
func TestTenScrapesStartOneCollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := &counting{do: func(context.Context, *snapshot.Node) error { <-release; return nil }}
		s := scheduler(t, 0, c.collector("slow"))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				p, err := s.Collect(t.Context(), nil)
				if err != nil || !strings.Contains(textOf(p), `probe{device="slow"} 1`) {
					t.Errorf("err %v, got %s", err, textOf(p))
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if n := c.collections(); n != 1 {
			t.Errorf("%d collections, want 1", n)
		}
	})
}

// TestClientThatGoesAwayCancelsNothing: after a client disconnects, the other client and the next one get the result.
func TestClientThatGoesAwayCancelsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := &counting{do: func(ctx context.Context, _ *snapshot.Node) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		s := scheduler(t, time.Minute, c.collector("slow"))
		ctx, goAway := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if p, err := s.Collect(ctx, nil); err != nil || !strings.Contains(textOf(p), `success{collector="slow"} 0`) {
				t.Errorf("the client that went: err %v, got %s", err, textOf(p))
			}
		})
		synctest.Wait()
		goAway()
		synctest.Wait()
		wg.Go(func() {
			if p, err := s.Collect(t.Context(), nil); err != nil || !strings.Contains(textOf(p), `success{collector="slow"} 1`) {
				t.Errorf("the client that stayed: err %v, got %s", err, textOf(p))
			}
		})
		synctest.Wait()
		close(release)
		wg.Wait()
		if n := c.collections(); n != 1 {
			t.Errorf("%d collections, want 1", n)
		}
	})
}

// TestDeadline: a request gets the collections that have finished by its deadline; the rest counts as failed. A
// collector that respects its context is cancelled before the request ends, so that its partial result is included.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := &counting{do: func(context.Context, *snapshot.Node) error { <-release; return nil }}
		polite := &counting{do: func(ctx context.Context, n *snapshot.Node) error {
			<-ctx.Done()
			n.Devices = []snapshot.DeviceRead{{Device: "mlx5_0", Stuck: true}}
			return nil
		}}
		quick := &counting{}
		s := scheduler(t, 0, deaf.collector("deaf"), polite.collector("polite"), quick.collector("quick"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		p, err := s.Collect(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("answered after %s, want 2s, since one does not end", took)
		}
		for _, want := range []string{
			`probe{device="quick"} 1`, `probe{device="polite"} 1`,
			`rdma_scrape_collector_success{collector="deaf"} 0`, `rdma_scrape_collector_success{collector="polite"} 1`,
			`rdma_scrape_collector_success{collector="quick"} 1`,
			`rdma_scrape_collector_stuck{collector="polite",device="mlx5_0"} 1`,
		} {
			if !strings.Contains(textOf(p), want) {
				t.Errorf("lacks %s\n%s", want, textOf(p))
			}
		}
		if _, err := s.Collect(ctx, []string{"deaf"}); err != nil {
			t.Fatal(err)
		}
		if n := deaf.collections(); n != 1 {
			t.Errorf("the collector that hangs was started %d times", n)
		}
		close(release)
	})
}

// TestMinInterval: a recent result is reused, an old one is not.
func TestMinInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{}
		s := scheduler(t, time.Second, c.collector("c"))
		for i, pause := range []time.Duration{0, 500 * time.Millisecond, 400 * time.Millisecond, 200 * time.Millisecond} {
			time.Sleep(pause) // of the fake clock
			p, err := s.Collect(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			age := map[int]string{0: "0", 1: "0.5", 2: "0.9", 3: "0"}[i]
			if want := `rdma_scrape_collector_age_seconds{collector="c"} ` + age + "\n"; !strings.Contains(textOf(p), want) {
				t.Errorf("request %d lacks %s\n%s", i, want, textOf(p))
			}
		}
		if n := c.collections(); n != 2 {
			t.Errorf("%d collections, want 2", n)
		}
	})
}

// TestSelection: only named collectors run; the error for an unknown name lists the collectors.
func TestSelection(t *testing.T) {
	a, b := &counting{}, &counting{}
	s := scheduler(t, 0, a.collector("a"), b.collector("b"))
	p, err := s.Collect(t.Context(), []string{"b"})
	if err != nil {
		t.Fatal(err)
	}
	if a.collections() != 0 || b.collections() != 1 || strings.Contains(textOf(p), `collector="a"`) {
		t.Errorf("a ran %d times, b %d\n%s", a.collections(), b.collections(), textOf(p))
	}
	var unknown *UnknownCollectorError
	if _, err := s.Collect(t.Context(), []string{"b", "c"}); !errors.As(err, &unknown) || unknown.Name != "c" ||
		!slices.Equal(unknown.Known, []string{"a", "b"}) {
		t.Errorf("error %v", err)
	}
}

// TestDeviceThatHangsLeavesTimeForTheAnswer: a collector that respects its context is in the response before the
// deadline of the request.
func TestDeviceThatHangsLeavesTimeForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polite := &counting{do: func(ctx context.Context, _ *snapshot.Node) error { <-ctx.Done(); return nil }}
		s := scheduler(t, 0, polite.collector("polite"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		p, err := s.Collect(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took >= 2*time.Second || !strings.Contains(textOf(p), `success{collector="polite"} 1`) {
			t.Errorf("answered after %s\n%s", took, textOf(p))
		}
	})
}
