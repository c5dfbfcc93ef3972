package verdict

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/rounds"
)

// TestEndedRound: a round whose request was cancelled has no samples, since missing data is then no sign of a fault. A
// round that missed its deadline has the samples that were read.
func TestEndedRound(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		end     func(context.Context) (context.Context, context.CancelFunc)
		err     string
		samples bool
	}{
		"cancelled": {context.WithCancel, "context canceled", false},
		"late": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, at)
		}, "evaluate rule a:b:c in r.yml: query timed out in query execution", true},
		"complete": {func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }, "<nil>", true},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := alerting.New(alerting.Options{
				Dir: t.TempDir(), Instance: "gpu-1:10879", Files: []string{"r.yml"},
				Rules: fstest.MapFS{"r.yml": {Data: []byte("groups: [{name: g, rules: [{record: 'a:b:c', expr: up}]}]\n")}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := engine.Close(); err != nil {
					t.Error(err)
				}
			}()
			ctx, end := c.end(t.Context())
			sched := rounds.New(t.Context(), rounds.Options{
				Host: &host.Host{}, Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
				Now:    func() time.Time { return at },
				Before: func(time.Time) error { end(); return nil },
			})
			p, err := Round(ctx, sched, engine, 0)
			if got := fmt.Sprint(err); got != c.err || (p != nil) != c.samples {
				t.Errorf("%s, picture %v, want %s", got, p != nil, c.err)
			}
			found, err := engine.Query(t.Context(), `{__name__=~"rdma_.+"}`, at)
			if err != nil || (len(found) > 0) != c.samples {
				t.Errorf("%d samples, %v", len(found), err)
			}
		})
	}
}

// TestByClock: if the wall clock is set during a round, the round has the time of the clock at its end.
func TestByClock(t *testing.T) {
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const age = 10 * time.Second
	for set, want := range map[time.Duration]time.Duration{
		0: 0, time.Hour: time.Hour, -time.Hour: -time.Hour,
		999 * time.Millisecond: 0, -999 * time.Millisecond: 0, time.Second: time.Second, -time.Second: -time.Second,
	} {
		if got := toWallClock(then, then.Add(age+set), age).Sub(then); got != want {
			t.Errorf("clock set by %s: time changed by %s, want %s", set, got, want)
		}
	}
}
