package proc

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestNetworkOfProcess: network namespace and netdevs of processes with an RDMA device, not of those on the host's
// network.
func TestNetworkOfProcess(t *testing.T) {
	const titles = "Inter-|   Receive |  Transmit\n face |bytes    packets|bytes    packets\n"
	p, table := NewProcessTree(t)
	many := titles
	for i := range 20 {
		many += fmt.Sprintf("  n%02d: 1 2\n", i)
	}
	for pid, c := range map[int]struct{ network, dev string }{
		1: {"net:[4026531840]", ""}, 42: {"net:[4026531840]", titles + "eth0: 1 2\n"},
		43: {"net:[4026532345]", titles + "    lo: 1 2\n  net1: 3 4\n  eth0:5 6\n a\x1bb: 1\n"},
		44: {"net:[4026532345]", titles},
		45: {"net:[4026532346]", many}, 46: {"odd", titles}, 47: {"", titles},
	} {
		p.Process(pid, []string{"/dev/infiniband/uverbs0"}, map[string]string{"stat": statText, "ns/x": "", "net/dev": c.dev})
		if c.network != "" {
			if err := os.Symlink(c.network, fmt.Sprintf("%s/proc/%d/ns/net", p.Dir, pid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	found, _, err := table.Processes(t.Context(), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]string{
		1: " ", 42: " ", 43: "4026532345 eth0 net1", 44: "4026532345 eth0 net1",
		45: "4026532346 n00 n01 n02 n03 n04 n05 n06 n07 n08 n09 n10 n11 n12 n13 n14 n15", 46: " ", 47: " ",
	}
	for i := range found {
		one := &found[i]
		if got := one.Network + " " + one.Netdevs; got != want[one.PID] {
			t.Errorf("%d: %q, want %q", one.PID, got, want[one.PID])
		}
		if !isProcess(one) {
			t.Errorf("%d: rejected from a helper", one.PID)
		}
		one.Netdevs += " " + strings.Repeat("x", 16)
		if isProcess(one) {
			t.Errorf("%d: accepted from a helper: %q", one.PID, one.Netdevs)
		}
	}
	if len(found) != len(want) {
		t.Errorf("%d processes", len(found))
	}
}
