//lint:file-ignore SA1019 the classic model is the one that Grafana 10, 11 and 12 read

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// board is a dashboard: rows of panels.
type board struct {
	name    string // of the file; the uid is rdma-NAME
	title   string
	text    string // the question that it answers
	from    string // time range at first
	refresh string
	choices []choice
	events  string // alerts that are marked in its graphs
	rows    []row
}

type row struct {
	title  string
	panels []panel
	closed bool // collapsed at first: its queries run when it is opened
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
	d.Links = header()
	d.Templating.List = variables(b.choices)
	d.Annotations.List = []dashboard.AnnotationQuery{marks(b.events)}
	d.Panels, err = b.layout()
	return d, err
}

// layout numbers the panels and places them from left to right, a row of the grid below the other. Panels of a
// collapsed row stand in it, at the places that they take when it is opened.
func (b board) layout() (out []dashboard.PanelOrRowPanel, err error) {
	id, y := uint32(0), uint32(0)
	for _, r := range b.rows {
		id++
		head := dashboard.NewRowPanel()
		head.Id, head.Title, head.Collapsed, head.GridPos = id, &r.title, r.closed, &dashboard.GridPos{H: 1, W: grid, Y: y}
		out = append(out, dashboard.PanelOrRowPanel{RowPanel: head})
		y++
		at, x, height := y, uint32(0), uint32(0)
		for _, p := range r.panels {
			id++
			if x+p.width > grid {
				x, at, height = 0, at+height, 0
			}
			built, err := p.build(id, dashboard.GridPos{X: x, Y: at, W: p.width, H: p.height})
			if err != nil {
				return nil, err
			}
			if r.closed {
				head.Panels = append(head.Panels, built)
			} else {
				out = append(out, dashboard.PanelOrRowPanel{Panel: &built})
			}
			x, height = x+p.width, max(height, p.height)
		}
		if !r.closed {
			y = at + height
		}
	}
	return out, nil
}
