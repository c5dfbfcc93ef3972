package panels

import (
	"cmp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	sdktable "github.com/grafana/grafana-foundation-sdk/go/table"
)

// Column is a label, or the value of a query, in a table.
type Column struct {
	From    string // label, or letter of a query
	Title   string // empty: not shown
	Unit    string
	Words   []Word
	Colours []Step // of its background, from the value on
	Width   uint32 // in pixels; 0: as it comes
	Ways    []Way  // links of its cells
	Missing string // in place of a value that a row lacks; empty: n/a of a label, unknown of a value
	Address bool   // of a link of another column: not shown
}

// scraped has host and port of the scrape target.
var scraped = Column{From: "instance", Title: "Target", Width: 180}

// Hidden leaves a label out.
func Hidden(from string) Column { return Column{From: from} }

// Table shows the values of now, one row for each set of labels that its queries have in common.
var Table = View{
	format: prometheus.PromQueryFormatTable, instant: true, builder: func(p Panel) cog.Builder[dashboard.Panel] {
		b := sdktable.NewPanelBuilder().ShowHeader(true).CellHeight(common.TableCellHeightSm).Filterable(true).
			Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"}))
		if len(p.Queries) > 1 {
			b.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
		}
		excluded, order, names := map[string]bool{"Time": true}, map[string]int{}, map[string]string{}
		for i, c := range p.Columns {
			field := c.field(p)
			if c.Title == "" {
				excluded[field] = true
				continue
			}
			order[field], names[field] = i, c.Title
			if properties := c.properties(); len(properties) > 0 {
				b.OverrideByName(c.Title, properties)
			}
		}
		if len(p.Queries) > 1 { // where one query alone has a result, Grafana names its values as if there were no other
			i := slices.IndexFunc(p.Columns, func(c Column) bool { return c.From == cmp.Or(p.Rows, "A") })
			if c := p.Columns[i]; c.Title == "" {
				excluded["Value"] = true
			} else {
				order["Value"], names["Value"] = i, c.Title
			}
		}
		b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": excluded, "indexByName": order, "renameByName": names,
		}})
		// By the option of the table, an arrow would hide the title.
		if by, smallest := strings.CutPrefix(p.Sort, "-"); p.Sort != "" {
			b.WithTransformation(sorted(by, !smallest))
		}
		return b
	},
}

// Matrix shows the values of one query as a table: a row for each value of its first column, a column for each of the
// second, rows with the highest value first. Words are those of cells.
var Matrix = View{
	format: prometheus.PromQueryFormatTable, instant: true, builder: func(p Panel) cog.Builder[dashboard.Panel] {
		down, across := p.Columns[0], p.Columns[1]
		b := sdktable.NewPanelBuilder().ShowHeader(true).CellHeight(common.TableCellHeightSm).
			Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"})).
			Thresholds(builtThresholds{Thresholds("transparent")}).
			OverrideByRegexp(`/^(`+across.Title+` .*|No .*|`+worstOf+`)$/`, []dashboard.DynamicConfigValue{
				{Id: "custom.cellOptions", Value: map[string]any{
					"type": common.TableCellDisplayModeColorBackground, "mode": "basic",
				}},
				{Id: "thresholds", Value: Thresholds("transparent")},
				{Id: "custom.align", Value: "left"},
				{Id: "custom.width", Value: 66},
				{Id: "custom.filterable", Value: false},
				{Id: "noValue", Value: "-"}, // no port
			}).
			OverrideByName(down.Title+`\`+across.Title, down.properties())
		for _, t := range []dashboard.DataTransformerConfig{
			{Id: "organize", Options: map[string]any{
				"excludeByName": map[string]bool{"Time": true}, "indexByName": map[string]int{},
				"renameByName": map[string]string{down.From: down.Title, across.From: across.Title, "Value": "State"},
			}},
			sorted(across.Title, false),
			{Id: "groupingToMatrix", Options: map[string]any{
				"rowField": down.Title, "columnField": across.Title, "valueField": "State", "emptyValue": "null",
			}},
			{Id: "calculateField", Options: map[string]any{
				"mode": "reduceRow", "reduce": map[string]any{"reducer": "max"}, "alias": worstOf,
			}},
			sorted(worstOf, true),
			{Id: "organize", Options: map[string]any{"excludeByName": map[string]bool{worstOf: true}}},
		} {
			b.WithTransformation(t)
		}
		return b
	},
}

// worstOf is the title of the column with the highest value of a row of a matrix.
const worstOf = "Worst"

func sorted(by string, largest bool) dashboard.DataTransformerConfig {
	return dashboard.DataTransformerConfig{
		Id: "sortBy", Options: map[string]any{"sort": []any{map[string]any{"field": by, "desc": largest}}},
	}
}

// field returns Grafana's name of a column: the name of a label, or for a value its query if there are several.
func (c Column) field(p Panel) string {
	switch {
	case len(c.From) > 1:
		return c.From
	case len(p.Queries) == 1:
		return "Value"
	default:
		return "Value #" + c.From
	}
}

// filtered is the width in pixels from which on a column has a filter beside its title.
const filtered = 120

func (c Column) properties() []dashboard.DynamicConfigValue {
	var out []dashboard.DynamicConfigValue
	set := func(id string, value any) { out = append(out, dashboard.DynamicConfigValue{Id: id, Value: value}) }
	switch {
	case c.Unit != "":
		set("unit", c.Unit)
		if c.Unit == Scientific {
			set("decimals", 1)
		}
	case len(c.From) > 1: // a label is no number of the panel's unit
		set("unit", "string")
	}
	missing := "unknown"
	if len(c.From) > 1 {
		missing = "n/a"
	}
	set("noValue", cmp.Or(c.Missing, missing)) // else that of an empty panel
	if c.Address {
		out[len(out)-1].Value = ""
		set("custom.hidden", true)
		set("custom.hideFrom", map[string]bool{"viz": true}) // of Grafana 12
	}
	if c.Width > 0 {
		set("custom.width", c.Width)
	}
	if c.Width > 0 && c.Width < filtered {
		set("custom.filterable", false) // the icon would hide the title
	}
	coloured := c.Colours != nil
	if c.Words != nil {
		set("custom.align", "left") // a word, also where it stands for a number
		set("mappings", mappings(c.Words...))
		for _, w := range c.Words {
			coloured = coloured || w.Colour != Neutral && w.Colour != ""
		}
	}
	if c.Colours != nil || coloured { // without thresholds of its own, a value without a word is green
		set("thresholds", Thresholds("transparent", c.Colours...))
	}
	if coloured {
		set("custom.cellOptions", map[string]any{"type": common.TableCellDisplayModeColorBackground, "mode": "basic"})
	}
	if c.Ways != nil {
		set("links", linksOf(c.Ways...))
	}
	return out
}
