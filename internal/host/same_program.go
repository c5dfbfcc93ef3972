package host

import (
	"os"
	"strconv"
	"strings"
)

// Siblings are the arguments of the other processes that run this executable in this mount namespace, by PID: on a host
// the exporter that runs there, in a container the container's. Source: /proc/PID/exe, ns/mnt and cmdline of the
// process's own /proc. Processes of other users are left out. Without /proc the result is empty.
func Siblings() (args [][]string) {
	self, err := identity("self")
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir("/proc") // sorted by name
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

// identity is the executable and mount namespace of a process.
func identity(pid string) (id [2]string, err error) {
	for i, link := range []string{"exe", "ns/mnt"} {
		if id[i], err = os.Readlink("/proc/" + pid + "/" + link); err != nil {
			return id, err
		}
	}
	id[0] = strings.TrimSuffix(id[0], " (deleted)") // a newer version has been installed
	return id, nil
}
