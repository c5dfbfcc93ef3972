// Package alone runs a test in a separate process.
package alone

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// variable names the test of this process.
const variable = "RDMA_EXPORTER_TEST_ALONE"

// Test runs the test again in a separate process, and reports whether this is that process; otherwise the caller returns. Limits apply to a
// whole process: a file size limit would also apply to the log of go test and fail all tests of the package.
func Test(t *testing.T) bool {
	t.Helper()
	if os.Getenv(variable) == t.Name() {
		return true
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), variable+"="+t.Name())
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
