// Package nodepage is the page of a node.
package nodepage

import (
	"embed"
	"io"

	"rdma_exporter/internal/page"
	"rdma_exporter/internal/topo"
)

//go:embed html
var templates embed.FS

// Page renders the page of a node, and runbooks.
type Page struct{ *page.Renderer }

// NewPage returns a Page whose footer has links.
func NewPage(links []page.Link) (*Page, error) {
	p, err := page.New(templates, links)
	return &Page{p}, err
}

// Render writes the page of a node.
func (p *Page) Render(w io.Writer, in Input, n *Node, m *topo.Machine) error {
	return p.Write(w, "node.html", newView(in, n, m, p.Links()))
}
