package dashboards

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/rules"
)

// TestDrawn holds the panels to what Grafana's own frontend makes of them: it draws merged states by thresholds as one
// bar without words, a value that has neither a word nor a threshold green, a value that is not there in the colour
// below the first threshold, and labels with the unit of the panel.
func TestDrawn(t *testing.T) {
	for name, d := range load(t) {
		for _, a := range d.Annotations.List {
			if a.Enable || !strings.Contains(a.Expr, " unless ") {
				t.Errorf("%s: annotation %s is on, or marks times and not when they begin", name, a.Name)
			}
		}
		for _, p := range d.Panels {
			where := name + ", " + p.Title
			if p.Type != "row" && p.FieldConfig.Defaults.NoValue == "" {
				t.Errorf("%s: does not say what no value means", where)
			}
			switch p.Type {
			case "heatmap":
				t.Errorf("%s: a heatmap has no word for no value", where)
			case "state-timeline":
				if p.FieldConfig.Defaults.Color.Mode != "fixed" {
					t.Errorf("%s: states are coloured by %q", where, p.FieldConfig.Defaults.Color.Mode)
				}
				if v, _ := p.override("byType", "number", "noValue"); v != `"unknown"` {
					t.Errorf("%s: a gap is %s", where, v)
				}
			case "stat":
				if s := p.FieldConfig.Defaults.Thresholds.Steps; len(s) == 0 || s[0].Color != "gray" {
					t.Errorf("%s: what is unknown has the colour of a value: %v", where, s)
				}
				p.checkNumbers(t, where)
			case "timeseries":
				if low := strings.Contains(p.Targets[0].Expr, "bottomk("); low != (p.Options.Legend.SortBy == "Min") ||
					low == p.Options.Legend.SortDesc {
					t.Errorf("%s: the legend does not begin with the worst", where)
				}
			case "table":
				if !p.isMatrix() {
					p.checkColumns(t, where)
				}
			}
		}
	}
}

// override returns a property of some fields.
func (p panel) override(matcher, of, property string) (string, bool) {
	for _, o := range p.FieldConfig.Overrides {
		for _, x := range o.Properties {
			if o.Matcher.ID == matcher && o.Matcher.Options == of && x.ID == property {
				return string(x.Value), true
			}
		}
	}
	return "", false
}

// checkNumbers: numbers side by side have short names, and one without a result is unknown: Grafana would leave it out.
func (p panel) checkNumbers(t *testing.T, where string) {
	t.Helper()
	if m := p.FieldConfig.Defaults.Mappings; len(m) != 1 || m[0].Options["-1"].Text != "unknown" ||
		m[0].Options["-1"].Color != "gray" {
		t.Errorf("%s: -1 is not unknown: %v", where, m)
	}
	if n := len(p.Targets); n < 2 || n > 3 {
		t.Errorf("%s: %d numbers, of which a phone shows the names of three", where, n)
	}
	for _, q := range p.Targets {
		if !strings.HasSuffix(q.Expr, " or on () vector(-1)") || q.LegendFormat == "" || len(q.LegendFormat) > 15 {
			t.Errorf("%s: %q has a long name or none, or is left out where it is unknown: %s", where, q.LegendFormat, q.Expr)
		}
		if v, ok := p.override("byFrameRefID", q.RefID, "thresholds"); !ok || !strings.Contains(v, `"gray"`) {
			t.Errorf("%s: %s has no colours of its own: %s", where, q.LegendFormat, v)
		}
		if v, ok := p.override("byFrameRefID", q.RefID, "mappings"); ok && !strings.Contains(v, `"-1"`) {
			t.Errorf("%s: %s has words without unknown: %s", where, q.LegendFormat, v)
		}
	}
}

// TestHosts: a host is named without the port of its exporter. Links need the scrape target, which is a column of its
// own.
func TestHosts(t *testing.T) {
	for name, d := range load(t) {
		for _, v := range d.Templating.List {
			if c := strings.HasSuffix(v.Definition, ", instance)"); c != (v.Regex == `/^(?<value>(?<text>.+?)(?::\d+)?)$/`) {
				t.Errorf("%s: variable %s shows targets, or cuts what is none: %s", name, v.Name, v.Regex)
			}
		}
		for _, p := range d.Panels {
			where := name + ", " + p.Title
			for _, q := range p.Targets {
				if strings.Contains(q.LegendFormat, "instance") {
					t.Errorf("%s: lines are named by target: %s", where, q.LegendFormat)
				}
			}
			columns := map[string]bool{}
			for _, x := range p.Transformations {
				for field, title := range x.Options.RenameByName {
					columns[field] = true
					if field == "instance" && title != "Target" || field == "host" && title != "Host" && title != "Fabric" {
						t.Errorf("%s: column %s of label %s", where, title, field)
					}
				}
			}
			if columns["host"] != columns["instance"] {
				t.Errorf("%s: has hosts without their targets, or targets without their hosts: %v", where, columns)
			}
		}
	}
}

