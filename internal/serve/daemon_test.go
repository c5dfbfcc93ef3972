package serve

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/test/locked"
	"rdma_exporter/test/machines"
)

// storm is a recorded machine with alerts that fire as soon as the recording was played.
const storm = "hgx-h200-roce-storm"

// TestReplayThatFails: a recording that cannot be played is not served, with or without rules.
func TestReplayThatFails(t *testing.T) {
	m, _ := machines.Open(t, machines.Fixture(storm))
	full := errors.New("no space left on device")
	play := func(before func(time.Time) error) *rounds.Scheduler {
		return rounds.New(t.Context(), rounds.Options{
			Host: m.Host, Timeout: time.Second, Logger: slog.New(slog.DiscardHandler), Now: m.Clock, Before: before,
		})
	}
	e, err := alerting.New(alerting.Options{
		Scratch: t.TempDir(), Instance: "gpu-1:9", Files: []string{"r.yml"},
		Rules: fstest.MapFS{"r.yml": {Data: []byte("groups: [{name: g, rules: [{alert: Bad, expr: 'label_replace(up, \"a\", \"b\", \"job\", \"(\")'}]}]")}},
	})
	must(t, err)
	var log locked.Buffer
	d := newDaemon(e, slog.New(slog.NewTextHandler(&log, nil)))
	d.Rounds = play(m.Seek)
	defer d.Close()
	must(t, m.PlayRounds(func() error { return d.Round(t.Context(), 0) }))
	if !strings.Contains(log.String(), "rule Bad") { // a rule that fails does not prevent serving
		t.Error(log.String())
	}
	d.Rounds = play(func(time.Time) error { return full })
	if err := m.PlayRounds(func() error { return d.Round(t.Context(), 0) }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// TestFaultOfARound: a panic in a round is logged, and does not end the program.
func TestFaultOfARound(t *testing.T) {
	e, err := alerting.New(alerting.Options{Scratch: t.TempDir(), Instance: "gpu-1:9", Rules: fstest.MapFS{}})
	must(t, err)
	var log locked.Buffer
	d := newDaemon(e, slog.New(slog.NewTextHandler(&log, nil))) // without rounds
	defer d.Close()
	for range 2 {
		if err := d.Round(t.Context(), 0); !errors.Is(err, access.ErrPanic) {
			t.Error(err)
		}
	}
	if l := log.String(); strings.Count(l, "\n") != 1 || !strings.Contains(l, "please report it: panic") {
		t.Errorf("log:\n%s", l)
	}
}
