// Package program finds the programs that tests run. The error for a missing one names what builds or installs it.
package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// repository is the root of the checkout, relative to a package under test/.
const repository = "../.."

// Exporter returns the absolute path of the exporter under test: RDMA_EXPORTER (may be relative to the checkout), or
// else bin/rdma_exporter.
func Exporter(t testing.TB) string {
	t.Helper()
	name := os.Getenv("RDMA_EXPORTER")
	if name == "" {
		name = "bin/rdma_exporter"
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(repository, name)
	}
	return Built(t, name, "make build builds bin/rdma_exporter, RDMA_EXPORTER names another one")
}

// Built returns the absolute path of a program; remedy is the command that builds it.
func Built(t testing.TB, name, remedy string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: %s", path, remedy)
	}
	return path
}

// Installed returns the path of a program of this machine; script installs it, by its path in the checkout.
func Installed(t testing.TB, name, script string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed: %s installs it", name, script)
	}
	return path
}
