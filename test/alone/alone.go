// Package alone gives a test a process of its own.
package alone

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// variable names the test that this process is for.
const variable = "RDMA_EXPORTER_TEST_ALONE"

// Test runs the test again in a process of its own and says whether this one is it; in the other nothing is left to do. A limit is of a
// whole process: one on its files would hold for the log that go test keeps of what a test opens, and fail all tests of the package.
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
