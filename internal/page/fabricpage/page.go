// Package fabricpage is the pages of a fabric.
package fabricpage

import (
	"embed"

	"rdma_exporter/internal/page"
)

//go:embed html
var templates embed.FS

// Page renders the pages of a fabric, and runbooks.
type Page struct{ *page.Renderer }

// NewPage returns a Page whose footer has links.
func NewPage(links []page.Link) (*Page, error) {
	p, err := page.New(templates, links)
	return &Page{p}, err
}
