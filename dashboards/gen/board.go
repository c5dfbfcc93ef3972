//lint:file-ignore SA1019 the classic model is the one that Grafana 10, 11 and 12 read

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// board is a dashboard: rows of panels.
type board struct {
	name      string // of the file; the uid is rdma-NAME
	title     string
	text      string
	from      string // how far back it looks at first
	refresh   string // how often
	variables []dashboard.VariableModel
	events    string // alerts that are marked in its graphs
	rows      []row
}

type row struct {
	title  string
	panels []panel
}

// grid is the width of a dashboard.
const grid = 24

func (b board) build() (dashboard.Dashboard, error) {
	d, err := dashboard.NewDashboardBuilder(b.title).
		Uid("rdma-"+b.name).Description(b.text).Tags([]string{"rdma"}).Timezone("browser").Editable().
		Tooltip(dashboard.DashboardCursorSyncCrosshair).Time(b.from, "now").Refresh(b.refresh).
		Build()
	if err != nil {
		return d, err
	}
	d.SchemaVersion = 39 // Grafana 10.4; later ones migrate it
	d.Links = []dashboard.DashboardLink{others}
	d.Templating.List = b.variables
	d.Annotations.List = []dashboard.AnnotationQuery{marks(b.events)}
	d.Panels, err = b.layout()
	return d, err
}

// layout numbers the panels and places them from left to right, a row of the grid below the other.
func (b board) layout() (out []dashboard.PanelOrRowPanel, err error) {
	id, y := uint32(0), uint32(0)
	for _, r := range b.rows {
		id++
		head := dashboard.NewRowPanel()
		head.Id, head.Title, head.GridPos = id, &r.title, &dashboard.GridPos{H: 1, W: grid, Y: y}
		out = append(out, dashboard.PanelOrRowPanel{RowPanel: head})
		y++
		x, height := uint32(0), uint32(0)
		for _, p := range r.panels {
			id++
			if x+p.width > grid {
				x, y, height = 0, y+height, 0
			}
			built, err := p.build(id, dashboard.GridPos{X: x, Y: y, W: p.width, H: p.height})
			if err != nil {
				return nil, err
			}
			out = append(out, dashboard.PanelOrRowPanel{Panel: &built})
			x, height = x+p.width, max(height, p.height)
		}
		y += height
	}
	return out, nil
}

// others are the product's dashboards, in the header, with what is chosen here.
var others = dashboard.DashboardLink{
	Title: "RDMA", Type: dashboard.DashboardLinkTypeDashboards, Icon: "dashboard", Tags: []string{"rdma"},
	IncludeVars: true, KeepTime: true,
}

// marks shows when alerts of the dashboard's topic began to fire, with a way to the host, once somebody switches them on.
func marks(alerts string) dashboard.AnnotationQuery {
	return dashboard.AnnotationQuery{
		Name: "Alerts", Enable: false, IconColor: warning, Datasource: &source,
		Expr:        &alerts,
		Step:        cog.ToPtr("60s"),
		TitleFormat: cog.ToPtr("{{alertname}}"),
		TextFormat:  cog.ToPtr(`<a href="d/rdma-node?var-job={{job}}&var-instance={{instance}}">{{instance}}</a> {{device}} {{port}} {{gpu}}`),
		TagKeys:     cog.ToPtr("severity"),
	}
}
