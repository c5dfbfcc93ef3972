package main

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

// column is a label, or the value of a query, in a table.
type column struct {
	from    string // label, or letter of a query
	title   string // empty: not shown
	unit    string
	words   []word
	colours []step // of its background, from the value on
	width   uint32 // in pixels; 0: as it comes
	ways    []way  // links of its cells
	missing string // in place of a value that a row lacks; empty: n/a of a label, unknown of a value
	address bool   // of a link of another column: not shown
}

// Columns that many tables have.
var (
	cluster  = column{from: "cluster", title: "Cluster", width: 90}
	job      = column{from: "job", title: "Job", width: 165}
	instance = column{
		from: "host", title: "Host", width: 220, ways: []way{toNode(jobCell, targetCell, ""), toPage(targetCell)},
	}
	scraped = column{from: "instance", title: "Target", width: 180} // host and port
	hca     = column{
		from: "device", title: "Device", width: 80, words: noDevice, ways: []way{toNode(jobCell, targetCell, cell)},
	}
	// On the dashboard of a host.
	ownHCA = column{
		from: "device", title: "Device", width: 80, words: noDevice, ways: []way{toNode(sameJob, "${host}", cell)},
	}
	portOf = column{from: "port", title: "Port", width: 50}
	// Of rows that may have no host: withWay adds the addresses.
	hostByWay = column{from: "host", title: "Host", width: 220, ways: []way{
		{"Dashboard of " + cell, "${__data.fields.Way}"}, {"Findings on the page of " + cell, "${__data.fields.Page}"},
	}}
	byWay = []column{{from: "way", title: "Way", address: true}, {from: "page", title: "Page", address: true}}

	netdev = column{from: "netdev", title: "Netdev", width: 120}
	gpu    = column{from: "gpu", title: "GPU", width: 50}
	uuid   = column{from: "UUID", title: "UUID", width: 150}
)

// noDevice is the value of rows without a device or switch, whose link chooses all of them.
var noDevice = []word{{"$__all", "all", neutral}}

// hidden leaves a label out.
func hidden(from string) column { return column{from: from} }

// table shows the values of now, one row for each set of labels that its queries have in common.
var table = view{
	format: prometheus.PromQueryFormatTable, instant: true, builder: func(p panel) cog.Builder[dashboard.Panel] {
		b := sdktable.NewPanelBuilder().ShowHeader(true).CellHeight(common.TableCellHeightSm).Filterable(true).
			Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"}))
		if len(p.queries) > 1 {
			b.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
		}
		excluded, order, names := map[string]bool{"Time": true}, map[string]int{}, map[string]string{}
		for i, c := range p.columns {
			field := c.field(p)
			if c.title == "" {
				excluded[field] = true
				continue
			}
			order[field], names[field] = i, c.title
			if properties := c.properties(); len(properties) > 0 {
				b.OverrideByName(c.title, properties)
			}
		}
		if len(p.queries) > 1 { // where one query alone has a result, Grafana names its values as if there were no other
			i := slices.IndexFunc(p.columns, func(c column) bool { return c.from == cmp.Or(p.rows, "A") })
			if c := p.columns[i]; c.title == "" {
				excluded["Value"] = true
			} else {
				order["Value"], names["Value"] = i, c.title
			}
		}
		b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": excluded, "indexByName": order, "renameByName": names,
		}})
		// By the option of the table, an arrow would hide the title.
		if by, smallest := strings.CutPrefix(p.sort, "-"); p.sort != "" {
			b.WithTransformation(sorted(by, !smallest))
		}
		return b
	},
}

// matrix shows the values of one query as a table: a row for each value of its first column, a column for each of the
// second, rows with the highest value first. Words are those of cells.
var matrix = view{
	format: prometheus.PromQueryFormatTable, instant: true, builder: func(p panel) cog.Builder[dashboard.Panel] {
		down, across := p.columns[0], p.columns[1]
		b := sdktable.NewPanelBuilder().ShowHeader(true).CellHeight(common.TableCellHeightSm).
			Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"})).
			Thresholds(builtThresholds{thresholds("transparent")}).
			OverrideByRegexp(`/^(`+across.title+` .*|No .*|`+worstOf+`)$/`, []dashboard.DynamicConfigValue{
				{Id: "custom.cellOptions", Value: map[string]any{
					"type": common.TableCellDisplayModeColorBackground, "mode": "basic",
				}},
				{Id: "thresholds", Value: thresholds("transparent")},
				{Id: "custom.align", Value: "left"},
				{Id: "custom.width", Value: 66},
				{Id: "custom.filterable", Value: false},
				{Id: "noValue", Value: "-"}, // no port
			}).
			OverrideByName(down.title+`\`+across.title, down.properties())
		for _, t := range []dashboard.DataTransformerConfig{
			{Id: "organize", Options: map[string]any{
				"excludeByName": map[string]bool{"Time": true}, "indexByName": map[string]int{},
				"renameByName": map[string]string{down.from: down.title, across.from: across.title, "Value": "State"},
			}},
			sorted(across.title, false),
			{Id: "groupingToMatrix", Options: map[string]any{
				"rowField": down.title, "columnField": across.title, "valueField": "State", "emptyValue": "null",
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
func (c column) field(p panel) string {
	switch {
	case len(c.from) > 1:
		return c.from
	case len(p.queries) == 1:
		return "Value"
	default:
		return "Value #" + c.from
	}
}

// filtered is the width in pixels from which on a column has a filter beside its title.
const filtered = 120

func (c column) properties() []dashboard.DynamicConfigValue {
	var out []dashboard.DynamicConfigValue
	set := func(id string, value any) { out = append(out, dashboard.DynamicConfigValue{Id: id, Value: value}) }
	switch {
	case c.unit != "":
		set("unit", c.unit)
		if c.unit == scientific {
			set("decimals", 1)
		}
	case len(c.from) > 1: // a label is no number of the panel's unit
		set("unit", "string")
	}
	missing := "unknown"
	if len(c.from) > 1 {
		missing = "n/a"
	}
	set("noValue", cmp.Or(c.missing, missing)) // else that of an empty panel
	if c.address {
		out[len(out)-1].Value = ""
		set("custom.hidden", true)
		set("custom.hideFrom", map[string]bool{"viz": true}) // of Grafana 12
	}
	if c.width > 0 {
		set("custom.width", c.width)
	}
	if c.width > 0 && c.width < filtered {
		set("custom.filterable", false) // the icon would hide the title
	}
	coloured := c.colours != nil
	if c.words != nil {
		set("custom.align", "left") // a word, also where it stands for a number
		set("mappings", mappings(c.words...))
		for _, w := range c.words {
			coloured = coloured || w.colour != neutral && w.colour != ""
		}
	}
	if c.colours != nil || coloured { // without thresholds of its own, a value without a word is green
		set("thresholds", thresholds("transparent", c.colours...))
	}
	if coloured {
		set("custom.cellOptions", map[string]any{"type": common.TableCellDisplayModeColorBackground, "mode": "basic"})
	}
	if c.ways != nil {
		set("links", linksOf(c.ways...))
	}
	return out
}
