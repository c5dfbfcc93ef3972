package alerting

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/internal/coverage"
)

// severityNone is that of heartbeat rules.
const severityNone = "none"

// Needs returns the metrics that the alerts in rule files require, with recording rules resolved. Rules with the same
// name are one detection, and each fault of a symptom is; any one of their rules is sufficient.
func Needs(fsys fs.FS, files []string) (alerts []coverage.Alert, _ error) {
	recorded := recordedNeeds{needs: map[string]coverage.Need{}}
	err := eachRule(fsys, files, func(file string, r rulefmt.Rule) error {
		expr, err := expressions.ParseExpr(r.Expr)
		if err != nil {
			return fmt.Errorf("read rule %s%s in %s: %w", r.Record, r.Alert, file, err)
		}
		alerts = recorded.add(alerts, r, expr.(*ruleExpr).Expr)
		return nil
	})
	return alerts, err
}

// recordedNeeds are those of the recording rules so far.
type recordedNeeds struct {
	needs    map[string]coverage.Need
	symptoms []symptomNeed
}

type symptomNeed struct {
	labels map[string]string
	need   coverage.Need
	known  bool
}

func (s symptomNeed) label(name string) string { return s.labels[name] }

// add adds one rule.
func (n *recordedNeeds) add(alerts []coverage.Alert, r rulefmt.Rule, expr parser.Expr) []coverage.Alert {
	need, ok := needOf(expr, n.needs)
	if r.Record == findingMetric {
		n.symptoms = append(n.symptoms, symptomNeed{r.Labels, need, ok})
	}
	switch {
	case !ok || r.Labels["severity"] == severityNone:
	case r.Record != "":
		if before, again := n.needs[r.Record]; again {
			need = coverage.Any(before, need)
		}
		n.needs[r.Record] = need
	default:
		symptoms := SymptomsOf(expr, n.symptoms, symptomNeed.label)
		for _, s := range symptoms {
			if !s.known {
				continue
			}
			alerts = addNeed(alerts, coverage.Alert{Name: r.Alert, Fault: s.labels["reason"], Need: s.need})
		}
		if len(symptoms) == 0 {
			alerts = addNeed(alerts, coverage.Alert{Name: r.Alert, Need: need})
		}
	}
	return alerts
}

func addNeed(alerts []coverage.Alert, a coverage.Alert) []coverage.Alert {
	a.Need = a.Need.WithoutGiven(noLabel)
	i := slices.IndexFunc(alerts, func(b coverage.Alert) bool { return a.String() == b.String() })
	if i < 0 {
		return append(alerts, a)
	}
	alerts[i].Need = coverage.Any(alerts[i].Need, a.Need)
	return alerts
}

// needOf returns what an expression requires. It is false for an expression that has no result unless it had one before
// (a rule that reads its own record), or that reads a record of another set of rules.
func needOf(expr parser.Expr, recorded map[string]coverage.Need) (coverage.Need, bool) {
	of := func(e parser.Expr) (coverage.Need, bool) { return needOf(e, recorded) }
	switch e := expr.(type) {
	case *parser.VectorSelector:
		name := metricName(e)
		need, ok := recorded[name]
		switch {
		case ok:
			return selected(need, e)
		case name == "" || name == upMetric || name == alertsMetric: // those are ours, or no requirement
			return coverage.Need{}, true
		case isRecord(name): // not recorded so far: the rule's own record, or one of another set of rules
			return coverage.Need{}, false
		}
		return coverage.Need{Metric: name, Labels: required(e), State: stateOf(e)}, true
	case *parser.BinaryExpr:
		left, leftOK := of(e.LHS)
		if e.Op == parser.LUNLESS {
			return left, leftOK
		}
		right, rightOK := of(e.RHS)
		if e.Op != parser.LOR { // the labels are those of the left side; of the right by group_right and after a scalar
			if e.LHS.Type() == parser.ValueTypeScalar ||
				e.VectorMatching != nil && e.VectorMatching.Card == parser.CardOneToMany {
				left = left.WithoutGiven(noLabel)
			} else {
				right = right.WithoutGiven(noLabel)
			}
		}
		switch {
		case e.Op != parser.LOR:
			return coverage.All(left, right), leftOK && rightOK
		case leftOK && rightOK:
			return coverage.Any(left, right), true
		case leftOK:
			return left, true
		}
		return right, rightOK
	case *parser.AggregateExpr:
		need, ok := of(e.Expr)
		return need.WithoutGiven(func(label string) bool { return slices.Contains(e.Grouping, label) != e.Without }), ok
	case *parser.Call:
		if slices.Contains([]string{"absent", "absent_over_time", "scalar"}, e.Func.Name) {
			return coverage.Need{}, true
		}
		all, allOK := coverage.Need{}, true
		for _, arg := range e.Args {
			need, ok := of(arg)
			all, allOK = coverage.All(all, need), allOK && ok
		}
		if name, value, ok := givenLabel(e); ok {
			all = all.WithLabel(name, value)
		}
		return all, allOK
	}
	if inner := operand(expr); inner != nil {
		return of(inner)
	}
	return coverage.Need{}, true
}

func noLabel(string) bool { return false }

// selected returns the part of a record's need that a selector of the record requires.
func selected(need coverage.Need, s *parser.VectorSelector) (coverage.Need, bool) {
	ok := true
	for _, m := range s.LabelMatchers {
		if m.Name != model.MetricNameLabel && ok {
			need, ok = need.Matching(m.Name, m.Matches)
		}
	}
	return need, ok
}

// givenLabel returns the label and the value that a call gives all samples: label_replace(v, name, value, "", "").
func givenLabel(call *parser.Call) (name, value string, _ bool) {
	if call.Func.Name != "label_replace" || textOf(call.Args[3]) != "" || textOf(call.Args[4]) != "" {
		return "", "", false
	}
	return textOf(call.Args[1]), textOf(call.Args[2]), true
}

func textOf(e parser.Expr) string {
	s, _ := e.(*parser.StringLiteral)
	if s == nil {
		return "?"
	}
	return s.Val
}

// operand returns the vector of an expression of one vector; nil for other expressions.
func operand(expr parser.Expr) parser.Expr {
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		return e.Expr
	case *parser.MatrixSelector:
		return e.VectorSelector
	case *parser.SubqueryExpr:
		return e.Expr
	case *parser.ParenExpr:
		return e.Expr
	case *parser.UnaryExpr:
		return e.Expr
	}
	return nil
}

// required lists the labels for which a selector requires a value.
func required(s *parser.VectorSelector) (names []string) {
	for _, m := range s.LabelMatchers {
		if m.Name != model.MetricNameLabel && !m.Matches("") {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// stateOf returns the value that a selector requires for the label state, or the alternative values, separated by |,
// for the label reason; empty if it requires none.
func stateOf(s *parser.VectorSelector) string {
	for _, m := range s.LabelMatchers {
		if equal := m.Type == labels.MatchEqual; m.Name == "state" && equal ||
			m.Name == "reason" && (equal || len(m.SetMatches()) > 0) {
			return m.Value
		}
	}
	return ""
}
