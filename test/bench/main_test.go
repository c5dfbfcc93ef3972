//go:build bench

// Package bench measures the cost of the program, compared with node_exporter on the same files in the same run, and
// with a program that only reads the files. It writes its tables into docs/performance.md.
package bench

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var (
	repository = flag.String("repository", "../..", "the checkout: recorded machines, docs/performance.md, and bin with what make bench builds")
	blocks     = flag.Int("blocks", 9, "blocks of scrapes of each program; they take turns")
	write      = flag.Bool("write", true, "write the tables into docs/performance.md")
)

// file returns a path of the checkout.
func file(elem ...string) string { return filepath.Join(append([]string{*repository}, elem...)...) }

// floorVariable marks the process that only reads files, and names their list.
const floorVariable = "RDMA_EXPORTER_BENCH_FLOOR"

func TestMain(m *testing.M) {
	if list := os.Getenv(floorVariable); list != "" {
		os.Exit(floor(list, os.Args[len(os.Args)-1]))
	}
	// The samples of allocations, which programs take with --web.pprof only, are memory. Programs inherit the variable.
	if err := os.Setenv("GODEBUG", "memprofilerate=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
