package alerting

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
)

// EvaluateAll makes an engine evaluate also the rules that it need not, and calls of with each result of these.
func (e *Engine) EvaluateAll(of func(text string, result promql.Vector, err error)) {
	query := rules.EngineQueryFunc(e.engine, e.store)
	e.ruleOpts.QueryFunc = func(ctx context.Context, text string, ts time.Time) (promql.Vector, error) {
		vector, err := query(ctx, text, ts)
		if expr := e.parser.rule(text); expr != nil && isEmpty(expr, e.store.has) {
			of(text, vector, err)
		}
		return vector, err
	}
}
