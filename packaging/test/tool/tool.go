// Package tool finds the programs that the tests of packaging run.
package tool

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Promtool returns the absolute path of bin/promtool, from a package under packaging/test.
func Promtool(t testing.TB) string { return built(t, "promtool") }

// Crane returns the absolute path of bin/crane.
func Crane(t testing.TB) string { return built(t, "crane") }

func built(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../../bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: make bin/%s builds it", path, name)
	}
	return path
}

// Program builds rdma_exporter and returns its path.
func Program(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "rdma_exporter")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/rdma_exporter")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// Rule is a rule as Prometheus reads it.
type Rule struct {
	Alert, Record, Expr, For string
	Keep                     string `json:"keep_firing_for"`
	Labels, Annotations      map[string]string
}

// Rules reads the rules of a file, with expressions in one form.
func Rules(t testing.TB, text []byte) (out []Rule) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []Rule }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			r.Expr = strings.ReplaceAll(strings.TrimSpace(r.Expr), ",}", "}")
			out = append(out, r)
		}
	}
	return out
}

// Tuned returns the rules that the program writes with a file of changes: node rules first, then central rules.
func Tuned(t testing.TB, program, tuning string) (out []Rule) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tune.yml")
	if err := os.WriteFile(file, []byte(tuning), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"node", "central"} {
		text, err := exec.CommandContext(t.Context(), program, "rules", "--set="+set, "--tune.file="+file).Output()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Rules(t, text)...)
	}
	return out
}
