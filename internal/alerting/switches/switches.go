// Package switches writes the rules that record counters of switches, read by another exporter, under the names that
// the central rules read.
package switches

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// FileName is the rule file with the counters of switches under the names that the rules read.
const FileName = "switch_metrics.rules.yml"

// counter is a counter of switches as another exporter has it.
type counter struct {
	Expr     string `yaml:"expr"`     // of a counter; of several for one port the highest counts
	Switch   string `yaml:"switch"`   // label with the name that the switch announces by LLDP
	Port     string `yaml:"port"`     // label with the port ID that it announces
	Priority string `yaml:"priority"` // label whose only digit is the priority; empty: not by priority
}

// records are the counters that can be mapped, and the names that rules and dashboards read. Frames: as the
// switch counts them, sent to the far end or received from it.
var records = map[string]string{
	"discards":     "switch:rdma_switch_discards:total",
	"ecn_marked":   "switch:rdma_switch_ecn_marked:total",
	"pfc_received": "switch:rdma_switch_pfc_received:total",
	"pfc_sent":     "switch:rdma_switch_pfc_sent:total",
}

var nameOfLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Rules returns the rule file of a mapping of counters of switches.
func Rules(mapping []byte) ([]byte, error) {
	var counters map[string]counter
	d := yaml.NewDecoder(bytes.NewReader(mapping))
	d.KnownFields(true)
	if err := d.Decode(&counters); err != nil {
		return nil, fmt.Errorf("read the counters of switches: %w", err)
	}
	var errs []error
	text := bytes.NewBufferString("# Counters of switches, under the names that the rules read.\n" +
		"groups:\n- name: rdma-switch-metrics\n  rules:\n")
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		record := records[name]
		if record == "" {
			known := strings.Join(slices.Sorted(maps.Keys(records)), ", ")
			errs = append(errs, fmt.Errorf("%q is no counter of switches: one of %s", name, known))
			continue
		}
		expr, err := counters[name].renamed()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		fmt.Fprintf(text, "  - record: %s\n    expr: |\n      %s\n", record, expr)
	}
	return text.Bytes(), errors.Join(errs...)
}

// renamed returns the expression of a counter with the labels that the rules read.
func (c counter) renamed() (string, error) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(c.Expr)
	switch {
	case err != nil:
		return "", fmt.Errorf("expr %q: %w", c.Expr, err)
	case e.Type() != parser.ValueTypeVector:
		return "", fmt.Errorf("expr %q: a %s, want the series of a counter, without rate()", c.Expr, e.Type())
	}
	expr, by := e.String(), "cluster, switch, switch_port"
	for _, l := range []struct{ key, from, pattern, to string }{
		{"switch", c.Switch, "(.*)", "switch"},
		{"port", c.Port, "(.*)", "switch_port"},
		{"priority", c.Priority, `[^0-9]*([0-7])[^0-9]*`, "priority"},
	} {
		switch {
		case l.from == "" && l.key == "priority":
			continue
		case !nameOfLabel.MatchString(l.from):
			return "", fmt.Errorf("%s: %q is no name of a label", l.key, l.from)
		}
		expr = fmt.Sprintf(`label_replace(%s, "%s", "$1", "%s", "%s")`, expr, l.to, l.from, l.pattern)
	}
	if c.Priority != "" {
		by += ", priority"
	}
	return fmt.Sprintf("max by (%s) (%s)", by, expr), nil
}
