package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/rules"
)

type checkConfig struct {
	json bool
}

func (k *checkConfig) flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of a table.").BoolVar(&k.json)
}

func runCheck(ctx context.Context, c *config, k *checkConfig, stdout io.Writer, log *slog.Logger) (int, error) {
	m, err := c.open(time.Now())
	if err != nil {
		return usage(err)
	}
	defer func() { discard(log, "cannot close the machine", m.close()) }()
	known, err := c.remembered(m)
	discard(log, "judging without what was remembered", err)
	on, err := c.collectors(m, expect.NewMemory(known))
	if err != nil {
		return usage(err)
	}
	sched := rounds.New(ctx, rounds.Options{Host: m.Host, Collectors: on, Timeout: c.timeout, Now: m.Now, Logger: log})
	j, err := newJudge(m, sched, log)
	if err != nil {
		return check.ExitUnknown, err
	}
	defer func() { discard(log, "cannot close the judge", j.close()) }()

	for _, t := range m.times() {
		err = errors.Join(err, j.round(ctx, t))
	}
	report := j.report(err)
	render := check.Table
	if k.json {
		render = check.JSON
	}
	if err := render(stdout, report); err != nil {
		return check.ExitUnknown, fmt.Errorf("cannot print the report: %w", err)
	}
	return report.ExitCode, nil
}

// times are the rounds to look at: all that a replay has, now on a live host.
func (m *machine) times() []time.Time {
	if m.player != nil {
		return m.player.Times()
	}
	return []time.Time{m.Now()}
}

// judge feeds the rounds of a machine to the rules, in a store of its own.
type judge struct {
	m      *machine
	rounds *rounds.Scheduler
	engine *alerting.Engine
	host   string
	folder string
}

func newJudge(m *machine, sched *rounds.Scheduler, log *slog.Logger) (*judge, error) {
	fsys, files, err := rules.Node()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(capture.Scratch(), "rdma_exporter-check-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a store: %w: set TMPDIR to a folder with free space", err)
	}
	j := &judge{m: m, rounds: sched, host: cmp.Or(m.hostname(), "unknown") + ":10879", folder: folder}
	j.engine, err = alerting.New(alerting.Options{Dir: filepath.Join(folder, "store"), Rules: fsys, Files: files, Instance: j.host, Logger: log, Beside: beside()})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot judge: %w", err), os.RemoveAll(folder))
	}
	return j, nil
}

// hostname is empty where the machine does not tell it.
// beside tells of metrics that are absent where there is nothing to tell.
func beside() map[string]string {
	out := map[string]string{}
	descs := rounds.Descs
	for _, c := range collector.All(collector.Options{}) {
		descs = append(descs, c.Descs...)
	}
	for _, d := range descs {
		if d.Beside != "" {
			out[d.Name] = d.Beside
		}
	}
	return out
}

func (m *machine) hostname() string {
	if m.player == nil {
		return m.firstLine("proc/sys/kernel/hostname")
	}
	return m.meta.Hostname
}

// round collects at a moment and judges.
func (j *judge) round(ctx context.Context, t time.Time) error {
	if err := j.m.seek(t); err != nil {
		return err
	}
	return judgeRound(ctx, j.rounds, j.engine, 0)
}

func (j *judge) report(err error) check.Report {
	from, to := j.engine.Observed()
	return check.New(check.Input{Host: j.host, From: from, To: to, Alerts: j.engine.Alerts(), Rules: j.engine.Rules(), Err: err})
}

func (j *judge) close() error { return errors.Join(j.engine.Close(), os.RemoveAll(j.folder)) }