// What fits: the pixels of a character of a title, those around it and of its filter, and those of a table on a phone
// of 390 pixels.
const (
	perCharacter = 8
	around       = 12
	ofFilter     = 24
	onPhone      = 350
)

// TestPhone: a phone shows a panel as wide as its screen. What a row of a table is about stands in the first columns,
// titles are not cut, and titles of panels and rows fit.
func TestPhone(t *testing.T) {
	for name, d := range load(t) {
		for _, p := range d.Panels {
			where := name + ", " + p.Title
			if p.Type == "row" && len(p.Title) > 34 || len(p.Title) > 36 {
				t.Errorf("%s: the title is longer than a phone is wide", where)
			}
			for _, x := range p.Transformations {
				if x.ID != "organize" {
					continue
				}
				if len(p.Targets) > 1 {
					delete(x.Options.RenameByName, "Value") // in place of that of its query
				}
				fields := slices.SortedFunc(maps.Keys(x.Options.RenameByName),
					func(a, b string) int { return x.Options.IndexByName[a] - x.Options.IndexByName[b] })
				end := 0
				for i, field := range fields {
					title := x.Options.RenameByName[field]
					width := 150 // the least that Grafana gives a column
					if v, ok := p.override("byName", title, "custom.width"); ok {
						width, _ = strconv.Atoi(v)
						least := perCharacter*len(title) + around
						if v, _ := p.override("byName", title, "custom.filterable"); v != "false" {
							least += ofFilter
						}
						if width < least {
							t.Errorf("%s: %d pixels cut the title %s", where, width, title)
						}
					}
					if end += width; (title == "Host" || title == "Switch") && (i > 1 || end > onPhone) {
						t.Errorf("%s: column %d, %s, ends at %d pixels", where, i, title, end)
					}
				}
			}
		}
	}
}

// TestWide: on a screen of 1500 pixels a table shows all that it says of a row without scrolling sideways; what names
// its origin may be beyond.
func TestWide(t *testing.T) {
	const perUnit, without = 1500 / 24, 150 // Grafana's width of a column that sets none, where not all columns fit
	for name, d := range load(t) {
		for _, p := range d.Panels {
			for _, x := range p.Transformations {
				if x.ID != "organize" {
					continue
				}
				room := p.GridPos.W*perUnit - 30
				for field, title := range x.Options.RenameByName {
					if slices.Contains([]string{"Cluster", "Scrape job", "Target", "UUID", "Node GUID", "ID", "Way", "Page"}, title) ||
						field == "Value" && x.Options.RenameByName["Value #A"] != "" {
						continue
					}
					width := without
					if v, ok := p.override("byName", title, "custom.width"); ok {
						width, _ = strconv.Atoi(v)
					}
					room -= width
				}
				if room < 0 {
					t.Errorf("%s, %s: columns are cut off: %d pixels too wide", name, p.Title, -room)
				}
			}
		}
	}
}

// TestQuestions: each dashboard answers one question.
func TestQuestions(t *testing.T) {
	for name, d := range load(t) {
		if strings.Count(d.Description, "?") != 1 || !strings.HasSuffix(d.Description, "?") {
			t.Errorf("%s: %q is not one question", name, d.Description)
		}
	}
}

// TestGrey: grey is the colour of unknown, and of nothing else that has a colour.
func TestGrey(t *testing.T) {
	for name, d := range load(t) {
		for _, p := range d.Panels {
			all := slices.Clone(p.FieldConfig.Defaults.Mappings)
			for _, o := range p.FieldConfig.Overrides {
				if _, coloured := p.override(o.Matcher.ID, o.Matcher.Options, "custom.cellOptions"); !coloured &&
					p.Type == "table" {
					continue
				}
				for _, x := range o.Properties {
					var m []mapping
					if x.ID == "mappings" && json.Unmarshal(x.Value, &m) == nil {
						all = append(all, m...)
					}
				}
			}
			for _, m := range all {
				for value, to := range m.Options {
					if (to.Color == "gray") != (to.Text == "unknown") {
						t.Errorf("%s, %s: %s, %s, is %s", name, p.Title, value, to.Text, to.Color)
					}
				}
			}
		}
	}
}

// TestTop: a graph draws the series that are highest over its range. topk at each point gathers those that were so at
// any, which is most of a fleet.
func TestTop(t *testing.T) {
	for name, d := range load(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				for _, n := range nodes(t, windows.Replace(q.Expr)) {
					a, ok := n.(*parser.AggregateExpr)
					if !ok || q.Instant || a.Op != parser.TOPK && a.Op != parser.BOTTOMK {
						continue
					}
					parser.Inspect(a.Expr, func(n parser.Node, _ []parser.Node) error {
						if s, ok := n.(*parser.VectorSelector); ok && s.StartOrEnd != parser.END {
							t.Errorf("%s, %s: %s is ranked at each point: %s", name, p.Title, a.Op, s)
						}
						return nil
					})
				}
			}
		}
	}
}

