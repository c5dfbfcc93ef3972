package alerting

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// ruleParser is a parser that has the expressions of the rules. A rule is queried by its text, and parsing the text of
// all rules in each round is a fifth of the CPU time of their evaluation. Queries of templates are parsed.
type ruleParser struct {
	parser.Parser
	rules map[string]parser.Expr  // by text; not changed, as rules read them
	has   func(labels.Label) bool // for one goroutine
}

// keep replaces the expressions by those of the rules in groups.
func (p *ruleParser) keep(groups []*rules.Group) {
	p.rules = map[string]parser.Expr{}
	for _, g := range groups {
		for _, r := range g.Rules() {
			p.rules[r.Query().String()] = exprOf(r)
		}
	}
}

// ruleExpr is the expression of a rule with its text. In each round the library asks for the text of each rule two to
// three times, which is a fifth of the CPU time of the evaluation if the text is composed each time. The library must
// not inspect it: see noDependencies.
type ruleExpr struct {
	parser.Expr
	text string
}

func (e *ruleExpr) String() string { return e.text }

// exprOf returns the expression of a rule as it was parsed.
func exprOf(r rules.Rule) parser.Expr { return r.Query().(*ruleExpr).Expr }

// noDependencies leaves out the analysis of the rules of a group, which the library needs if it evaluates them
// concurrently.
type noDependencies struct{}

func (noDependencies) AnalyseRules([]rules.Rule) {}

// ParseExpr returns an expression that the caller may change, as the query engine does.
func (p *ruleParser) ParseExpr(text string) (parser.Expr, error) {
	if c := copyOf(p.rules[text], p.has); c != nil {
		return c, nil
	}
	return p.Parser.ParseExpr(text)
}

// copyOf copies what the query engine changes of an expression: the nodes, and the labels of an aggregation, which it
// sorts. Label matchers and vector matchings are shared, empty sides of set operators left out. It returns nil for a
// kind of expression that is unknown here, such as experimental duration expressions.
func copyOf(expr parser.Expr, has func(labels.Label) bool) parser.Expr {
	x := exprCopy{has: has}
	if c := x.of(expr); !x.unknown {
		return c
	}
	return nil
}

type exprCopy struct {
	has     func(labels.Label) bool
	unknown bool // a part of it
}

func (x *exprCopy) of(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case nil:
		return nil
	case *parser.AggregateExpr:
		c := *e
		c.Expr, c.Param, c.Grouping = x.of(e.Expr), x.of(e.Param), slices.Clone(e.Grouping)
		return &c
	case *parser.BinaryExpr:
		if side := onlySide(e, x.has); side != nil {
			return x.of(side)
		}
		c := *e
		c.LHS, c.RHS = x.of(e.LHS), x.of(e.RHS)
		return &c
	case *parser.Call:
		c := *e
		c.Args = make(parser.Expressions, len(e.Args))
		for i, a := range e.Args {
			c.Args[i] = x.of(a)
		}
		return &c
	case *parser.MatrixSelector:
		c := *e
		c.VectorSelector = x.of(e.VectorSelector)
		x.unknown = x.unknown || e.RangeExpr != nil
		return &c
	case *parser.SubqueryExpr:
		c := *e
		c.Expr = x.of(e.Expr)
		x.unknown = x.unknown || e.RangeExpr != nil || e.OriginalOffsetExpr != nil || e.StepExpr != nil
		return &c
	case *parser.ParenExpr:
		c := *e
		c.Expr = x.of(e.Expr)
		return &c
	case *parser.UnaryExpr:
		c := *e
		c.Expr = x.of(e.Expr)
		return &c
	case *parser.VectorSelector:
		c := *e
		x.unknown = x.unknown || e.OriginalOffsetExpr != nil
		return &c
	case *parser.NumberLiteral:
		c := *e
		return &c
	case *parser.StringLiteral:
		c := *e
		return &c
	}
	x.unknown = true
	return nil
}
