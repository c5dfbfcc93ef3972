package alerting

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

type sample = promql.Sample

// alertsMetric is what rules read of the alerts that are pending or firing.
const alertsMetric = "ALERTS"

// upMetric is what a scrape gives besides the samples, and Append too.
const upMetric = "up"

// ruleMeta is what the text of an alerting rule says about it.
type ruleMeta struct {
	rule    *rules.AlertingRule
	group   *rules.Group
	metrics []string
	reach   time.Duration
}

// describe reads all rules in the order of evaluation, since a rule may read what an earlier one recorded.
func describe(groups []*rules.Group) []ruleMeta {
	recorded := map[string]ruleMeta{}
	var out []ruleMeta
	for _, g := range groups {
		for _, r := range g.Rules() {
			m := ruleMeta{group: g}
			m.metrics, m.reach = reads(r.Query(), recorded)
			switch r := r.(type) {
			case *rules.AlertingRule:
				m.rule = r
				out = append(out, m)
			case *rules.RecordingRule:
				if before, ok := recorded[r.Name()]; ok {
					m.metrics = slices.Compact(slices.Sorted(slices.Values(append(m.metrics, before.metrics...))))
					m.reach = max(m.reach, before.reach)
				}
				recorded[r.Name()] = m
			}
		}
	}
	return out
}

// reads gives the metrics that an expression selects and how far back it looks. A selector looks back by its range and
// offset and by those of the subqueries around it; one of a recorded metric as far as its rule besides. What an unless takes away may look
// back further: without that history nothing is taken away. A record that no earlier rule makes is the rule's own last value, or one of
// another set of rules.
func reads(expr parser.Expr, recorded map[string]ruleMeta) (metrics []string, reach time.Duration) {
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
		if r, ok := recorded[name]; ok {
			back += r.reach
			for _, n := range r.metrics {
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
	return sortedKeys(names), reach
}

// isRecord says whether a name is that of a recording rule (level:metric:operation).
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
