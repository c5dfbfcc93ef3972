package app

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeOfReplays: what the README shows of the demo node is what check says of it.
func TestReadmeOfReplays(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	must(t, err)
	_, rest, _ := strings.Cut(string(readme), "$ bin/rdma_exporter --replay demo check\n")
	want, _, found := strings.Cut(rest, "$ echo $?\n2\n")
	code, out, errs := command(t, "--replay=demo", "check")
	if code != 2 || errs != "" || !found || out != want {
		t.Errorf("exit %d, %s\n%s\nthe README has\n%s", code, errs, out, want)
	}
}
