package collector

import "testing"

func TestVirtualFunctions(t *testing.T) {
	const pf = "sys/devices/pci/0000:18:00.0"
	for _, c := range []struct {
		name, tree string
		want       any
	}{
		{"none of eight", "-- " + pf + "/sriov_totalvfs --\n8\n", uint64(0)},
		{"two of eight", "-- " + pf + "/sriov_totalvfs --\n8\n-- " + pf + "/virtfn0 -> ../0000:18:00.1 --\n-- " + pf + "/virtfn1 -> ../0000:18:00.2 --\n", uint64(2)},
		{"all of one", "-- " + pf + "/sriov_totalvfs --\n1\n-- " + pf + "/virtfn0 -> ../0000:18:00.1 --\n", uint64(1)},
		{"no capability", "-- " + pf + "/vendor --\n0x15b3\n", nil},
		{"no number", "-- " + pf + "/sriov_totalvfs --\nmany\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := readerOf(t, c.tree)
			if got := value(readVirtualFunctions(r, pf)); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if len(r.Issues) != 0 {
				t.Error(r.Issues)
			}
		})
	}
}
