// Package rollup divides the rules between the Prometheus servers that scrape a part of the hosts each (leaves) and a
// global one, and derives from the rules which recorded series travel from the former to the latter.
package rollup

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// global are the groups that compare or fold hosts of several leaves. All others are of the leaves.
var global = []string{
	"rdma-faults", "rdma-alerts", "rdma-verdict",
	"rdma-central-fleet", "rdma-central-alerts", "rdma-central-symptoms", "rdma-central-hosts", "rdma-central-jobs",
	"rdma-central-targets",
}

// Prefix is that of the series that travel, in the global Prometheus: not the names that its own rules record.
const Prefix = "leaf:"

// replicas are the external labels of the replicas of a leaf: that of the documentation, and those of the operator.
const replicas = "prometheus, prometheus_replica, replica"

// Global lists the groups of the global Prometheus.
func Global() []string { return slices.Clone(global) }

// IsGlobal reports whether the global Prometheus evaluates a group of rules.
func IsGlobal(group string) bool { return slices.Contains(global, group) }

var startOfGroup = regexp.MustCompile(`(?m)^- name: (\S+)$`)

// Groups returns a rule file with the groups that are wanted; nil without one.
func Groups(text []byte, wanted func(group string) bool) []byte {
	at := startOfGroup.FindAllSubmatchIndex(text, -1)
	if len(at) == 0 {
		return nil
	}
	out, kept := bytes.Clone(text[:at[0][0]]), false
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if wanted(string(text[m[2]:m[3]])) {
			out, kept = append(out, text[m[0]:end]...), true
		}
	}
	if !kept {
		return nil
	}
	return append(bytes.TrimRight(out, "\n"), '\n')
}

// Names are those of series, by rule.
type Names struct {
	Group, Rule string
	Reads       []string // in the expression and in the texts of an alert
}

// Read returns what the rules of files record and read.
func Read(texts [][]byte) (recorded map[string][]string, rules []Names, _ error) {
	p := parser.NewParser(parser.Options{})
	recorded = map[string][]string{} // the groups of a name
	for _, text := range texts {
		groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, p, slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			return nil, nil, fmt.Errorf("read rules: %w", errors.Join(errs...))
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				reads, err := readsOf(p, r)
				if err != nil {
					return nil, nil, fmt.Errorf("read rule %s%s: %w", r.Record, r.Alert, err)
				}
				rules = append(rules, Names{g.Name, r.Record + r.Alert, reads})
				if r.Record != "" {
					recorded[r.Record] = append(recorded[r.Record], g.Name)
				}
			}
		}
	}
	return recorded, rules, nil
}

// query is an expression of a text of an alert, with verbs of printf for the values of labels.
var query = regexp.MustCompile(`query \(?(?:printf )?"((?:[^"\\]|\\.)*)"`)

func readsOf(p parser.Parser, r rulefmt.Rule) ([]string, error) {
	exprs := []string{r.Expr}
	for _, text := range r.Annotations {
		for _, m := range query.FindAllStringSubmatch(text, -1) {
			exprs = append(exprs, strings.ReplaceAll(strings.ReplaceAll(m[1], `\"`, `"`), "%q", `""`))
		}
	}
	names := map[string]bool{}
	for _, expr := range exprs {
		e, err := p.ParseExpr(expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expr, err)
		}
		parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
			if s, ok := node.(*parser.VectorSelector); ok {
				names[s.Name] = true
			}
			return nil
		})
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// Travelling returns the names that rules of leaves record and global rules read.
func Travelling(texts [][]byte) ([]string, error) {
	recorded, rules, err := Read(texts)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, r := range rules {
		for _, n := range r.Reads {
			if IsGlobal(r.Group) && slices.ContainsFunc(recorded[n], func(g string) bool { return !IsGlobal(g) }) {
				names[n] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// Merge returns the rules by which the global Prometheus makes one series of those of the replicas of a leaf, under the
// name that the other rules read.
func Merge(names []string) []byte {
	b := bytes.NewBufferString("# The series of the leaves, one for all replicas: generated from the rules that read them.\n" +
		"groups:\n- name: rdma-merge\n  rules:\n")
	for _, n := range names {
		fmt.Fprintf(b, "  - record: %s\n    expr: max without (%s) (%s%s)\n", n, replicas, Prefix, n)
	}
	return b.Bytes()
}

// RemoteWrite returns the configuration by which a leaf sends series.
func RemoteWrite(names []string) []byte {
	return fmt.Appendf(nil, `# Of each replica of a leaf, to each global Prometheus. Its global.external_labels need a label replica.
remote_write:
  - url: http://prometheus-global:9090/api/v1/write
    write_relabel_configs:
      - source_labels: [__name__]
        regex: %s
        action: keep
      - source_labels: [__name__]
        target_label: __name__
        replacement: %s$1
`, strings.Join(names, "|"), Prefix)
}
