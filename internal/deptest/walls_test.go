//go:build !race

package deptest

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Limits of a package: what one has to know to change one thing.
const (
	mostLines = 3500 // with code, tests apart
	mostNames = 60   // exported functions, types, variables and constants, methods apart
	mostFiles = 30   // tests apart
)

// size is what a package has.
type size struct{ lines, names, files int }

// TestSizeOfPackages: a package is small enough to be known.
func TestSizeOfPackages(t *testing.T) {
	sizes := map[string]*size{}
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, "/testdata/") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)[len("../.."):]
		dir = strings.TrimPrefix(dir, "/")
		if sizes[dir] == nil {
			sizes[dir] = &size{}
		}
		sizes[dir].add(t, path, source)
		return nil
	})
	if err != nil || len(sizes) < 80 {
		t.Fatalf("%d packages: %v", len(sizes), err)
	}
	for dir, s := range sizes {
		if s.lines > mostLines || s.names > mostNames || s.files > mostFiles {
			t.Errorf("%s: %d lines of %d, %d exported names of %d, %d files of %d",
				dir, s.lines, mostLines, s.names, mostNames, s.files, mostFiles)
		}
	}
}

// add counts a file.
func (s *size) add(t *testing.T, path string, source []byte) {
	s.files++
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				s.names++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s.names += exportedIn(spec)
			}
		}
	}
	s.lines += linesWithCode(source)
}

// exportedIn counts the exported names of a declaration.
func exportedIn(spec ast.Spec) (n int) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() {
			n++
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}

// linesWithCode counts the lines that have more than blanks and comments.
func linesWithCode(source []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			return len(lines)
		case tok == token.SEMICOLON && text == "\n":
			continue
		}
		first := file.Line(pos)
		for i := range strings.Count(text, "\n") + 1 {
			lines[first+i] = true
		}
	}
}
