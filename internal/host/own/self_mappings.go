package own

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// UnmapProgram unmaps the pages of the program file, so that those used only while the program started or long ago are
// no longer resident. Using one again is a page fault, a minor one while the page cache has it. Mappings that are
// writable or have pages of their own (relocations, breakpoints, uprobes) stay as they are.
// Sources: proc_pid_smaps(5), madvise(2) MADV_DONTNEED.
func UnmapProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	return unmapFile(program)
}

func unmapFile(file string) error {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	for _, m := range cleanMappings(string(smaps), file) {
		if _, _, e := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); e != 0 {
			err = errors.Join(err, os.NewSyscallError("madvise", e))
		}
	}
	return err
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// cleanMappings are the mappings of a file in /proc/PID/smaps that are not writable and have only pages of the file.
func cleanMappings(smaps, file string) (clean []mapping) {
	var m mapping
	var ofFile bool
	for line := range strings.Lines(smaps) {
		first, rest, _ := strings.Cut(line, " ")
		switch key, isKey := strings.CutSuffix(first, ":"); {
		case !isKey:
			_, _ = fmt.Sscanf(first, "%x-%x", &m.start, &m.end) // written by the kernel
			ofFile = strings.HasPrefix(rest, "r-") && strings.HasSuffix(rest, " "+file+"\n")
		case !ofFile:
		case key == "Anonymous" && strings.TrimSpace(rest) == "0 kB":
			clean = append(clean, m)
		case key == "Swap" && strings.TrimSpace(rest) != "0 kB":
			clean = slices.DeleteFunc(clean, func(c mapping) bool { return c == m })
		}
	}
	return clean
}
