package incidents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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

	"rdma_exporter/rules"
	"rdma_exporter/test/ruleplay"
)

// interval is that of scrapes and evaluations.
const interval = 30 * time.Second

// server is a central Prometheus: a store and all rules. What rules/node has on an instance there, its own daemon has
// as well, since instances do not see each other in those rules.
type server struct {
	db     *tsdb.DB
	groups []*promrules.Group
	query  promrules.QueryFunc
}

// newServer has an empty store. The order of the groups is that of the files, with -reverse the reverse of it.
func newServer(t *testing.T, f *fleet) *server {
	t.Helper()
	opts := tsdb.DefaultOptions()
	opts.WALSegmentSize = -1 // no log
	opts.MinBlockDuration = int64(24 * time.Hour / time.Millisecond)
	opts.MaxBlockDuration = opts.MinBlockDuration
	opts.StripeSize = 512
	db, err := tsdb.Open(t.TempDir(), nil, nil, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.DisableCompactions()
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	pql := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: pql, EnableAtModifier: true,
		EnableNegativeOffset:     true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return interval.Milliseconds() },
	})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	l := newLoader(t, pql)
	l.prune(t, f)
	manager := promrules.NewManager(&promrules.ManagerOptions{
		NameValidationScheme: model.LegacyValidation,
		QueryFunc:            promrules.EngineQueryFunc(engine, db),
		NotifyFunc:           func(context.Context, string, ...*promrules.Alert) {},
		Appendable:           db,
		Queryable:            db,
		Logger:               slog.New(slog.DiscardHandler),
		GroupLoader:          l,
		Parser:               pql,
	})
	s := &server{db: db, query: promrules.EngineQueryFunc(engine, db)}
	for _, file := range l.names {
		byKey, errs := manager.LoadGroups(interval, labels.EmptyLabels(), "", nil, false, file)
		if len(errs) > 0 {
			t.Fatalf("load rules %s: %v", file, errors.Join(errs...))
		}
		for _, g := range l.parsed[file].Groups {
			s.groups = append(s.groups, byKey[promrules.GroupKey(file, g.Name)])
		}
	}
	for _, g := range s.groups {
		for _, r := range g.AlertingRules() {
			r.SetRestored(true) // else its ALERTS series are not written
		}
	}
	if *reverse {
		slices.Reverse(s.groups)
	}
	return s
}

// loader has the embedded rules.
type loader struct {
	parser.Parser
	names  []string
	parsed map[string]*rulefmt.RuleGroups
}

func newLoader(t *testing.T, pql parser.Parser) *loader {
	t.Helper()
	l := &loader{Parser: pql, parsed: map[string]*rulefmt.RuleGroups{}}
	for _, set := range []func() (fs.FS, []string, error){rules.Node, rules.Central} {
		files, names, err := set()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			parsed, errs := rulefmt.Parse(text, false, model.LegacyValidation, pql, slog.New(slog.DiscardHandler))
			if len(errs) > 0 {
				t.Fatalf("read rules %s: %v", name, errors.Join(errs...))
			}
			l.names, l.parsed[name] = append(l.names, name), parsed
		}
	}
	return l
}

func (l *loader) Load(name string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	return l.parsed[name], nil
}

func (l *loader) Parse(query string) (parser.Expr, error) { return l.ParseExpr(query) }

// prune removes what costs time and does not change the score: annotations, and rules that cannot have a result from
// the metrics of a fleet. Recording rules read what others record, those of later files too.
func (l *loader) prune(t *testing.T, f *fleet) {
	t.Helper()
	known := map[string]bool{"ALERTS": true, "ALERTS_FOR_STATE": true}
	for _, target := range f.targets() {
		known[target.up.labels.Get(model.MetricNameLabel)] = true
		for _, s := range target.samples {
			known[s.labels.Get(model.MetricNameLabel)] = true
		}
	}
	for before := -1; before != len(known); {
		before = len(known)
		l.each(t, func(r *rulefmt.Rule, expr parser.Expr) bool {
			if r.Record != "" && ruleplay.Possible(expr, known) {
				known[r.Record] = true
			}
			return true
		})
	}
	l.each(t, func(r *rulefmt.Rule, expr parser.Expr) bool {
		r.Annotations = nil
		return ruleplay.Possible(expr, known)
	})
}

