// Package archives makes captures for tests from text, and reads the recorded ones.
package archives

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/fixtures"
	"rdma_exporter/internal/capture"
)

// Header begins an archive of three rounds.
const Header = "-- capture.json --\n" + `{
  "version": 2,
  "hostname": "gpu-1",
  "kernel": "6.12.0",
  "time": "2026-01-02T03:04:05Z",
  "rounds": ["0s","15s","30s"]
}
`

// Start is the time of Header.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Parse returns the archive of a text.
func Parse(t testing.TB, text string) *capture.Archive {
	t.Helper()
	a, err := capture.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Format returns the text of an archive.
func Format(t testing.TB, a *capture.Archive) string {
	t.Helper()
	b, err := capture.Format(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Each runs a test on every recorded machine; variants are whole.
func Each(t *testing.T, test func(t *testing.T, a *capture.Archive)) {
	EachFile(t, func(t *testing.T, file string) {
		a, err := capture.Load(file, fixtures.Builtin)
		if err != nil {
			t.Fatal(err)
		}
		test(t, a)
	})
}

// EachFile runs a test on the file of every recorded machine.
func EachFile(t *testing.T, test func(t *testing.T, file string)) {
	for _, file := range recorded(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { test(t, file) })
	}
}

// recorded returns the files of the recorded machines, which are in the root of the module.
func recorded(t *testing.T) []string {
	for root := "."; len(root) < 32; root = filepath.Join("..", root) {
		if files, _ := filepath.Glob(filepath.Join(root, "fixtures/sysfs/*.txtar")); len(files) > 0 {
			return files
		}
	}
	t.Fatal("no recorded machine")
	return nil
}

// Differ reports the first line in which two texts differ.
func Differ(t testing.TB, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Errorf("line %d: %q, want %q", i+1, g[min(i, len(g)):min(i+1, len(g))], w[min(i, len(w)):min(i+1, len(w))])
			return
		}
	}
}
