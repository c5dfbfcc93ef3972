//go:build e2e

package container

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// waitFor finds the process of the container whose command line has a port.
func waitFor(t *testing.T, port string) (pid int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		names, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil || !strings.HasPrefix(string(b), "/usr/local/bin/rdma_exporter\x00") || !strings.Contains(string(b), ":"+port+"\x00") {
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

// userOf is user and group of a process.
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

// inside runs a command in the container of a process, as its user, as engines run health checks.
func inside(t *testing.T, pid int, command ...string) (string, error) {
	t.Helper()
	args := []string{"--target", strconv.Itoa(pid), "--mount", "--root", "--wd=/", "--setgid=65532", "--setuid=65532", "--"}
	out, err := exec.CommandContext(t.Context(), "nsenter", append(args, command...)...).CombinedOutput()
	return string(out), err
}
