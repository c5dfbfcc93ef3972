package alerting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// emptyParser parses all that the library has.
var emptyParser = parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true})

// hasNot has all labels except those with the value none.
func hasNot(l labels.Label) bool { return l.Value != "none" }

// TestIsEmpty: what is known to be empty without series of the name none.
func TestIsEmpty(t *testing.T) {
	for text, want := range map[string]bool{
		"a":                                      false,
		"none":                                   true,
		`{__name__="none"}`:                      true,
		`{__name__=~"none|none"}`:                true,
		`{__name__=~"a|none"}`:                   false,
		`{__name__=~"none.*"}`:                   false,
		`a{x="none"}`:                            true,
		`a{x=""}`:                                false,
		`a{x!="none"}`:                           false,
		`a{x=~"none|"}`:                          false,
		"rate(none[5m])":                         true,
		"-(none offset 1m)":                      true,
		"sum by (x) (none)":                      true,
		"count(none)":                            true,
		"topk(scalar(none), a)":                  false,
		"max_over_time((none > 1)[1h:1m])":       true,
		"quantile_over_time(0.5, none[5m])":      true,
		"a and none":                             true,
		"none and a":                             true,
		"a and on (x) none":                      true,
		"a or none":                              false,
		"none or none":                           true,
		"none or rate(none[5m])":                 true,
		"a unless none":                          false,
		"none unless a":                          true,
		"a * on (x) group_left (y) none":         true,
		"a + on (x) fill_right (0) none":         false,
		"none + on (x) fill_right (0) none":      true,
		"none > 1":                               true,
		"1 < bool none":                          true,
		"a > scalar(none)":                       false,
		"scalar(none) + 1":                       false,
		"vector(scalar(none))":                   false,
		"absent(none)":                           false,
		"absent_over_time(none[5m])":             false,
		"absent(absent(none))":                   false,
		"sum(absent(none))":                      false,
		"time()":                                 false,
		"hour()":                                 false,
		"hour(none)":                             true,
		"vector(1)":                              false,
		`label_replace(none, "a", "b", "c", "")`: true,
		`a and (b or (none and a))`:              false,
		`a and (none or (b and none))`:           true,
	} {
		expr, err := emptyParser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := isEmpty(expr, hasNot); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestEachOfNothing: functions, aggregations and operators of the library are empty without series as isEmpty says.
func TestEachOfNothing(t *testing.T) {
	e := newEngine(t, "")
	evaluateRound(t, e, t1, "a")
	var texts []string
	args := map[parser.ValueType]string{
		parser.ValueTypeVector: "none", parser.ValueTypeMatrix: "none[5m]",
		parser.ValueTypeScalar: "1", parser.ValueTypeString: `"x"`,
	}
	for name, f := range parser.Functions {
		var of []string
		for _, a := range f.ArgTypes {
			of = append(of, args[a])
		}
		if name != "info" {
			texts = append(texts, name+"("+strings.Join(of, ", ")+")")
		}
	}
	for op, text := range parser.ItemTypeStr {
		switch {
		case op == parser.COUNT_VALUES:
			texts = append(texts, text+`("x", none)`)
		case op.IsAggregatorWithParam():
			texts = append(texts, text+"(1, none)")
		case op.IsAggregator():
			texts = append(texts, text+"(none)")
		case op.IsOperator():
			for _, sides := range []string{"a %s none", "none %s a", "none %s none", "1 %s none", "none %s 1"} {
				texts = append(texts, fmt.Sprintf(sides, text))
			}
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 9, Timeout: time.Minute, EnableAtModifier: true, Parser: emptyParser,
	})
	checked, all := 0, rules.EngineQueryFunc(engine, e.store)
	for _, text := range texts {
		expr, err := emptyParser.ParseExpr(text)
		if err != nil {
			continue // an operator of other operands
		}
		result, err := all(t.Context(), text, t1)
		if err != nil {
			t.Fatal(err)
		}
		if said := isEmpty(expr, e.store.Has); said != (len(result) == 0) {
			t.Errorf("%s: empty: %v, result: %v", text, said, result)
		}
		checked++
	}
	if checked < 150 {
		t.Errorf("%d of %d checked", checked, len(texts))
	}
}

var t1 = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func newEngine(t *testing.T, ruleText string) *Engine {
	t.Helper()
	e, err := New(Options{
		Dir: t.TempDir(), Instance: "x", Interval: time.Minute,
		Rules: fstest.MapFS{"r.yml": {Data: []byte(ruleText)}}, Files: []string{"r.yml"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// evaluateRound is a round in which each metric has a series with l="1".
func evaluateRound(t *testing.T, e *Engine, at time.Time, names ...string) {
	t.Helper()
	var families []*dto.MetricFamily
	for _, name := range names {
		one, l, kind := 1.0, "l", dto.MetricType_GAUGE
		text := "1"
		families = append(families, &dto.MetricFamily{Name: &name, Type: &kind, Metric: []*dto.Metric{{
			Label: []*dto.LabelPair{{Name: &l, Value: &text}}, Gauge: &dto.Gauge{Value: &one},
		}}})
	}
	if err := errors.Join(e.Append(at, slices.Values(families)), e.Eval(t.Context(), at)); err != nil {
		t.Fatal(err)
	}
}
