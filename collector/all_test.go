package collector

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAllHasEveryCollector: each constructor of a collector is in All.
func TestAllHasEveryCollector(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constructor := regexp.MustCompile(`(?m)^func (new\w+)\([^{]*\) \*Collector \{`)
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n += len(constructor.FindAll(text, -1))
	}
	if all := len(All(Options{})); n != all {
		t.Errorf("%d constructors of collectors, %d collectors in All", n, all)
	}
}
