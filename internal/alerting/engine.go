package alerting

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	defaultJob      = "rdma_exporter"
	defaultInterval = 15 * time.Second

	// lookback is Prometheus' default: a series without a sample for longer is gone. A pause in the rounds that is longer
	// therefore starts a new span of observation.
	lookback = 5 * time.Minute
	// subqueryStep is Prometheus' default evaluation interval, which a subquery without a step takes.
	subqueryStep = time.Minute
	// outageTolerance and forGracePeriod: a restart within the hour keeps what an alert has waited already.
	outageTolerance = time.Hour
	forGracePeriod  = 0
	// resendDelay is how often a firing alert is handed to the notifier again.
	resendDelay = time.Minute

	queryTimeout = 10 * time.Second
	// maxQuerySamples bounds one query; 3,000 series over two hours at 15 s are 1.5 million samples.
	maxQuerySamples = 5_000_000
)

// ErrTimeBackwards says that a round or an evaluation is not later than the one before it. The store cannot take it; the
// caller that saw the clock set back starts a fresh store.
var ErrTimeBackwards = errors.New("time went backwards")

// Options of an Engine. Dir and Instance are required.
type Options struct {
	Dir   string   // folder of the store; created when missing
	Rules fs.FS    // where the rule files lie
	Files []string // their paths in Rules, in the order of evaluation

	Job            string // job label, "rdma_exporter" when empty
	Instance       string // instance label, the address that a central Prometheus would scrape
	ExternalLabels map[string]string
	ExternalURL    string        // for links in templates
	Interval       time.Duration // expected time between rounds, 15 s when zero
	Retention      time.Duration // history kept, 2 h when zero
	Logger         *slog.Logger
	Notifier       *Notifier // gets what fires and what resolves; nil: nobody does
}

// Engine holds the recent samples of this node and the state of its rules. Append and Eval take turns; everything else may
// run beside them.
type Engine struct {
	opts     Options
	logger   *slog.Logger
	registry *prometheus.Registry
	db       *tsdb.DB
	engine   *promql.Engine
	groups   []*rules.Group
	meta     []ruleMeta // one per alerting rule, in file order

	mu       sync.Mutex
	series   seriesCache
	from, to time.Time // observed without a pause
	lastEval time.Time
	restored bool
}

// New opens the store in opts.Dir and loads the rules. Nothing runs until Append and Eval are called.
func New(opts Options) (*Engine, error) {
	if opts.Dir == "" || opts.Instance == "" {
		return nil, errors.New("open alerting engine: a folder and an instance are needed")
	}
	if opts.Job == "" {
		opts.Job = defaultJob
	}
	if opts.Interval == 0 {
		opts.Interval = defaultInterval
	}
	if opts.Retention == 0 {
		opts.Retention = defaultRetention
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	externalURL, err := url.Parse(opts.ExternalURL)
	if err != nil {
		return nil, fmt.Errorf("parse external URL: %w", err)
	}

	e := &Engine{
		opts:     opts,
		logger:   slog.New(quietHandler{opts.Logger.Handler()}),
		registry: prometheus.NewRegistry(),
		series:   newSeriesCache(opts.Job, opts.Instance),
	}
	pql := parser.NewParser(parser.Options{})
	e.engine = promql.NewEngine(promql.EngineOpts{
		Logger:                   e.logger,
		Reg:                      e.registry,
		MaxSamples:               maxQuerySamples,
		Timeout:                  queryTimeout,
		LookbackDelta:            lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		Parser:                   pql,
	})
	if e.db, err = openStore(opts, e.logger, e.registry); err != nil {
		return nil, err
	}
	notify := func(context.Context, string, ...*rules.Alert) {}
	if opts.Notifier != nil {
		notify = opts.Notifier.notify
	}
	manager := rules.NewManager(&rules.ManagerOptions{
		NameValidationScheme: model.LegacyValidation,
		ExternalURL:          externalURL,
		QueryFunc:            rules.EngineQueryFunc(e.engine, e.db),
		NotifyFunc:           notify,
		Appendable:           e.db,
		Queryable:            e.db,
		Logger:               slog.New(slog.DiscardHandler), // Eval returns what it would log in each round
		Registerer:           e.registry,
		OutageTolerance:      outageTolerance,
		ForGracePeriod:       forGracePeriod,
		ResendDelay:          resendDelay,
		GroupLoader:          fsLoader{files: opts.Rules, parser: pql, logger: e.logger},
		Parser:               pql,
	})
	if e.groups, err = loadGroups(manager, opts); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.meta = describe(e.groups)
	e.from, e.to = storedSpan(e.db)
	return e, nil
}

// Eval judges all groups in file order at ts, which is the time of the round appended last. The errors of the rules that
// could not be evaluated come joined; the others are judged all the same.
func (e *Engine) Eval(ctx context.Context, ts time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ts.Before(e.lastEval) {
		return fmt.Errorf("evaluate rules at %s, after %s: %w", stamp(ts), stamp(e.lastEval), ErrTimeBackwards)
	}
	e.lastEval = ts
	var errs []error
	for _, g := range e.groups {
		g.Eval(ctx, ts)
		for _, r := range g.Rules() {
			if r.Health() == rules.HealthBad {
				errs = append(errs, fmt.Errorf("evaluate rule %s of %s: %w", r.Name(), g.File(), r.LastError()))
			}
		}
	}
	if !e.restored {
		// What an alert had waited before a restart can only be restored once the first evaluation has made it active.
		for _, g := range e.groups {
			g.RestoreForState(ts)
		}
		e.restored = true
	}
	return errors.Join(errs...)
}

// Observed tells since when and until when rounds came without a pause, as far as the store keeps them. Both are zero before the first
// round.
func (e *Engine) Observed() (from, to time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.to.Add(-e.observed()), e.to
}

// Metrics are the libraries' own, kept apart from what the exporter serves.
func (e *Engine) Metrics() prometheus.Gatherer { return e.registry }

// Close flushes and releases the store.
func (e *Engine) Close() error {
	var errs []error
	if err := e.engine.Close(); err != nil {
		errs = append(errs, fmt.Errorf("close query engine: %w", err))
	}
	if err := e.db.Close(); err != nil {
		errs = append(errs, fmt.Errorf("close store %s: %w", e.opts.Dir, err))
	}
	return errors.Join(errs...)
}

func loadGroups(m *rules.Manager, opts Options) ([]*rules.Group, error) {
	external := labels.FromMap(opts.ExternalLabels)
	var groups []*rules.Group
	for _, file := range opts.Files {
		// One file at a time, since LoadGroups answers with a map; the order within a file comes from its text.
		byKey, errs := m.LoadGroups(opts.Interval, external, opts.ExternalURL, nil, false, file)
		if len(errs) > 0 {
			return nil, fmt.Errorf("load rules %s: %w", file, errors.Join(errs...))
		}
		names, err := groupNames(opts.Rules, file)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			groups = append(groups, byKey[rules.GroupKey(file, name)])
		}
	}
	return groups, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
