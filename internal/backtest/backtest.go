// Package backtest evaluates the rules on the history of a fleet in a Prometheus, and reports the alerts that would
// have fired.
package backtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
)

// Options of a backtest.
type Options struct {
	Prometheus *Prometheus
	Rules      fs.FS
	Files      []string // in the order of evaluation
	Dir        string   // empty folder for the samples
	From, To   time.Time
	Step       time.Duration
	Matchers   string             // label matchers of the exporters
	Progress   func(at time.Time) // after each chunk; may be nil
}

const (
	// chunkLength and chunkHosts limit the memory: some 1,000 series per host, 16 bytes per sample.
	chunkLength = time.Hour
	chunkHosts  = 200
	// requestHosts is the number of hosts per request.
	requestHosts = 10
)

// ErrNoSeries is the error of a Prometheus without series of the exporter.
var ErrNoSeries = errors.New("no series of rdma_exporter")

// TooLong is the error of a history longer than the retention of the Prometheus.
type TooLong struct{ Retention time.Duration }

func (e *TooLong) Error() string {
	return fmt.Sprintf("exceeds the retention of the Prometheus, %s", short(e.Retention))
}

// Run fetches the history in chunks and evaluates all rules at each step.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	// Samples are at multiples of the step, as in a graph.
	o.From, o.To = o.From.Truncate(o.Step), o.To.Truncate(o.Step)
	kept, err := o.Prometheus.retention(ctx)
	if err != nil {
		return nil, err
	}
	if kept > 0 && time.Since(o.From) > kept+o.Step {
		return nil, &TooLong{kept}
	}
	hosts, err := o.Prometheus.origins(ctx, o.Matchers, o.From, o.To)
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("%w between %s and %s",
			ErrNoSeries, o.From.UTC().Format(time.DateTime), o.To.UTC().Format(time.DateTime))
	}
	e, err := open(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	b := &backtest{
		Options: o, engine: e, rules: e.Rules(), known: map[string]*past{}, seen: map[string]bool{},
		firing: map[string]*episode{}, failed: map[string]string{},
	}
	b.past, b.requests = e.Past(o.Step), requests(b.rules, hosts)
	length := max(chunkLength*chunkHosts/time.Duration(max(chunkHosts, len(hosts))), 5*o.Step)
	for at := o.From; !at.After(o.To); {
		steps := int(min(length, o.To.Sub(at)+o.Step) / o.Step)
		if err := b.chunk(ctx, at, max(steps, 1)); err != nil {
			return nil, err
		}
		at = at.Add(o.Step * time.Duration(max(steps, 1)))
		if o.Progress != nil {
			o.Progress(at)
		}
	}
	return b.report(len(hosts)), nil
}

// open makes an engine whose retention covers the ranges of the rules.
func open(o Options) (*alerting.Engine, error) {
	engine := func(dir string, retention time.Duration) (*alerting.Engine, error) {
		return alerting.New(alerting.Options{
			Dir: filepath.Join(o.Dir, dir), Instance: "backtest", Rules: o.Rules, Files: o.Files, Interval: o.Step,
			Retention: retention, Fleet: true,
		})
	}
	e, err := engine("rules", time.Hour)
	if err != nil {
		return nil, err
	}
	back := time.Hour
	for _, r := range e.Rules() {
		back = max(back, r.Range)
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return engine("history", min(back, o.To.Sub(o.From))+time.Hour)
}

// requests returns the selectors of all metrics in the rules: of the exporters, some hosts at a time, and of others.
func requests(rules []alerting.Rule, hosts []origin) (out []string) {
	read := map[string]bool{}
	for _, r := range rules {
		for _, m := range r.Metrics {
			read[m] = true
		}
	}
	var ours, others []string
	for _, m := range slices.Sorted(maps.Keys(read)) {
		switch {
		case strings.HasPrefix(m, "rdma_"), m == "up":
			ours = append(ours, m)
		case !strings.HasPrefix(m, "ALERTS"):
			others = append(others, m)
		}
	}
	for len(hosts) > 0 {
		n := 1
		for n < min(len(hosts), requestHosts) && hosts[n].Cluster == hosts[0].Cluster && hosts[n].Job == hosts[0].Job {
			n++
		}
		out = append(out, selector(ours, hosts[:n]))
		hosts = hosts[n:]
	}
	if len(others) > 0 {
		out = append(out, fmt.Sprintf("{__name__=~%q}", strings.Join(others, "|")))
	}
	return out
}

type backtest struct {
	Options
	engine   *alerting.Engine
	rules    []alerting.Rule
	requests []string
	known    map[string]*past // by labels
	seen     map[string]bool  // metrics
	past     *alerting.Past
	firing   map[string]*episode // the last of each set of labels
	all      []*episode
	failed   map[string]string // error of a rule by its name
	last     time.Time
}

// past is a series, and whether it had a value at the previous step.
type past struct {
	*alerting.PastSeries
	here bool
}

// episode is one time that an alert fired.
type episode struct {
	rule   int
	labels map[string]string
	from   time.Time
	to     time.Time // the last step
}

func (b *backtest) chunk(ctx context.Context, from time.Time, steps int) error {
	var all []series
	for _, query := range b.requests {
		found, err := b.Prometheus.chunk(ctx, query, from, b.Step, steps)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	of := make([]*past, len(all))
	now := map[*past]bool{}
	for i, s := range all {
		key := keyOf(s.labels)
		if b.known[key] == nil {
			b.known[key] = &past{PastSeries: alerting.NewPastSeries(s.labels)}
			b.seen[s.labels["__name__"]] = true
		}
		of[i] = b.known[key]
		now[of[i]] = true
	}
	var gone []*past // since the chunk before
	for key, p := range b.known {
		if now[p] {
			continue
		}
		if p.here {
			gone = append(gone, p)
		}
		delete(b.known, key)
	}
	b.last = from.Add(b.Step * time.Duration(steps-1))
	var samples []alerting.PastSample
	for n := range steps {
		samples = samples[:0]
		for _, p := range gone {
			samples = append(samples, alerting.PastSample{Series: p.PastSeries, Gone: true})
		}
		gone = nil
		for i, s := range all {
			if s.here[n] || of[i].here {
				samples = append(samples, alerting.PastSample{Series: of[i].PastSeries, Value: s.values[n], Gone: !s.here[n]})
			}
			of[i].here = s.here[n]
		}
		if err := b.engine.AppendPast(from.Add(b.Step*time.Duration(n)), samples); err != nil {
			return err
		}
	}
	failed, err := b.past.Eval(ctx, from, steps, b.fires)
	if err != nil {
		return err
	}
	for name, err := range failed {
		b.failed[name] = cmp.Or(b.failed[name], err.Error())
	}
	return nil
}

// fires extends an episode, or starts one.
func (b *backtest) fires(rule int, labels map[string]string, at time.Time) {
	key := fmt.Sprint(rule) + keyOf(labels)
	e := b.firing[key]
	if e == nil || at.Sub(e.to) > b.Step {
		e = &episode{rule: rule, labels: labels, from: at}
		b.firing[key] = e
		b.all = append(b.all, e)
	}
	e.to = at
}

// keyOf returns a set of labels as text.
func keyOf(labels map[string]string) string {
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		s.WriteString(name + "\xff" + labels[name] + "\xff")
	}
	return s.String()
}
