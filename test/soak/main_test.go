//go:build soak

// Package soak tests for leaks: a day with a fake clock, and half an hour of real time.
package soak

import (
	"flag"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

var (
	duration  = flag.Duration("for", 30*time.Minute, "how long the real program is scraped")
	day       = flag.Duration("day", 24*time.Hour, "how long the program lives on a virtual clock")
	exporter  = flag.String("exporter", "../../bin/rdma_exporter", "the program")
	recording = flag.String("machine", "../../fixtures/sysfs/hgx-h200-roce.txtar", "the recorded machine whose files are read")
	config    = flag.String("config", "../../packaging/rdma_exporter.yml", "what the operator says of the site, which is read again now and then")
)

// TestMain starts the runtime's signal handling: it must not start in a test with a fake clock.
func TestMain(m *testing.M) {
	flag.Parse()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
