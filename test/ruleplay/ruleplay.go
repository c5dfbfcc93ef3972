// Package ruleplay plays the tests of rules/tests, which are those of promtool, with other rules and other questions.
package ruleplay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	promrules "github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

// File is a file of tests.
type File struct {
	name      string
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
	f := &File{name: name}
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

type series struct {
	labels labels.Labels
	values []parser.SequenceValue
}

// Play evaluates rules on the series of a test.
type Play struct {
	*Engine
	Now      time.Duration // of the last evaluation
	interval time.Duration // of evaluations
	step     time.Duration // of samples
	series   []series
	next     time.Duration            // of the next evaluation
	added    time.Duration            // of the next sample
	met      map[uint64]time.Duration // when the condition of an alert was last met, by its labels
}

// New makes a play of a test with these rule files.
func New(t testing.TB, files fs.FS, names []string, interval time.Duration, test *Test) *Play {
	t.Helper()
	r := NewRules()
	r.Read(t, files, names)
	p := &Play{step: Duration(t, test.Interval), interval: interval, met: map[uint64]time.Duration{}}
	known := map[string]bool{}
	for _, s := range test.Input {
		l, v, err := r.ParseSeriesDesc(s.Series + " " + s.Values)
		if err != nil {
			t.Fatal(err)
		}
		p.series = append(p.series, series{l, v})
		known[l.Get(model.MetricNameLabel)] = true
	}
	r.Prune(t, known)
	p.Engine = Start(t, r, interval, test.External)
	return p
}

// Play makes a play of a test of the file, with the rule files of that.
func (f *File) Play(t testing.TB, test *Test) *Play {
	t.Helper()
	var names []string
	for _, name := range f.RuleFiles {
		names = append(names, strings.TrimPrefix(name, "../"))
	}
	p := New(t, os.DirFS(filepath.Dir(filepath.Dir(f.name))), names, Duration(t, f.Interval), test)
	at := func(g *promrules.Group) int { return slices.Index(f.Order, g.Name()) }
	slices.SortStableFunc(p.Groups, func(a, b *promrules.Group) int { return at(a) - at(b) })
	return p
}

// Until evaluates to a time, inclusive, and calls a function after each evaluation.
func (p *Play) Until(ctx context.Context, end time.Duration, each func()) error {
	for ; p.next <= end; p.next += p.interval {
		for ; p.added <= p.next; p.added += p.step {
			if err := p.append(int(p.added/p.step), epoch.Add(p.added)); err != nil {
				return err
			}
		}
		if err := p.Eval(ctx, epoch.Add(p.next)); err != nil {
			return fmt.Errorf("at %v: %w", p.next, err)
		}
		p.Now = p.next
		for _, a := range p.Alerts() {
			if a.KeepFiringSince.IsZero() {
				p.met[a.Labels.Hash()] = p.Now
			}
		}
		each()
	}
	return nil
}

var epoch = time.Unix(0, 0).UTC()

func (p *Play) append(index int, at time.Time) error {
	app := p.DB.Appender(context.Background())
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

// Met is when the condition of an alert was last met.
func (p *Play) Met(a *promrules.Alert) time.Duration { return p.met[a.Labels.Hash()] }

// Ask evaluates an expression at a time. The result is sorted by labels.
func (p *Play) Ask(ctx context.Context, expr string, at time.Duration) (promql.Vector, error) {
	v, err := p.Query(ctx, expr, epoch.Add(at))
	slices.SortFunc(v, func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) })
	return v, err
}

// Alerts returns the active alerts, sorted by labels.
func (p *Play) Alerts() (out []*promrules.Alert) {
	for _, g := range p.Groups {
		for _, r := range g.AlertingRules() {
			r.ForEachActiveAlert(func(a *promrules.Alert) { out = append(out, a) })
		}
	}
	slices.SortFunc(out, func(a, b *promrules.Alert) int { return labels.Compare(a.Labels, b.Labels) })
	return out
}