// TestShares: what is drawn up to 100 % is limited to that: rates are extrapolated.
func TestShares(t *testing.T) {
	for name, d := range load(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if u := p.FieldConfig.Defaults.Unit; u == "percentunit" && p.Type != "table" &&
					!strings.Contains(q.Expr, "clamp_max(") && !strings.Contains(q.Expr, "_bucket") {
					t.Errorf("%s, %s: may exceed 100 %%: %s", name, p.Title, q.Expr)
				}
			}
		}
	}
}

// TestCounts: a count has no decimals, and increases are counts: whole numbers, not thousands with a letter.
func TestCounts(t *testing.T) {
	for name, d := range load(t) {
		for _, p := range d.Panels {
			u, decimals := p.FieldConfig.Defaults.Unit, p.FieldConfig.Defaults.Decimals
			rose := p.Type == "timeseries" &&
				slices.ContainsFunc(p.Targets, func(q panelTarget) bool { return strings.Contains(q.Expr, "increase(") })
			if (p.Type == "stat" || rose) && (decimals == nil || *decimals != 0) || rose && u != "locale" {
				t.Errorf("%s, %s: counts of unit %s, with decimals", name, p.Title, u)
			}
			for _, q := range p.Targets {
				if p.Type == "table" && strings.Contains(q.Expr, "increase(") && !strings.Contains(q.Expr, "round(") {
					t.Errorf("%s, %s: a count with decimals: %s", name, p.Title, q.Expr)
				}
			}
		}
	}
}

// lines are the limits of rules that panels draw, by dashboard and panel, as thresholds of the rules and what they are
// multiplied by.
var lines = map[string]map[string][]line{
	"fabric.json": {"Congestion notifications": {{"0.01", 1e6}}, "Retransmissions": {{"retransmission-ratio", 1e6}}},
	"node.json":   {"Time paused": {{"slow-receiver-ratio", 1}, {"storm-source-ratio", 1}}},
	"roce.json": {
		"Ports that send pause frames":    {{"slow-receiver-ratio", 1}, {"storm-source-ratio", 1}},
		"Ports that receive pause frames": {{"paused-ratio", 1}},
		"Time in stalls of seconds":       {{"short-storms-ratio", 1}}, "CNPs handled": {{"0.01", 1e6}},
	},
	"optics.json": {
		"Spread of received power": {{"3", 1}}, "Spread of transmitted power": {{"3", 1}},
	},
}

type line struct {
	threshold string // its name, or a constant of the rules
	times     float64
}

// TestLines: a line that is drawn as the limit of a rule is its default.
func TestLines(t *testing.T) {
	all := load(t)
	for name, panels := range lines {
		for title, want := range panels {
			i := slices.IndexFunc(all[name].Panels, func(p panel) bool { return p.Title == title })
			if i < 0 {
				t.Errorf("%s has no panel %s", name, title)
				continue
			}
			steps := all[name].Panels[i].FieldConfig.Defaults.Thresholds.Steps
			if len(steps) != 1+len(want) {
				t.Errorf("%s, %s: %d lines, want %v", name, title, len(steps)-1, want)
				continue
			}
			for j, w := range want {
				k := slices.IndexFunc(rules.Thresholds(), func(x rules.Threshold) bool { return x.Name == w.threshold })
				text := w.threshold
				if k >= 0 {
					text = strconv.FormatFloat(rules.Thresholds()[k].Default, 'f', -1, 64)
				}
				limit, err := strconv.ParseFloat(text, 64)
				if err != nil || steps[1+j].Value == nil || math.Abs(*steps[1+j].Value/(limit*w.times)-1) > 1e-9 {
					t.Errorf("%s, %s: line at %v, want %s times %v", name, title, steps[1+j].Value, w.threshold, w.times)
				}
			}
		}
	}
}

func (p panel) checkColumns(t *testing.T, where string) {
	t.Helper()
	set := map[string][]string{} // properties by column
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			set[o.Matcher.Options] = append(set[o.Matcher.Options], property.ID)
		}
	}
	for _, tr := range p.Transformations {
		for field, column := range tr.Options.RenameByName {
			if !strings.HasPrefix(field, "Value") && !slices.Contains(set[column], "unit") {
				t.Errorf("%s: column %s is a label and has the unit of the panel", where, column)
			}
		}
	}
	for column, ids := range set {
		if slices.Contains(ids, "custom.cellOptions") && !slices.Contains(ids, "thresholds") {
			t.Errorf("%s: column %s is green where a value has no word", where, column)
		}
	}
}
