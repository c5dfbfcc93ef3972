// Package machines plays the recorded machines: helpers for tests, and the goldens of all machines.
package machines

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/capture"
	testmachine "rdma_exporter/test/machine"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fixtureDir is the directory of recorded machines, from a package at the second level.
const fixtureDir = "../../fixtures/sysfs"

// Names lists all recorded machines by name.
func Names(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(fixtureDir + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".txtar"))
	}
	return names
}

// Each runs a test for each recorded machine under its name: -run 'TestName/port-down' is for one.
func Each(t *testing.T, test func(t *testing.T, name string)) {
	for _, name := range Names(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, name)
		})
	}
}

// Fixture returns the file of a recorded machine, from a package at the second level or below it.
func Fixture(name string) string {
	dir := fixtureDir
	if _, err := os.Stat(dir); err != nil {
		dir = filepath.Join("..", dir)
	}
	return filepath.Join(dir, name+".txtar")
}

// Load returns a recorded machine, for a test that changes it.
func Load(t testing.TB, name string) *capture.Archive {
	t.Helper()
	a, err := testmachine.Load(Fixture(name))
	must(t, err)
	return a
}

// archive returns the file of a machine unchanged: for a variant only the differences.
func archive(t *testing.T, name string) *capture.Archive {
	t.Helper()
	text, err := os.ReadFile(Fixture(name))
	must(t, err)
	a, err := capture.Parse(text)
	must(t, err)
	return a
}

func IsVariant(t *testing.T, name string) bool { return archive(t, name).IsVariant() }

// Written returns the file of a machine that a test has changed.
func Written(t testing.TB, a *capture.Archive) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "changed.txtar")
	must(t, testmachine.Write(a, file))
	return file
}
