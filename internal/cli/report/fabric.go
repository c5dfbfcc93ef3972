package report

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/verdict"
)

// sweepTime is the timeout of a sweep: one of 500,000 ports takes a minute.
const sweepTime = 5 * time.Minute

// evaluateFabric sweeps the fabric and evaluates its rules, in its own store. Errors are those of the command line;
// failures of the evaluation are in the report.
func (k *Check) evaluateFabric(
	ctx context.Context, c *machine.Config, stderr io.Writer, log *slog.Logger,
) (check.Report, error) {
	m, err := c.Open(time.Now())
	if err != nil {
		return check.Report{}, err
	}
	defer func() { command.LogError(log, "cannot release the host files", m.Close()) }()
	known, err := c.RememberedFabric(ctx, m)
	if err != nil && m.Player != nil {
		return check.Report{}, err
	}
	command.LogError(log, "cannot read the state directory, evaluating without known links", err)
	files, err := rulefiles.ReadFabric(nil, "")
	if err != nil {
		return check.Report{}, err
	}
	detector, err := files.Detector()
	if err != nil {
		return check.Report{}, err
	}
	x := c.NewFabric(&k.Sweep, m, known, m.Now, log)
	x.Monitor.Interval, x.Monitor.Forget = time.Minute, 7*24*time.Hour
	x.Coverage = func() *coverage.Detector { return detector }
	instance := m.Instance([]string{net.JoinHostPort("", machine.FabricPort)})
	j, err := verdict.NewOf(m, x, x.Seen, alerting.Options{
		Rules: files, Files: files.Names, Job: machine.FabricJob, Instance: instance, Logger: log,
	})
	if err != nil {
		return failed(instance, err), nil
	}
	defer func() { command.LogError(log, "cannot close the alerting engine", j.Close()) }()
	if err := command.AreAlerts(k.filter.Only, j.Alerts()); err != nil {
		return check.Report{}, err
	}
	if m.Player == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, k.length+sweepTime, fmt.Errorf("the sweep took more than %s", sweepTime))
		defer cancel()
	}
	var report check.Report
	x.Run(ctx, func(sweep func() error) {
		report = k.evaluateRounds(ctx, c, m, j, stderr, func(ctx context.Context, t time.Time) error {
			stop := command.NewProgress(stderr).Time("sweeping the fabric")
			err := sweep()
			stop()
			if err != nil {
				return err
			}
			return j.Round(ctx, t)
		})
	})
	return report, nil
}
