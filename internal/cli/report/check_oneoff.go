package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/common/model"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/verdict"
)

// oneOffInterval is the interval of rounds with --for.
const oneOffInterval = 15 * time.Second

// evaluateOnce evaluates the rules without the running exporter, in its own store. Errors are those of the command
// line; failures of the evaluation are in the report.
func (k *Check) evaluateOnce(
	ctx context.Context, c *machine.Config, stderr io.Writer, log *slog.Logger,
) (check.Report, error) {
	m, err := c.Open(time.Now())
	if err != nil {
		return check.Report{}, err
	}
	defer func() { command.LogError(log, "cannot release the host files", m.Close()) }()
	remembered, err := c.Remembered(ctx, m)
	command.LogError(log, "cannot read the state directory, evaluating without known links and devices", err)
	if c.Rules, err = rulefiles.Read(nil, ""); err != nil {
		return check.Report{}, err
	}
	on, err := c.Collectors(m, expect.NewMemory(remembered))
	if err != nil {
		return check.Report{}, err
	}
	detector, err := c.Rules.Detector()
	if err != nil {
		return check.Report{}, err
	}
	if m.Player == nil { // the time that a replay takes depends on its rounds, not on the host
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, k.length+k.timeout, fmt.Errorf("timed out after --timeout=%s", k.timeout))
		defer cancel()
	}
	sched := rounds.New(ctx, rounds.Options{
		Host: m.Host, Collectors: on, Timeout: min(c.Timeout, k.timeout*3/4), Limits: c.Limits, Now: m.Now, Logger: log,
		ReportsDenied: true, Maintenance: c.Announced(ctx, m), Coverage: func() *coverage.Detector { return detector },
	})
	j, err := verdict.New(m, sched, c.Rules, log)
	if err != nil {
		return failed(m.Instance(nil), err), nil
	}
	defer func() { command.LogError(log, "cannot close the alerting engine", j.Close()) }()
	if err := command.AreAlerts(k.filter.Only, j.Alerts()); err != nil {
		return check.Report{}, err
	}
	return k.evaluateRounds(ctx, c, m, j, stderr, j.Round), nil
}

// evaluateRounds evaluates the rounds of a machine, each by round, and returns the report of the last one.
func (k *Check) evaluateRounds(
	ctx context.Context, c *machine.Config, m *machine.Machine, j *verdict.Evaluator, stderr io.Writer,
	round func(context.Context, time.Time) error,
) check.Report {
	var err error
	shown := observing{Progress: command.NewProgress(stderr), length: k.length}
	defer shown.End()
	for _, t := range k.times(m) {
		reached := m.Reach(ctx, t)
		if reached == nil {
			reached = round(ctx, t)
		}
		err = errors.Join(err, reached)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		shown.show(t, len(j.Report(m.Recording(c), nil).Findings))
	}
	return j.Report(m.Recording(c), err)
}

// times adds the rounds of --for.
func (k *Check) times(m *machine.Machine) []time.Time {
	out := m.Times()
	for at := oneOffInterval; at <= k.length; at += oneOffInterval {
		out = append(out, out[0].Add(at))
	}
	return out
}

// failed returns the report of an evaluation that could not start.
func failed(instance string, err error) check.Report {
	return check.New(check.Input{Exporter: verdict.Build(), Host: instance, Err: err})
}

// observing is the progress line of check --for.
type observing struct {
	*command.Progress
	length time.Duration // 0: none
	start  time.Time
}

// show updates the line after the round at t.
func (p *observing) show(t time.Time, findings int) {
	if p.length == 0 {
		return
	}
	if p.start.IsZero() {
		p.start = t
	}
	p.Show("observing: %s of %s, findings: %d",
		model.Duration(t.Sub(p.start).Round(time.Second)), model.Duration(p.length), findings)
}
