// Package fuzz tests the script that fuzzes all targets.
package fuzz

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// module has two targets, of which the first fails.
var module = map[string]string{
	"go.mod": "module fuzz_run_test\n\ngo 1.26.0\n",
	"collector/a_test.go": `package a

import "testing"

func FuzzBroken(f *testing.F) {
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 2 {
			t.Error("longer than 2")
		}
	})
}
`,
	"internal/b/b_test.go": `package b

import "testing"

func FuzzSound(f *testing.F) { f.Fuzz(func(*testing.T, string) {}) }
`,
}

// TestRun: a target that fails is named, its input is stored, and the other targets run too.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range module {
		write(t, filepath.Join(dir, name), []byte(text))
	}
	script, err := os.ReadFile("run.sh")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "test/fuzz/run.sh"), script)
	empty := exec.CommandContext(t.Context(), "tar", "-czf",
		filepath.Join(dir, "test/fuzz/corpus.tar.gz"), "-T", os.DevNull)
	if out, err := empty.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{filepath.Join(dir, "test/fuzz/run.sh")}, args...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("1000x")
	named := strings.HasSuffix(out, "\nfailed: collector FuzzBroken\n")
	if err == nil || !named || !strings.Contains(out, "\nok  \tfuzz_run_test/internal/b\t") {
		t.Errorf("%v\n%s", err, out)
	}
	if inputs, _ := filepath.Glob(filepath.Join(dir, "collector/testdata/fuzz/FuzzBroken/*")); len(inputs) != 1 {
		t.Errorf("failing inputs: %q", inputs)
	}
	if out, err := run("1000x", "internal/b"); err != nil || strings.Contains(out, "FuzzBroken") {
		t.Errorf("%v\n%s", err, out)
	}
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o755); err != nil {
		t.Fatal(err)
	}
}
