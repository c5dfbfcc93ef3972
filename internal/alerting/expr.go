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

// A fault is what an alert is on (rules/node/faults.rules.yml), a finding what is wrong with a part
// (symptoms.rules.yml). The rules of findings have the labels symptom and reason.
const (
	faultMetric   = "rdma:fault"
	findingMetric = "rdma:finding"
)

// ruleMeta is a detection: an alerting rule, or one of the symptoms whose faults it alerts on, and what its expression
// reads.
type ruleMeta struct {
	rule    *rules.AlertingRule
	group   *rules.Group
	labels  map[string]string // of all its alerts
	expr    parser.Expr       // of the rule, or of the symptom
	metrics []string
	reach   time.Duration
}

// has reports whether an alert of the rule is of this detection.
func (m *ruleMeta) has(alert labels.Labels) bool {
	for _, name := range []string{"reason", "severity"} {
		if v := m.labels[name]; v != "" && alert.Get(name) != v {
			return false
		}
	}
	return true
}

// detection returns the index in Rules of an alert of a rule, or the first index of the rule if none has the labels of
// the alert.
func (e *Engine) detection(rule *rules.AlertingRule, alert labels.Labels) int {
	first := -1
	for i, m := range e.meta {
		if m.rule != rule {
			continue
		}
		if m.has(alert) {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return first
}

// describe analyses all rules. A rule may read the record of any other, also of one that is evaluated later.
func describe(groups []*rules.Group) []ruleMeta {
	known := records{exprs: map[string][]parser.Expr{}, read: map[string]ruleMeta{}}
	var symptoms []*rules.RecordingRule
	for _, g := range groups {
		for _, r := range g.Rules() {
			r, ok := r.(*rules.RecordingRule)
			if !ok {
				continue
			}
			known.exprs[r.Name()] = append(known.exprs[r.Name()], exprOf(r))
			if r.Name() == findingMetric {
				symptoms = append(symptoms, r)
			}
		}
	}
	var out []ruleMeta
	for _, g := range groups {
		for _, r := range g.Rules() {
			r, ok := r.(*rules.AlertingRule)
			if !ok {
				continue
			}
			m := ruleMeta{rule: r, group: g, labels: r.Labels().Map(), expr: exprOf(r)}
			of := len(out)
			for _, s := range SymptomsOf(exprOf(r), symptoms, labelOfRecord) {
				m := m
				m.labels = maps.Clone(s.Labels().Map())
				maps.Copy(m.labels, r.Labels().Map())
				m.expr = exprOf(s)
				m.metrics, m.reach = known.reads(m.expr)
				out = append(out, m)
			}
			if len(out) == of {
				m.metrics, m.reach = known.reads(m.expr)
				out = append(out, m)
			}
		}
	}
	return out
}

// SymptomsOf returns the rules of the symptoms whose faults an expression selects; label is a label of such a rule.
func SymptomsOf[T any](expr parser.Expr, symptoms []T, label func(rule T, name string) string) (out []T) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok || metricName(s) != faultMetric {
			return nil
		}
		for _, r := range symptoms {
			if !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
				v := label(r, m.Name)
				return v != "" && !m.Matches(v)
			}) {
				out = append(out, r)
			}
		}
		return nil
	})
	return out
}

func labelOfRecord(r *rules.RecordingRule, name string) string { return r.Labels().Get(name) }

// records are the expressions of recording rules by name, with cached results.
type records struct {
	exprs map[string][]parser.Expr
	read  map[string]ruleMeta
}

// of returns the metrics and labels that a recorded metric reads. A rule that reads its own record adds nothing.
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
