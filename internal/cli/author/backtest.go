package author

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"time"

	"github.com/alecthomas/kingpin/v2"
	httpconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/backtest"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/tune"
	"rdma_exporter/rules"
)

// Backtest is the command backtest, with its flags.
type Backtest struct {
	url      string
	httpFile string
	since    string // duration in the syntax of Prometheus
	until    string // RFC 3339; empty: now
	step     time.Duration
	only     []string
	json     bool
	tune     tuneFlags
}

// Flags adds the flags.
func (b *Backtest) Flags(a *kingpin.CmdClause) {
	a.Flag("prometheus", "Prometheus that scrapes the exporters, or a server with its query API.").
		Required().PlaceHolder("URL").StringVar(&b.url)
	a.Flag("prometheus.config-file",
		"HTTP client configuration for --prometheus, YAML: TLS and authentication, the contents of http_config in Prometheus.").
		PlaceHolder("FILE").StringVar(&b.httpFile)
	a.Flag("since", "Length of the history. Rules with a longer range, such as one day, cannot fire before that much history was evaluated.").Default("14d").StringVar(&b.since)
	a.Flag("until", "End of the history. Default: now.").PlaceHolder("RFC3339").StringVar(&b.until)
	a.Flag("step", "Evaluation interval, from 15s to 2m, a multiple of the scrape interval. A longer step takes less time.").Default("1m").DurationVar(&b.step)
	a.Flag("only", "Report only this alert. Repeatable.").PlaceHolder("ALERT").HintAction(runbooks.Names).
		StringsVar(&b.only)
	a.Flag("json", "Print JSON instead of a table.").BoolVar(&b.json)
	b.tune.add(a)
}

// Limits of the step: the shortest range of the rules is 5m and must contain several steps.
const (
	minBacktestStep = 15 * time.Second
	maxBacktestStep = 2 * time.Minute
)

// span returns the requested history.
func (b *Backtest) span(now time.Time) (from, to time.Time, err error) {
	since, err := model.ParseDuration(b.since)
	if err != nil || since <= 0 {
		return from, to, fmt.Errorf("--since=%s: must be a duration such as 12h or 14d", b.since)
	}
	if b.step < minBacktestStep || b.step > maxBacktestStep {
		return from, to, fmt.Errorf("--step=%s: must be from 15s to 2m: the ranges of the rules start at 5m", b.step)
	}
	to = now
	if b.until != "" {
		if to, err = time.Parse(time.RFC3339, b.until); err != nil {
			return from, to, fmt.Errorf("--until=%s: must be a time such as 2026-01-02T15:04:05Z", b.until)
		}
	}
	return to.Add(-time.Duration(since)), to, nil
}

// progressInterval is the interval of progress messages.
const progressInterval = 10 * time.Second

// Run runs the command.
func (b *Backtest) Run(ctx context.Context, _ *machine.Config, std command.Streams) (code int, err error) {
	from, to, err := b.span(time.Now())
	if err != nil {
		return command.Usage(err)
	}
	if u, err := url.Parse(b.url); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.RawQuery != "" || u.User != nil {
		return command.Usage(fmt.Errorf("--prometheus=%s: must be http://HOST:PORT/… or https://HOST:PORT/…; credentials go in --prometheus.config-file", b.url))
	}
	files, names, err := b.rules()
	if err != nil {
		return command.Usage(err)
	}
	tuned, err := b.tune.read()
	if err != nil {
		return command.Usage(err)
	}
	http := &httpconfig.HTTPClientConfig{}
	if b.httpFile != "" {
		if http, _, err = httpconfig.LoadHTTPConfigFile(b.httpFile); err != nil {
			return command.Usage(fmt.Errorf("--prometheus.config-file=%s: %w", b.httpFile, err))
		}
	}
	client, err := httpconfig.NewClientFromConfig(*http, "backtest")
	if err != nil {
		return command.Usage(fmt.Errorf("--prometheus.config-file=%s: %w", b.httpFile, err))
	}
	dir, err := os.MkdirTemp("", "rdma_exporter-backtest-")
	if err != nil {
		return command.UsageError, fmt.Errorf("cannot create a temporary directory for samples: %w: set TMPDIR to a directory with free space", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	shown, line := time.Now(), command.NewProgress(std.Err)
	defer line.End()
	report, err := backtest.Run(ctx, backtest.Options{
		Prometheus: &backtest.Prometheus{URL: b.url, Client: client, Pause: 5 * time.Second},
		Rules:      files, Files: names, Dir: dir, From: from, To: to, Step: b.step, Matchers: tuned.Selector,
		Progress: func(at time.Time) {
			text := fmt.Sprintf("evaluated up to %s: %.0f%%",
				at.UTC().Format("2006-01-02 15:04 MST"), min(100, 100*at.Sub(from).Seconds()/to.Sub(from).Seconds()))
			switch {
			case line.Shown():
				line.Show("%s", text)
			case time.Since(shown) >= progressInterval: // a file: some lines
				shown = time.Now()
				fmt.Fprintln(std.Err, text)
			}
		},
	})
	var long *backtest.TooLong
	switch {
	case errors.As(err, &long):
		return command.Usage(fmt.Errorf("--since=%s: %w", b.since, err))
	case errors.Is(err, backtest.ErrNoSeries):
		return command.UsageError, fmt.Errorf("--prometheus=%s: %w: check that it scrapes the exporters", b.url, err)
	case err != nil:
		return command.UsageError, fmt.Errorf("--prometheus=%s: %w", b.url, err)
	}
	line.End()
	if len(b.only) > 0 {
		report.Only(b.only)
	}
	print := report.Table
	if b.json {
		print = report.JSON
	}
	return command.OK, print(std.Out)
}

// rules returns the node rules, then the central ones, tuned by the flags.
func (b *Backtest) rules() (fs.FS, []string, error) {
	fsys, names, err := rules.Both()
	if err != nil {
		return nil, nil, err
	}
	files, err := command.ReadEmbedded(fsys, names)
	if err != nil {
		return nil, nil, err
	}
	if files, err = b.tune.apply(files); err != nil {
		return nil, nil, err
	}
	tuned := &rulefiles.Files{FS: fsys, Texts: map[string][]byte{}}
	var alerts []string
	for i, f := range files {
		tuned.Texts[names[i]] = f.Text
		alerts = append(alerts, tune.Alerts(f.Text)...)
	}
	return tuned, names, command.AreAlerts(b.only, alerts)
}
