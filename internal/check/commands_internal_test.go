package check

import (
	"strings"
	"testing"
)

// TestSplitCommands: commands are split where each can be run alone.
func TestSplitCommands(t *testing.T) {
	for line, want := range map[string]int{
		"rdma link show ; ethtool eth0":                            2,
		"rdma link show ; dmesg | grep -E '(a ; b)$' # as root":    2,
		`rdma topo ; lspci | grep -E "^[0-9a-f]|ACSCtl" # as root`: 2,
		"ethtool eth0": 1,
		"lid=$(ibnetdiscover) ; smpquery portinfo \"$lid\" 2": 1,
		"A=1 ; echo b": 1,
		"for i in 1 2 ; do ethtool -S eth0 ; sleep 1 ; done": 1,
		"cd /sys ; cat x":      1,
		"(cd /sys ; cat x)":    1,
		"cat x # first ; then": 1,
		"echo 'a ; b":          1,
		`echo "$a" ; b`:        1,
		`a \; b ; c`:           1,
		"grep . /sys/class/infiniband/*/fw_ver ; mlxfwmanager -d a": 2,
	} {
		got := splitCommands(line)
		if len(got) != want || strings.Join(got, " ; ") != line {
			t.Errorf("%q: %q, want %d", line, got, want)
		}
	}
}
