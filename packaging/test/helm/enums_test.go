package chart

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Kubernetes publishes its schemas without enumerations. They are the constants of the types of k8s.io/api that are
// marked +enum.

// enums are the values of each such type, by package and name: k8s.io/api/core/v1.Protocol.
var enums = sync.OnceValues(func() (map[string][]string, error) {
	dirs, err := modules()
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, value := range kinds {
		pkg := reflect.TypeOf(value).PkgPath()
		sub, ok := strings.CutPrefix(pkg, "k8s.io/api/")
		if !ok {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dirs["k8s.io/api"], sub, "types.go"), nil,
			parser.ParseComments)
		if err != nil {
			return nil, err
		}
		constants := constantsOf(file)
		for name := range marked(file) {
			out[pkg+"."+name] = constants[name]
		}
	}
	return out, nil
})

// marked returns the types with +enum in their comment.
func marked(file *ast.File) map[string]bool {
	out := map[string]bool{}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE &&
			slices.Contains(strings.Split(g.Doc.Text(), "\n"), "+enum") {
			out[g.Specs[0].(*ast.TypeSpec).Name.Name] = true
		}
	}
	return out
}

// constantsOf returns the strings that the file's constants have, by type.
func constantsOf(file *ast.File) map[string][]string {
	out := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := v.Type.(*ast.Ident); ok && len(v.Values) == 1 {
			if literal, ok := v.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, _ := strconv.Unquote(literal.Value)
				out[of.Name] = append(out[of.Name], text)
			}
		}
		return true
	})
	return out
}

// enumProblems returns the values in v, which is at path, that their type does not allow. An empty one is absent.
func enumProblems(path string, v reflect.Value) (out []error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return enumProblems(path, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				out = append(out, enumProblems(path+"."+f.Name, v.Field(i))...)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			out = append(out, enumProblems(fmt.Sprintf("%s[%d]", path, i), v.Index(i))...)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			out = append(out, enumProblems(fmt.Sprintf("%s[%v]", path, key), v.MapIndex(key))...)
		}
	case reflect.String:
		all, err := enums()
		if err != nil {
			return []error{err}
		}
		if values, ok := all[v.Type().PkgPath()+"."+v.Type().Name()]; ok && v.String() != "" &&
			!slices.Contains(values, v.String()) {
			return []error{fmt.Errorf("%s is %q, none of %q", path, v, values)}
		}
	}
	return out
}
