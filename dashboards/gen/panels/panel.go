// Package panels writes dashboards in Grafana's classic model: rows of panels with their places, queries, columns,
// words and links. What they ask is a matter of the boards.
package panels

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"rdma_exporter/dashboards/gen/promql"
)

// Panel is what a dashboard says of one panel. Ids, places, names of queries and colours follow from where it stands.
type Panel struct {
	Title   string
	Text    string // what it shows, and what to make of it
	Unit    string
	Width   uint32 // of 24
	Height  uint32
	View    View
	Queries []Query

	Words   []Word                      // what values mean
	Colours *dashboard.ThresholdsConfig // of values without a word
	min     *float64
	Max     *float64
	Reach   float64  // the axis goes as far at least
	Decades bool     // a logarithmic axis
	NoValue string   // in place of a value that is not there
	Columns []Column // of a table, in their order
	Rows    string   // letter of the query that has a result where any other has; empty: A
	// Title of the column that a table is sorted by, largest first; a leading minus: smallest first.
	Sort   string
	Ways   []Way                         // links of the series
	Points float64                       // most points of a line; 0: one for each pixel
	Steps  []*dashboard.ThresholdsConfig // of the values of each query, where they differ
	Values [][]Word                      // what the values of each query mean, where that differs
	links  [][]Way                       // of the values of each query
	Tints  []string                      // colours of the queries of a graph; nil: one of each kind
	States []Word                        // values of the legend with a colour of their own
	List   bool                          // the legend is a line: all of it is seen
	Beside []Way                         // links beside the title
	Whole  bool                          // an axis for counts from 0 to thousands
}

// Query is an expression with the legend of its series.
type Query struct{ Expr, legend string }

// View is how a panel shows its values.
type View struct {
	format  prometheus.PromQueryFormat
	instant bool // of the last moment, else over time
	builder func(p Panel) cog.Builder[dashboard.Panel]
}

var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

func (p Panel) build(id uint32, at dashboard.GridPos) (dashboard.Panel, error) {
	p.nameHosts()
	out, err := p.View.builder(p).Build()
	if err != nil {
		return out, fmt.Errorf("panel %q: %w", p.Title, err)
	}
	if len(p.Queries) > len(kinds) && !p.View.instant {
		return out, fmt.Errorf("panel %q: more queries than colours", p.Title)
	}
	out.Id, out.Title, out.Description, out.Datasource, out.GridPos = &id, &p.Title, &p.Text, &source, &at
	out.Transparent, out.RepeatDirection = nil, nil
	out.Targets = nil
	for i, q := range p.Queries {
		out.Targets = append(out.Targets, p.target(q, refID(i)))
	}
	f := &out.FieldConfig.Defaults
	f.Unit, f.Min, f.Max = &p.Unit, p.min, p.Max
	if p.Words != nil {
		f.Mappings = mappings(p.Words...)
	}
	if p.Colours != nil {
		f.Thresholds = p.Colours
	}
	if p.NoValue == "" && p.View.instant {
		p.NoValue = "unknown"
	}
	if p.NoValue != "" {
		f.NoValue = &p.NoValue
	}
	if p.Points > 0 {
		out.MaxDataPoints = &p.Points
	}
	f.Links, out.Links = linksOf(p.Ways...), linksOf(p.Beside...)
	return out, nil
}

// nameHosts gives the label host to the queries of a panel that shows it. Its table has the scrape targets as the last
// column, for links.
func (p *Panel) nameHosts() {
	shown := slices.ContainsFunc(p.Columns, func(c Column) bool { return c.From == "host" })
	if shown {
		p.Columns = append(slices.Clone(p.Columns), scraped)
	}
	p.Queries = slices.Clone(p.Queries)
	for i, q := range p.Queries {
		if shown || strings.Contains(q.legend, "{{host}}") {
			p.Queries[i].Expr = promql.WithHost(q.Expr)
		}
	}
}

