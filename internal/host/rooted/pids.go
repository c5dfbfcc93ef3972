package rooted

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
)

// Pids lists the processes, sorted.
func (t *Tree) Pids() ([]int, error) {
	fd, err := t.Proc.Open(".", unix.O_DIRECTORY)
	if err != nil {
		return nil, &access.Error{Op: "list", Path: "proc", Err: err}
	}
	defer unix.Close(fd)
	names, err := readNames(fd)
	if err != nil {
		return nil, &access.Error{Op: "list", Path: "proc", Err: err}
	}
	var out []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Leader returns the process of a thread, from /proc/TID/status; the thread itself if that is not readable.
func (t *Tree) Leader(tid int) int {
	b, err := t.Read("proc/"+strconv.Itoa(tid)+"/status", nil)
	if err != nil {
		return tid
	}
	if pid, err := strconv.Atoi(StatusField(b, "Tgid")); err == nil && pid > 0 {
		return pid
	}
	return tid
}

// StatusField returns the trimmed value of a line of /proc/PID/status; empty if missing.
func StatusField(b []byte, name string) string {
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// ParseNetdevs parses the names in /proc/net/dev: two header lines, then lines that begin with the name and a colon.
func ParseNetdevs(b []byte) (out []string) {
	for line := range bytes.Lines(b) {
		if name, _, ok := strings.Cut(string(line), ":"); ok {
			out = append(out, strings.TrimSpace(name))
		}
	}
	return out
}
