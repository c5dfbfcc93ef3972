// Package rollup proves the division of the rules between several Prometheus servers, and limits what a host costs.
package rollup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"rdma_exporter/internal/alerting/rollup"
	"rdma_exporter/rules"
	"rdma_exporter/test/machines"
	"rdma_exporter/test/ruleplay"
)

// scrape returns the samples of a recorded machine after its last round. Each port has had peers.
func scrape(t *testing.T, r *ruleplay.Rules, machine string) (series []labels.Labels, values []float64) {
	t.Helper()
	lines := machines.SeriesOf(machines.Play(t, machines.Fixture(machine)).Families)
	for i, line := range lines {
		if port, found := strings.CutPrefix(line, "rdma_port_state_id{"); found {
			port, _, _ = strings.Cut(port, "}")
			lines = append(lines, "rdma_port_peers{"+port+"} 3",
				fmt.Sprintf(`rdma_port_gid_info{%s,gid="fe80::%d"} 1`, port, i))
			ofLID := func(line string) bool { return strings.HasPrefix(line, "rdma_port_lid{"+port+"}") }
			if !slices.ContainsFunc(lines, ofLID) {
				lines = append(lines, fmt.Sprintf(`rdma_port_gid_info{%s,gid="10.0.0.%d"} 1`, port, i))
			}
		}
	}
	for _, line := range append(lines, "up 1") {
		at := strings.LastIndexByte(line, ' ')
		l, err := r.ParseMetric(line[:at])
		if err != nil {
			t.Fatal(err)
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		b := labels.NewBuilder(l)
		b.Set("instance", machine+":10879").Set("job", "rdma_exporter").Set("cluster", "c")
		series, values = append(series, b.Labels()), append(values, v)
	}
	return series, values
}

// TestHost: the cost of one host after a day: the samples that its rules load within an interval (a group that is
// evaluated by the minute: a quarter of them), and the series that travel from a leaf to the global Prometheus.
func TestHost(t *testing.T) {
	for _, c := range []struct {
		machine         string
		samples, series int64
	}{{"dgx-h100-ib", 15_000, 60}, {"hgx-h200-roce", 15_000, 60}} {
		t.Run(c.machine, func(t *testing.T) {
			e := played(t, c.machine)
			groups := map[string]int64{}
			var sum int64
			for _, g := range e.Groups {
				for _, rule := range g.Rules() {
					n := e.Samples(rule.Query().String()) * int64(interval) / int64(g.Interval())
					groups[g.Name()] += n
					if path.Dir(g.File()) == "node" {
						sum += n
					}
				}
			}
			dearest := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
				return cmp.Compare(groups[b], groups[a])
			})
			for _, g := range dearest[:10] {
				t.Logf("%6d samples %s", groups[g], g)
			}
			t.Logf("%6d samples of the node rules, at most %d", sum, c.samples)
			if sum > c.samples {
				t.Errorf("the node rules load %d samples of a host, want %d at most", sum, c.samples)
			}
			n := travelling(t, e)
			t.Logf("%6d series travel", n)
			if n > c.series || n == 0 {
				t.Errorf("%d series travel, want %d at most", n, c.series)
			}
		})
	}
}

var (
	dayBefore = time.Unix(1_700_000_000, 0).Truncate(time.Hour)
	now       = dayBefore.Add(25 * time.Hour)
)

// interval is that of scrapes and evaluations.
const interval = 15 * time.Second

// played returns an engine on all rules after a day of a machine, of which the last 75 minutes have all evaluations.
func played(t *testing.T, machine string) *ruleplay.Engine {
	t.Helper()
	r := ruleplay.NewRules()
	series, values := scrape(t, r, machine)
	files, names, err := rules.Both()
	must(t, err)
	r.Read(t, files, names)
	e := ruleplay.Start(t, r, interval, nil)
	step := 15 * time.Minute
	for at := dayBefore; !at.After(now); at = at.Add(step) {
		if now.Sub(at) <= 75*time.Minute {
			step = interval
		}
		must(t, add(t.Context(), e, series, values, at))
		must(t, e.EvalDue(t.Context(), at))
	}
	return e
}

// travelling returns how many series of a host travel. Those of a leaf are few for all its hosts.
func travelling(t *testing.T, e *ruleplay.Engine) (sum int64) {
	t.Helper()
	files, names, err := rules.Both()
	must(t, err)
	var texts [][]byte
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		must(t, err)
		texts = append(texts, text)
	}
	travel, err := rollup.Travelling(texts)
	must(t, err)
	for _, s := range travel {
		v, err := e.Query(t.Context(), s.Name, now)
		must(t, err)
		v = slices.DeleteFunc(v, func(s promql.Sample) bool { return !s.Metric.Has("instance") })
		if len(v) > 0 {
			t.Logf("%6d series %s", len(v), s.Name)
		}
		sum += int64(len(v))
	}
	t.Logf("%6d series", sum)
	return sum
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func add(ctx context.Context, e *ruleplay.Engine, series []labels.Labels, values []float64, at time.Time) error {
	a := e.DB.Appender(ctx)
	for i, l := range series {
		if _, err := a.Append(0, l, at.UnixMilli(), values[i]); err != nil {
			return fmt.Errorf("%s: %w", l, errors.Join(err, a.Rollback()))
		}
	}
	return a.Commit()
}
