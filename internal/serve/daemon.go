// Package serve has the common parts of the daemons of a node and of a fabric: HTTP, rule evaluation and alerts,
// reload.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/alerting/notify"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/verdict"
)

// Daemon evaluates the rules on the rounds of a machine while the program serves.
type Daemon struct {
	Engine *alerting.Engine
	Rounds verdict.Collector // set before the first round
	Phase  time.Duration     // of the host within the interval
	Hooks  Hooks

	config   *Alerting
	notifier *notify.Notifier // nil: no alerts are sent
	memory   *alertMemory     // nil for a replay
	log      *slog.Logger
	failed   bool // the last round
	stats    daemonStats
	seen     lastResult
}

// Hooks are the functions that the daemon of a node or a fabric adds. Those that are nil are not called.
type Hooks struct {
	// Evaluated is called after each round.
	Evaluated func(context.Context, *rounds.Picture, verdict.Conclusion)
	// Input adds to the result of the last round.
	Input func(*check.Input)
	// Close is called after the last round, before the engine is closed.
	Close func()
}

// storeFolder is the directory of samples and alert state below the state directory, or below that of the fabric.
const storeFolder = "alerting"

// NewDaemon returns a daemon of the rules in files; nil without alerting. Samples and alert state are saved in dir,
// except for a replay. report returns the state of a round that is reported although it has no alert.
func (at Address) NewDaemon(
	ctx context.Context, c *machine.Config, dir string, files *rulefiles.Files,
	report func(*rounds.Picture) check.Seen, log *slog.Logger,
) (*Daemon, error) {
	a, m := at.Alerting, at.Machine
	if !a.on {
		return nil, nil
	}
	instance, external := at.Instance(), at.ownURL()
	d := &Daemon{
		config: a, Phase: HostPhase(m.Hostname(), a.Interval), log: log,
		seen: lastResult{host: instance, replay: m.Recording(c), report: report},
	}
	var err error
	if d.notifier, err = a.newNotifier(m, notify.Options{ExternalURL: external, Logger: log}); err != nil {
		return nil, err
	}
	o := alerting.Options{
		Scratch: replay.Scratch(), Rules: files, Files: files.Names, Job: a.job, Instance: instance,
		ExternalLabels: a.externalLabels, ExternalURL: external,
		Interval: a.Interval, Notifier: d.notifier, Logger: log, Context: ctx,
	}
	if m.Player == nil {
		o.Clock = newClock(m)
		if d.memory = openAlertMemory(ctx, filepath.Join(dir, storeFolder), log); d.memory.file.IsOpen() {
			o.Dir, o.Known = d.memory.samplesDir(), d.memory.known
		}
	}
	if d.Engine, err = alerting.New(o); err != nil {
		d.Close()
		return nil, fmt.Errorf("cannot load the rules: %w", err)
	}
	return d, nil
}

// newClock returns a function that reads the clocks of the host.
func newClock(m *machine.Machine) func() alerting.Clock {
	boot, clocks := m.FirstLine("proc/sys/kernel/random/boot_id"), access.NewClocks()
	return func() alerting.Clock {
		wall, up, ran := clocks.Read()
		return alerting.Clock{Wall: wall, Boot: boot, Up: up, Ran: ran}
	}
}

// Run evaluates a round immediately, and then one per interval at the host's phase, until ctx ends.
func (d *Daemon) Run(ctx context.Context) {
	Tick(ctx, d.config.Interval, d.Phase, func() {
		_ = d.Round(ctx, d.config.Interval/2) // already logged
	})
}

// Round evaluates a round on a collection not older than young, and returns the error of the collection. The start and
// the end of a persistent failure are logged.
func (d *Daemon) Round(ctx context.Context, young time.Duration) error {
	start := time.Now()
	if d.memory != nil && d.memory.reopen() {
		d.memory.resume(d.Engine)
	}
	var p *rounds.Picture
	err := access.Guard(func() (err error) { // a panic of the evaluation does not affect scrapes
		p, err = verdict.Round(ctx, d.Rounds, d.Engine, young)
		return err
	})
	concluded, unread := verdict.Conclude(d.Engine)
	command.LogError(d.log, "cannot read the recorded verdict and suppressed conditions", unread)
	d.seen.keep(p, concluded, d.Engine.Stats().Rounds > 0)
	var collected error
	if p == nil {
		collected = err
	}
	if ctx.Err() != nil || errors.Is(err, alerting.ErrTimeBackwards) { // shutdown, or the clock stepped back
		return collected
	}
	d.stats.keep(d, time.Since(start))
	if d.Hooks.Evaluated != nil {
		d.Hooks.Evaluated(ctx, p, concluded)
	}
	if d.memory != nil {
		d.memory.save(d.Engine.Active())
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

// Interval returns the interval of the rounds.
func (d *Daemon) Interval() time.Duration { return d.config.Interval }

// prepare validates rules and the HTTP client configuration of the Alertmanagers. apply puts them in force.
func (d *Daemon) prepare(files *rulefiles.Files) (apply func(), err error) {
	if d == nil {
		return func() {}, nil
	}
	applyRules, err := d.Engine.Prepare(files, files.Names)
	if err != nil || d.notifier == nil {
		return applyRules, err
	}
	applyNotifier, err := d.notifier.Prepare()
	return func() { applyRules(); applyNotifier() }, err
}

// Close closes all parts, after the last round has ended.
func (d *Daemon) Close() {
	if d.Hooks.Close != nil {
		d.Hooks.Close()
	}
	if d.notifier != nil {
		d.notifier.Close()
	}
	if d.Engine != nil {
		command.LogError(d.log, "cannot close the sample store", d.Engine.Close())
	}
	if d.memory != nil {
		d.memory.close()
	}
}

// daemonStats are the statistics of the last round. A scrape does not wait for the engine.
type daemonStats struct {
	last atomic.Pointer[rounds.AlertingState]
}

// keep keeps the statistics of a round.
func (s *daemonStats) keep(d *Daemon, took time.Duration) {
	e := d.Engine.Stats()
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

// State returns the state of the engine; false without an engine, and before its first round.
func (d *Daemon) State() (x rounds.AlertingState, ok bool) {
	if d == nil {
		return x, false
	}
	if last := d.stats.last.Load(); last != nil {
		x, ok = *last, true
	}
	return x, ok
}

// SetGC sets GOGC, unless the environment does.
func SetGC(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
