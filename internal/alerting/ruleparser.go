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

// exprOf is the expression of a rule as it was parsed.
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
	of := func(e parser.Expr) parser.Expr { return copyOf(e, has) }
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		c := *e
		c.Expr, c.Grouping = of(e.Expr), slices.Clone(e.Grouping)
		if e.Param != nil {
			if c.Param = of(e.Param); c.Param == nil {
				return nil
			}
		}
		return whole(&c, c.Expr)
	case *parser.BinaryExpr:
		if side := onlySide(e, has); side != nil {
			return of(side)
		}
		c := *e
		c.LHS, c.RHS = of(e.LHS), of(e.RHS)
		return whole(&c, c.LHS, c.RHS)
	case *parser.Call:
		c := *e
		c.Args = make(parser.Expressions, len(e.Args))
		for i, a := range e.Args {
			c.Args[i] = of(a)
		}
		return whole(&c, c.Args...)
	case *parser.MatrixSelector:
		c := *e
		c.VectorSelector = of(e.VectorSelector)
		if e.RangeExpr != nil {
			return nil
		}
		return whole(&c, c.VectorSelector)
	case *parser.SubqueryExpr:
		c := *e
		c.Expr = of(e.Expr)
		if e.RangeExpr != nil || e.OriginalOffsetExpr != nil || e.StepExpr != nil {
			return nil
		}
		return whole(&c, c.Expr)
	case *parser.ParenExpr:
		c := *e
		c.Expr = of(e.Expr)
		return whole(&c, c.Expr)
	case *parser.UnaryExpr:
		c := *e
		c.Expr = of(e.Expr)
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
