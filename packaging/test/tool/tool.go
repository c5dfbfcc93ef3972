// Package tool finds the programs that the tests of packaging run.
package tool

import (
	"os"
	"path/filepath"
	"testing"
)

// Promtool returns the absolute path of bin/promtool, from a package under packaging/test.
func Promtool(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../../../bin/promtool")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: make bin/promtool builds it", path)
	}
	return path
}
