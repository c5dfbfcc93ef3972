package alerting

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/internal/words"
)

// Matcher is a label matcher of PromQL: Op is =, !=, =~ or !~.
type Matcher struct{ Name, Op, Value string }

func (m Matcher) String() string { return fmt.Sprintf("%s%s%q", m.Name, m.Op, m.Value) }

// Matchers parses the content of the braces of a selector.
func Matchers(s string) (out []Matcher, err error) {
	list, err := parser.NewParser(parser.Options{}).ParseMetricSelector("{" + s + "}")
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.Name == model.MetricNameLabel {
			return nil, errors.New("matchers of the metric name (__name__) are not allowed")
		}
		out = append(out, Matcher{m.Name, m.Type.String(), m.Value})
	}
	return out, nil
}

// Select adds matchers to every selector of an expression whose metric is wanted, and leaves the rest of the text
// unchanged. A matcher for job replaces that of the selector, which has the default job name of the exporter.
func Select(expr, matchers string, wanted func(metric string) bool) (string, error) {
	add, err := Matchers(matchers)
	if err != nil {
		return "", err
	}
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return "", err
	}
	var at []*parser.VectorSelector
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok && wanted(metricName(s)) {
			at = append(at, s)
		}
		return nil
	})
	// Last first, so that earlier positions stay valid.
	slices.SortFunc(at, func(a, b *parser.VectorSelector) int { return int(b.PosRange.Start) - int(a.PosRange.Start) })
	for _, s := range at {
		if s.Name == "" {
			return "", fmt.Errorf("%s: a selector with the metric name among its matchers is not supported", s)
		}
		all := slices.Clone(add)
		for _, m := range s.LabelMatchers {
			if m.Name != model.MetricNameLabel &&
				(m.Name != "job" || !slices.ContainsFunc(add, func(a Matcher) bool { return a.Name == "job" })) {
				all = append(all, Matcher{m.Name, m.Type.String(), m.Value})
			}
		}
		name := int(s.PosRange.Start) + len(s.Name)
		expr = expr[:name] + "{" + strings.Join(words.Map(all, Matcher.String), ",") + "}" + expr[name+braces(expr[name:]):]
	}
	return expr, nil
}

// braces returns the length of the matchers in braces at the start of a text.
func braces(s string) int {
	rest := strings.TrimLeft(s, " \n\t")
	if !strings.HasPrefix(rest, "{") {
		return 0
	}
	quote := byte(0)
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case quote != 0 && c == '\\' && quote != '`':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '}':
			return len(s) - len(rest) + i + 1
		}
	}
	return 0
}
