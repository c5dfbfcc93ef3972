package rooted_test

import (
	"os"
	"path/filepath"
	"testing"

	"rdma_exporter/internal/host/hosttest"
)

// TestLeader: the kernel reports thread IDs.
func TestLeader(t *testing.T) {
	dir, tree := hosttest.Machine(t)
	hosttest.Put(t, dir, "proc/90/status", "Name:\tpython3\nTgid:\t77\nPid:\t90\n")
	hosttest.Put(t, dir, "proc/91/status", "Name:\tTgid:\nTgid:\tx\n")
	if err := os.MkdirAll(filepath.Join(dir, "proc", "92"), 0o755); err != nil {
		t.Fatal(err)
	}
	for tid, want := range map[int]int{90: 77, 91: 91, 92: 92, 93: 93} {
		if got := tree.Leader(tid); got != want {
			t.Errorf("%d: %d, want %d", tid, got, want)
		}
	}
}