// each calls a function with all rules and keeps those for which it returns true.
func (l *loader) each(t *testing.T, keep func(*rulefmt.Rule, parser.Expr) bool) {
	t.Helper()
	for _, name := range l.names {
		for i := range l.parsed[name].Groups {
			g := &l.parsed[name].Groups[i]
			kept := g.Rules[:0]
			for _, r := range g.Rules {
				expr, err := l.ParseExpr(r.Expr)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if keep(&r, expr) {
					kept = append(kept, r)
				}
			}
			g.Rules = kept
		}
	}
}

// critical lists the names of the critical alerts.
func (l *loader) critical(t *testing.T) (names []string) {
	t.Helper()
	l.each(t, func(r *rulefmt.Rule, _ parser.Expr) bool {
		if r.Labels["severity"] == "critical" {
			names = append(names, r.Alert)
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// noFleetRaises are critical alerts on metrics that no fleet has.
var noFleetRaises = []string{"RDMAPCIeDegraded", "RDMAPCIeErrors", "RDMATransceiverHot"}

// TestCriticalAlerts: an alert that no fleet can raise does not lower the score unnoticed.
func TestCriticalAlerts(t *testing.T) {
	var all []spec
	for _, i := range incidents {
		for _, s := range i.fleet {
			s.hosts = 1
			all = append(all, s)
		}
	}
	l := newLoader(t, parser.NewParser(parser.Options{}))
	written := l.critical(t)
	l.prune(t, newFleet(all...))
	raised := l.critical(t)
	for _, name := range written {
		if slices.Contains(raised, name) == slices.Contains(noFleetRaises, name) {
			t.Errorf("%s: a fleet has its metrics: %v, noFleetRaises has it: %v",
				name, slices.Contains(raised, name), slices.Contains(noFleetRaises, name))
		}
	}
}

// scrape appends what all exporters of a fleet serve.
func (s *server) scrape(f *fleet, at time.Time) error {
	app := s.db.Appender(context.Background())
	for _, target := range f.targets() {
		if err := target.scrape(app, at.UnixMilli(), f.now); err != nil {
			return errors.Join(err, app.Rollback())
		}
	}
	return app.Commit()
}

// alert is what Alertmanager takes as one alert: a set of labels.
type alert struct {
	labels  labels.Labels
	central bool // of rules/central
}

// eval evaluates all rules and calls a function with each alert that fires.
func (s *server) eval(ctx context.Context, at time.Time, firing func(alert)) error {
	for _, g := range s.groups {
		g.Eval(ctx, at)
		for _, r := range g.Rules() {
			if r.Health() == promrules.HealthBad {
				return fmt.Errorf("evaluate rule %s of %s: %w", r.Name(), g.File(), r.LastError())
			}
		}
	}
	for _, g := range s.groups {
		for _, r := range g.AlertingRules() {
			r.ForEachActiveAlert(func(a *promrules.Alert) {
				if a.State == promrules.StateFiring {
					firing(alert{a.Labels, g.File()[:len("central")] == "central"})
				}
			})
		}
	}
	return nil
}

// faults are the critical faults at a time, without those of hosts whose maintenance is announced.
func (s *server) faults(ctx context.Context, at time.Time) (out []labels.Labels, err error) {
	v, err := s.query(ctx, `(rdma:fault{severity="critical"} or rdma:fault{symptom="exporter_down",scope!="host"})
		unless on (cluster, instance, job) rdma_host_maintenance == 1`, at)
	if err != nil {
		return nil, err
	}
	for _, sample := range v {
		out = append(out, sample.Metric)
	}
	return out, nil
}
