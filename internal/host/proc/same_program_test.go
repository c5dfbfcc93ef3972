package proc

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"

	"rdma_exporter/internal/host/own"
)

// TestSiblings starts this executable again, and another one with the same arguments.
func TestSiblings(t *testing.T) {
	const mark = "-test.run=^TestSiblingWaits$"
	if got := own.Siblings(); slices.ContainsFunc(got, func(a []string) bool { return slices.Contains(a, mark) }) {
		t.Fatalf("before it was started: %q", got)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := func(name string, args ...string) {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Env = append(os.Environ(), "SIBLING=1")
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close(); c.Wait() })
		if _, err := out.Read(make([]byte, 1)); err != nil { // it is running
			t.Fatal(err)
		}
	}
	start(self, mark, "-test.v", "")
	start("/bin/sh", "-c", "echo; read x", mark)
	n := 0
	for _, args := range own.Siblings() {
		if slices.Contains(args, mark) {
			n++
			if !slices.Equal(args, []string{mark, "-test.v", ""}) {
				t.Errorf("%q", args)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d processes", n)
	}
}

// TestSiblingWaits is what TestSiblings starts.
func TestSiblingWaits(t *testing.T) {
	if os.Getenv("SIBLING") == "" {
		return
	}
	os.Stdout.WriteString("\n")
	io.Copy(io.Discard, os.Stdin)
}
