package alerting

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// queryRules returns the query function of the rules. A rule whose expression has no result for lack of series is not
// evaluated: on most hosts these are most rules. An error in another part of such an expression is not found.
func (e *Engine) queryRules() rules.QueryFunc {
	query := rules.EngineQueryFunc(e.ruleEngine, e.store)
	return func(ctx context.Context, text string, ts time.Time) (promql.Vector, error) {
		if expr := e.parser.rules[text]; expr != nil && ctx.Err() == nil && isEmpty(expr, e.store.Has) {
			return promql.Vector{}, nil
		}
		return query(ctx, text, ts)
	}
}

// ofNothing are the functions of vectors that have a result without series, or without those of each argument.
var ofNothing = []string{"absent", "absent_over_time", "info", "scalar"}

// isEmpty reports whether an expression has no result at any time. has reports whether there are series with a label.
// Both are conservative: false and true if unknown.
func isEmpty(expr parser.Expr, has func(labels.Label) bool) bool {
	empty := func(e parser.Expr) bool { return isEmpty(e, has) }
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return slices.ContainsFunc(e.LabelMatchers, func(m *labels.Matcher) bool { return matchesNone(m, has) })
	case *parser.BinaryExpr:
		switch {
		case e.Op == parser.LUNLESS:
			return empty(e.LHS)
		case e.Op == parser.LOR, e.VectorMatching != nil && e.VectorMatching.FillValues != parser.VectorMatchFillValues{}:
			return empty(e.LHS) && empty(e.RHS)
		}
		return empty(e.LHS) || empty(e.RHS)
	case *parser.Call:
		return !slices.Contains(ofNothing, e.Func.Name) && slices.ContainsFunc(e.Args, empty)
	}
	of := operand(expr)
	return of != nil && empty(of)
}

// onlySide returns the side of a set operator that alone has the same result, since the other side is empty; nil if
// there is none.
func onlySide(e *parser.BinaryExpr, has func(labels.Label) bool) parser.Expr {
	switch {
	case (e.Op == parser.LOR || e.Op == parser.LUNLESS) && isEmpty(e.RHS, has):
		return e.LHS
	case e.Op == parser.LOR && isEmpty(e.LHS, has):
		return e.RHS
	}
	return nil
}

// matchesNone reports whether a matcher requires one of some values that no series has.
func matchesNone(m *labels.Matcher, has func(labels.Label) bool) bool {
	values := m.SetMatches()
	if m.Type == labels.MatchEqual {
		values = []string{m.Value}
	}
	return len(values) > 0 && !m.Matches("") &&
		!slices.ContainsFunc(values, func(v string) bool { return has(labels.Label{Name: m.Name, Value: v}) })
}
