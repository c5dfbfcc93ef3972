package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/blind"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/rounds"
)

// judgeRound collects and judges. Collections younger than young will do; their own time is that of the round.
func judgeRound(ctx context.Context, sched *rounds.Scheduler, engine *alerting.Engine, young time.Duration) (*rounds.Picture, error) {
	p, err := sched.CollectWithin(ctx, nil, young)
	if err != nil {
		return nil, err
	}
	if err := engine.Append(p.Read, exposition.DTO(p.Families)); err != nil {
		return p, err
	}
	return p, engine.Eval(ctx, p.Read)
}

// daemon judges the rounds of a machine while the program serves.
type daemon struct {
	engine   *alerting.Engine
	notifier *alerting.Notifier // nil: nobody is told
	rounds   *rounds.Scheduler
	interval time.Duration
	scratch  string // a folder that goes with the program; empty if there is none
	log      *slog.Logger

	host   string // label instance
	replay string // the capture that is judged; empty for a live host

	mu     sync.Mutex
	failed bool         // the last round
	blind  blind.Report // of the last round
}

// daemon makes the engine; nil where there is to be none.
func (s *serveConfig) daemon(c *config, m *machine, log *slog.Logger) (*daemon, error) {
	a := &s.alerting
	if !a.on {
		return nil, nil
	}
	files, names, err := readRules(a.ruleFiles)
	if err != nil {
		return nil, err
	}
	instance := a.instanceOf(m, *s.toolkit.WebListenAddresses)
	d := &daemon{interval: a.interval, host: instance, replay: c.replay, log: log}
	external := s.externalURL
	if external == "" {
		external = "http://" + instance + s.routePrefix
	}
	if d.notifier, err = a.notifier(m, alerting.NotifierOptions{ExternalURL: external, Logger: log}); err != nil {
		return nil, err
	}
	dir := filepath.Join(c.stateDir, "alerting", "store")
	if m.player != nil {
		if d.scratch, err = os.MkdirTemp(capture.Scratch(), "rdma_exporter-alerting-"); err != nil {
			d.close()
			return nil, fmt.Errorf("cannot make a store: %w: set TMPDIR to a folder with free space", err)
		}
		dir = filepath.Join(d.scratch, "store")
	}
	d.engine, err = alerting.New(alerting.Options{
		Dir: dir, Rules: files, Files: names, Job: a.job, Instance: instance, ExternalLabels: a.externalLabels, ExternalURL: external,
		Interval: a.interval, Notifier: d.notifier, Logger: log,
	})
	if err != nil {
		d.close()
		return nil, fmt.Errorf("cannot judge: %w", err)
	}
	return d, nil
}

// run judges a round at each interval, the first at once, until ctx ends. A round that takes longer puts the next one off.
func (d *daemon) run(ctx context.Context) {
	for {
		next := time.Now().Add(d.interval)
		d.round(ctx, d.interval/2)
		if !pause(ctx, time.Until(next)) {
			return
		}
	}
}

// round logs a lasting failure when it starts and when it ends.
func (d *daemon) round(ctx context.Context, young time.Duration) {
	p, err := judgeRound(ctx, d.rounds, d.engine, young)
	if ctx.Err() != nil {
		return
	}
	d.mu.Lock()
	failed := d.failed
	d.failed = err != nil
	if p != nil {
		d.blind = p.Blind
	}
	d.mu.Unlock()
	switch {
	case err != nil && !failed:
		d.log.Error("not all rules are judged", "err", oneLine(err))
	case err == nil && failed:
		d.log.Info("all rules are judged again")
	}
}

// findings writes what check says, as JSON.
func (d *daemon) findings(w io.Writer) error {
	if _, to := d.engine.Observed(); to.IsZero() {
		return errors.New("no round has been judged yet")
	}
	d.mu.Lock()
	unseen := d.blind
	d.mu.Unlock()
	return check.JSON(w, reportOf(d.engine, check.Input{Replay: d.replay, Host: d.host, Interval: d.interval, Blind: unseen}))
}

// close ends what there is. Rounds have ended.
func (d *daemon) close() {
	if d.notifier != nil {
		d.notifier.Close()
	}
	var err error
	if d.engine != nil {
		err = d.engine.Close()
	}
	if d.scratch != "" {
		err = errors.Join(err, os.RemoveAll(d.scratch))
	}
	discard(d.log, "cannot close the store of the rules", err)
}
