package ruleplay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	promrules "github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// Rules are rule files, in their order.
type Rules struct {
	parser.Parser
	names  []string
	parsed map[string]*rulefmt.RuleGroups
}

// NewRules has no rules.
func NewRules() *Rules {
	return &Rules{Parser: parser.NewParser(parser.Options{}), parsed: map[string]*rulefmt.RuleGroups{}}
}

// Read adds rule files.
func (r *Rules) Read(t testing.TB, files fs.FS, names []string) {
	t.Helper()
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, r.Parser, slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			t.Fatalf("read rules %s: %v", name, errors.Join(errs...))
		}
		r.names, r.parsed[name] = append(r.names, name), groups
	}
}

// Load has the rules of a file that was read, for a manager of rules.
func (r *Rules) Load(name string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	return r.parsed[name], nil
}

// Parse parses an expression, for a manager of rules.
func (r *Rules) Parse(query string) (parser.Expr, error) { return r.ParseExpr(query) }

// Prune removes what costs time and changes no result where these metrics are known: annotations, and rules that cannot
// have one. Recording rules read what others record, those of later files too.
func (r *Rules) Prune(t testing.TB, known map[string]bool) {
	t.Helper()
	known["ALERTS"], known["ALERTS_FOR_STATE"] = true, true
	for before := -1; before != len(known); {
		before = len(known)
		r.Each(t, func(rule *rulefmt.Rule, expr parser.Expr) bool {
			if rule.Record != "" && possible(expr, known) {
				known[rule.Record] = true
			}
			return true
		})
	}
	r.Each(t, func(rule *rulefmt.Rule, expr parser.Expr) bool {
		rule.Annotations = nil
		return possible(expr, known)
	})
}

// Focus removes the rules that an alert and these records do not read, directly or through others. None may read
// ALERTS.
func (r *Rules) Focus(t testing.TB, alert string, records ...string) {
	t.Helper()
	read := map[string]bool{}
	for _, name := range records {
		read[name] = true
	}
	needed := func(rule *rulefmt.Rule) bool { return rule.Alert == alert || rule.Record != "" && read[rule.Record] }
	for before := -1; before != len(read); {
		before = len(read)
		r.Each(t, func(rule *rulefmt.Rule, expr parser.Expr) bool {
			for _, selectors := range parser.ExtractSelectors(expr) {
				for _, m := range selectors {
					if m.Name == model.MetricNameLabel && needed(rule) {
						read[m.Value] = true
					}
				}
			}
			return true
		})
	}
	if read["ALERTS"] {
		t.Fatalf("%s reads ALERTS", alert)
	}
	r.Each(t, func(rule *rulefmt.Rule, _ parser.Expr) bool { return needed(rule) })
}

// Each calls a function with each rule, and keeps those for which it returns true.
func (r *Rules) Each(t testing.TB, keep func(*rulefmt.Rule, parser.Expr) bool) {
	t.Helper()
	for _, name := range r.names {
		for i := range r.parsed[name].Groups {
			g := &r.parsed[name].Groups[i]
			kept := g.Rules[:0]
			for _, rule := range g.Rules {
				expr, err := r.ParseExpr(rule.Expr)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if keep(&rule, expr) {
					kept = append(kept, rule)
				}
			}
			g.Rules = kept
		}
	}
}

// possible reports whether an expression can have a result where these metrics are known.
func possible(expr parser.Expr, known map[string]bool) bool {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return e.Name == "" || known[e.Name]
	case *parser.MatrixSelector:
		return possible(e.VectorSelector, known)
	case *parser.BinaryExpr:
		left, right := possible(e.LHS, known), possible(e.RHS, known)
		switch e.Op {
		case parser.LUNLESS:
			return left
		case parser.LOR:
			return left || right
		}
		return left && right
	case *parser.Call:
		if slices.Contains([]string{"absent", "absent_over_time", "scalar", "vector"}, e.Func.Name) {
			return true
		}
		for _, arg := range e.Args {
			if !possible(arg, known) {
				return false
			}
		}
		return true
	case *parser.AggregateExpr:
		return possible(e.Expr, known)
	case *parser.SubqueryExpr:
		return possible(e.Expr, known)
	case *parser.ParenExpr:
		return possible(e.Expr, known)
	case *parser.UnaryExpr:
		return possible(e.Expr, known)
	}
	return true
}

