//go:build e2e

package live

import (
	"os"
	"strconv"
	"testing"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
)

// TestHoldersInGuest finds the process RDMA_HOLDER_PID on the device RDMA_HOLDER_DEVICE, with the resources of
// ibv_rc_pingpong: a context, a memory region and a queue pair. test/kernel runs it in the virtual machine.
func TestHoldersInGuest(t *testing.T) {
	pid, err := strconv.Atoi(os.Getenv("RDMA_HOLDER_PID"))
	if err != nil {
		t.Fatalf("RDMA_HOLDER_PID: %v: test/kernel runs this", err)
	}
	l, err := Open(rooted.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	device := os.Getenv("RDMA_HOLDER_DEVICE")
	got, err := l.RDMA.Holders(t.Context(), device, true)
	if err != nil || len(got) != 1 || got[0].PID != pid || got[0].Contexts != 1 || got[0].Regions != 1 ||
		got[0].RegionBytes < 4096 || got[0].QPs == nil || *got[0].QPs != 1 {
		t.Errorf("%s: %+v %v, want process %d", device, got, err, pid)
	}
	found, refused, err := l.Processes.Processes(t.Context(), []int{pid}, true)
	if err != nil || refused || len(found) != 1 || found[0].PID != pid || found[0].Command != "ibv_rc_pingpong" ||
		len(found[0].Verbs) != 1 {
		t.Errorf("%+v %v %v", found, refused, err)
	}
	if _, err := l.RDMA.Holders(t.Context(), "none0", false); access.ReasonOf(err) != access.Gone {
		t.Errorf("a device that is not there: %v", err)
	}
}
