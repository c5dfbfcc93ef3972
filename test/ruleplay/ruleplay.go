// Package ruleplay plays the tests of rules/tests, which are those of promtool, with other rules and other questions.
package ruleplay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	promrules "github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb"
	"go.yaml.in/yaml/v3"
)

// File is a file of tests.
type File struct {
	RuleFiles []string `yaml:"rule_files"`
	Order     []string `yaml:"group_eval_order"`
	Interval  string   `yaml:"evaluation_interval"`
	Tests     []Test   `yaml:"tests"`
}

// Test is one play of series.
type Test struct {
	Name     string                            `yaml:"name"`
	Interval string                            `yaml:"interval"`
	External map[string]string                 `yaml:"external_labels"`
	Input    []struct{ Series, Values string } `yaml:"input_series"`
	Alerts   []AlertTest                       `yaml:"alert_rule_test"`
	Exprs    []ExprTest                        `yaml:"promql_expr_test"`
}

// ExprTest is what an expression gives at a time.
type ExprTest struct {
	At   string `yaml:"eval_time"`
	Expr string `yaml:"expr"`
}

// AlertTest is what is expected of one alert at a time.
type AlertTest struct {
	At   string `yaml:"eval_time"`
	Name string `yaml:"alertname"`
	Want []struct {
		Labels      map[string]string `yaml:"exp_labels"`
		Annotations map[string]string `yaml:"exp_annotations"`
	} `yaml:"exp_alerts"`
}

// Read reads a file of tests.
func Read(t testing.TB, name string) *File {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f := &File{}
	if err := yaml.Unmarshal(text, f); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return f
}

// Duration parses a duration of a test; empty is a minute.
func Duration(t testing.TB, s string) time.Duration {
	t.Helper()
	if s == "" {
		return time.Minute
	}
	d, err := model.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(d)
}

// Play evaluates rules on the series of a test.
type Play struct {
	Groups   []*promrules.Group
	Now      time.Duration // of the last evaluation
	db       *tsdb.DB
	engine   *promql.Engine
	interval time.Duration // of evaluations
	step     time.Duration // of samples
	series   []series
	next     time.Duration // of the next evaluation
	added    time.Duration // of the next sample
}

type series struct {
	labels labels.Labels
	values []parser.SequenceValue
}

// loader has rule files.
type loader struct {
	parser.Parser
	parsed map[string]*rulefmt.RuleGroups
}

func (l loader) read(files fs.FS, name string) error {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return fmt.Errorf("read rules: %w", err)
	}
	groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, l.Parser, slog.New(slog.DiscardHandler))
	l.parsed[name] = groups
	return errors.Join(errs...)
}

func (l loader) Load(name string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	return l.parsed[name], nil
}

func (l loader) Parse(query string) (parser.Expr, error) { return l.ParseExpr(query) }

// New makes a play of a test. The groups are evaluated in the order of the files, and of each file from above. Rules
// without a possible result are left out, and annotations.
func New(t testing.TB, files fs.FS, names []string, interval time.Duration, test *Test) *Play {
	t.Helper()
	return load(t, files, names, interval, test, true)
}

// Full is New with annotations.
func Full(t testing.TB, files fs.FS, names []string, interval time.Duration, test *Test) *Play {
	t.Helper()
	return load(t, files, names, interval, test, false)
}

