// Package dashboards holds the Grafana dashboards. The tests keep their expressions in step with what is exported.
package dashboards

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
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
	"rdma_exporter/internal/rounds"
	"rdma_exporter/rules"
)

type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	ID         *int    `json:"id"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int        `json:"id"`
	Title       string     `json:"title"`
	Type        string     `json:"type"`
	Description string     `json:"description"`
	Datasource  datasource `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	GridPos place    `json:"gridPos"`
	Targets []target `json:"targets"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type place struct{ X, Y, W, H int }

func (a place) overlaps(b place) bool {
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

type target struct {
	RefID      string     `json:"refId"`
	Expr       string     `json:"expr"`
	Datasource datasource `json:"datasource"`
}

type variable struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Definition string `json:"definition"`
}

func load(t *testing.T) map[string]dashboard {
	t.Helper()
	names, err := filepath.Glob("*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	out := map[string]dashboard{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = d
	}
	return out
}

func TestLayout(t *testing.T) {
	uids := map[string]string{}
	for name, d := range load(t) {
		if want := "rdma-" + strings.TrimSuffix(name, ".json"); d.UID != want {
			t.Errorf("%s: uid %q, want %q", name, d.UID, want)
		}
		if d.Title == "" || uids[d.UID] != "" || d.ID != nil {
			t.Errorf("%s: title %q, other dashboard with its uid %q, id %v, want a title, none, null", name, d.Title, uids[d.UID], d.ID)
		}
		uids[d.UID] = name
		ids := map[int]string{}
		for i, p := range d.Panels {
			if p.ID == 0 || ids[p.ID] != "" {
				t.Errorf("%s: %s: id %d, which %q has", name, p.Title, p.ID, ids[p.ID])
			}
			ids[p.ID] = p.Title
			for _, o := range d.Panels[:i] {
				if p.GridPos.overlaps(o.GridPos) {
					t.Errorf("%s: %s lies on %s", name, p.Title, o.Title)
				}
			}
			if p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %s is wider than the grid", name, p.Title)
			}
		}
	}
}

func TestPanelsExplainThemselves(t *testing.T) {
	for name, d := range load(t) {
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
				t.Errorf("%s: %s: wants a title, a description, a unit and a query", name, p.Title)
			}
			refs := map[string]bool{}
			for _, q := range p.Targets {
				if refs[q.RefID] {
					t.Errorf("%s: %s: two queries %s", name, p.Title, q.RefID)
				}
				refs[q.RefID] = true
				for _, ds := range []datasource{p.Datasource, q.Datasource} {
					if ds != (datasource{"prometheus", "${datasource}"}) {
						t.Errorf("%s: %s: %s: data source %v, want the chosen one", name, p.Title, q.RefID, ds)
					}
				}
			}
		}
	}
}

// types are those of the metrics that expressions may read. A recording rule's is a gauge.
func types(t *testing.T) map[string]exposition.Type {
	t.Helper()
	out := map[string]exposition.Type{}
	for _, c := range collector.All(collector.Options{}) {
		for _, d := range c.Descs {
			out[d.Name] = d.Type
		}
	}
	for _, d := range rounds.Descs {
		out[d.Name] = d.Type
	}
	files, names, err := rules.Node()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		parsed, errs := rulefmt.Parse(text, false, model.LegacyValidation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
		if len(errs) > 0 {
			t.Fatalf("%s: %v", name, errs)
		}
		for _, g := range parsed.Groups {
			for _, r := range g.Rules {
				if r.Record != "" {
					out[r.Record] = exposition.Gauge
				}
			}
		}
	}
	return out
}

// window stands for $__rate_interval when an expression is parsed.
const window = "4242s"

func TestExpressions(t *testing.T) {
	types := types(t)
	for name, d := range load(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				for _, fault := range faults(strings.ReplaceAll(q.Expr, "$__rate_interval", window), types) {
					t.Errorf("%s: %s: %s: %s", name, p.Title, q.RefID, fault)
				}
				for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
					if v[1] != "__rate_interval" && !slices.ContainsFunc(d.Templating.List, func(x variable) bool { return x.Name == v[1] }) {
						t.Errorf("%s: %s: %s: no variable %s", name, p.Title, q.RefID, v[0])
					}
				}
			}
		}
		for _, v := range d.Templating.List {
			if v.Type != "query" {
				continue
			}
			m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition)
			if m == nil {
				t.Errorf("%s: variable %s: %s is no label_values(…)", name, v.Name, v.Definition)
				continue
			}
			for _, fault := range faults(m[1], types) {
				t.Errorf("%s: variable %s: %s", name, v.Name, fault)
			}
		}
	}
}

// faults lists what is wrong with an expression: it does not parse, it reads a metric that is not exported, it reads a
// counter otherwise than by rate or increase over the rate interval, or something else so.
func faults(expr string, types map[string]exposition.Type) (out []string) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return []string{err.Error()}
	}
	parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		kind, known := types[s.Name]
		if !known {
			out = append(out, s.Name+" is not exported")
		}
		if known && (kind == exposition.Counter) != isRate(path) {
			out = append(out, s.Name+": counters, and nothing else, go under rate or increase over $__rate_interval")
		}
		return nil
	})
	return out
}

// isRate tells the path to a selector that stands directly below rate or increase.
func isRate(path []parser.Node) bool {
	if len(path) < 2 {
		return false
	}
	m, ok := path[len(path)-1].(*parser.MatrixSelector)
	if !ok || m.Range.Seconds() != 4242 {
		return false
	}
	c, ok := path[len(path)-2].(*parser.Call)
	return ok && (c.Func.Name == "rate" || c.Func.Name == "increase")
}

func TestFaults(t *testing.T) {
	types := map[string]exposition.Type{"c_total": exposition.Counter, "g": exposition.Gauge}
	for expr, want := range map[string]int{
		`sum(rate(c_total[4242s])) > 0`:         0,
		`max(g{a=~"$b"}) * 8`:                   0,
		`c_total`:                               1,
		`rate(c_total[5m])`:                     1,
		`max_over_time(c_total[4242s])`:         1,
		`rate(g[4242s])`:                        1,
		`increase(c_total[4242s]) + other - h`:  2,
		`sum(`:                                  1,
		`sum by (a) (increase(c_total[4242s]))`: 0,
	} {
		if got := faults(expr, types); len(got) != want {
			t.Errorf("%s: %d faults %v, want %d", expr, len(got), got, want)
		}
	}
}
