package alerting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"

	"rdma_exporter/internal/alerting/notify"
	"rdma_exporter/internal/alerting/store"
)

const (
	defaultJob       = "rdma_exporter"
	defaultInterval  = 15 * time.Second
	defaultRetention = 2 * time.Hour

	// lookback is Prometheus' default: a series without a sample for longer is stale. Therefore a longer pause between
	// rounds starts a new observation span.
	lookback = 5 * time.Minute
	// subqueryStep is Prometheus' default evaluation interval, used by subqueries without a step.
	subqueryStep = time.Minute
	// outageTolerance and forGracePeriod: pending times survive a restart within one hour.
	outageTolerance = time.Hour
	forGracePeriod  = 0
	// resendDelay is the interval at which firing alerts are sent to the notifier again.
	resendDelay = time.Minute

	queryTimeout = 10 * time.Second
	// maxQuerySamples limits one query; 3,000 series over two hours at 15 s are 1.5 million samples.
	maxQuerySamples = 5_000_000

	fleetQueryTimeout = 2 * time.Minute
	fleetQuerySamples = 50_000_000
)

// ErrTimeBackwards: a round or an evaluation is not later than the previous one. The store rejects it.
var ErrTimeBackwards = errors.New("time went backwards")

// Options of an Engine. Instance and one of Dir and Scratch are required.
type Options struct {
	Dir     string // directory of the store, for exclusive use; created if missing
	Scratch string // where a temporary directory is created if Dir fails or is empty; empty: the failure is returned
	// Context ends the waiting for Dir, as OpenLimit does (0: state.OpenLimit). After that samples are kept in Scratch.
	Context   context.Context
	OpenLimit time.Duration
	// Known are the active alerts stored by an earlier run. The store may lack their state.
	Known []Active

	Rules fs.FS    // file system with the rule files
	Files []string // their paths in Rules, in the order of evaluation

	Job            string // job label, "rdma_exporter" when empty
	Instance       string // instance label: the address at which a central Prometheus would scrape the exporter
	ExternalLabels map[string]string
	ExternalURL    string        // for links in templates
	Interval       time.Duration // expected interval between rounds, 15 s if zero
	Retention      time.Duration // history kept, 2 h if zero
	// Fleet: AppendPast gets samples of many hosts. Queries and the store may be as large as those of a Prometheus, and
	// alerts have no annotations.
	Fleet bool
	// Clock reads the clocks of the host; nil: the times of the rounds are all that is known, as in a replay.
	Clock    func() Clock
	Logger   *slog.Logger
	Notifier *notify.Notifier // receives firing and resolved alerts; nil: none
}

// Engine holds recent samples of this node and the state of its rules. Append and Eval must not run concurrently;
// everything else may.
type Engine struct {
	opts       Options
	logger     *slog.Logger
	store      *store.Store
	engine     *promql.Engine
	ruleEngine *promql.Engine // with parser; for the goroutine that evaluates
	manager    *rules.Manager
	ruleOpts   *rules.ManagerOptions
	loader     *fsLoader
	parser     *ruleParser

	mu       sync.Mutex
	groups   []*rules.Group
	gone     []*rules.Group // without rules; their series have to be marked stale
	meta     []ruleMeta     // one per alerting rule, in file order
	series   seriesCache
	from, to time.Time // observation span without a pause
	clock    Clock     // when the wall clock was set last, or the host was suspended; zero: before the first round
	now      Clock     // in the last round
	lastEval time.Time
	restored bool
	earlier  earlier         // until the end of the first round that has read everything
	resumed  bool            // earlier was read from the store
	told     map[uint64]told // by alert
	rounds   uint64          // evaluated
	failures uint64          // of rules
}

