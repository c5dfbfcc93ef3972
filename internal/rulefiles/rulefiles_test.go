package rulefiles

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadRules(t *testing.T) {
	dir := t.TempDir()
	own, other, second := filepath.Join(dir, "link.rules.yml"), filepath.Join(dir, "site.yml"),
		filepath.Join(dir, "b", "link.rules.yml")
	put(t, own, "groups: [] # ours\n")
	put(t, other, "groups: []\n")
	files, err := Read([]string{filepath.Join(dir, "*.yml"), own}, "")
	must(t, err)
	builtin, err := Read(nil, "")
	must(t, err)
	at := slices.Index(builtin.Names, "node/link.rules.yml")
	want := append(slices.Clone(builtin.Names), other)
	want[at] = own
	if at < 0 || !slices.Equal(files.Names, want) {
		t.Errorf("got  %q\nwant %q", files.Names, want)
	}
	for name, want := range map[string]string{own: "# ours", "node/pcie.rules.yml": "RDMA"} {
		if b, err := fs.ReadFile(files, name); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v, %.100q", name, err, b)
		}
	}
	must(t, os.Mkdir(filepath.Dir(second), 0o755))
	put(t, second, "groups: []\n")
	for glob, want := range map[string]string{
		filepath.Join(dir, "nope.yml"): "nope.yml: no file matches",
		filepath.Join(dir, "none-*"):   "none-*: no file matches",
		"[":                            "syntax error in pattern",
		dir:                            "must be a regular file",
	} {
		if _, err := Read([]string{glob}, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", glob, err)
		}
	}
	if _, err := Read([]string{own, second}, ""); err == nil || !strings.Contains(err.Error(), "same base name") {
		t.Errorf("two of one name: %v", err)
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o644))
}
