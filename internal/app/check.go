package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/version"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/check"
)

type checkConfig struct {
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
	length    time.Duration // 0: a single round
	timeout   time.Duration
}

func (k *checkConfig) flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of a table. Schema: docs/check.md.").BoolVar(&k.json)
	a.Flag("verbose", "List each rule that was not evaluated, with the reason.").BoolVar(&k.verbose)
	a.Flag("short", "Print the table without the lines below its rows: pending, diagnose, action.").BoolVar(&k.short)
	a.Flag("only", "Report only this alert. Repeatable.").PlaceHolder("ALERT").StringsVar(&k.filter.Only)
	a.Flag("severity", "Minimum severity to report.").PlaceHolder("critical|warning|info").EnumVar(&k.filter.Severity, check.Severities()...)
	a.Flag("strict", "Exit with 3 instead of 0 if a rule that this host supports was not evaluated.").BoolVar(&k.filter.Strict)
	a.Flag("drain", "Report whether to drain this host: cordon (no new jobs, running jobs may finish) or evict (running jobs cannot progress). Exit code: 0 no, 2 cordon or evict, 3 unknown (do not drain).").BoolVar(&k.drain)
	a.Flag("dry-run", "With --drain: print the result, exit with 0.").BoolVar(&k.dryRun)
	a.Flag("return-to-service", "Report whether this host may take jobs again: no alert drains it, and its links have been free of errors for "+model.Duration(check.CleanFor).String()+". Exit code: 0 yes, 2 no (with the reasons), 3 unknown.").BoolVar(&k.back)
	a.Flag("setup", "Report the settings of this host that differ from what RDMA training needs, with the command that sets each: docs/setup.md. Exit code: 0 none contradicts the traffic, 1 some do, 3 unknown.").BoolVar(&k.setup)
	a.Flag("daemon", "Running exporter, which is queried first: it has two hours of history.").Default("http://127.0.0.1:" + defaultPort).PlaceHolder("URL").IsSetByUser(&k.daemonSet).StringVar(&k.daemonURL)
	a.Flag("no-daemon", "Do not query the running exporter. Run a one-off evaluation.").BoolVar(&k.noDaemon)
	a.Flag("for", "Run a one-off evaluation for this long, one round every 15s. Rules over a time range need it.").PlaceHolder("DURATION").DurationVar(&k.length)
	a.Flag("timeout", "Timeout of a one-off evaluation, without --for.").Default("10s").DurationVar(&k.timeout)
}

func (k *checkConfig) check(c *config) error {
	switch {
	case k.drain && k.back:
		return errors.New("--drain and --return-to-service are mutually exclusive")
	case k.setup && (k.drain || k.back || k.length > 0 || len(k.filter.Only) > 0 || k.filter.Severity != ""):
		return errors.New("--setup: can be combined with --json, --verbose, --short and --strict only")
	case k.dryRun && !k.drain:
		return errors.New("--dry-run: has no effect without --drain")
	case k.timeout <= 0:
		return fmt.Errorf("--timeout=%s: must be greater than 0", k.timeout)
	case k.length < 0:
		return fmt.Errorf("--for=%s: must be 0s or more", k.length)
	case k.length > 0 && c.replay != "":
		return fmt.Errorf("--for=%s: cannot be combined with --replay, which has its own rounds", k.length)
	}
	if _, err := findingsURL(k.daemonURL); err != nil {
		return fmt.Errorf("--daemon=%s: %w", k.daemonURL, err)
	}
	return nil
}

func runCheck(ctx context.Context, c *config, k *checkConfig, stdout, stderr io.Writer, log *slog.Logger) (int, error) {
	if err := k.check(c); err != nil {
		return check.ExitUnknown, err
	}
	if k.setup {
		return k.runSetup(ctx, c, stdout, log)
	}
	report, ok := k.ask(ctx, c, log)
	if !ok {
		var err error
		if report, err = k.evaluateOnce(ctx, c, stderr, log); err != nil {
			return check.ExitUnknown, err
		}
	}
	if err := areAlerts(k.filter.Only, report.Alerts()); err != nil {
		return check.ExitUnknown, err
	}
	report = k.filter.Apply(report)
	code, err := k.render(stdout, report)
	if err != nil {
		return check.ExitUnknown, fmt.Errorf("cannot print the report: %w", err)
	}
	return code, nil
}

// render prints the report, and returns the exit code.
func (k *checkConfig) render(stdout io.Writer, report check.Report) (int, error) {
	out := stdout
	if k.json { // the whole report, with the exit code of --drain or --return-to-service
		if err := check.JSON(stdout, report); err != nil {
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
	return report.ExitCode, k.table(out, report)
}

func (k *checkConfig) table(w io.Writer, report check.Report) error {
	return check.Table(w, report, k.style(w))
}

// isTerminal reports whether a writer is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// build is the version in reports: another version may have other rules.
func build() string { return version.Version + " " + version.GetRevision() }
