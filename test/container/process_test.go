//go:build e2e

package container

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/program"
)

// waitFor finds the container process with an address in its command line.
func waitFor(t *testing.T, address string) (pid int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		names, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil || !strings.HasPrefix(string(b), "/usr/bin/rdma_exporter\x00") ||
				!strings.Contains(string(b), "="+address+"\x00") {
				continue
			}
			if pid, err = strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
				return pid
			}
		}
	}
	t.Fatal("the program does not start in the container")
	return 0
}

var ids = regexp.MustCompile(`(?m)^[UG]id:\t(\d+)`)

// userOf returns the user and group of a process.
func userOf(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := ids.FindAllStringSubmatch(string(b), 2)
	if len(m) != 2 {
		t.Fatalf("%s", b)
	}
	return m[0][1] + ":" + m[1][1]
}

// inside runs a command in the container of a process, as its user, as container engines run health checks.
func inside(t *testing.T, pid int, command ...string) (string, error) {
	t.Helper()
	args := []string{
		"--target", strconv.Itoa(pid), "--mount", "--root", "--wd=/", "--setgid=65532", "--setuid=65532", "--",
	}
	out, err := exec.CommandContext(t.Context(), program.Installed(t, "nsenter", packages), append(args, command...)...).
		CombinedOutput()
	return string(out), err
}
