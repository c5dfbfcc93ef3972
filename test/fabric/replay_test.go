//go:build e2e

package fabric

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the recordings that internal/cli replays")

// recordings are the fabrics that internal/cli replays: before the last two of three sweeps, each is changed.
var recordings = map[string]struct {
	change func(t *testing.T, s *subnet)
	code   int
	want   []string
}{
	"ok": {func(*testing.T, *subnet) {}, 0, []string{": ok: nothing is wrong: 5 switches, 9 adapters, 15 links"}},
	"faults": {
		func(t *testing.T, s *subnet) {
			s.set(t, "leaf001", "4", "width", "1") // to a spine; the subnet manager stays stopped
			s.do(t, "PerformanceSet %q[3] PortCounters.SymbolErrorCounter=500", leafName(2))
			s.do(t, "Unlink %q[2]", leafName(0))
		}, 2, []string{
			"RDMANoSubnetManager", "leaf000/2 to node0001 mlx5_0/1", "RDMAFabricLinkErrors", "leaf002/3 to node0008 mlx5_0/1",
			"lid=$(ibnetdiscover",
		},
	},
}

// TestReplay: what a capture of a fabric has recorded has the findings that the fabric had.
func TestReplay(t *testing.T) {
	for name, r := range recordings {
		t.Run(name, func(t *testing.T) {
			s := simulate(t, tree{spines: 2, leaves: 3, hosts: 3})
			s.manage(t)
			file := filepath.Join(s.dir, "fabric-"+name+".txtar")
			capture := exec.Command("/proc/self/exe", "capture", "--fabric", "--fabric.device="+hostName(8),
				"--state.dir="+s.dir+"/state", "--every=30s", "--for=1m", "-o", file)
			capture.Env = append(s.environment(), program+"=1", underFilter)
			s.run(t, capture, "capture")
			time.Sleep(5 * time.Second) // of its first sweep
			r.change(t, s)
			must(t, capture.Wait())
			if s.sm != nil {
				must(t, s.sm.Process.Signal(syscall.SIGCONT))
			}
			check := exec.Command("/proc/self/exe", "check", "--fabric", "--replay="+file, "--verbose")
			check.Env = append(s.environment(), program+"=1", underFilter)
			out, err := check.CombinedOutput()
			if code := check.ProcessState.ExitCode(); code != r.code {
				t.Errorf("exit code %d, want %d: %v", code, r.code, err)
			}
			t.Logf("%s", out)
			for _, want := range r.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("without %q", want)
				}
			}
			if *update {
				must(t, os.WriteFile("../../internal/cli/testdata/fabric-"+name+".txtar", []byte(read(t, file)), 0o644))
			}
		})
	}
}
