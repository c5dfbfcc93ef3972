package check

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestJoinCommands: commands that differ in one name are a loop; others, prose and names in quotes stay.
func TestJoinCommands(t *testing.T) {
	for want, commands := range map[string][]string{
		"for d in eth0 eth1; do mlnx_qos -i $d --trust=dscp; done": {
			"mlnx_qos -i eth0 --trust=dscp", "mlnx_qos -i eth1 --trust=dscp",
		},
		"for d in a0 b1; do sysctl -w ipv4.$d.arp_ignore=1 ipv4.$d.rp_filter=2; done": {
			"sysctl -w ipv4.a0.arp_ignore=1 ipv4.a0.rp_filter=2", "sysctl -w ipv4.b1.arp_ignore=1 ipv4.b1.rp_filter=2",
		},
		"for d in 0000:17:01.0 0000:17:00.0 0000:3f:01.0 0000:3f:00.0; do setpci -s $d E=0; done": {
			"setpci -s 0000:17:01.0 E=0; setpci -s 0000:17:00.0 E=0", "setpci -s 0000:3f:01.0 E=0; setpci -s 0000:3f:00.0 E=0",
		},
		"for d in a0 b0; do for i in $(ls /sys/$d/irqs); do cat /sys/$d/cpus > /proc/$i; done; done": {
			"for i in $(ls /sys/a0/irqs); do cat /sys/a0/cpus > /proc/$i; done",
			"for i in $(ls /sys/b0/irqs); do cat /sys/b0/cpus > /proc/$i; done",
		},
		"for d in 0000:18:00.0 0000:40:00.0; do mlxconfig -d $d set A=true; done # NVIDIA; b": {
			"mlxconfig -d 0000:18:00.0 set A=true # NVIDIA; b", "mlxconfig -d 0000:40:00.0 set A=true # NVIDIA; b",
		},
		"for d in slurmd containerd; do mkdir -p /etc/$d.service.d; printf '[S]\\n' > /etc/$d.service.d/x; done # drain": {
			`mkdir -p /etc/slurmd.service.d; printf '[S]\n' > /etc/slurmd.service.d/x # drain`,
			`mkdir -p /etc/containerd.service.d; printf '[S]\n' > /etc/containerd.service.d/x # drain`,
		},
		"two names differ":        {"ip link set dev a mtu 1", "ip link set dev b mtu 2"},
		"prose":                   {"replace a0", "replace b0"},
		"quoted":                  {"echo 'a0'", "echo 'b0'"},
		"quoted names":            {"mlnx_qos -i 'a b' -x", "mlnx_qos -i 'c d' -x"},
		"the variable of another": {"echo $d a", "echo $d b"},
		"a flag":                  {"mlnx_qos -a", "mlnx_qos -b"},
		"a name in the comment":   {"mlnx_qos -i a # of a", "mlnx_qos -i b # of b"},
		"one":                     {"mlnx_qos -i eth0"},
	} {
		got := joinCommands(slices.Clone(commands))
		if !strings.HasPrefix(want, "for ") {
			if !slices.Equal(got, commands) {
				t.Errorf("%s: %q", want, got)
			}
			continue
		}
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

// TestLoopRuns: a shell runs the same commands in a loop as one by one.
func TestLoopRuns(t *testing.T) {
	run := func(script string) string {
		out, err := exec.CommandContext(t.Context(), "sh", "-c",
			`setpci() { echo setpci "$@"; }; sysctl() { echo sysctl "$@"; }; `+script).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	for _, commands := range [][]string{
		{"setpci -s 0000:17:01.0 E=0; setpci -s 0000:17:00.0 E=0", "setpci -s 0000:3f:01.0 E=0; setpci -s 0000:3f:00.0 E=0"},
		{"sysctl -w net.a0.x=1 net.a0.y=2", "sysctl -w net.b-1.x=1 net.b-1.y=2", "sysctl -w net.c_2.x=1 net.c_2.y=2"},
		{"for i in 1 2; do echo a0 $i a0x; done # c", "for i in 1 2; do echo b0 $i b0x; done # c"},
	} {
		loop := joinCommands(commands)
		if got, want := run(loop[0]), run(strings.Join(commands, "\n")); len(loop) != 1 || got != want {
			t.Errorf("%q: %s, want %s", loop, got, want)
		}
	}
}
