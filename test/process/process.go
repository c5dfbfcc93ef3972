// Package process reads kernel statistics of a process.
package process

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU returns the run time of all live threads, in nanoseconds (proc/PID/task/TID/schedstat: nanoseconds run, waited,
// slices).
func CPU(pid int) (sum time.Duration, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("no schedstat of process %d: %w", pid, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		ran, _, _ := strings.Cut(string(b), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", f, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// Memory is the resident memory of a process in bytes (proc/PID/status).
type Memory struct {
	All  int64 // VmRSS
	Anon int64 // RssAnon: heap and stacks; the rest are pages of files, including the program
}

// Resident reads the memory of a process.
func Resident(pid int) (m Memory, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	defer func() { _ = f.Close() }()
	s := bufio.NewScanner(f)
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), ":")
		to := map[string]*int64{"VmRSS": &m.All, "RssAnon": &m.Anon}[name]
		if to == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
		if err != nil {
			return m, fmt.Errorf("%s of process %d: %w", name, pid, err)
		}
		*to = kib << 10
	}
	return m, s.Err()
}

// Files returns the number of open descriptors of a process.
func Files(pid int) (int, error) {
	d, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(d), err
}
