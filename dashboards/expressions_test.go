package dashboards

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/collector"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/web"
	"rdma_exporter/rules"
)

// metric is what an expression may read.
type metric struct {
	counter bool
	labels  []string // beside those of the scrape
}

// ofScrape are the labels that Prometheus gives to every series, and the external one that dashboards choose by.
var ofScrape = []string{"job", "instance", "cluster"}

var ofAlert = []string{
	"alertname", "alertstate", "severity", "drain", "symptom", "reason", "scope", "where", "device", "port", "gpu", "UUID",
	"node_guid",
}

// foreign are metrics that are not the exporter's own.
var foreign = map[string]metric{
	"up":                   {},
	"ALERTS":               {labels: ofAlert},
	"ALERTS_FOR_STATE":     {labels: ofAlert},
	"DCGM_FI_DEV_GPU_UTIL": {labels: []string{"gpu", "UUID"}},
	// Recorded by rules --switch-metrics.
	"switch:rdma_switch_pfc_sent:total":   {true, []string{"switch", "switch_port", "priority"}},
	"switch:rdma_switch_ecn_marked:total": {true, []string{"switch", "switch_port", "priority"}},
}

// metrics returns all that expressions may read: of the collectors, of the exporter itself, of others.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	out := maps.Clone(foreign)
	descs := slices.Concat(rounds.Descs, web.Descs, fabric.Descs())
	for _, c := range collector.All(collector.Options{}) {
		descs = append(descs, c.Descs...)
	}
	for _, d := range descs {
		out[d.Name] = metric{d.Type == exposition.Counter, d.Labels}
		if d.Type == exposition.Histogram {
			delete(out, d.Name)
			out[d.Name+"_bucket"] = metric{true, append(slices.Clone(d.Labels), "le")}
			out[d.Name+"_count"], out[d.Name+"_sum"] = metric{true, d.Labels}, metric{true, d.Labels}
		}
	}
	maps.Copy(out, records(t))
	return out
}

// records returns the metrics that the rules record. Their labels are the labels of aggregations in their expressions,
// or in the records that these read.
func records(t *testing.T) map[string]metric {
	t.Helper()
	exprs := map[string][]string{}
	files, names, err := rules.Both()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		parsed, errs := rulefmt.Parse(text, false, model.LegacyValidation, parser.NewParser(parser.Options{}),
			promslog.NewNopLogger())
		if len(errs) > 0 {
			t.Fatalf("%s: %v", name, errs)
		}
		for _, g := range parsed.Groups {
			for _, r := range g.Rules {
				if r.Record != "" {
					exprs[r.Record] = append(exprs[r.Record], r.Expr)
				}
			}
		}
	}
	out := map[string]metric{}
	for name := range exprs {
		out[name] = metric{labels: groupings(t, exprs, name, map[string]bool{})}
	}
	return out
}

// groupings returns the labels of aggregations in a record, and the labels that it sets.
func groupings(t *testing.T, exprs map[string][]string, record string, seen map[string]bool) (out []string) {
	t.Helper()
	if seen[record] {
		return nil
	}
	seen[record] = true
	for _, expr := range exprs[record] {
		for _, n := range nodes(t, expr) {
			switch n := n.(type) {
			case *parser.AggregateExpr:
				out = append(out, n.Grouping...)
			case *parser.Call:
				if n.Func.Name == "label_replace" || n.Func.Name == "label_join" {
					out = append(out, n.Args[1].(*parser.StringLiteral).Val)
				}
			case *parser.VectorSelector:
				out = append(out, groupings(t, exprs, n.Name, seen)...)
			}
		}
	}
	return out
}

func nodes(t *testing.T, expr string) (out []parser.Node) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		out = append(out, n)
		return nil
	})
	return out
}

// Stand-ins for what Grafana puts in place of its variables for times.
var windows = strings.NewReplacer("$__rate_interval", "4242s", "$__range", "2424s")

// queries returns all expressions of a dashboard, by where they stand.
func (d dashboard) queries() map[string]string {
	out := map[string]string{}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			out[p.Title+": "+q.RefID] = q.Expr
		}
	}
	for _, v := range d.Templating.List {
		if m := labelValues.FindStringSubmatch(v.Definition); m != nil {
			out["variable "+v.Name] = m[1]
		} else if expr, ok := strings.CutPrefix(v.Definition, "query_result("); ok {
			out["variable "+v.Name] = strings.TrimSuffix(expr, ")")
		}
	}
	for _, a := range d.Annotations.List {
		out["marks "+a.Name] = a.Expr
	}
	return out
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

func TestExpressions(t *testing.T) {
	known := metrics(t)
	for name, d := range load(t) {
		t.Run(name, func(t *testing.T) {
			queries := d.queries()
			if len(queries) == 0 {
				t.Error("no queries")
			}
			for where, expr := range queries {
				for _, fault := range faults(windows.Replace(expr), known) {
					t.Errorf("%s: %s", where, fault)
				}
			}
		})
	}
}

