package deptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNamesInMakefile: make race skips tests by name (SINGLE). Each name is that of a test in a package that make race
// runs.
func TestNamesInMakefile(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z]+) *:= (.*)$`).FindAllStringSubmatch(string(text), -1) {
		vars[m[1]] = m[2]
	}
	value := func(name string) string {
		return regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(vars[name],
			func(s string) string { return vars[strings.Trim(s, "$()")] })
	}
	single, pure := value("SINGLE"), value("PURE")
	if single == "" || vars["RACED"] == "" || pure == "" {
		t.Fatalf("the Makefile has no SINGLE, RACED or PURE: %q, %q, %q", single, vars["RACED"], pure)
	}
	others := regexp.MustCompile("^(" + vars["RACED"] + "|" + pure + ")$")
	var names []string
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") ||
			others.MatchString(strings.TrimPrefix(filepath.Dir(path), "../../")) {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil || strings.HasPrefix(string(source), "//go:build") { // of targets of their own
			return err
		}
		for _, m := range function.FindAllStringSubmatch(string(source), -1) {
			names = append(names, m[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsFuncSeq(single, func(r rune) bool { return strings.ContainsRune("|()^$", r) }) {
		if name != "Test" && name != "Of" &&
			!slices.ContainsFunc(names, func(test string) bool { return strings.Contains(test, name) }) {
			t.Errorf("%s in the Makefile is the name of no test", name)
		}
	}
}
