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
	"rdma-central-targets", "rdma-central-common", "rdma-central-settings", "rdma-central-peers",
}

// Prefix is that of the series that travel, in the global Prometheus: not the names that its own rules record.
const Prefix = "leaf:"

// Leaf is the external label that tells leaves apart; the operator for Prometheus has it too.
const Leaf = "prometheus"

// replicas are the external labels of the replicas of a leaf: that of the documentation, and that of the operator.
const replicas = "prometheus_replica, replica"

// summed are counts over the hosts of a leaf. Of a leaf without the label Leaf they are unknown: not those of one leaf.
var summed = []string{"rdma:ports"}

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
	Reads       []string       // in the expression and in the texts of an alert
	Interval    model.Duration // of evaluations; 0: the default of Prometheus
}

// Series is a name that travels, and how often it is recorded.
type Series struct {
	Name     string
	Interval model.Duration
}

// Read returns what the rules of files record and read.
func Read(texts [][]byte) (rules []Names, _ error) {
	p := parser.NewParser(parser.Options{})
	for _, text := range texts {
		groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, p, slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			return nil, fmt.Errorf("read rules: %w", errors.Join(errs...))
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				reads, err := readsOf(p, r)
				if err != nil {
					return nil, fmt.Errorf("read rule %s%s: %w", r.Record, r.Alert, err)
				}
				rules = append(rules, Names{g.Name, r.Record + r.Alert, reads, g.Interval})
			}
		}
	}
	return rules, nil
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

// Travelling returns the series that rules of leaves record and global rules read.
func Travelling(texts [][]byte) ([]Series, error) {
	rules, err := Read(texts)
	if err != nil {
		return nil, err
	}
	read := map[string]bool{}
	for _, r := range rules {
		for _, n := range r.Reads {
			read[n] = read[n] || IsGlobal(r.Group)
		}
	}
	intervals := map[string]model.Duration{}
	for _, r := range rules {
		if !IsGlobal(r.Group) && read[r.Rule] {
			intervals[r.Rule] = r.Interval
		}
	}
	var out []Series
	for _, name := range slices.Sorted(maps.Keys(intervals)) {
		out = append(out, Series{name, intervals[name]})
	}
	return out, nil
}

// Merge returns the rules by which the global Prometheus makes one series of those of the replicas of a leaf, under the
// name that the other rules read, as often as the leaf records it.
func Merge(series []Series) []byte {
	groups := map[model.Duration]*bytes.Buffer{}
	for _, s := range series {
		b := groups[s.Interval]
		if b == nil {
			b = bytes.NewBufferString("- name: rdma-merge\n  rules:\n")
			if s.Interval != 0 {
				b = bytes.NewBufferString(fmt.Sprintf("- name: rdma-merge-%[1]s\n  interval: %[1]s\n  rules:\n", s.Interval))
			}
			groups[s.Interval] = b
		}
		expr := fmt.Sprintf("max without (%s, %s) (%s%s)", Leaf, replicas, Prefix, s.Name)
		if slices.Contains(summed, s.Name) {
			expr = fmt.Sprintf("sum without (%s) (max without (%s) (%s%s{%[1]s!=\"\"}))", Leaf, replicas, Prefix, s.Name)
		}
		fmt.Fprintf(b, "  - record: %s\n    expr: %s\n", s.Name, expr)
	}
	out := []byte("# The series of the leaves, one for all replicas: generated from the rules that read them.\ngroups:\n")
	for _, interval := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, groups[interval].Bytes()...)
	}
	return out
}

// RemoteWrite returns the configuration by which a leaf sends series.
func RemoteWrite(series []Series) []byte {
	names := make([]string, len(series))
	for i, s := range series {
		names[i] = s.Name
	}
	return fmt.Appendf(nil, `# Of each replica of a leaf, to each global Prometheus. global.external_labels: prometheus, the name of the leaf on both
# replicas, and replica.
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
