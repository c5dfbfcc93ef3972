package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/rounds"
)

// evaluateRound collects and evaluates. Collections younger than young are reused; their time is the time of the round.
func evaluateRound(ctx context.Context, sched *rounds.Scheduler, engine *alerting.Engine, young time.Duration) (*rounds.Picture, error) {
	p, err := sched.CollectWithin(ctx, nil, young)
	if err != nil {
		return nil, err
	}
	read := byClock(p.Read)
	if err := engine.Append(read, exposition.DTO(p.Families)); err != nil {
		return p, err
	}
	return p, engine.Eval(ctx, read)
}

// byClock is a time by the wall clock as it is now: it may have been set since then. Slewing is ignored: rounds keep their exact distances.
func byClock(t time.Time) time.Time {
	now := time.Now()
	read, wall := now.Add(t.Sub(now)).Round(0), t.Round(0)
	if read.Sub(wall).Abs() < time.Second {
		return wall
	}
	return read
}

// daemon evaluates the rules on the rounds of a machine while the program serves.
type daemon struct {
	config   *alertingConfig
	engine   *alerting.Engine
	notifier *alerting.Notifier // nil: no alerts are sent
	memory   *alertMemory       // nil for a replay
	rounds   *rounds.Scheduler
	log      *slog.Logger
	phase    time.Duration // of the host within the interval
	failed   bool          // the last round
	stats    daemonStats
	flight   *flightRecorder // nil: no captures of incidents are kept
	seen     seenLast
}

// storeFolder is the directory of samples and alert state below the state directory.
const storeFolder = "alerting"

// daemon makes the engine; nil without alerting. A replay saves nothing.
func (s *serveConfig) daemon(c *config, m *machine, log *slog.Logger) (*daemon, error) {
	a := &s.alerting
	if !a.on {
		return nil, nil
	}
	instance := a.instanceOf(m, *s.toolkit.WebListenAddresses)
	external := s.own(m)
	a.runbooks = s.books(m)
	files, names, err := readRules(a.ruleFiles, a.runbooks)
	if err != nil {
		return nil, err
	}
	d := &daemon{config: a, phase: phase(m.hostname(), a.interval), log: log, seen: seenLast{host: instance, replay: m.recording(c)}}
	if d.notifier, err = a.notifier(m, alerting.NotifierOptions{ExternalURL: external, Logger: log}); err != nil {
		return nil, err
	}
	o := alerting.Options{
		Scratch: capture.Scratch(), Rules: files, Files: names, Job: a.job, Instance: instance, ExternalLabels: a.externalLabels, ExternalURL: external,
		Interval: a.interval, Notifier: d.notifier, Logger: log,
	}
	if m.player == nil {
		o.Clock = m.alertingClock()
		if d.memory = openAlertMemory(filepath.Join(c.stateDir, storeFolder), log); d.memory.store != nil {
			o.Dir, o.Known = d.memory.samples(), d.memory.known
		}
	}
	if d.engine, err = alerting.New(o); err != nil {
		d.close()
		return nil, fmt.Errorf("cannot load the rules: %w", err)
	}
	return d, nil
}

// alertingClock reads the clocks of the host.
func (m *machine) alertingClock() func() alerting.Clock {
	boot, clocks := m.firstLine("proc/sys/kernel/random/boot_id"), host.NewClocks()
	return func() alerting.Clock {
		wall, up, ran := clocks.Read()
		return alerting.Clock{Wall: wall, Boot: boot, Up: up, Ran: ran}
	}
}

// run evaluates a round immediately, and then one per interval at the host's phase, until ctx ends.
func (d *daemon) run(ctx context.Context) {
	beat(ctx, d.config.interval, d.phase, func() {
		_ = d.round(ctx, d.config.interval/2) // already logged
	})
}

// round logs the beginning and the end of a persistent failure, and returns why nothing was collected.
func (d *daemon) round(ctx context.Context, young time.Duration) error {
	start := time.Now()
	if d.memory != nil && d.memory.reopen() {
		d.memory.resume(d.engine)
	}
	var p *rounds.Picture
	err := host.Guard(func() (err error) { // a panic of the evaluation does not affect scrapes
		p, err = evaluateRound(ctx, d.rounds, d.engine, young)
		return err
	})
	concluded, unread := concludedBy(d.engine)
	discard(d.log, "cannot read the recorded verdict and suppressed conditions", unread)
	d.seen.note(p, concluded, d.engine.Stats().Rounds > 0)
	var collected error
	if p == nil {
		collected = err
	}
	if ctx.Err() != nil || errors.Is(err, alerting.ErrTimeBackwards) { // shutdown, or the clock stepped back
		return collected
	}
	d.stats.note(d, time.Since(start))
	d.flight.note(concluded.To, concluded.Alerts)
	if d.memory != nil {
		d.memory.save(d.engine.Active())
	}
	switch failed := d.failed; {
	case err != nil && !failed:
		d.log.Error("rule evaluation failed", "err", oneLine(err))
	case err == nil && failed:
		d.log.Info("rule evaluation works again")
	}
	d.failed = err != nil
	return collected
}

// prepare validates rules and the HTTP client configuration of the Alertmanagers. apply puts both in force.
func (d *daemon) prepare(files ruleFiles, names []string) (apply func(), err error) {
	if d == nil {
		return func() {}, nil
	}
	applyRules, err := d.engine.Prepare(files, names)
	if err != nil || d.notifier == nil {
		return applyRules, err
	}
	applyNotifier, err := d.notifier.Prepare()
	return func() { applyRules(); applyNotifier() }, err
}

// close closes all parts. Rounds have ended.
func (d *daemon) close() {
	d.flight.close()
	if d.notifier != nil {
		d.notifier.Close()
	}
	if d.engine != nil {
		discard(d.log, "cannot close the sample store", d.engine.Close())
	}
	if d.memory != nil {
		d.memory.close()
	}
}
