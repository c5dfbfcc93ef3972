package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"unicode"

	"rdma_exporter/internal/topo"
)

//go:embed html
var sources embed.FS

//go:embed static
var static embed.FS

// Static are the files that the page needs: page.css, page.js, icon.svg.
func Static() fs.FS {
	sub, err := fs.Sub(static, "static")
	if err != nil { // the name is a constant
		panic(err)
	}
	return sub
}

// Page writes HTML.
type Page struct {
	templates *template.Template
	links     []Link
}

// NewPage makes a page that leads to some links.
func NewPage(links []Link) (*Page, error) {
	cut := template.FuncMap{"short": func(s string) string { return short(s, maxText) }}
	t, err := template.New("").Funcs(cut).ParseFS(sources, "html/*.html")
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	return &Page{t, links}, nil
}

// Render writes the page of a node.
func (p *Page) Render(w io.Writer, in Input, n *Node, m *topo.Machine) error {
	return p.write(w, "node.html", newView(in, n, m, p.links))
}

// write fills a template. Control characters do not get through, wherever they may have come from.
func (p *Page) write(w io.Writer, name string, v any) error {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name, v); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err := w.Write(bytes.Map(graphic, b.Bytes()))
	return err
}

// graphic leaves out what is not to be seen. Bytes that are no UTF-8 become U+FFFD.
func graphic(r rune) rune {
	if r == '\n' || unicode.IsGraphic(r) {
		return r
	}
	return -1
}
