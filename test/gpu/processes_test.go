//go:build gpu

package gpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var capturedProcesses = regexp.MustCompile(`(?m)^processes: (.*)$`)

// TestProcessesEqualThoseOfNvidiaSMI: NVML reports the same processes of each GPU to both, with PIDs of the same
// namespace.
func TestProcessesEqualThoseOfNvidiaSMI(t *testing.T) {
	defer compute(t)()
	gpus, _, _ := smi(t)
	archive := filepath.Join(t.TempDir(), "gpu.txtar")
	cmd := exec.CommandContext(t.Context(), program(t), "capture", "-o", archive, "--collector.disable-defaults",
		"--collector.gpu", "--state.dir="+t.TempDir())
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range gpus {
		_, entry, _ := strings.Cut(string(b), fmt.Sprintf("-- nvml/gpu/%d --\n", i))
		entry, _, _ = strings.Cut(entry, "\n-- ")
		line := capturedProcesses.FindStringSubmatch(entry)
		if line == nil {
			t.Errorf("GPU %d: NVML tells of no processes", i)
			continue
		}
		have := strings.TrimSpace(line[1])
		t.Logf("GPU %d: %q, nvidia-smi %q", i, have, g["processes/process_info/pid"])
		if want := g["processes/process_info/pid"]; have != want {
			t.Errorf("GPU %d: %q, nvidia-smi says %q", i, have, want)
		}
	}
}
