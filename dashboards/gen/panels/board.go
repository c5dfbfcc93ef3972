//lint:file-ignore SA1019 the classic model is the one that Grafana 10, 11 and 12 read

package panels

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"rdma_exporter/dashboards/gen/promql"
)

// Board is a dashboard: rows of panels.
type Board struct {
	Name    string // of the file; the uid is rdma-NAME
	Title   string
	Text    string // the question that it answers
	From    string // time range at first
	Refresh string
	Choices []Choice
	Events  string // alerts that are marked in its graphs
	Rows    []Row
}

type Row struct {
	Title  string
	Panels []Panel
	Closed bool // collapsed at first: its queries run when it is opened
}

// Grid is the width of a dashboard.
const Grid = 24

func (b Board) build() (dashboard.Dashboard, error) {
	d, err := dashboard.NewDashboardBuilder(b.Title).
		Uid("rdma-"+b.Name).Description(b.Text).Tags([]string{"rdma"}).Timezone("browser").Editable().
		Tooltip(dashboard.DashboardCursorSyncCrosshair).Time(b.From, "now").Refresh(b.Refresh).
		Build()
	if err != nil {
		return d, err
	}
	d.SchemaVersion = 39 // Grafana 10.4; later ones migrate it
	d.Links = header()
	d.Templating.List = variables(b.Choices)
	d.Annotations.List = []dashboard.AnnotationQuery{marks(b.Events)}
	d.Panels, err = b.layout()
	return d, err
}

// layout numbers the panels and places them from left to right, a row of the grid below the other. Panels of a
// collapsed row stand in it, at the places that they take when it is opened.
func (b Board) layout() (out []dashboard.PanelOrRowPanel, err error) {
	id, y := uint32(0), uint32(0)
	for _, r := range b.Rows {
		id++
		head := dashboard.NewRowPanel()
		head.Id, head.Title, head.Collapsed, head.GridPos = id, &r.Title, r.Closed, &dashboard.GridPos{H: 1, W: Grid, Y: y}
		out = append(out, dashboard.PanelOrRowPanel{RowPanel: head})
		y++
		at, x, height := y, uint32(0), uint32(0)
		for _, p := range r.Panels {
			id++
			if x+p.Width > Grid {
				x, at, height = 0, at+height, 0
			}
			built, err := p.build(id, dashboard.GridPos{X: x, Y: at, W: p.Width, H: p.Height})
			if err != nil {
				return nil, err
			}
			if r.Closed {
				head.Panels = append(head.Panels, built)
			} else {
				out = append(out, dashboard.PanelOrRowPanel{Panel: &built})
			}
			x, height = x+p.Width, max(height, p.Height)
		}
		if !r.Closed {
			y = at + height
		}
	}
	return out, nil
}

// header are the links at the top of a dashboard: one menu of the product's dashboards, which gets the variables that
// both have, and those of other exporters, which are found by tag if they are installed.
func header() (out []dashboard.DashboardLink) {
	for _, of := range []struct{ tag, title, icon string }{
		{"rdma", "RDMA", "dashboard"},
		{"node-exporter-mixin", "node-exporter-mixin", "external link"},
		{"dcgm", "dcgm", "external link"},
	} {
		menu := of.tag == "rdma"
		out = append(out, dashboard.DashboardLink{
			Title: of.title, Type: dashboard.DashboardLinkTypeDashboards, Icon: of.icon, Tags: []string{of.tag},
			AsDropdown: menu, IncludeVars: menu, KeepTime: true,
		})
	}
	return out
}

// marks show when alerts of the dashboard's topic began to fire, with a link to the host, once they are switched on.
func marks(alerts string) dashboard.AnnotationQuery {
	return dashboard.AnnotationQuery{
		Name: "Alerts", Enable: false, IconColor: Warning, Datasource: &source,
		Expr:        cog.ToPtr(promql.WithHost(alerts)),
		Step:        cog.ToPtr("60s"),
		TitleFormat: cog.ToPtr("{{alertname}}"),
		TextFormat:  cog.ToPtr(`<a href="d/rdma-node?var-job={{job}}&var-host={{instance}}">{{host}}</a> {{device}} {{port}} {{gpu}}`),
		TagKeys:     cog.ToPtr("severity"),
	}
}
