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
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
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

	fleetQueryTimeout = 2 * time.Minute
	fleetQuerySamples = 50_000_000
)

// ErrTimeBackwards says that a round or an evaluation is not later than the one before it. The store cannot take it; the
// caller that saw the clock set back starts a fresh store.
var ErrTimeBackwards = errors.New("time went backwards")

// Options of an Engine. Instance and one of Dir and Scratch are required.
type Options struct {
	Dir     string // folder of the store, which nobody else uses; created when missing
	Scratch string // where a folder for this run can be made when Dir fails, or is empty; empty: a failure is returned
	// Known are the alerts that were active when an earlier run ended, for which the store may have nothing any more.
	Known []Active

	Rules fs.FS    // where the rule files lie
	Files []string // their paths in Rules, in the order of evaluation

	Job            string // job label, "rdma_exporter" when empty
	Instance       string // instance label, the address that a central Prometheus would scrape
	ExternalLabels map[string]string
	ExternalURL    string        // for links in templates
	Interval       time.Duration // expected time between rounds, 15 s when zero
	Retention      time.Duration // history kept, 2 h when zero
	// Fleet: samples of many hosts by AppendPast. Queries and store may be as large as those of a Prometheus, and alerts have no annotations.
	Fleet    bool
	Logger   *slog.Logger
	Notifier *Notifier // gets what fires and what resolves; nil: nobody does
}

// Engine holds the recent samples of this node and the state of its rules. Append and Eval take turns; everything else may
// run beside them.
type Engine struct {
	opts     Options
	logger   *slog.Logger
	registry *prometheus.Registry
	store    *store
	engine   *promql.Engine
	manager  *rules.Manager
	ruleOpts *rules.ManagerOptions
	loader   *fsLoader

	mu       sync.Mutex
	groups   []*rules.Group
	gone     []*rules.Group // have no rules any more, and series that are to be marked stale
	meta     []ruleMeta     // one per alerting rule, in file order
	series   seriesCache
	from, to time.Time // observed without a pause
	lastEval time.Time
	restored bool
	rounds   uint64 // evaluated
	failures uint64 // of rules
}

// New opens the store in opts.Dir and loads the rules. Nothing runs until Append and Eval are called.
func New(opts Options) (*Engine, error) {
	if opts.Dir == "" && opts.Scratch == "" || opts.Instance == "" {
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
	e.loader = &fsLoader{files: opts.Rules, parser: pql, logger: e.logger, bare: opts.Fleet}
	samples, timeout := maxQuerySamples, queryTimeout
	if opts.Fleet {
		samples, timeout = fleetQuerySamples, fleetQueryTimeout
	}
	e.engine = promql.NewEngine(promql.EngineOpts{
		Logger:                   e.logger,
		Reg:                      e.registry,
		MaxSamples:               samples,
		Timeout:                  timeout,
		LookbackDelta:            lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		Parser:                   pql,
	})
	e.store = &store{opts: opts, logger: e.logger}
	notify := func(context.Context, string, ...*rules.Alert) {}
	if opts.Notifier != nil {
		notify = opts.Notifier.notify
	}
	e.ruleOpts = &rules.ManagerOptions{
		NameValidationScheme: model.LegacyValidation,
		ExternalURL:          externalURL,
		QueryFunc:            rules.EngineQueryFunc(e.engine, e.store),
		NotifyFunc:           notify,
		Appendable:           e.store,
		Queryable:            e.store,
		Logger:               slog.New(slog.DiscardHandler), // Eval returns what it would log in each round
		Registerer:           e.registry,
		OutageTolerance:      outageTolerance,
		ForGracePeriod:       forGracePeriod,
		ResendDelay:          resendDelay,
		GroupLoader:          e.loader,
		Parser:               pql,
	}
	e.manager = rules.NewManager(e.ruleOpts)
	// A rule that is not valid is found before anything is written.
	if e.groups, err = e.loadGroups(opts.Rules, opts.Files); err != nil {
		return nil, errors.Join(err, e.engine.Close())
	}
	e.meta = describe(e.groups)
	if err := e.store.begin(); err != nil {
		return nil, errors.Join(err, e.engine.Close())
	}
	e.from, e.to = e.store.span()
	return e, nil
}

// Eval judges all groups in file order at ts, which is the time of the round appended last. The errors of the rules that
// could not be evaluated come joined; the others are judged all the same.
func (e *Engine) Eval(ctx context.Context, ts time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	ts = ts.Round(0)
	if ts.Before(e.lastEval) {
		return fmt.Errorf("evaluate rules at %s, after %s: %w", stamp(ts), stamp(e.lastEval), ErrTimeBackwards)
	}
	e.lastEval = ts
	var errs []error
	for _, g := range e.groups {
		g.Eval(ctx, ts)
		for _, r := range g.Rules() {
			if r.Health() == rules.HealthBad {
				e.failures++
				errs = append(errs, fmt.Errorf("evaluate rule %s of %s: %w", r.Name(), g.File(), r.LastError()))
			}
		}
	}
	for _, g := range e.gone { // after the others, one of which may have their series
		g.Eval(ctx, ts)
	}
	e.gone = nil
	if !e.restored {
		// What an alert had waited before a restart can only be restored once the first evaluation has made it active.
		for _, g := range e.groups {
			g.RestoreForState(ts)
		}
		e.restored, e.opts.Known = true, nil
	}
	e.rounds++
	return errors.Join(errs...)
}

// Stats are figures of the engine itself.
type Stats struct {
	Rounds, Failures uint64 // evaluations of all rules; rules among them that could not be evaluated
	Series           uint64 // in the store's head
	Degraded         bool   // samples are kept in memory, or nowhere, since the folder for them does not work
}

// Stats since the start.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Stats{Rounds: e.rounds, Failures: e.failures}
	s.Degraded, s.Series = e.store.state()
	return s
}

// Observed tells since when and until when rounds came without a pause, as far as the store keeps them, those of an earlier run included.
// Both are zero where it has none.
func (e *Engine) Observed() (from, to time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.to.Add(-e.observed()), e.to
}

// Metrics are the libraries' own, kept apart from what the exporter serves.
func (e *Engine) Metrics() prometheus.Gatherer {
	return prometheus.Gatherers{e.registry, e.store.gatherer()}
}

// Close flushes and releases the store.
func (e *Engine) Close() error {
	var errs []error
	if err := e.engine.Close(); err != nil {
		errs = append(errs, fmt.Errorf("close query engine: %w", err))
	}
	return errors.Join(append(errs, e.store.Close())...)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