// Engine is a Prometheus without scrapes and notifications: an empty store, and rules that the caller evaluates.
type Engine struct {
	DB     *tsdb.DB
	Groups []*promrules.Group // in the order of the files, and of each file from above
	Query  promrules.QueryFunc
	// Workers is how many groups are evaluated at once, as Prometheus does: the results of groups that read each other
	// then differ by an evaluation. 0 and 1: one after the other.
	Workers int
	samples *samples
}

// Samples returns how many samples the last evaluation of an expression has loaded, as Prometheus counts them.
func (e *Engine) Samples(expr string) int64 {
	e.samples.mu.Lock()
	defer e.samples.mu.Unlock()
	return e.samples.of[expr]
}

// samples counts for queries that run at once.
type samples struct {
	mu sync.Mutex
	of map[string]int64
}

// Start starts an engine on rules, until the end of the test.
func Start(t testing.TB, r *Rules, interval time.Duration, external map[string]string) *Engine {
	t.Helper()
	opts := tsdb.DefaultOptions()
	opts.WALSegmentSize = -1 // no log
	opts.MinBlockDuration = int64(60 * 24 * time.Hour / time.Millisecond)
	opts.MaxBlockDuration = opts.MinBlockDuration
	opts.StripeSize = 512
	db, err := tsdb.Open(t.TempDir(), nil, nil, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.DisableCompactions()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: 24 * time.Hour, LookbackDelta: 5 * time.Minute, Parser: r.Parser,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return interval.Milliseconds() },
	})
	t.Cleanup(func() {
		if err := errors.Join(engine.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	e := &Engine{DB: db, samples: &samples{of: map[string]int64{}}}
	e.Query = promrules.EngineQueryFunc(counted{engine, e.samples}, db)
	m := promrules.NewManager(&promrules.ManagerOptions{
		NameValidationScheme: model.LegacyValidation, Appendable: db, Queryable: db, Parser: r.Parser, GroupLoader: r,
		QueryFunc: e.Query, Logger: slog.New(slog.DiscardHandler),
		NotifyFunc: func(context.Context, string, ...*promrules.Alert) {},
	})
	for _, name := range r.names {
		groups, errs := m.LoadGroups(interval, labels.FromMap(external), "", nil, false, name)
		if len(errs) > 0 {
			t.Fatalf("load rules %s: %v", name, errors.Join(errs...))
		}
		for _, g := range r.parsed[name].Groups {
			e.Groups = append(e.Groups, groups[promrules.GroupKey(name, g.Name)])
		}
	}
	for _, g := range e.Groups {
		for _, rule := range g.AlertingRules() {
			rule.SetRestored(true) // else its ALERTS series are not written
		}
	}
	return e
}

// counted is an engine that counts the samples of each query.
type counted struct {
	promql.QueryEngine
	samples *samples
}

func (c counted) NewInstantQuery(
	ctx context.Context, q storage.Queryable, opts promql.QueryOpts, expr string, at time.Time,
) (promql.Query, error) {
	query, err := c.QueryEngine.NewInstantQuery(ctx, q, opts, expr, at)
	return countedQuery{query, c.samples}, err
}

type countedQuery struct {
	promql.Query
	samples *samples
}

func (c countedQuery) Exec(ctx context.Context) *promql.Result {
	result := c.Query.Exec(ctx)
	c.samples.mu.Lock()
	defer c.samples.mu.Unlock()
	c.samples.of[c.String()] = c.Stats().Samples.TotalSamples
	return result
}

// Eval evaluates all rules. The error is of the first of each group that has failed.
func (e *Engine) Eval(ctx context.Context, at time.Time) error {
	return e.eval(ctx, at, func(*promrules.Group) bool { return true })
}

// EvalDue evaluates the groups whose interval divides a time.
func (e *Engine) EvalDue(ctx context.Context, at time.Time) error {
	return e.eval(ctx, at, func(g *promrules.Group) bool { return at.UnixNano()%int64(g.Interval()) == 0 })
}

func (e *Engine) eval(ctx context.Context, at time.Time, due func(*promrules.Group) bool) error {
	var all sync.WaitGroup
	free := make(chan struct{}, max(1, e.Workers))
	errs := make([]error, len(e.Groups))
	for i, g := range e.Groups {
		if !due(g) {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			errs[i] = evalGroup(ctx, g, at)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func evalGroup(ctx context.Context, g *promrules.Group, at time.Time) error {
	g.Eval(ctx, at)
	for _, r := range g.Rules() {
		if r.Health() == promrules.HealthBad {
			return fmt.Errorf("evaluate rule %s of %s: %w", r.Name(), g.File(), r.LastError())
		}
	}
	return nil
}
