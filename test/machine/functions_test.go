package machine

import (
	"path/filepath"
	"testing"
)

// TestGrowFunctions: links of all functions resolve, and names are distinct.
func TestGrowFunctions(t *testing.T) {
	dir := t.TempDir()
	if err := GrowFunctions("../..", 2, Functions{Virtual: 10, Sub: 3}, dir); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]int{
		"sys/class/infiniband/*/ports/1/counters/port_rcv_data": 28, "sys/class/infiniband/*/ports/1/phys_state": 28,
		"sys/class/infiniband/*/device/physfn/sriov_numvfs": 20, "sys/class/infiniband/*/device/driver/.": 22,
		"sys/class/net/enP*/device/infiniband": 28, "sys/class/net/enP*/phys_port_name": 2,
		"sys/bus/pci/devices/*/virtfn*/infiniband": 20, "sys/class/infiniband_verbs/*/ibdev": 28,
	} {
		if got, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(got) != want {
			t.Errorf("%s: %d, want %d %v", pattern, len(got), want, err)
		}
	}
}
