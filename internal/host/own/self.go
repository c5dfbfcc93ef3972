// Package own reads the figures of this process.
package own

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ReadSelf reads the figures of this process that Prometheus' client libraries expose, by the names of their metrics.
// What cannot be read is left out. It makes a third of the system calls of client_golang's collector. buf is for
// reading, and larger than any of the files. Sources: /proc/self/stat, fd and net/netstat, /proc/stat, getrlimit(2).
func ReadSelf(buf []byte, use func(metric string, value float64)) {
	selfStat(readSelf("self/stat", buf), use)
	if n, ok := selfDescriptors(); ok {
		use("process_open_fds", float64(n))
	}
	for _, x := range ownLimits {
		var l unix.Rlimit
		if unix.Getrlimit(x.resource, &l) == nil {
			use(x.metric, float64(l.Cur)) // 2^64-1: unlimited
		}
	}
	selfTraffic(readSelf("self/net/netstat", buf), use)
}

var ownLimits = []struct {
	metric   string
	resource int
}{{"process_max_fds", unix.RLIMIT_NOFILE}, {"process_virtual_memory_max_bytes", unix.RLIMIT_AS}}

// readSelf reads a file of proc in one call; nil if that fails.
func readSelf(name string, buf []byte) []byte {
	fd, err := unix.Open("/proc/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// selfDescriptors returns the number of open descriptors.
func selfDescriptors() (int, bool) {
	if st, err := os.Stat("/proc/self/fd"); err == nil && st.Size() > 0 { // since Linux 6.2
		return int(st.Size()), true
	}
	names, err := os.ReadDir("/proc/self/fd")
	return len(names), err == nil
}

// userHZ is the unit of times in /proc/PID/stat on all platforms of Go.
const userHZ = 100

// selfStat parses /proc/self/stat (proc_pid_stat(5)).
func selfStat(b []byte, use func(metric string, value float64)) {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // from the third field
	number := func(n int) float64 {
		v, _ := strconv.ParseUint(string(f[n-3]), 10, 64) // written by the kernel
		return float64(v)
	}
	if len(f) < 22 {
		return
	}
	use("process_cpu_seconds_total", (number(14)+number(15))/userHZ)
	use("process_virtual_memory_bytes", number(23))
	use("process_resident_memory_bytes", number(24)*float64(os.Getpagesize()))
	if boot := ownBoot(); boot > 0 {
		use("process_start_time_seconds", boot+number(22)/userHZ)
	}
}

// ownBoot is the boot time in seconds as of the first call, since setting the clock moves it; 0: unknown.
var ownBoot = sync.OnceValue(func() float64 {
	b, _ := os.ReadFile("/proc/stat")
	_, b, _ = bytes.Cut(b, []byte("\nbtime "))
	line, _, _ := bytes.Cut(b, []byte("\n"))
	v, _ := strconv.ParseFloat(string(line), 64)
	return v
})

// selfTraffic parses the line IpExt of /proc/self/net/netstat: a line of names, and one of values.
func selfTraffic(b []byte, use func(metric string, value float64)) {
	_, b, _ = bytes.Cut(b, []byte("\nIpExt: "))
	names, b, _ := bytes.Cut(b, []byte("\nIpExt: "))
	values, _, _ := bytes.Cut(b, []byte("\n"))
	value := bytes.Fields(values)
	for i, name := range bytes.Fields(names) {
		if metric := ownCounters[string(name)]; metric != "" && i < len(value) {
			if v, err := strconv.ParseFloat(string(value[i]), 64); err == nil {
				use(metric, v)
			}
		}
	}
}

var ownCounters = map[string]string{
	"InOctets": "process_network_receive_bytes_total", "OutOctets": "process_network_transmit_bytes_total",
}

// Siblings returns the arguments of the other processes that run this executable in this mount namespace, by PID: on a
// host the host's exporter, in a container that of the container. Source: /proc/PID/exe, ns/mnt and cmdline of the
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

// identity returns the executable and mount namespace of a process.
func identity(pid string) (id [2]string, err error) {
	for i, link := range []string{"exe", "ns/mnt"} {
		if id[i], err = os.Readlink("/proc/" + pid + "/" + link); err != nil {
			return id, err
		}
	}
	id[0] = strings.TrimSuffix(id[0], " (deleted)") // a newer version has been installed
	return id, nil
}
