package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/verdict"
)

// TestFindingsAfterRestart: samples of an earlier run in the store are not evaluated, and nothing is reported before
// the first round of this run.
func TestFindingsAfterRestart(t *testing.T) {
	dir := t.TempDir()
	for run := range 2 {
		e, err := alerting.New(alerting.Options{
			Dir: dir, Instance: "gpu-1:9", Files: []string{"r.yml"},
			Rules: fstest.MapFS{"r.yml": {Data: []byte("groups: [{name: g, rules: [{alert: Up, expr: up == 1}]}]")}},
		})
		must(t, err)
		full := errors.New("disk full")
		now := time.Unix(1_700_000_000+15*int64(run), 0)
		d := newDaemon(e, slog.New(slog.DiscardHandler))
		sched := rounds.New(t.Context(), rounds.Options{
			Host: &host.Host{}, Timeout: time.Second, Now: func() time.Time { return now },
			Before: func(time.Time) error { return full },
		})
		d.Rounds = sched
		ask := func() error { return d.FindingsWriter()(new(bytes.Buffer)) }
		if d.Round(t.Context(), 0) == nil || ask() == nil {
			t.Errorf("run %d: there are findings before a round is evaluated", run)
		}
		sched.Before = nil
		must(t, d.Round(t.Context(), 0))
		must(t, ask())
		must(t, e.Close())
	}
}

// TestLastRound: a round in which nothing was collected does not replace the previous one.
func TestLastRound(t *testing.T) {
	d := &Daemon{}
	if p := d.LastRound(); p != nil {
		t.Errorf("before the first round: %v", p)
	}
	round := &rounds.Picture{}
	d.seen.keep(round, verdict.Conclusion{}, true)
	d.seen.keep(nil, verdict.Conclusion{}, false)
	if p := d.LastRound(); p != round {
		t.Errorf("%v", p)
	}
}

// held is a context that reports when something waits for it.
type held struct {
	context.Context
	inside, release chan struct{}
	once            sync.Once
}

func (h *held) Done() <-chan struct{} {
	h.once.Do(func() { close(h.inside); <-h.release })
	return h.Context.Done()
}

// TestFindingsDuringEvaluation: the findings of the previous round are available immediately, so that check does not
// wait.
func TestFindingsDuringEvaluation(t *testing.T) {
	e, err := alerting.New(alerting.Options{
		Scratch: t.TempDir(), Instance: "gpu-1:9", Files: []string{"r.yml"},
		Rules: fstest.MapFS{"r.yml": {Data: []byte("groups: [{name: g, rules: [{alert: RDMAUp, expr: vector(1), labels: {severity: warning}}]}]")}},
	})
	must(t, err)
	now := time.Unix(1_700_000_000, 0)
	d := newDaemon(e, slog.New(slog.DiscardHandler))
	defer d.Close()
	d.Rounds = rounds.New(t.Context(),
		rounds.Options{Host: &host.Host{}, Timeout: time.Second, Now: func() time.Time { return now }})
	must(t, d.Round(t.Context(), 0))
	ctx := &held{Context: t.Context(), inside: make(chan struct{}), release: make(chan struct{})}
	ended := make(chan error)
	go func() { ended <- e.Eval(ctx, now.Add(15*time.Second)) }()
	<-ctx.inside
	answered := make(chan error)
	var findings bytes.Buffer
	go func() { answered <- d.FindingsWriter()(&findings) }()
	select {
	case err := <-answered:
		must(t, err)
	case <-time.After(5 * time.Second):
		t.Error("it waits for the round")
		defer func() { <-answered }()
	}
	close(ctx.release)
	must(t, <-ended)
	if !strings.Contains(findings.String(), `"alert": "RDMAUp"`) {
		t.Error(findings.String())
	}
}
