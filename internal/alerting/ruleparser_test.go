package alerting

import (
	"io/fs"
	"log/slog"
	"reflect"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/rules"
)

func hasAll(labels.Label) bool { return true }

// nodes returns the parts of an expression that the query engine may change: its nodes, and labels of aggregations.
func nodes(expr parser.Expr) (all []any) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if n != nil {
			all = append(all, n)
		}
		if a, ok := n.(*parser.AggregateExpr); ok && len(a.Grouping) > 0 {
			all = append(all, &a.Grouping[0])
		}
		return nil
	})
	return all
}

// TestCopyOfExpressions: of every expression in the rules there is a copy, which is equal and has nothing of the
// original that the engine changes.
func TestCopyOfExpressions(t *testing.T) {
	for _, set := range []func() (fs.FS, []string, error){rules.Node, rules.Central, rules.Compat} {
		files, names, err := set()
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			t.Error("no files")
		}
		l := fsLoader{files: files, logger: slog.New(slog.DiscardHandler)}
		for _, name := range names {
			loaded, errs := l.Load(name, false, model.LegacyValidation)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if len(loaded.Groups) == 0 {
				t.Errorf("%s: no groups", name)
			}
			for _, g := range loaded.Groups {
				for _, r := range g.Rules {
					expr, err := expressions.Parser.ParseExpr(r.Expr)
					if err != nil {
						t.Fatal(err)
					}
					c := copyOf(expr, hasAll)
					if !reflect.DeepEqual(c, expr) {
						t.Errorf("%s%s: the copy is %v", r.Record, r.Alert, c)
						continue
					}
					of := nodes(expr)
					for _, n := range nodes(c) {
						if slices.Contains(of, n) {
							t.Errorf("%s%s: the copy shares %v", r.Record, r.Alert, n)
						}
					}
				}
			}
		}
	}
}

// TestCopyOfUnknownExpressions: what copyOf does not know has no copy, wherever it stands in an expression.
func TestCopyOfUnknownExpressions(t *testing.T) {
	p := parser.NewParser(parser.Options{ExperimentalDurationExpr: true})
	for _, text := range []string{
		"rate(a[1m+1m])", "a offset (1m+1m)", "max_over_time(a[1h:1m+1m])", "max_over_time(a[1h+1m:])",
		"max_over_time(a[1h:] offset (1m+1m))", "1 + (-sum(rate(a[1m+1m])))", "topk(scalar(a offset (1m+1m)), b)",
	} {
		expr, err := p.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if c := copyOf(expr, hasAll); c != nil {
			t.Errorf("%s: the copy is %v", text, c)
		}
	}
}