// Wide returns the panel with another width.
func (p Panel) Wide(of uint32) Panel {
	p.Width = of
	return p
}

// Count is a number of what is wrong, from one on in a colour.
type Count struct {
	Title, Text string
	Expr        string
	Colour      string
	Of          string // of how many; empty: not shown
	Share       bool   // a share in percent, which is well at 100
	Ways        []Way
}

// query returns the count with the number of which it is in its name.
func (c Count) query() Query {
	if c.Of == "" {
		return Query{promql.OrUnknown(c.Expr), c.Title}
	}
	return Query{
		promql.OrUnknown(fmt.Sprintf(`(%s) * on () group_left (of) label_replace(count_values("all", %s), "of", "of $1", "all", "(.*)")`, c.Expr, c.Of)),
		c.Title + " {{of}}",
	}
}

func (c Count) colours() *dashboard.ThresholdsConfig {
	switch {
	case c.Share:
		return Thresholds(Neutral, Step{100, Good})
	case c.Colour == Good:
		return Thresholds(Neutral, Step{0, Good})
	default:
		return Thresholds(Neutral, Step{0, Good}, Step{1, c.Colour})
	}
}

// Whole is the unit of counts that may be large: whole numbers, never 1.02 K.
const Whole = "locale"

// Scientific is the unit of rates over many decades: 1.20e-8.
const Scientific = "sci"

// Counts are numbers side by side, in one panel that Grafana arranges by its width: grey where they are unknown.
func Counts(title, text string, width uint32, all ...Count) Panel {
	p := Panel{
		Title: title, Text: text, Unit: "none", Width: width, Height: 4, View: number, NoValue: "unknown",
		Colours: Thresholds(Neutral), Words: []Word{Unknown},
	}
	for _, c := range all {
		p.Text += " " + c.Title + ": " + c.Text
		p.Queries = append(p.Queries, c.query())
		p.Steps = append(p.Steps, c.colours())
		p.links = append(p.links, c.Ways)
		if c.Share {
			p.Unit = "percent"
		}
	}
	return p
}

// refID names a query as Grafana does: A, B, …
func refID(i int) string { return string(rune('A' + i)) }

func (p Panel) target(q Query, ref string) variants.Dataquery {
	t := prometheus.Dataquery{
		Datasource: &source, EditorMode: cog.ToPtr(prometheus.QueryEditorModeCode), Exemplar: cog.ToPtr(false), Expr: q.Expr,
		Format: &p.View.format, Instant: &p.View.instant, Range: cog.ToPtr(!p.View.instant), RefId: &ref,
	}
	if q.legend != "" {
		t.LegendFormat = &q.legend
	}
	return t
}

// NotHere is the reason for an empty graph of what a host may not have.
const NotHere = "none, or not exposed by these drivers"

// Graph is a panel of lines.
func Graph(title, text, unit string, width uint32, queries ...Query) Panel {
	return Panel{
		Title: title, Text: text, Unit: unit, Width: width, Height: 9, View: Lines, Queries: queries, NoValue: NotHere,
	}
}

// Or says what no value means in a panel.
func (p Panel) Or(noValue string) Panel {
	p.NoValue = noValue
	return p
}

// OrNone adds a row for where there is no alert and the rules are evaluated, on as many parts as all has series.
func (p Panel) OrNone(text, all string) Panel {
	none := fmt.Sprintf(`0 * label_replace(count_values("what", count(%s)), "what", %q, "what", "(.*)")`, all, text)
	p.Queries[0].Expr += " or on () " + none
	return p
}

// SetWidths sets the widths of columns by their titles.
func (p Panel) SetWidths(of map[string]uint32) Panel {
	p.Columns = slices.Clone(p.Columns)
	for i, c := range p.Columns {
		if width, ok := of[c.Title]; ok {
			p.Columns[i].Width = width
		}
	}
	return p
}

// Line returns a query of a graph with the legend of its series.
func Line(expr, legend string) Query { return Query{expr, legend} }
