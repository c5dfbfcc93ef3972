// Package page has the common parts of the web pages of a node and of a fabric: HTML, and the same facts as JSON. It is
// pure: plain data in, text out. All text from hardware is hostile input.
package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"unicode"
)

// Version is the version of the JSON schema. It changes when a field is removed or changes its meaning, not when one is
// added.
const Version = 1

//go:embed html
var templates embed.FS

//go:embed static
var static embed.FS

// Static returns the files that the pages need: page.css, page.js, copy.js, icon.svg.
func Static() fs.FS {
	sub, err := fs.Sub(static, "static")
	if err != nil { // the name is a constant
		panic(err)
	}
	return sub
}

// Renderer renders pages as HTML.
type Renderer struct {
	templates *template.Template
	links     []Link // in the footer
}

// New returns a Renderer for the templates in html/ of own, which may use the common ones. Its pages have links in the
// footer.
func New(own fs.FS, links []Link) (*Renderer, error) {
	t := template.New("").Funcs(template.FuncMap{"short": func(s string) string { return Shorten(s, MaxText) }})
	for _, files := range []fs.FS{templates, own} {
		if _, err := t.ParseFS(files, "html/*.html"); err != nil {
			return nil, fmt.Errorf("page: %w", err)
		}
	}
	return &Renderer{t, links}, nil
}

// Links returns the links of the footer.
func (p *Renderer) Links() []Link { return p.links }

// Write writes the page of a template. Control characters are left out, wherever they come from.
func (p *Renderer) Write(w io.Writer, name string, v any) error {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name, v); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err := w.Write(bytes.Map(keepGraphic, b.Bytes()))
	return err
}

// keepGraphic returns -1 for control characters, which bytes.Map leaves out. Bytes that are not valid UTF-8 become
// U+FFFD.
func keepGraphic(r rune) rune {
	if r == '\n' || unicode.IsGraphic(r) {
		return r
	}
	return -1
}
