package alerting

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// alertsMetric has the pending and firing alerts, for rules that read it.
const alertsMetric = "ALERTS"

// upMetric is added by each scrape, and by Append.
const upMetric = "up"

// ruleMeta is what the expression of an alerting rule reads.
type ruleMeta struct {
	rule    *rules.AlertingRule
	group   *rules.Group
	metrics []string
	reach   time.Duration
}

// describe analyses all rules. A rule may read the record of any other, also of one that is evaluated later.
func describe(groups []*rules.Group) []ruleMeta {
	known := records{exprs: map[string][]parser.Expr{}, read: map[string]ruleMeta{}}
	for _, g := range groups {
		for _, r := range g.Rules() {
			if r, ok := r.(*rules.RecordingRule); ok {
				known.exprs[r.Name()] = append(known.exprs[r.Name()], exprOf(r))
			}
		}
	}
	var out []ruleMeta
	for _, g := range groups {
		for _, r := range g.Rules() {
			if r, ok := r.(*rules.AlertingRule); ok {
				m := ruleMeta{rule: r, group: g}
				m.metrics, m.reach = known.reads(exprOf(r))
				out = append(out, m)
			}
		}
	}
	return out
}

// records are the expressions of recording rules by name, with cached results.
type records struct {
	exprs map[string][]parser.Expr
	read  map[string]ruleMeta
}

// of is what a recorded metric reads. A rule that reads its own record adds nothing.
func (r records) of(name string) ruleMeta {
	if m, ok := r.read[name]; ok {
		return m
	}
	r.read[name] = ruleMeta{}
	var m ruleMeta
	for _, expr := range r.exprs[name] {
		metrics, reach := r.reads(expr)
		m.metrics, m.reach = append(m.metrics, metrics...), max(m.reach, reach)
	}
	r.read[name] = m
	return m
}

// reads returns the metrics that an expression selects and its range into the past. The range of a selector includes
// its offset and the subqueries around it; that of a recorded metric includes its rule. The right side of an unless is
// ignored: without its history nothing is removed. A record that no rule here makes belongs to another set of rules.
func (r records) reads(expr parser.Expr) (metrics []string, reach time.Duration) {
	names := map[string]bool{}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		back := selector.OriginalOffset
		taken := false
		for i, parent := range path {
			switch p := parent.(type) {
			case *parser.MatrixSelector:
				back += p.Range
			case *parser.SubqueryExpr:
				back += p.Range + p.OriginalOffset
			case *parser.BinaryExpr:
				child := node
				if i+1 < len(path) {
					child = path[i+1]
				}
				taken = taken || p.Op == parser.LUNLESS && child == parser.Node(p.RHS)
			}
		}
		name := metricName(selector)
		if _, ok := r.exprs[name]; ok {
			m := r.of(name)
			back += m.reach
			for _, n := range m.metrics {
				names[n] = true
			}
		} else if name != "" && !isRecord(name) {
			names[name] = true
		}
		if !taken {
			reach = max(reach, back)
		}
		return nil
	})
	return slices.Sorted(maps.Keys(names)), reach
}

// isRecord reports whether a name is that of a recording rule (level:metric:operation).
func isRecord(name string) bool { return strings.Contains(name, ":") }

func metricName(s *parser.VectorSelector) string {
	if s.Name != "" {
		return s.Name
	}
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}