// faults lists what is wrong with an expression: it does not parse, it reads a metric or a label that there is none of,
// it reads a counter otherwise than by rate or increase over the rate interval or increase over the range, or something
// else so, or it forgets the cluster.
func faults(expr string, known map[string]metric) (out []string) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return []string{err.Error()}
	}
	parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			m, ok := known[n.Name]
			if !ok {
				out = append(out, n.Name+" is not exported")
				break
			}
			if m.counter != isRate(path) {
				out = append(out,
					n.Name+": counters, and nothing else, go under rate or increase, over $__rate_interval or $__range")
			}
			for _, l := range n.LabelMatchers {
				if l.Name != model.MetricNameLabel && !slices.Contains(labels(n, known), l.Name) {
					out = append(out, n.Name+" has no label "+l.Name)
				}
			}
		case *parser.AggregateExpr:
			out = append(out, missing("by", n.Grouping, labels(n.Expr, known))...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil && n.VectorMatching.On {
				out = append(out, missing("on", n.VectorMatching.MatchingLabels, labels(n.LHS, known))...)
				out = append(out, missing("on", n.VectorMatching.MatchingLabels, labels(n.RHS, known))...)
			}
		}
		return nil
	})
	return out
}

// missing lists the named labels that are absent. A host is identified by its cluster, its job and its instance.
func missing(clause string, named, there []string) (out []string) {
	for _, l := range named {
		if !slices.Contains(there, l) {
			out = append(out, fmt.Sprintf("%s (%s): nothing has that label", clause, l))
		}
	}
	if slices.Contains(named, "instance") && !(slices.Contains(named, "cluster") && slices.Contains(named, "job")) {
		out = append(out, fmt.Sprintf("%s (%s): instances of other clusters or jobs may have the same name",
			clause, strings.Join(named, ", ")))
	}
	return out
}

// labels returns the labels that the result of an expression may have.
func labels(n parser.Node, known map[string]metric) (out []string) {
	switch n := n.(type) {
	case *parser.VectorSelector:
		return append(slices.Clone(known[n.Name].labels), ofScrape...)
	case *parser.AggregateExpr:
		if n.Op == parser.TOPK || n.Op == parser.BOTTOMK {
			return labels(n.Expr, known)
		}
		if n.Op == parser.COUNT_VALUES {
			return append(slices.Clone(n.Grouping), n.Param.(*parser.StringLiteral).Val)
		}
		return n.Grouping
	case *parser.Call:
		if n.Func.Name == "label_replace" || n.Func.Name == "label_join" {
			out = append(out, n.Args[1].(*parser.StringLiteral).Val)
		}
	}
	for c := range parser.ChildrenIter(n) {
		out = append(out, labels(c, known)...)
	}
	return out
}

// isRate reports whether a selector stands directly below rate or increase over $__rate_interval or $__range.
func isRate(path []parser.Node) bool {
	if len(path) < 2 {
		return false
	}
	m, ok := path[len(path)-1].(*parser.MatrixSelector)
	if !ok {
		return false
	}
	c, ok := path[len(path)-2].(*parser.Call)
	return ok && (m.Range.Seconds() == 4242 || m.Range.Seconds() == 2424) &&
		(c.Func.Name == "rate" || c.Func.Name == "increase")
}

func TestFaults(t *testing.T) {
	known := map[string]metric{"c_total": {true, []string{"a"}}, "g": {false, []string{"a", "b"}}}
	for expr, want := range map[string]int{
		`sum(rate(c_total[4242s])) > 0`:          0,
		`max(g{a=~"$b"}) * 8`:                    0,
		`c_total`:                                1,
		`rate(c_total[5m])`:                      1,
		`increase(c_total[2424s])`:               0,
		`rate(c_total[2424s])`:                   0,
		`max_over_time(c_total[4242s])`:          1,
		`rate(g[4242s])`:                         1,
		`increase(c_total[4242s]) + other - h`:   2,
		`sum(`:                                   1,
		`sum by (a) (increase(c_total[4242s]))`:  0,
		`g{c="x"}`:                               1,
		`max by (c) (g)`:                         1,
		`max by (a) (g) * on (a) max by (b) (g)`: 1,
		`max by (a) (g) * on (b) g`:              1,
		`max by (instance) (g)`:                  1,
		`max by (cluster, job, instance) (g)`:    0,
		`count by (c) (label_replace(max(g), "c", "x", "", ""))`:        0,
		`topk(3, max by (a) (g)) * on (a) group_left () sum by (a) (g)`: 0,
	} {
		t.Run(expr, func(t *testing.T) {
			if got := faults(expr, known); len(got) != want {
				t.Errorf("%d faults %v, want %d", len(got), got, want)
			}
		})
	}
}
