// Package alone runs a test in a separate process.
package alone

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// variable names the test of this process.
const variable = "RDMA_EXPORTER_TEST_ALONE"

// Test runs the test again in a separate process, and reports whether this is that process; otherwise the caller
// returns. Limits apply to a whole process: a file size limit would also apply to the log of go test and fail all tests
// of the package.
func Test(t *testing.T) bool {
	t.Helper()
	return run(t, nil)
}

// Mounting is Test in a process that is root in separate user and mount namespaces, so that it may mount file systems.
func Mounting(t *testing.T) bool {
	t.Helper()
	id := []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	group := []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	return run(t,
		&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: id, GidMappings: group})
}

func run(t *testing.T, attributes *syscall.SysProcAttr) bool {
	t.Helper()
	if os.Getenv(variable) == t.Name() {
		return true
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.SysProcAttr = attributes
	c.Env = append(os.Environ(), variable+"="+t.Name())
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
