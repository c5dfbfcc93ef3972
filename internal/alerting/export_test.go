package alerting

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
)

// Operand is the vector of an expression of one vector.
var Operand = operand

// EvaluateAll makes an engine evaluate all of each rule. It calls of with each result, that without the parts that need
// not be evaluated, and whether these are all.
func (e *Engine) EvaluateAll(of func(text string, got, want promql.Vector, all bool)) {
	query, full := e.queryRules(), rules.EngineQueryFunc(e.engine, e.store)
	e.ruleOpts.QueryFunc = func(ctx context.Context, text string, ts time.Time) (promql.Vector, error) {
		want, err := full(ctx, text, ts)
		if err != nil {
			return nil, err
		}
		got, err := query(ctx, text, ts)
		expr := e.parser.rules[text]
		of(text, got, want, expr != nil && isEmpty(expr, e.store.Has))
		return want, err
	}
}
