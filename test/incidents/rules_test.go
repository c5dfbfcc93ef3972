package incidents

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	promrules "github.com/prometheus/prometheus/rules"

	"rdma_exporter/rules"
	"rdma_exporter/test/ruleplay"
)

// interval is that of scrapes and evaluations.
const interval = 30 * time.Second

// server is a central Prometheus: a store and all rules. What rules/node has on an instance there, its own daemon has
// as well, since instances do not see each other in those rules.
type server struct{ *ruleplay.Engine }

// newServer has an empty store. The order of the groups is that of the files, with -reverse the reverse of it.
func newServer(t *testing.T, f *fleet) *server {
	t.Helper()
	r := allRules(t)
	r.Prune(t, metricsOf(f))
	s := &server{ruleplay.Start(t, r, interval, nil)}
	s.Workers = *workers
	if *reverse {
		slices.Reverse(s.Groups)
	}
	return s
}

// allRules returns the embedded rules.
func allRules(t *testing.T) *ruleplay.Rules {
	t.Helper()
	r := ruleplay.NewRules()
	files, names, err := rules.Both()
	if err != nil {
		t.Fatal(err)
	}
	r.Read(t, files, names)
	return r
}

// metricsOf returns the names of the metrics of a fleet.
func metricsOf(f *fleet) map[string]bool {
	known := map[string]bool{}
	for _, target := range f.targets() {
		known[target.up.labels.Get(model.MetricNameLabel)] = true
		for _, s := range target.samples {
			known[s.labels.Get(model.MetricNameLabel)] = true
		}
	}
	return known
}

// critical lists the names of the critical alerts.
func critical(t *testing.T, all *ruleplay.Rules) (names []string) {
	t.Helper()
	all.Each(t, func(r *rulefmt.Rule, _ parser.Expr) bool {
		if r.Labels["severity"] == "critical" {
			names = append(names, r.Alert)
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// TestCriticalAlerts: an alert that no fleet can raise does not lower the score unnoticed.
func TestCriticalAlerts(t *testing.T) {
	var all []spec
	for _, i := range incidents {
		for _, s := range i.fleet {
			s.hosts = 1
			all = append(all, s)
		}
	}
	r := allRules(t)
	written := critical(t, r)
	r.Prune(t, metricsOf(newFleet(all...)))
	raised := critical(t, r)
	for _, name := range written {
		if !slices.Contains(raised, name) {
			t.Errorf("%s: no fleet has its metrics", name)
		}
	}
}

// scrape appends what all exporters of a fleet serve.
func (s *server) scrape(f *fleet, at time.Time) error {
	app := s.DB.Appender(context.Background())
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
	if err := s.Eval(ctx, at); err != nil {
		return err
	}
	for _, g := range s.Groups {
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
