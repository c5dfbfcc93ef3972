package host

import (
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/snapshot"
)

// netdevsNamed limits the netdevs of a network namespace: a pod may create any number.
const netdevsNamed = 16

// network sets the network namespace of a process that holds an RDMA device, and the netdevs there: those of SR-IOV and
// host-device pods. A name in a pod's /sys is the pod's choice; /proc/PID/net/dev is the kernel's.
func (p *processTable) network(out *snapshot.Process) {
	if len(out.Verbs) == 0 {
		return
	}
	own := networkOf(p.tree, strconv.Itoa(out.PID))
	if p.hostNetwork == "" || own == "" || own == p.hostNetwork {
		return
	}
	names, ok := p.netdevs[own]
	if !ok {
		if b, err := p.tree.Read("proc/"+strconv.Itoa(out.PID)+"/net/dev", nil); err == nil {
			names = networkNames(b)
		}
		p.netdevs[own] = names
	}
	out.Network, out.Netdevs = own, names
}

// networkNames are the names in /proc/net/dev but lo, sorted (net/core/net-procfs.c).
func networkNames(text []byte) string {
	names := parseNetdevs(text)
	slices.Sort(names)
	return possibleNames(strings.Join(names, " "))
}

// possibleNames are at most netdevsNamed names of a list but lo, without those that no netdev can have
// (dev_valid_name).
func possibleNames(list string) string {
	var out []string
	for name := range strings.FieldsSeq(list) {
		if len(out) < netdevsNamed && name != "lo" && len(name) < 16 && name == printable(name) &&
			!strings.ContainsAny(name, "/:") {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}
