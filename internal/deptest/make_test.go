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

// TestSkippedTestsRun: make test-race skips tests by name in all packages, make test-single runs those of some
// packages. Each test that the one skips is run by the other, and each name in the Makefile is that of a test.
func TestSkippedTestsRun(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z]+) *:= (.*)$`).FindAllStringSubmatch(string(text), -1) {
		vars[m[1]] = m[2]
	}
	single := regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(vars["SINGLE"],
		func(s string) string { return vars[strings.Trim(s, "$()")] })
	single = strings.ReplaceAll(single, "$$", "$")
	skipped := regexp.MustCompile(single)
	pure := regexp.MustCompile("^(" + vars["PURE"] + ")$")
	also := strings.Fields(strings.ReplaceAll(vars["SINGLES"], "./", ""))
	if single == "" || len(also) == 0 || vars["PURE"] == "" {
		t.Fatalf("the Makefile has no SINGLE, SINGLES or PURE: %q, %q, %q", single, also, vars["PURE"])
	}
	var names []string
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil || strings.HasPrefix(string(source), "//go:build") { // of targets of their own
			return err
		}
		dir := strings.TrimPrefix(filepath.Dir(path), "../../")
		for _, m := range function.FindAllStringSubmatch(string(source), -1) {
			if pure.MatchString(dir) || !skipped.MatchString(m[1]) {
				continue
			}
			names = append(names, m[1])
			if !slices.Contains(also, dir) {
				t.Errorf("%s of %s is skipped by make test-race and not run by make test-single", m[1], dir)
			}
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
