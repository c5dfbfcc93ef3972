package collector

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/collector/shared"
)

// TestAllHasEveryCollector: the collector that each package below constructs is in All.
func TestAllHasEveryCollector(t *testing.T) {
	n := 0
	if err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "New" && returnsCollector(f) {
				n++
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if all := len(All(shared.Options{})); n != all {
		t.Errorf("%d constructors of collectors, %d collectors in All", n, all)
	}
}

// returnsCollector reports whether a function returns *shared.Collector alone.
func returnsCollector(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	p, pointer := f.Type.Results.List[0].Type.(*ast.StarExpr)
	if !pointer {
		return false
	}
	s, selects := p.X.(*ast.SelectorExpr)
	return selects && s.Sel.Name == "Collector"
}
