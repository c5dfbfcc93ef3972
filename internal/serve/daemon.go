package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/alerting/notify"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/job"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/verdict"
)

// daemon evaluates the rules on the rounds of a machine while the program serves.
type daemon struct {
	config   *alertingConfig
	engine   *alerting.Engine
	notifier *notify.Notifier // nil: no alerts are sent
	memory   *alertMemory     // nil for a replay
	rounds   verdict.Collector
	log      *slog.Logger
	phase    time.Duration // of the host within the interval
	failed   bool          // the last round
	stats    daemonStats
	flight   *flightRecorder // nil: no captures of incidents are kept
	nccl     *job.Watch      // nil: NCCL is not asked
	seen     seenLast
}

// storeFolder is the directory of samples and alert state below the state directory, or below that of the fabric.
const storeFolder = "alerting"

// daemon makes the engine; nil without alerting. Samples and alert state are saved in dir, but for a replay.
func (at address) daemon(
	ctx context.Context, c *machine.Config, dir string, files *rulefiles.Files, log *slog.Logger,
) (*daemon, error) {
	a, m := at.alerting, at.machine
	if !a.on {
		return nil, nil
	}
	instance, external := at.instance(), at.own()
	d := &daemon{
		config: a, phase: phase(m.Hostname(), a.interval), log: log, seen: seenLast{host: instance, replay: m.Recording(c)},
	}
	var err error
	if d.notifier, err = a.notifier(m, notify.Options{ExternalURL: external, Logger: log}); err != nil {
		return nil, err
	}
	o := alerting.Options{
		Scratch: replay.Scratch(), Rules: files, Files: files.Names, Job: a.job, Instance: instance,
		ExternalLabels: a.externalLabels, ExternalURL: external,
		Interval: a.interval, Notifier: d.notifier, Logger: log, Context: ctx,
	}
	if m.Player == nil {
		o.Clock = alertingClock(m)
		if d.memory = openAlertMemory(ctx, filepath.Join(dir, storeFolder), log); d.memory.file.IsOpen() {
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
func alertingClock(m *machine.Machine) func() alerting.Clock {
	boot, clocks := m.FirstLine("proc/sys/kernel/random/boot_id"), access.NewClocks()
	return func() alerting.Clock {
		wall, up, ran := clocks.Read()
		return alerting.Clock{Wall: wall, Boot: boot, Up: up, Ran: ran}
	}
}

// run evaluates a round immediately, and then one per interval at the host's phase, until ctx ends.
func (d *daemon) run(ctx context.Context) {
	tick(ctx, d.config.interval, d.phase, func() {
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
	err := access.Guard(func() (err error) { // a panic of the evaluation does not affect scrapes
		p, err = verdict.Round(ctx, d.rounds, d.engine, young)
		return err
	})
	concluded, unread := verdict.Conclude(d.engine)
	command.LogError(d.log, "cannot read the recorded verdict and suppressed conditions", unread)
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
	d.nccl.Note(ctx, p.Node(), concluded.Alerts, time.Now())
	if d.memory != nil {
		d.memory.save(d.engine.Active())
	}
	switch failed := d.failed; {
	case err != nil && !failed:
		d.log.Error("rule evaluation failed", "err", command.OneLine(err))
	case err == nil && failed:
		d.log.Info("rule evaluation works again")
	}
	d.failed = err != nil
	return collected
}

// prepare validates rules and the HTTP client configuration of the Alertmanagers. apply puts both in force.
func (d *daemon) prepare(files *rulefiles.Files) (apply func(), err error) {
	if d == nil {
		return func() {}, nil
	}
	applyRules, err := d.engine.Prepare(files, files.Names)
	if err != nil || d.notifier == nil {
		return applyRules, err
	}
	applyNotifier, err := d.notifier.Prepare()
	return func() { applyRules(); applyNotifier() }, err
}

// close closes all parts. Rounds have ended.
func (d *daemon) close() {
	d.flight.close()
	d.nccl.Wait()
	if d.notifier != nil {
		d.notifier.Close()
	}
	if d.engine != nil {
		command.LogError(d.log, "cannot close the sample store", d.engine.Close())
	}
	if d.memory != nil {
		d.memory.close()
	}
}

// daemonStats are the statistics of the last round. A scrape does not wait for the engine.
type daemonStats struct {
	last atomic.Pointer[rounds.AlertingState]
}

func (s *daemonStats) note(d *daemon, took time.Duration) {
	e := d.engine.Stats()
	x := rounds.AlertingState{
		Rounds: float64(e.Rounds), Failures: float64(e.Failures), Took: took, Series: float64(e.Series),
		Degraded: e.Degraded || d.memory != nil && !d.memory.file.IsOpen(),
	}
	if d.notifier != nil {
		x.QueueCapacity = notify.QueueCapacity
		for _, a := range d.notifier.Deliveries() {
			x.Alertmanagers = append(x.Alertmanagers, rounds.AlertmanagerState{
				URL: a.Alertmanager, Queued: a.Queued, Sent: a.Sent, Errors: a.Errors, Dropped: a.Dropped,
			})
		}
	}
	if in, ok := d.seen.input(); ok {
		x.Objects = check.New(in).Objects
	}
	s.last.Store(&x)
}

// current is the state of the engine; false without one, and before its first round.
func (d *daemon) current() (x rounds.AlertingState, ok bool) {
	if d == nil {
		return x, false
	}
	if last := d.stats.last.Load(); last != nil {
		x, ok = *last, true
	}
	return x, ok
}
