//go:build !race

package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNoLocalHidesAName: a name means one thing in a file. No parameter, result or local declaration has the name of a
// package-level declaration of its package, nor of an import of its file.
func TestNoLocalHidesAName(t *testing.T) {
	fset, packages := token.NewFileSet(), map[string][]*ast.File{}
	err := filepath.WalkDir("../..", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.Contains(name, "/testdata/") {
			return err
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		packages[filepath.Dir(name)] = append(packages[filepath.Dir(name)], file)
		return err
	})
	if err != nil || len(packages) < 100 {
		t.Fatalf("%d packages: %v", len(packages), err)
	}
	locals := 0
	for _, files := range packages {
		global := map[string]bool{}
		for _, f := range files {
			for _, d := range f.Decls {
				for _, id := range declaredBy(d) {
					global[id.Name] = id.Name != "_" && id.Name != "main" && id.Name != "init"
				}
			}
		}
		for _, f := range files {
			imported := importsOf(f)
			for _, id := range localsOf(f) {
				locals++
				if id.Name != "_" && (global[id.Name] || imported[id.Name]) {
					t.Errorf("%s: %s hides a name of the package, or an import", fset.Position(id.Pos()), id.Name)
				}
			}
		}
	}
	if locals < 10_000 {
		t.Errorf("%d local names: not all are seen", locals)
	}
}

// majorVersion is the end of an import path that is not the name of the package.
var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// importsOf returns the names of the imports of a file.
func importsOf(f *ast.File) map[string]bool {
	out := map[string]bool{}
	for _, i := range f.Imports {
		name := path.Base(majorVersion.ReplaceAllString(strings.Trim(i.Path.Value, `"`), ""))
		if i.Name != nil {
			name = i.Name.Name
		}
		out[name] = true
	}
	return out
}

// declaredBy returns the names of a declaration, methods apart.
func declaredBy(d ast.Decl) (out []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				out = append(out, s.Name)
			case *ast.ValueSpec:
				out = append(out, s.Names...)
			}
		}
	}
	return out
}

// localsOf returns the names that functions of a file declare: receivers, parameters, results, variables, constants and
// types.
func localsOf(f *ast.File) (out []*ast.Ident) {
	fields := func(lists ...*ast.FieldList) {
		for _, l := range lists {
			if l == nil {
				continue
			}
			for _, field := range l.List {
				out = append(out, field.Names...)
			}
		}
	}
	targets := func(define token.Token, list ...ast.Expr) {
		for _, e := range list {
			if id, ok := e.(*ast.Ident); ok && define == token.DEFINE {
				out = append(out, id)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			fields(n.Recv, n.Type.Params, n.Type.Results)
		case *ast.FuncLit:
			fields(n.Type.Params, n.Type.Results)
		case *ast.AssignStmt:
			targets(n.Tok, n.Lhs...)
		case *ast.RangeStmt:
			targets(n.Tok, n.Key, n.Value)
		case *ast.DeclStmt:
			out = append(out, declaredBy(n.Decl)...)
		}
		return true
	})
	return out
}
