package alerting_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
)

// reload replaces the rule files of an engine: names and texts in turn.
func reload(t *testing.T, e *alerting.Engine, files ...string) {
	t.Helper()
	fsys, names := fstest.MapFS{}, []string(nil)
	for i := 0; i < len(files); i += 2 {
		fsys[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
		names = append(names, files[i])
	}
	apply, err := e.Prepare(fsys, names)
	if err != nil {
		t.Fatal(err)
	}
	apply()
}

// TestReplacedFile: a file that replaces another of the same name takes over its alerts.
func TestReplacedFile(t *testing.T) {
	e := newTestEngine(t, downRule)
	down := gauge("state", 1, "device", "mlx5_0")
	stepTo(t, e, timeAt(0), down)
	for i, name := range []string{"operator/r.yml", "r.yml"} {
		reload(t, e, name, downRule)
		if r := e.Rules()[0]; !r.Evaluated {
			t.Errorf("%s: an unchanged rule that has been evaluated: %+v", name, r)
		}
		now := timeAt(time.Duration(i+1) * time.Minute)
		stepTo(t, e, now, down)
		if a := e.Alerts(); len(a) != 1 || !a[0].ActiveAt.Equal(timeAt(0)) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a := e.Alerts(); len(a) != 1 || a[0].State != alerting.StateFiring {
		t.Errorf("%+v", a)
	}
}

// TestGroupsGo: the series of a removed group end with it, except those that another group has taken over.
func TestGroupsGo(t *testing.T) {
	const moves = "  - {name: b, rules: [{record: 'r:moves', expr: vector(1)}]}\n"
	e := newTestEngine(t,
		"groups:\n  - {name: a, rules: [{alert: Goes, expr: vector(1)}, {record: 'r:goes', expr: vector(1)}]}\n"+moves)
	stepTo(t, e, timeAt(0))
	reload(t, e, "r.yml", "groups:\n"+strings.Replace(moves, "name: b", "name: c", 1))
	for i := range 2 {
		now := timeAt(time.Duration(i+1) * 15 * time.Second)
		stepTo(t, e, now)
		for q, want := range map[string]int{`{__name__=~"ALERTS|ALERTS_FOR_STATE|r:goes"}`: 0, "r:moves": 1} {
			if got := len(queryAt(t, e, q, now)); got != want {
				t.Errorf("round %d: %s: %d series, want %d", i, q, got, want)
			}
		}
	}
}

// TestChangedRule: a changed rule counts as not evaluated.
func TestChangedRule(t *testing.T) {
	e := newTestEngine(t, downRule)
	stepTo(t, e, timeAt(0))
	reload(t, e, "r.yml", strings.Replace(downRule, "!= 4", "!= 5", 1))
	if r := e.Rules()[0]; r.Evaluated || r.Reason != alerting.ReasonNotEvaluated {
		t.Errorf("%+v", r)
	}
}

// TestRulesAreEvaluatedAnew: a rule is parsed once, evaluated on the samples of each round. Evaluation does not change
// its expression.
func TestRulesAreEvaluatedAnew(t *testing.T) {
	const expr = "sum by (port, device) (max_over_time(state[1m])) + on (port, device) sum by (port, device) (state @ end())"
	e := newTestEngine(t, "groups: [{name: g, rules: [{record: a:b:c, expr: '"+expr+"'}]}]")
	before := e.Groups()[0].Rules[0].Query
	for round := range 3 {
		ts := timeAt(time.Duration(round) * 2 * time.Minute)
		same := gauge("state", float64(round), "device", "mlx5_0", "port", "1")
		other := gauge("state", 10, "device", fmt.Sprintf("mlx5_%d", round+1), "port", "1")
		same.Metric = append(same.Metric, other.Metric...)
		stepTo(t, e, ts, same)
		if got := queryAt(t, e, `a:b:c{device="mlx5_0"}`, ts); len(got) != 1 || got[0].Value != float64(2*round) {
			t.Errorf("round %d: %v", round, got)
		}
		if got := queryAt(t, e, "count(a:b:c)", ts); len(got) != 1 || got[0].Value != 2 {
			t.Errorf("round %d: series: %v", round, got)
		}
		if after := e.Groups()[0].Rules[0].Query; after != before {
			t.Errorf("round %d: %s", round, after)
		}
	}
}
