package commands_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/dashboards"
)

// TestDashboardsToFolder: as they are in the binary; what somebody has changed stays, unless it is said otherwise.
func TestDashboardsToFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dashboards")
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := runProgram(t, append([]string{"dashboards", "-o", dir}, args...)...)
		if code != want || out != "" {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		return errs
	}
	same := func() {
		t.Helper()
		fsys, names, err := dashboards.All()
		must(t, err)
		found, err := os.ReadDir(dir)
		must(t, err)
		if len(found) != len(names) || len(names) < 5 {
			t.Errorf("%d files, want %d", len(found), len(names))
		}
		for _, name := range names {
			want, err := fs.ReadFile(fsys, name)
			must(t, err)
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != string(want) {
				t.Errorf("%s: %v, %d bytes, want %d", name, err, len(got), len(want))
			}
		}
	}
	run(0)
	same()
	run(0) // nothing to do
	must(t, os.WriteFile(filepath.Join(dir, "node.json"), []byte("{}\n"), 0o644))
	must(t, os.Remove(filepath.Join(dir, "roce.json")))
	if errs := run(2); !strings.Contains(errs, "node.json") || !strings.Contains(errs, "--force") {
		t.Errorf("%s", errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "roce.json")); err == nil {
		t.Error("some files were written, and not all")
	}
	run(0, "--force")
	same()
}

// TestDashboardsOfTLS: with --https each link to an exporter is one by https, and Grafana still reads the file.
func TestDashboardsOfTLS(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := runProgram(t, "dashboards", "-o", dir, "--https"); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, name := range []string{"fabric.json", "node.json", "subnet.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		if !json.Valid(text) || strings.Contains(string(text), "http://") || !strings.Contains(string(text), `"https://${`) {
			t.Errorf("%s is no JSON, has links by http or none by https", name)
		}
	}
}
