package host

import (
	"os"
	"strconv"
	"strings"
)

// Siblings are the arguments of the other processes that run this executable in this mount namespace, by process number: on a host the
// exporter that runs there, in a container the container's. Source: /proc/PID/exe, ns/mnt and cmdline of the process' own /proc. Those of
// other users are left out; none can be told without a /proc.
func Siblings() (args [][]string) {
	self, err := identity("self")
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir("/proc") // in the order of their names
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if other, err := identity(e.Name()); err != nil || other != self {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || len(b) == 0 { // it has ended
			continue
		}
		args = append(args, strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")[1:])
	}
	return args
}

// identity is what a process runs, and where.
func identity(pid string) (id [2]string, err error) {
	for i, link := range []string{"exe", "ns/mnt"} {
		if id[i], err = os.Readlink("/proc/" + pid + "/" + link); err != nil {
			return id, err
		}
	}
	id[0] = strings.TrimSuffix(id[0], " (deleted)") // a newer one is installed
	return id, nil
}
