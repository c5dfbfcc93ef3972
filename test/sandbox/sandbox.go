//go:build e2e

// Package sandbox runs a test program under the system call filter of a unit. A call outside the filter kills the
// program, so that a fallback in the program does not hide it.
package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filter has the numbers of the permitted calls, until the program runs under them.
const filter = "RDMA_EXPORTER_TEST_SYSCALLS"

// Environ returns an entry for the environment of a program that calls Enter: the filter of a unit.
func Environ(unit string) (string, error) {
	calls, err := Calls(unit)
	if err != nil {
		return "", err
	}
	number, err := callNumbers()
	if err != nil {
		return "", err
	}
	var list []string
	for _, call := range calls {
		if n, ok := number[call]; ok {
			list = append(list, strconv.FormatUint(uint64(n), 10))
		}
	}
	return filter + "=" + strings.Join(list, ","), nil
}

// Enter starts this program again under the filter of its environment. It returns in that program, and where there is
// no filter.
func Enter() error {
	list := os.Getenv(filter)
	if list == "" {
		return nil
	}
	var numbers []uint32
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return err
		}
		numbers = append(numbers, uint32(n))
	}
	runtime.LockOSThread() // the filter of this thread is that of the new program
	if err := install(numbers); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	if err := os.Unsetenv(filter); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// Calls returns the system calls that a unit permits: SystemCallFilter= in order, "~" removes (systemd.exec).
func Calls(unit string) ([]string, error) {
	b, err := os.ReadFile(unit)
	if err != nil {
		return nil, err
	}
	filters, err := filterGroups()
	if err != nil {
		return nil, err
	}
	permitted := map[string]bool{}
	filters.each("@default", func(call string) { permitted[call] = true }) // of every list
	found := false
	for line := range strings.Lines(string(b)) {
		list, ok := strings.CutPrefix(strings.TrimSpace(line), "SystemCallFilter=")
		list, remove := strings.CutPrefix(list, "~")
		for name := range strings.FieldsSeq(list) {
			found = found || ok
			if ok {
				filters.each(name, func(call string) { permitted[call] = !remove })
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("%s has no SystemCallFilter", unit)
	}
	maps.DeleteFunc(permitted, func(_ string, ok bool) bool { return !ok })
	return slices.Sorted(maps.Keys(permitted)), nil
}

// groups are the sets of systemd: their calls, and other sets.
type groups map[string][]string

func filterGroups() (groups, error) {
	out, err := exec.Command("systemd-analyze", "--no-pager", "syscall-filter").Output()
	if err != nil {
		return nil, fmt.Errorf("systemd-analyze syscall-filter: %w", err)
	}
	all, group := groups{}, ""
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		line := s.Text()
		switch name := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "@"):
			group = name
		case line == "" || strings.HasPrefix(name, "#"):
		case strings.HasPrefix(line, " ") && group != "":
			all[group] = append(all[group], name)
		default:
			group = "" // listed after the groups: calls of the kernel without one
		}
	}
	return all, nil
}

func (g groups) each(name string, f func(call string)) {
	if !strings.HasPrefix(name, "@") {
		f(name)
		return
	}
	for _, member := range g[name] {
		g.each(member, f)
	}
}

// callNumbers returns the system call numbers of this architecture, from golang.org/x/sys/unix. Calls of other
// architectures have none.
func callNumbers() (map[string]uint32, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "zsysnum_linux_"+runtime.GOARCH+".go"))
	if err != nil {
		return nil, err
	}
	all := map[string]uint32{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[0], "SYS_") {
			n, err := strconv.ParseUint(f[2], 10, 32)
			if err != nil {
				return nil, err
			}
			all[strings.ToLower(f[0][len("SYS_"):])] = uint32(n)
		}
	}
	return all, nil
}

// architectures by AUDIT_ARCH_* (linux/audit.h).
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in struct seccomp_data.
const (
	dataNumber = 0
	dataArch   = 4
)

// install permits these calls to this thread and its descendants, and kills the process at another one.
func install(numbers []uint32) error {
	const load, equal, result = unix.BPF_LD | unix.BPF_W |
		unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	program := []unix.SockFilter{
		{Code: load, K: dataArch},
		{Code: equal, Jt: 1, K: architectures[runtime.GOARCH]},
		{Code: result, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: dataNumber},
	}
	for _, n := range numbers {
		program = append(program, unix.SockFilter{Code: equal, Jf: 1, K: n},
			unix.SockFilter{Code: result, K: unix.SECCOMP_RET_ALLOW})
	}
	program = append(program, unix.SockFilter{Code: result, K: unix.SECCOMP_RET_KILL_PROCESS})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	list := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&list)), 0, 0)
}
