package page

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"rdma_exporter/docs/runbooks"
)

// markdown renders runbooks. Raw HTML is left out, which is the library's default, and tables have no inline style,
// which the content security policy forbids.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
	goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(runbookLinks{}, 0))),
)

// runbookView is the data of the template of a runbook.
type runbookView struct {
	Title, Base string
	Text        template.HTML
	Names       []string // of all runbooks, for the list
}

// runbookPath returns the path of a runbook, relative to the first page; empty if there is none.
func runbookPath(alert string) string {
	if _, ok := runbooks.Text(alert); !ok {
		return ""
	}
	return "runbooks/" + alert
}

// unknownRunbookError is the error for an alert without a runbook; it is fs.ErrNotExist.
type unknownRunbookError string

func (e unknownRunbookError) Error() string { return "no runbook " + string(e) }

// Is reports whether the error counts as fs.ErrNotExist.
func (e unknownRunbookError) Is(target error) bool { return target == fs.ErrNotExist }

// RenderRunbook writes the runbook of an alert; the error is fs.ErrNotExist if there is none.
func (p *Renderer) RenderRunbook(w io.Writer, alert string) error {
	source, ok := runbooks.Text(alert)
	if !ok {
		return unknownRunbookError(Shorten(alert, MaxName))
	}
	var b bytes.Buffer
	if err := markdown.Convert(source, &b); err != nil {
		return fmt.Errorf("runbook %s: %w", alert, err)
	}
	// #nosec G203: from a file of the program, without raw HTML.
	return p.Write(w, "runbook.html", runbookView{Title: alert, Base: "../", Text: template.HTML(b.String())})
}

// RenderRunbooks writes the list of all runbooks.
func (p *Renderer) RenderRunbooks(w io.Writer) error {
	return p.Write(w, "runbook.html", runbookView{Title: "Runbooks", Base: "../", Names: runbooks.Names()})
}

// runbookLinks turns links between files into links between pages. A link to a file that is not served becomes its
// text. Headings of the third level, the reasons of an alert, get their text as id.
type runbookLinks struct{}

// Transform changes the links and headings of a document.
func (runbookLinks) Transform(doc *ast.Document, r text.Reader, _ parser.Context) {
	var links []*ast.Link
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if link, ok := n.(*ast.Link); ok && entering {
			links = append(links, link)
		}
		if h, ok := n.(*ast.Heading); ok && entering && h.Level == 3 {
			h.SetAttributeString("id", h.Lines().Value(r.Source()))
		}
		return ast.WalkContinue, nil
	})
	for _, link := range links {
		to := string(link.Destination)
		file, anchor, _ := strings.Cut(to, "#")
		name := strings.TrimSuffix(file, ".md")
		switch {
		case file == "" && anchor != "": // of this page
		case runbookPath(name) != "" && anchor != "":
			link.Destination = []byte(name + "#" + anchor)
		case runbookPath(name) != "":
			link.Destination = []byte(name)
		case strings.HasPrefix(to, "https://"):
		default:
			for child := link.FirstChild(); child != nil; child = link.FirstChild() {
				link.Parent().InsertBefore(link.Parent(), link, child)
			}
			link.Parent().RemoveChild(link.Parent(), link)
		}
	}
}
