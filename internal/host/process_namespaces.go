package host

import (
	"strconv"
	"strings"

	"rdma_exporter/internal/lazy"
)

// InnerPID is the PID of a process in its own PID namespace: the last number of NSpid in /proc/PID/status. It
// is the PID itself if that is not readable.
func InnerPID(f Files, pid int) int {
	b, err := f.Read("proc/"+strconv.Itoa(pid)+"/status", nil)
	if err != nil {
		return pid
	}
	all := strings.Fields(statusField(b, "NSpid"))
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
func SameNetwork(f Files, pid int) (same, known bool) {
	own, other := networkOf(f, "self"), networkOf(f, strconv.Itoa(pid))
	if own == "" || other == "" {
		return false, false
	}
	return own == other, true
}

// namespace is the target of /proc/PID/ns/net, net:[4026531840] (nsfs, ns_get_path).
var namespace = lazy.Regexp(`^net:\[([0-9]{1,20})\]$`)

// networkOf is the number of the network namespace of a process, a PID or self; empty if it is not readable.
func networkOf(f Files, process string) string {
	target, err := f.Link("proc/" + process + "/ns/net")
	if err != nil {
		return ""
	}
	if m := namespace().FindStringSubmatch(target); m != nil {
		return m[1]
	}
	return ""
}
