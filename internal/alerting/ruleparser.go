package alerting

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// ruleParser is a parser that has the expressions of the rules. A rule is queried by its text, and parsing the text of all rules in each
// round is a fifth of the CPU time of their evaluation. Other queries (templates, API) are parsed.
type ruleParser struct {
	parser.Parser
	rules atomic.Pointer[map[string]parser.Expr] // by text; not changed, as rules read them
}

// keep replaces the expressions by those of the rules in groups.
func (p *ruleParser) keep(groups []*rules.Group) {
	exprs := map[string]parser.Expr{}
	for _, g := range groups {
		for _, r := range g.Rules() {
			exprs[r.Query().String()] = exprOf(r)
		}
	}
	p.rules.Store(&exprs)
}

// ruleExpr is the expression of a rule with its text. In each round the library asks for the text of each rule two to three times, which is
// a fifth of the CPU time of the evaluation if the text is composed each time. The library must not inspect it: see noDependencies.
type ruleExpr struct {
	parser.Expr
	text string
}

func (e *ruleExpr) String() string { return e.text }

// exprOf is the expression of a rule as it was parsed.
func exprOf(r rules.Rule) parser.Expr { return r.Query().(*ruleExpr).Expr }

// noDependencies leaves out the analysis of the rules of a group, which the library needs if it evaluates them concurrently.
type noDependencies struct{}

func (noDependencies) AnalyseRules([]rules.Rule) {}

// ParseExpr returns an expression that the caller may change, as the query engine does.
func (p *ruleParser) ParseExpr(text string) (parser.Expr, error) {
	if c := copyOf(p.rule(text)); c != nil {
		return c, nil
	}
	return p.Parser.ParseExpr(text)
}

// rule is the expression of a rule with this text; nil if there is none.
func (p *ruleParser) rule(text string) parser.Expr {
	if exprs := p.rules.Load(); exprs != nil {
		return (*exprs)[text]
	}
	return nil
}

// copyOf copies what the query engine changes of an expression: the nodes, and the labels of an aggregation, which it sorts. Label
// matchers and vector matchings are shared. It returns nil for a kind of expression that is unknown here, such as experimental duration
// expressions.
func copyOf(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		c := *e
		c.Expr, c.Grouping = copyOf(e.Expr), slices.Clone(e.Grouping)
		if e.Param != nil {
			if c.Param = copyOf(e.Param); c.Param == nil {
				return nil
			}
		}
		return whole(&c, c.Expr)
	case *parser.BinaryExpr:
		c := *e
		c.LHS, c.RHS = copyOf(e.LHS), copyOf(e.RHS)
		return whole(&c, c.LHS, c.RHS)
	case *parser.Call:
		c := *e
		c.Args = make(parser.Expressions, len(e.Args))
		for i, a := range e.Args {
			c.Args[i] = copyOf(a)
		}
		return whole(&c, c.Args...)
	case *parser.MatrixSelector:
		c := *e
		c.VectorSelector = copyOf(e.VectorSelector)
		if e.RangeExpr != nil {
			return nil
		}
		return whole(&c, c.VectorSelector)
	case *parser.SubqueryExpr:
		c := *e
		c.Expr = copyOf(e.Expr)
		if e.RangeExpr != nil || e.OriginalOffsetExpr != nil || e.StepExpr != nil {
			return nil
		}
		return whole(&c, c.Expr)
	case *parser.ParenExpr:
		c := *e
		c.Expr = copyOf(e.Expr)
		return whole(&c, c.Expr)
	case *parser.UnaryExpr:
		c := *e
		c.Expr = copyOf(e.Expr)
		return whole(&c, c.Expr)
	case *parser.VectorSelector:
		c := *e
		if e.OriginalOffsetExpr != nil {
			return nil
		}
		return &c
	case *parser.NumberLiteral:
		c := *e
		return &c
	case *parser.StringLiteral:
		c := *e
		return &c
	}
	return nil
}

// whole returns expr if all its children could be copied, nil otherwise.
func whole(expr parser.Expr, children ...parser.Expr) parser.Expr {
	for _, c := range children {
		if c == nil {
			return nil
		}
	}
	return expr
}
