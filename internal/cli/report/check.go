// Package report has the commands that read this machine and report what is found: check, topo, job, optics, expect,
// inventory, capture.
package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/machine"
)

// Check is the command check, with its flags.
type Check struct {
	filter    check.Filter
	json      bool
	verbose   bool
	short     bool
	drain     bool
	dryRun    bool
	back      bool // --return-to-service
	setup     bool
	daemonURL string
	noDaemon  bool
	daemonSet bool
	// daemonTimeout is short: the running exporter has its findings in memory.
	daemonTimeout time.Duration
	listeners     rooted.Paths // to read the user of the exporter from; zero: those of this host
	fabric        bool
	Sweep         machine.FabricConfig
	length        time.Duration // 0: a single round
	timeout       time.Duration
}

// Flags adds the flags.
func (k *Check) Flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of a table. Schema: docs/check.md.").BoolVar(&k.json)
	a.Flag("verbose", "List each rule that was not evaluated, with the reason.").BoolVar(&k.verbose)
	a.Flag("short", "Print the table without the lines below its rows: pending, diagnose, action.").BoolVar(&k.short)
	a.Flag("only", "Report only this alert, or this fault of it (ALERT/REASON). Repeatable.").
		PlaceHolder("ALERT").HintAction(runbooks.Names).StringsVar(&k.filter.Only)
	a.Flag("severity", "Minimum severity to report.").
		PlaceHolder("critical|warning|info").EnumVar(&k.filter.Severity, check.Severities()...)
	a.Flag("strict", "Exit with 3 instead of 0 if a rule that this host supports was not evaluated.").
		BoolVar(&k.filter.Strict)
	a.Flag("drain", "Report whether to drain this host: cordon (no new jobs, running jobs may finish) or evict (running jobs cannot progress). Exit code: 0 no, 2 cordon or evict, 3 unknown (do not drain).").BoolVar(&k.drain)
	a.Flag("dry-run", "With --drain: print the result, exit with 0.").BoolVar(&k.dryRun)
	a.Flag("return-to-service", "Report whether this host may take jobs again: no alert drains it, and its links have been free of errors for "+
		model.Duration(check.CleanFor).String()+". Exit code: 0 yes, 2 no (with the reasons), 3 unknown.").BoolVar(&k.back)
	a.Flag("setup", "Report the settings of this host that differ from what RDMA training needs, with the command that sets each: docs/setup.md. Exit code: 0 none contradicts the traffic, 1 some do, 3 unknown.").BoolVar(&k.setup)
	k.sourceFlags(a)
	a.Flag("fabric", "Report on the InfiniBand fabric: the findings of rdma_exporter fabric on this host, else of one sweep from a port of this host.").BoolVar(&k.fabric)
	k.Sweep.PortFlags(a)
	a.Flag("for", "Run a one-off evaluation for this long, one round every 15s. Rules over a time range need it.").
		PlaceHolder("DURATION").DurationVar(&k.length)
	a.Flag("timeout", "Timeout of a one-off evaluation, without --for.").Default("10s").DurationVar(&k.timeout)
}

// sourceFlags select where findings are from.
func (k *Check) sourceFlags(a *kingpin.CmdClause) {
	a.Flag("daemon", "Exporter whose findings to report; unknown if it does not answer. Without the flag the one of this host, which has two hours of history, else a one-off evaluation.").
		Default("http://127.0.0.1:" + machine.DefaultPort).
		PlaceHolder("URL").IsSetByUser(&k.daemonSet).StringVar(&k.daemonURL)
	a.Flag("daemon-timeout", "Timeout of the running exporter: for tests on busy CPUs.").
		Hidden().Default("1s").DurationVar(&k.daemonTimeout)
	a.Flag("no-daemon", "Do not query the running exporter. Run a one-off evaluation.").BoolVar(&k.noDaemon)
}

