package rollup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"rdma_exporter/rules"
	"rdma_exporter/test/machines"
	"rdma_exporter/test/ruleplay"
)

// scrape returns the samples of a recorded machine after its last round.
func scrape(t *testing.T, r *ruleplay.Rules, machine string) (series []labels.Labels, values []float64) {
	t.Helper()
	for _, line := range machines.SeriesOf(machines.Play(t, machines.Fixture(machine)).Families) {
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


// TestSamples: the samples that the node rules load of one host in 15s.
func TestSamples(t *testing.T) {
	for _, machine := range []string{"dgx-h100-ib", "hgx-h200-roce"} {
		t.Run(machine, func(t *testing.T) {
			r := ruleplay.NewRules()
			series, values := scrape(t, r, machine)
			files, names, err := rules.Node()
			if err != nil {
				t.Fatal(err)
			}
			r.Read(t, files, names)
			e := ruleplay.Start(t, r, 15*time.Second, nil)
			start := time.Unix(1_700_000_000, 0)
			at := start
			for at.Sub(start) < 25*time.Hour {
				if err := add(t.Context(), e, series, values, at); err != nil {
					t.Fatal(err)
				}
				if err := e.Eval(t.Context(), at); err != nil {
					t.Fatal(err)
				}
				step := 5 * time.Minute
				if at.Sub(start) >= 23*time.Hour+45*time.Minute {
					step = 15 * time.Second
				}
				at = at.Add(step)
			}
			groups := map[string]int64{}
			var sum int64
			type cost struct {
				n    int64
				name string
			}
			var all []cost
			for _, g := range e.Groups {
				for _, rule := range g.Rules() {
					n := e.Samples[rule.Query().String()] * int64(15*time.Second) / int64(g.Interval())
					groups[g.Name()] += n
					sum += n
					all = append(all, cost{n, g.Name() + " " + rule.Name()})
				}
			}
			for _, g := range slices.SortedFunc(maps.Keys(groups), func(a, b string) int { return cmp.Compare(groups[b], groups[a]) }) {
				t.Logf("%6d %s", groups[g], g)
			}
			slices.SortFunc(all, func(a, b cost) int { return cmp.Compare(b.n, a.n) })
			for _, c := range all[:60] {
				t.Logf("%6d %s", c.n, c.name)
			}
			t.Log("sum", sum, len(series))
		})
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
