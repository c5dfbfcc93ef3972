package main

import (
	"cmp"
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
}

// Columns that many tables have.
var (
	cluster  = column{from: "cluster", title: "Cluster"}
	job      = column{from: "job", title: "Job"}
	instance = column{from: "instance", title: "Host", ways: []way{toNode(jobCell, cell, ""), toPage(cell)}}
	hca      = column{from: "device", title: "Device", width: 110, words: noDevice, ways: []way{toNode(jobCell, hostCell, cell)}}
	ownHCA   = column{from: "device", title: "Device", width: 110, words: noDevice, ways: []way{toNode(sameJob, "${host}", cell)}} // on the dashboard of a host
	fabricAt = column{from: "instance", title: "Fabric", ways: []way{toSwitch(jobCell, cell, ""), toPage(cell)}}
	portOf   = column{from: "port", title: "Port", width: 60}
	netdev   = column{from: "netdev", title: "Netdev"}
	gpu      = column{from: "gpu", title: "GPU", width: 60}
	uuid     = column{from: "UUID", title: "UUID"}
)

// noDevice is the value of rows without a device, whose link chooses all of the host.
var noDevice = []word{{"$__all", "n/a", neutral}}

// hidden leaves a label out.
func hidden(from string) column { return column{from: from} }

// table shows the values of now, one row for each set of labels that its queries have in common.
var table = view{format: prometheus.PromQueryFormatTable, instant: true, builder: func(p panel) cog.Builder[dashboard.Panel] {
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
	b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": excluded, "indexByName": order, "renameByName": names,
	}})
	if by, smallest := strings.CutPrefix(p.sort, "-"); p.sort != "" {
		b.SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName(by).Desc(!smallest)})
	}
	return b
}}

// field is what Grafana calls a column: a label by its name, a value by its query where there are several.
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

func (c column) properties() []dashboard.DynamicConfigValue {
	var out []dashboard.DynamicConfigValue
	set := func(id string, value any) { out = append(out, dashboard.DynamicConfigValue{Id: id, Value: value}) }
	switch {
	case c.unit != "":
		set("unit", c.unit)
	case len(c.from) > 1: // a label is no number of the panel's unit
		set("unit", "string")
	}
	missing := "unknown"
	if len(c.from) > 1 {
		missing = "n/a"
	}
	set("noValue", cmp.Or(c.missing, missing)) // else that of an empty panel
	if c.width > 0 {
		set("custom.width", c.width)
	}
	coloured := c.colours != nil
	if c.words != nil {
		set("mappings", mappings(c.words...))
		for _, w := range c.words {
			coloured = coloured || w.colour != neutral
		}
	}
	if c.colours != nil || coloured { // without thresholds of its own, a value without a word is green
		set("thresholds", thresholds("transparent", c.colours...))
	}
	if coloured {
		set("custom.cellOptions", map[string]any{"type": common.TableCellDisplayModeColorBackground, "mode": "basic"})
	}
	if c.ways != nil {
		set("links", links(c.ways...))
	}
	return out
}
