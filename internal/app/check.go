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
	daemonURL string
	noDaemon  bool
	daemonSet bool
	length    time.Duration // 0: a single look
	timeout   time.Duration
}

func (k *checkConfig) flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of a table: docs/check.md.").BoolVar(&k.json)
	a.Flag("verbose", "List each alert that was not evaluated, with the reason.").BoolVar(&k.verbose)
	a.Flag("short", "Print the table alone, without how to diagnose a finding and what to do.").BoolVar(&k.short)
	a.Flag("only", "Evaluate this alert only; may be repeated.").PlaceHolder("ALERT").StringsVar(&k.filter.Only)
	a.Flag("severity", "Minimum severity to report.").PlaceHolder("critical|warning|info").EnumVar(&k.filter.Severity, check.Severities()...)
	a.Flag("strict", "Exit with 3 instead of 0 where an alert was not evaluated that could have been.").BoolVar(&k.filter.Strict)
	a.Flag("drain", "Say whether this host is to be drained: exit 2 for cordon or evict, 0 for no, 3 where it is not known, which drains nobody.").BoolVar(&k.drain)
	a.Flag("dry-run", "With --drain: say what it would do, and exit 0.").BoolVar(&k.dryRun)
	a.Flag("return-to-service", "Say whether this host may take jobs again: exit 0 where no alert drains it and its links have been free of errors for "+check.CleanFor.String()+", else 2 with what is missing; 3 where it is not known.").BoolVar(&k.back)
	a.Flag("daemon", "The running exporter, which is asked first: it has two hours of history.").Default("http://127.0.0.1:" + defaultPort).PlaceHolder("URL").IsSetByUser(&k.daemonSet).StringVar(&k.daemonURL)
	a.Flag("no-daemon", "Look for itself, whether an exporter runs or not.").BoolVar(&k.noDaemon)
	a.Flag("for", "Look for itself for so long, in rounds 15s apart, so that rules with a range can be evaluated.").PlaceHolder("DURATION").DurationVar(&k.length)
	a.Flag("timeout", "Longest time that a look of its own may take, --for not counted.").Default("10s").DurationVar(&k.timeout)
}

func (k *checkConfig) check(c *config) error {
	switch {
	case k.drain && k.back:
		return errors.New("--drain --return-to-service: give one of them")
	case k.dryRun && !k.drain:
		return errors.New("--dry-run: has a meaning with --drain only")
	case k.timeout <= 0:
		return fmt.Errorf("--timeout=%s: has to be more than 0", k.timeout)
	case k.length < 0:
		return fmt.Errorf("--for=%s: has to be 0s or more", k.length)
	case k.length > 0 && c.replay != "":
		return fmt.Errorf("--for=%s: a replay has its own rounds; leave --for out", k.length)
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
	report, ok := k.ask(ctx, c, log)
	if !ok {
		var err error
		if report, err = k.look(ctx, c, stderr, log); err != nil {
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

// render prints what was asked for, and gives the exit code.
func (k *checkConfig) render(stdout io.Writer, report check.Report) (int, error) {
	out := stdout
	if k.json { // the whole report, with the exit code of what was asked
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
	return check.Table(w, report, check.Style{Colour: isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Verbose: k.verbose, Short: k.short})
}

// isTerminal says whether somebody looks at what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// build is the version that reports carry: an exporter of another one may judge by other rules.
func build() string { return version.Version + " " + version.GetRevision() }