func load(t testing.TB, files fs.FS, names []string, interval time.Duration, test *Test, bare bool) *Play {
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
	p := &Play{db: db, step: Duration(t, test.Interval), interval: interval}
	pql := parser.NewParser(parser.Options{})
	p.engine = promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: pql, EnableAtModifier: true,
		EnableNegativeOffset: true, NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
	t.Cleanup(func() {
		if err := errors.Join(p.engine.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	for _, s := range test.Input {
		l, v, err := pql.ParseSeriesDesc(s.Series + " " + s.Values)
		if err != nil {
			t.Fatal(err)
		}
		p.series = append(p.series, series{l, v})
	}
	l := loader{pql, map[string]*rulefmt.RuleGroups{}}
	for _, name := range names {
		if err := l.read(files, name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := l.prune(l.parsed, p.series, bare); err != nil {
		t.Fatal(err)
	}
	m := promrules.NewManager(&promrules.ManagerOptions{
		NameValidationScheme: model.LegacyValidation, Appendable: db, Queryable: db, Parser: pql, GroupLoader: l,
		QueryFunc:  promrules.EngineQueryFunc(p.engine, db),
		NotifyFunc: func(context.Context, string, ...*promrules.Alert) {}, Logger: slog.New(slog.DiscardHandler),
	})
	for _, name := range names {
		groups, errs := m.LoadGroups(interval, labels.FromMap(test.External), "", nil, false, name)
		if len(errs) > 0 {
			t.Fatalf("%s: %v", name, errors.Join(errs...))
		}
		for _, g := range l.parsed[name].Groups {
			p.Groups = append(p.Groups, groups[promrules.GroupKey(name, g.Name)])
		}
	}
	for _, g := range p.Groups {
		for _, r := range g.AlertingRules() {
			r.SetRestored(true) // else its ALERTS series are not written
		}
	}
	return p
}

// Sort sets the order of the groups by their names.
func (p *Play) Sort(names []string) {
	at := func(g *promrules.Group) int { return slices.Index(names, g.Name()) }
	slices.SortStableFunc(p.Groups, func(a, b *promrules.Group) int { return at(a) - at(b) })
}

// Until evaluates to a time, inclusive, and calls a function after each evaluation.
func (p *Play) Until(ctx context.Context, end time.Duration, each func()) error {
	for ; p.next <= end; p.next += p.interval {
		for ; p.added <= p.next; p.added += p.step {
			if err := p.append(int(p.added/p.step), epoch.Add(p.added)); err != nil {
				return err
			}
		}
		for _, g := range p.Groups {
			g.Eval(ctx, epoch.Add(p.next))
			for _, r := range g.Rules() {
				if r.Health() == promrules.HealthBad {
					return fmt.Errorf("at %v: %s: %w", p.next, r.Name(), r.LastError())
				}
			}
		}
		p.Now = p.next
		each()
	}
	return nil
}

var epoch = time.Unix(0, 0).UTC()

func (p *Play) append(index int, at time.Time) error {
	app := p.db.Appender(context.Background())
	for _, s := range p.series {
		if index >= len(s.values) || s.values[index].Omitted {
			continue
		}
		if _, err := app.Append(0, s.labels, at.UnixMilli(), s.values[index].Value); err != nil {
			return errors.Join(fmt.Errorf("%v: %w", s.labels, err), app.Rollback())
		}
	}
	return app.Commit()
}

// Query evaluates an expression at the time of the last evaluation.
func (p *Play) Query(ctx context.Context, expr string) (promql.Vector, error) {
	return p.QueryAt(ctx, expr, p.Now)
}

// QueryAt evaluates an expression at a time. The result is sorted by labels.
func (p *Play) QueryAt(ctx context.Context, expr string, at time.Duration) (promql.Vector, error) {
	v, err := promrules.EngineQueryFunc(p.engine, p.db)(ctx, expr, epoch.Add(at))
	slices.SortFunc(v, func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) })
	return v, err
}

// Alerts are the active alerts, sorted by labels.
func (p *Play) Alerts() (out []*promrules.Alert) {
	for _, g := range p.Groups {
		for _, r := range g.AlertingRules() {
			r.ForEachActiveAlert(func(a *promrules.Alert) { out = append(out, a) })
		}
	}
	slices.SortFunc(out, func(a, b *promrules.Alert) int { return labels.Compare(a.Labels, b.Labels) })
	return out
}

// Possible reports whether an expression can have a result where these metrics are known.
func Possible(expr parser.Expr, known map[string]bool) bool {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return e.Name == "" || known[e.Name]
	case *parser.MatrixSelector:
		return Possible(e.VectorSelector, known)
	case *parser.BinaryExpr:
		left, right := Possible(e.LHS, known), Possible(e.RHS, known)
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
			if !Possible(arg, known) {
				return false
			}
		}
		return true
	case *parser.AggregateExpr:
		return Possible(e.Expr, known)
	case *parser.SubqueryExpr:
		return Possible(e.Expr, known)
	case *parser.ParenExpr:
		return Possible(e.Expr, known)
	case *parser.UnaryExpr:
		return Possible(e.Expr, known)
	}
	return true
}

// prune removes the rules that cannot have a result from the series of a test. Recording rules read
// what others record, those of later files too. bare removes annotations too.
func (l loader) prune(all map[string]*rulefmt.RuleGroups, input []series, bare bool) error {
	known := map[string]bool{"ALERTS": true, "ALERTS_FOR_STATE": true}
	for _, s := range input {
		known[s.labels.Get(model.MetricNameLabel)] = true
	}
	each := func(keep func(r *rulefmt.Rule, expr parser.Expr) bool) error {
		for _, groups := range all {
			for i := range groups.Groups {
				var kept []rulefmt.Rule
				for _, r := range groups.Groups[i].Rules {
					expr, err := l.ParseExpr(r.Expr)
					if err != nil {
						return fmt.Errorf("%s: %w", r.Expr, err)
					}
					if keep(&r, expr) {
						kept = append(kept, r)
					}
				}
				groups.Groups[i].Rules = kept
			}
		}
		return nil
	}
	for before := -1; before != len(known); {
		before = len(known)
		if err := each(func(r *rulefmt.Rule, expr parser.Expr) bool {
			if r.Record != "" && Possible(expr, known) {
				known[r.Record] = true
			}
			return true
		}); err != nil {
			return err
		}
	}
	return each(func(r *rulefmt.Rule, expr parser.Expr) bool {
		if bare {
			r.Annotations = nil
		}
		return Possible(expr, known)
	})
}