// check validates the flags.
func (k *Check) check(c *machine.Config) error {
	_, wrongURL := findingsURL(k.daemonURL)
	local := k.local(c)
	if k.fabric && !k.daemonSet {
		k.daemonURL = "http://127.0.0.1:" + k.port()
	}
	err := command.Checks{
		{k.drain && k.back, errors.New("--drain and --return-to-service are mutually exclusive")},
		{k.setup && (k.drain || k.back || k.length > 0 || len(k.filter.Only) > 0 || k.filter.Severity != ""), errors.New("--setup: can be combined with --json, --verbose, --short and --strict only")},
		{k.fabric && (k.drain || k.back || k.setup), errors.New("--fabric: cannot be combined with --drain, --return-to-service and --setup, which are about a host")},
		{k.dryRun && !k.drain, errors.New("--dry-run: has no effect without --drain")},
		{k.timeout <= 0, fmt.Errorf("--timeout=%s: must be greater than 0", k.timeout)},
		{k.length < 0, fmt.Errorf("--for=%s: must be 0s or more", k.length)},
		{k.length > 0 && c.Replay != "", fmt.Errorf("--for=%s: cannot be combined with --replay, which has its own rounds", k.length)},
		{wrongURL != nil, fmt.Errorf("--daemon=%s: %w", k.daemonURL, wrongURL)},
		{k.daemonSet && local != "", fmt.Errorf("--daemon=%s: cannot be combined with %s, whose result would not be that of the exporter", k.daemonURL, local)},
	}.First()
	if err == nil && k.fabric {
		err = k.Sweep.Check()
	}
	return err
}

// local returns a flag by which this command reads the host or a replay itself; empty: none.
func (k *Check) local(c *machine.Config) string {
	switch {
	case k.noDaemon:
		return "--no-daemon"
	case k.length > 0:
		return "--for"
	case k.setup:
		return "--setup"
	case k.Sweep.Device != "":
		return "--fabric.device"
	}
	return c.Selects()
}

// Run runs the command.
func (k *Check) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	if err := k.check(c); err != nil {
		return check.ExitUnknown, err
	}
	if k.setup {
		return k.runSetup(ctx, c, std)
	}
	report, err := k.findings(ctx, c, std.Err, std.Log)
	if err != nil {
		return check.ExitUnknown, err
	}
	if all := report.Alerts(); len(all) > 0 { // a failed evaluation has no list of alerts
		if err := command.AreAlerts(k.filter.Only, all); err != nil {
			return check.ExitUnknown, err
		}
	}
	report = k.filter.Apply(report)
	code, err := k.render(std, report)
	if err != nil {
		return check.ExitUnknown, fmt.Errorf("cannot print the report: %w", err)
	}
	return code, nil
}

// findings returns the report of the running exporter. If no exporter runs on this host, it returns that of a one-off
// evaluation. If an exporter named by the user does not answer, the report is unknown.
func (k *Check) findings(
	ctx context.Context, c *machine.Config, stderr io.Writer, log *slog.Logger,
) (check.Report, error) {
	answer, reason := k.ask(ctx, c)
	source := k.source()
	switch {
	case answer != nil:
		return answer.From(source), nil
	case reason != nil && k.daemonSet:
		return k.unanswered(reason).From(source), nil
	case reason != nil:
		log.Warn("cannot use the running exporter, running a one-off evaluation", "err", reason)
	}
	evaluate := k.evaluateOnce
	if k.fabric {
		evaluate = k.evaluateFabric
	}
	report, err := evaluate(ctx, c, stderr, log)
	source = check.Source{Kind: check.SourceOneOff}
	if reason != nil {
		source.Reason = reason.Error()
	}
	if c.Replay != "" {
		source.Kind = check.SourceReplay
	}
	return report.From(source), err
}

// render prints the report, and returns the exit code.
func (k *Check) render(std command.Streams, report check.Report) (int, error) {
	out := std.Out
	if k.json { // the whole report, with the exit code of --drain or --return-to-service
		if err := check.JSON(std.Out, report); err != nil {
			return check.ExitUnknown, err
		}
		out = io.Discard
	}
	switch {
	case k.back:
		return check.Return(out, report)
	case k.drain:
		err := check.Drain(out, report, k.dryRun)
		if k.dryRun {
			return check.ExitOK, err
		}
		return report.DrainExitCode(), err
	}
	return report.ExitCode, check.Table(out, report, k.style(std))
}

func (k *Check) style(std command.Streams) check.Style {
	return check.Style{Style: std.Style, Verbose: k.verbose, Short: k.short}
}
