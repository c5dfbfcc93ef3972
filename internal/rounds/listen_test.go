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

	"rdma_exporter/collector"
	"rdma_exporter/internal/host"
)

// TestListenStartsAgain: a task is restarted with a growing delay after each failure, with one line in the log, and not
// after the end of the context.
func TestListenStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var starts []time.Duration
		begin := time.Now()
		c := (&counting{}).collector("fails")
		c.Run = func(context.Context, *host.Host) error {
			starts = append(starts, time.Since(begin))
			return errors.New("broken")
		}
		s := New(t.Context(), Options{
			Host: &host.Host{}, Collectors: []*collector.Collector{c, (&counting{}).collector("has none")},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s.Listen(ctx)
		if took := time.Since(begin); took != time.Hour {
			t.Errorf("ended after %s", took)
		}
		if n := len(starts); n != 20 || starts[1] != time.Second || starts[2] != 3*time.Second ||
			starts[19]-starts[18] != lastPause {
			t.Errorf("%d starts: %v", n, starts)
		}
		if n := strings.Count(log.String(), "broken"); n != 1 {
			t.Errorf("%d lines: %s", n, log.String())
		}
	})
}

// TestListenEnds: Listen returns at once if there is nothing to do, otherwise when its context ends; a failure after a
// long run counts as the first.
func TestListenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		nothing, long := (&counting{}).collector("nothing"), (&counting{}).collector("long")
		nothing.Run = func(context.Context, *host.Host) error { return nil }
		long.Run = func(ctx context.Context, _ *host.Host) error {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Hour):
				return errors.New("broken")
			}
		}
		s := New(t.Context(), Options{
			Host: &host.Host{}, Collectors: []*collector.Collector{nothing, long},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute)
		defer cancel()
		begin := time.Now()
		s.Listen(ctx)
		if took := time.Since(begin); took != 150*time.Minute {
			t.Errorf("ended after %s", took)
		}
		if n := strings.Count(log.String(), "broken"); n != 2 {
			t.Errorf("%d lines: %s", n, log.String())
		}
	})
}
