package commands_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/rules"
)

// TestRulesToStdout: one file that has the rules of all.
func TestRulesToStdout(t *testing.T) {
	for set, files := range map[string]func() (fs.FS, []string, error){
		"node": rules.Node, "central": rules.Central, "compat": rules.Compat,
	} {
		t.Run(set, func(t *testing.T) {
			code, out, errs := runProgram(t, "rules", "--set="+set)
			if code != 0 || errs != "" {
				t.Fatalf("exit %d: %s", code, errs)
			}
			fsys, names, err := files()
			must(t, err)
			want, got := exprs(t, fsys, names), exprs(t, fstest.MapFS{"all.yml": {Data: []byte(out)}}, []string{"all.yml"})
			if len(want) < 5 || !slices.Equal(got, want) {
				t.Errorf("%d rules, want %d", len(got), len(want))
			}
			for _, name := range names {
				text, err := fs.ReadFile(fsys, name)
				must(t, err)
				if first, _, _ := strings.Cut(string(text), "\n"); !strings.Contains(out, first) ||
					!strings.Contains(out, path.Base(name)) {
					t.Errorf("%s: its words are lost", name)
				}
			}
		})
	}
}

// exprs returns the rules of some files as the engine loads them.
func exprs(t *testing.T, fsys fs.FS, names []string) (out []string) {
	t.Helper()
	e, err := alerting.New(alerting.Options{Dir: t.TempDir(), Instance: "x", Rules: fsys, Files: names})
	must(t, err)
	defer func() { must(t, e.Close()) }()
	for _, r := range e.RecordingRules() {
		out = append(out, r.Name+" "+r.Group+" "+r.Expr)
	}
	for _, r := range e.Rules() {
		delete(r.Annotations, "runbook_url") // an address where one is known
		out = append(out, r.Name+" "+r.Group+" "+r.Expr+" "+fmt.Sprint(r.Annotations))
	}
	return out
}

// TestRulesToFolder: as they are in the binary; what somebody has changed stays, unless it is said otherwise.
func TestRulesToFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rules")
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := runProgram(t, append([]string{"rules", "--set=node", "-o", dir}, args...)...)
		if code != want || out != "" {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		return errs
	}
	same := func() {
		t.Helper()
		fsys, names, err := rules.Node()
		must(t, err)
		found, err := os.ReadDir(dir)
		must(t, err)
		if len(found) != len(names) {
			t.Errorf("%d files, want %d", len(found), len(names))
		}
		for _, name := range names {
			want, err := fs.ReadFile(fsys, name)
			must(t, err)
			want = rulefiles.RunbookURL("").InRules(want)
			if got, err := os.ReadFile(filepath.Join(dir, path.Base(name))); err != nil || string(got) != string(want) {
				t.Errorf("%s: %v, %d bytes, want %d", name, err, len(got), len(want))
			}
		}
	}
	run(0)
	same()
	run(0) // nothing to do
	changed := filepath.Join(dir, "link.rules.yml")
	must(t, os.WriteFile(changed, []byte("mine\n"), 0o644))
	must(t, os.Remove(filepath.Join(dir, "pcie.rules.yml")))
	if errs := run(2); !strings.Contains(errs, "link.rules.yml") || !strings.Contains(errs, "--force") {
		t.Errorf("%s", errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "pcie.rules.yml")); err == nil {
		t.Error("some files were written, and not all")
	}
	run(0, "--force")
	same()
}