// New opens the store in opts.Dir and loads the rules. Nothing is evaluated until Append and Eval are called.
func New(opts Options) (*Engine, error) {
	if opts.Dir == "" && opts.Scratch == "" || opts.Instance == "" {
		return nil, errors.New("open alerting engine: a directory and an instance are required")
	}
	opts.Job, opts.Interval = cmp.Or(opts.Job, defaultJob), cmp.Or(opts.Interval, defaultInterval)
	opts.Retention = cmp.Or(opts.Retention, defaultRetention)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	externalURL, err := url.Parse(opts.ExternalURL)
	if err != nil {
		return nil, fmt.Errorf("parse external URL: %w", err)
	}

	e := &Engine{
		opts:   opts,
		logger: slog.New(quietHandler{opts.Logger.Handler()}),
		series: newSeriesCache(opts.Job, opts.Instance),
		told:   map[uint64]told{},
	}
	e.loader = &fsLoader{files: opts.Rules, logger: e.logger, bare: opts.Fleet}
	samples, timeout := maxQuerySamples, queryTimeout
	if opts.Fleet {
		samples, timeout = fleetQuerySamples, fleetQueryTimeout
	}
	pql := promql.EngineOpts{
		Logger:                   e.logger,
		MaxSamples:               samples,
		Timeout:                  timeout,
		LookbackDelta:            lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		Parser:                   parser.NewParser(parser.Options{}),
	}
	e.engine = promql.NewEngine(pql)
	e.store = store.New(store.Options{
		Dir: opts.Dir, Scratch: opts.Scratch, Context: opts.Context, OpenLimit: opts.OpenLimit,
		Own: store.Target{Job: opts.Job, Instance: opts.Instance}, Fleet: opts.Fleet, Retention: opts.Retention,
		Logger: opts.Logger, Library: e.logger,
	})
	e.parser = &ruleParser{Parser: pql.Parser, has: e.store.Has}
	pql.Parser = e.parser
	e.ruleEngine = promql.NewEngine(pql)
	var send rules.NotifyFunc = func(context.Context, string, ...*rules.Alert) {}
	if opts.Notifier != nil {
		send = opts.Notifier.Notify
	}
	e.ruleOpts = &rules.ManagerOptions{
		NameValidationScheme: model.LegacyValidation,
		ExternalURL:          externalURL,
		QueryFunc:            e.queryRules(),
		NotifyFunc:           e.notifyTold(send),
		Appendable:           e.store,
		Queryable:            e.store,
		Logger:               slog.New(slog.DiscardHandler), // Eval returns what it would log in each round
		OutageTolerance:      outageTolerance,
		ForGracePeriod:       forGracePeriod,
		ResendDelay:          resendDelay,
		GroupLoader:          e.loader,

		RuleDependencyController: noDependencies{},
	}
	e.manager = rules.NewManager(e.ruleOpts)
	// Invalid rules are rejected before anything is written.
	if e.groups, err = e.loadGroups(opts.Rules, opts.Files); err != nil {
		return nil, errors.Join(err, e.engine.Close())
	}
	e.meta = describe(e.groups)
	e.parser.keep(e.groups)
	if err := e.store.Begin(); err != nil {
		return nil, errors.Join(err, e.engine.Close())
	}
	e.from, e.to = e.storedSpan()
	return e, nil
}

// Eval evaluates all groups in file order at ts, the time of the last appended round. Errors of rules are joined; the
// other rules are evaluated nevertheless.
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
		if !e.restored {
			// Pending times from before a restart can be restored only after the evaluation has made the alerts active.
			g.RestoreForState(ts)
			if err := e.endAlerts(g, ts); err != nil {
				errs = append(errs, err)
			}
		}
		for _, r := range g.Rules() {
			if r.Health() == rules.HealthBad {
				e.failures++
				errs = append(errs, fmt.Errorf("evaluate rule %s in %s: %w", r.Name(), g.File(), r.LastError()))
			}
		}
	}
	for _, g := range e.gone { // after the others, since these may now have their series
		g.Eval(ctx, ts)
	}
	e.gone = nil
	e.tellAll(ctx)
	e.restored, e.opts.Known, e.earlier.rules = true, nil, nil
	e.rounds++
	return errors.Join(errs...)
}

// Stats are figures of the engine.
type Stats struct {
	Rounds, Failures uint64 // evaluations of all rules; failed evaluations of single rules
	Series           uint64 // in the store's head
	Degraded         bool   // samples are kept in memory or not at all, since the directory is unusable
}

// Stats returns the figures since the start.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Stats{Rounds: e.rounds, Failures: e.failures}
	s.Degraded, s.Series = e.store.State()
	return s
}

// Observed returns the time span of rounds without a pause, limited to the retention and including earlier runs. Both
// are zero if there is none.
func (e *Engine) Observed() (from, to time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.to.Add(-e.observed()), e.to
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
