package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadRules(t *testing.T) {
	dir := t.TempDir()
	own, other, second := filepath.Join(dir, "link.rules.yml"), filepath.Join(dir, "site.yml"), filepath.Join(dir, "b", "link.rules.yml")
	put(t, own, "groups: [] # ours\n")
	put(t, other, "groups: []\n")
	files, names, err := readRules([]string{filepath.Join(dir, "*.yml"), own}, "")
	must(t, err)
	_, embedded, err := readRules(nil, "")
	must(t, err)
	at := slices.Index(embedded, "node/link.rules.yml")
	want := append(slices.Clone(embedded), other)
	want[at] = own
	if at < 0 || !slices.Equal(names, want) {
		t.Errorf("got  %q\nwant %q", names, want)
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
		if _, _, err := readRules([]string{glob}, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", glob, err)
		}
	}
	if _, _, err := readRules([]string{own, second}, ""); err == nil || !strings.Contains(err.Error(), "same base name") {
		t.Errorf("two of one name: %v", err)
	}
}
