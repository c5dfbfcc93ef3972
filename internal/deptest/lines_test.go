//go:build !race

package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func isLong(line string) bool { return utf8.RuneCountInString(line) > 120 } // a tab is one

// TestLineLength: lines over 120 characters are rows of tables, string literals, comments with a URL, and directives.
func TestLineLength(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		files++
		source, err := os.ReadFile(path)
		if lines := strings.Split(string(source), "\n"); err == nil && slices.ContainsFunc(lines, isLong) {
			for i, ok := range mayBeLong(source, lines) {
				if !ok && isLong(lines[i]) {
					t.Errorf("%s:%d: over 120 characters: break the line, or make it the row of a table", path[6:], i+1)
				}
			}
		}
		return err
	})
	if err != nil || files < 500 {
		t.Fatalf("%d files: %v", files, err)
	}
}

var besideRow = regexp.MustCompile(`^\t*,?\s*(//.*)?$`)

// mayBeLong reports for each line whether it is an exception: part of a string literal of several lines, with one of 80
// characters or more and at most 60 beside it, with a URL in a comment or a directive, or a row. A row is an element of
// a list or map, or a variable made by a call, which is not the only one. It is alone on its line; of {...} the first
// line may be long.
func mayBeLong(source []byte, lines []string) []bool {
	fset, ok := token.NewFileSet(), make([]bool, len(lines)+1)
	file, _ := parser.ParseFile(fset, "", source, parser.ParseComments|parser.SkipObjectResolution)
	for _, g := range file.Comments {
		for _, c := range g.List {
			ok[fset.Position(c.Pos()).Line] = strings.Contains(c.Text, "://") || !strings.HasPrefix(c.Text, "// ")
		}
	}
	row := func(n ast.Node, may bool) {
		from, to := fset.Position(n.Pos()), fset.Position(n.End())
		beside := lines[from.Line-1][:from.Column-1]
		if from.Line == to.Line {
			beside += lines[to.Line-1][to.Column-1:]
		}
		ok[from.Line] = ok[from.Line] || may && (from.Line == to.Line || isTuple(n)) && besideRow.MatchString(beside)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			first, last, width := fset.Position(n.Pos()).Line, fset.Position(n.End()).Line, utf8.RuneCountInString(n.Value)
			ok[first] = ok[first] || width >= 80 && utf8.RuneCountInString(lines[first-1])-width <= 60
			for l := first; first < last && l <= last; l++ {
				ok[l] = true
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				kv, _ := e.(*ast.KeyValueExpr)
				row(e, len(n.Elts) > 1 && (kv == nil || !is[*ast.Ident](kv.Key) || isTuple(e))) // no field of a struct
			}
		case *ast.GenDecl:
			for _, s := range n.Specs {
				v, _ := s.(*ast.ValueSpec)
				row(s, len(n.Specs) > 1 && v != nil && slices.ContainsFunc(v.Values, is[*ast.CallExpr, ast.Expr]))
			}
		}
		return true
	})
	return ok[1:]
}

func is[T, E any](n E) bool { _, ok := any(n).(T); return ok }

// isTuple reports whether a node is {...} without a type, or KEY: {...}.
func isTuple(n ast.Node) bool {
	if kv, _ := n.(*ast.KeyValueExpr); kv != nil {
		n = kv.Value
	}
	c, _ := n.(*ast.CompositeLit)
	return c != nil && c.Type == nil
}
