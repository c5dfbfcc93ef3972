//go:build !race

package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestLazyExpressions compiles the regular expressions of lazy.Regexp, which the program compiles at their first use.
func TestLazyExpressions(t *testing.T) {
	expressions := map[string][]ast.Expr{} // by package
	constants := map[string]map[string]ast.Expr{}
	fset := token.NewFileSet()
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if constants[dir] == nil {
			constants[dir] = map[string]ast.Expr{}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i < len(n.Values) {
						constants[dir][name.Name] = n.Values[i]
					}
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Regexp" && nameOf(f.X) == "lazy" {
					expressions[dir] = append(expressions[dir], n.Args[0])
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(expressions) < 4 {
		t.Fatalf("lazy.Regexp is found in %d packages", len(expressions))
	}
	for dir, list := range expressions {
		for _, e := range list {
			text, ok := constant(e, constants[dir])
			if !ok {
				t.Errorf("%s: the expression is not made of literals and constants of its package", fset.Position(e.Pos()))
			} else if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", fset.Position(e.Pos()), err)
			}
		}
	}
}

func nameOf(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// constant returns the value of literals and constants of a package, and their sums.
func constant(e ast.Expr, constants map[string]ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.Ident:
		return constant(constants[e.Name], constants)
	case *ast.BinaryExpr:
		x, left := constant(e.X, constants)
		y, right := constant(e.Y, constants)
		return x + y, e.Op == token.ADD && left && right
	}
	return "", false
}
