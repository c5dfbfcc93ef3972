package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// panel is what a dashboard says of one panel. Ids, places, names of queries and colours follow from where it stands.
type panel struct {
	title   string
	text    string // what it shows, and what to make of it
	unit    string
	width   uint32 // of 24
	height  uint32
	view    view
	queries []query

	words   []word                      // what values mean
	colours *dashboard.ThresholdsConfig // of values without a word
	min     *float64
	max     *float64
	reach   float64  // the axis goes as far at least
	decades bool     // a logarithmic axis
	noValue string   // in place of a value that is not there
	columns []column // of a table, in their order
	rows    string   // letter of the query that has a result where any other has; empty: A
	// Title of the column that a table is sorted by, largest first; a leading minus: smallest first.
	sort   string
	ways   []way                         // links of the series
	points float64                       // most points of a line; 0: one for each pixel
	steps  []*dashboard.ThresholdsConfig // of the values of each query, where they differ
	values [][]word                      // what the values of each query mean, where that differs
	links  [][]way                       // of the values of each query
	tints  []string                      // colours of the queries of a graph; nil: one of each kind
	states []word                        // values of the legend with a colour of their own
	list   bool                          // the legend is a line: all of it is seen
	beside []way                         // links beside the title
	whole  bool                          // an axis for counts from 0 to thousands
}

// query is an expression with the legend of its series.
type query struct{ expr, legend string }

// view is how a panel shows its values.
type view struct {
	format  prometheus.PromQueryFormat
	instant bool // of the last moment, else over time
	builder func(p panel) cog.Builder[dashboard.Panel]
}

var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

func (p panel) build(id uint32, at dashboard.GridPos) (dashboard.Panel, error) {
	p.nameHosts()
	out, err := p.view.builder(p).Build()
	if err != nil {
		return out, fmt.Errorf("panel %q: %w", p.title, err)
	}
	if len(p.queries) > len(kinds) && !p.view.instant {
		return out, fmt.Errorf("panel %q: more queries than colours", p.title)
	}
	out.Id, out.Title, out.Description, out.Datasource, out.GridPos = &id, &p.title, &p.text, &source, &at
	out.Transparent, out.RepeatDirection = nil, nil
	out.Targets = nil
	for i, q := range p.queries {
		out.Targets = append(out.Targets, p.target(q, refID(i)))
	}
	f := &out.FieldConfig.Defaults
	f.Unit, f.Min, f.Max = &p.unit, p.min, p.max
	if p.words != nil {
		f.Mappings = mappings(p.words...)
	}
	if p.colours != nil {
		f.Thresholds = p.colours
	}
	if p.noValue == "" && p.view.instant {
		p.noValue = "unknown"
	}
	if p.noValue != "" {
		f.NoValue = &p.noValue
	}
	if p.points > 0 {
		out.MaxDataPoints = &p.points
	}
	f.Links, out.Links = linksOf(p.ways...), linksOf(p.beside...)
	return out, nil
}

// nameHosts gives the label host to the queries of a panel that shows it. Its table has the scrape targets as the last
// column, for links.
func (p *panel) nameHosts() {
	shown := slices.ContainsFunc(p.columns, func(c column) bool { return c.from == "host" })
	if shown {
		p.columns = append(slices.Clone(p.columns), scraped)
	}
	p.queries = slices.Clone(p.queries)
	for i, q := range p.queries {
		if shown || strings.Contains(q.legend, "{{host}}") {
			p.queries[i].expr = withHost(q.expr)
		}
	}
}

// wide returns the panel with another width.
func (p panel) wide(of uint32) panel {
	p.width = of
	return p
}

// count is a number of what is wrong, from one on in a colour.
type count struct {
	title, text string
	expr        string
	colour      string
	of          string // of how many; empty: not shown
	share       bool   // a share in percent, which is well at 100
	ways        []way
}

// query returns the count with the number of which it is in its name.
func (c count) query() query {
	if c.of == "" {
		return query{orUnknown(c.expr), c.title}
	}
	return query{
		orUnknown(fmt.Sprintf(`(%s) * on () group_left (of) label_replace(count_values("all", %s), "of", "of $1", "all", "(.*)")`, c.expr, c.of)),
		c.title + " {{of}}",
	}
}

func (c count) colours() *dashboard.ThresholdsConfig {
	switch {
	case c.share:
		return thresholds(neutral, step{100, good})
	case c.colour == good:
		return thresholds(neutral, step{0, good})
	default:
		return thresholds(neutral, step{0, good}, step{1, c.colour})
	}
}

// whole is the unit of counts that may be large: whole numbers, never 1.02 K.
const whole = "locale"

// scientific is the unit of rates over many decades: 1.20e-8.
const scientific = "sci"

// counts are numbers side by side, in one panel that Grafana arranges by its width: grey where they are unknown.
func counts(title, text string, width uint32, all ...count) panel {
	p := panel{
		title: title, text: text, unit: "none", width: width, height: 4, view: number, noValue: "unknown",
		colours: thresholds(neutral), words: []word{unknown},
	}
	for _, c := range all {
		p.text += " " + c.title + ": " + c.text
		p.queries = append(p.queries, c.query())
		p.steps = append(p.steps, c.colours())
		p.links = append(p.links, c.ways)
		if c.share {
			p.unit = "percent"
		}
	}
	return p
}

// refID names a query as Grafana does: A, B, …
func refID(i int) string { return string(rune('A' + i)) }

func (p panel) target(q query, ref string) variants.Dataquery {
	t := prometheus.Dataquery{
		Datasource: &source, EditorMode: cog.ToPtr(prometheus.QueryEditorModeCode), Exemplar: cog.ToPtr(false), Expr: q.expr,
		Format: &p.view.format, Instant: &p.view.instant, Range: cog.ToPtr(!p.view.instant), RefId: &ref,
	}
	if q.legend != "" {
		t.LegendFormat = &q.legend
	}
	return t
}
