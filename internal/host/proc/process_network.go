package proc

import (
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/snapshot/accel"
)

// netdevsNamed limits the netdevs of a network namespace: a pod may create any number.
const netdevsNamed = 16

// network sets the network namespace of a process that holds an RDMA device, and the netdevs there: those of SR-IOV and
// host-device pods. A name in a pod's /sys is the pod's choice; /proc/PID/net/dev is the kernel's.
func (p *processTable) network(out *accel.Process) {
	if len(out.Verbs) == 0 {
		return
	}
	own := networkOf(p.Tree, strconv.Itoa(out.PID))
	if p.hostNetwork == "" || own == "" || own == p.hostNetwork {
		return
	}
	names, ok := p.netdevs[own]
	if !ok {
		if b, err := p.Tree.Read("proc/"+strconv.Itoa(out.PID)+"/net/dev", nil); err == nil {
			names = networkNames(b)
		}
		p.netdevs[own] = names
	}
	out.Network, out.Netdevs = own, names
}

// networkNames returns the names in /proc/net/dev but lo, sorted (net/core/net-procfs.c).
func networkNames(text []byte) string {
	names := rooted.ParseNetdevs(text)
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

// InnerPID returns the PID of a process in its own PID namespace: the last number of NSpid in /proc/PID/status. It
// is the PID itself if that is not readable.
func InnerPID(f host.Files, pid int) int {
	b, err := f.Read("proc/"+strconv.Itoa(pid)+"/status", nil)
	if err != nil {
		return pid
	}
	all := strings.Fields(rooted.StatusField(b, "NSpid"))
	if len(all) == 0 {
		return pid
	}
	if inner, err := strconv.Atoi(all[len(all)-1]); err == nil && inner > 0 {
		return inner
	}
	return pid
}

// SameNetwork reports whether a process is in the network namespace of this process. known is false if that is not
// readable (/proc/PID/ns/net requires CAP_SYS_PTRACE for processes of other users).
func SameNetwork(f host.Files, pid int) (same, known bool) {
	own, other := networkOf(f, "self"), networkOf(f, strconv.Itoa(pid))
	if own == "" || other == "" {
		return false, false
	}
	return own == other, true
}

// namespace is the target of /proc/PID/ns/net, net:[4026531840] (nsfs, ns_get_path).
var namespace = lazy.Regexp(`^net:\[([0-9]{1,20})\]$`)

// networkOf returns the number of the network namespace of a process, a PID or self; empty if it is not readable.
func networkOf(f host.Files, process string) string {
	target, err := f.Link("proc/" + process + "/ns/net")
	if err != nil {
		return ""
	}
	if m := namespace().FindStringSubmatch(target); m != nil {
		return m[1]
	}
	return ""
}
