package tune

import (
	"fmt"
	"regexp"
	"strings"

	"rdma_exporter/internal/alerting"
)

// checkMatchers refuses what would end the text of a rule.
func checkMatchers(s string) error {
	list, err := alerting.Matchers(s)
	if err != nil {
		return fmt.Errorf("selector %s: %w", s, err)
	}
	for _, m := range list {
		if strings.ContainsAny(m.Value, "\n{}") {
			return fmt.Errorf("selector %s: values must not contain braces or line breaks", s)
		}
	}
	return nil
}

var exprText = regexp.MustCompile(`(?m)^    expr: (?:\|\n((?:(?: {6}.*)?\n)+)|(.*)\n)`)

// selects adds the matchers to every selector of series of the exporter. Recorded series are derived from these and
// need none, and texts query no others.
func (c *changes) selects(r *rule) (err error) {
	if c.Selector == "" {
		return nil
	}
	r.text = exprText.ReplaceAllStringFunc(r.text, func(s string) string {
		parts := exprText.FindStringSubmatch(s)
		expr := parts[1] + parts[2]
		selected, failed := alerting.Select(expr, c.Selector,
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
	return err
}
