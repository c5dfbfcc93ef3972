package tune

import (
	"fmt"
	"strings"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/lazy"
)

// matchers are the label matchers of a selector, in the two forms that rules need.
type matchers struct {
	selector string
	inQuery  string // of a template: with single quotes, within a Go string
}

func parseMatchers(s string) (matchers, error) {
	list, err := alerting.Matchers(s)
	if err != nil {
		return matchers{}, fmt.Errorf("selector %s: %w", s, err)
	}
	var quoted []string
	for _, m := range list {
		if strings.ContainsAny(m.Value, "\n{}") {
			return matchers{}, fmt.Errorf("selector %s: values must not contain braces or line breaks", s)
		}
		value := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(m.Value)
		quoted = append(quoted, m.Name+m.Op+"'"+value+"'")
	}
	return matchers{s, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Join(quoted, ","))}, nil
}

var (
	exprText = lazy.Regexp(`(?m)^    expr: (?:\|\n((?:(?: {6}.*)?\n)+)|(.*)\n)`)
	// A template's query, as text or as the format of printf.
	templateQuery = lazy.Regexp(`\bquery (\(printf )?"((?:[^"\\]|\\.)*)"`)
	series        = lazy.Regexp(`(^|[^:\w'=])(rdma_\w+)(\{)?`)
)

// selects adds the matchers to every selector of series of the exporter. Recorded series are derived from these and
// need none.
func (c *changes) selects(r *rule) (err error) {
	m := c.matchers
	if m.selector == "" {
		return nil
	}
	r.text = exprText().ReplaceAllStringFunc(r.text, func(s string) string {
		parts := exprText().FindStringSubmatch(s)
		expr := parts[1] + parts[2]
		selected, failed := alerting.Select(expr, m.selector,
			func(name string) bool { return name == "up" || strings.HasPrefix(name, "rdma_") })
		if failed != nil {
			err = failed
			return s
		}
		if parts[2] != "" && selected != expr { // as a block: a value may contain the end of a plain scalar
			return "    expr: |\n      " + selected + "\n"
		}
		return strings.Replace(s, expr, selected, 1)
	})
	r.text = templateQuery().ReplaceAllStringFunc(r.text, func(s string) string {
		parts := templateQuery().FindStringSubmatch(s)
		in := m.inQuery
		if parts[1] != "" {
			in = strings.ReplaceAll(in, "%", "%%")
		}
		query := series().ReplaceAllStringFunc(parts[2], func(s string) string {
			if strings.HasSuffix(s, "{") {
				return s + in + ","
			}
			return s + "{" + in + "}"
		})
		return strings.Replace(s, parts[2], query, 1)
	})
	return err
}
