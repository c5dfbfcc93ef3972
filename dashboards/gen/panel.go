package main

import (
	"fmt"

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
	noValue string   // in place of a value that is not there
	columns []column // of a table, in their order
	sort    string   // title of the column that a table is sorted by, largest first; a leading minus: smallest first
	ways    []way    // links of the series
	points  float64  // most points of a line; 0: one for each pixel
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
	f.Links = links(p.ways...)
	return out, nil
}

// countOf makes panels of one width that count what is wrong: from one on in a colour, grey where that is unknown.
func countOf(width uint32) func(title, text, expr, colour string) panel {
	return func(title, text, expr, colour string) panel {
		return panel{
			title: title, text: text, unit: "none", width: width, height: 4, view: number, queries: []query{{expr: expr}},
			colours: thresholds(neutral, step{0, good}, step{1, colour}), noValue: "unknown",
		}
	}
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
