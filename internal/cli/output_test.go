package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"rdma_exporter/test/machines"
)

// full is a writer to a full disk.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestUnwritableOutput: a command whose output is lost does not end with the exit code of success.
func TestUnwritableOutput(t *testing.T) {
	for command, want := range map[string]int{
		"check":                3,
		"check --json":         3,
		"check --drain":        3,
		"check --setup":        3,
		"topo":                 2,
		"topo --json":          2,
		"job":                  2,
		"optics":               2,
		"optics --json":        2,
		"expect list":          2,
		"inventory list":       2,
		"runbook":              2,
		"runbook RDMAPortDown": 2,
		"rules --set=node":     2,
		"capture --output=-":   2,
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(command)
			if args[0] != "runbook" && args[0] != "rules" {
				args = append(args, "--replay="+machines.Fixture("dgx-h100-ib"))
			}
			var stderr bytes.Buffer
			code := Run(context.Background(), args, full{}, &stderr)
			if code != want || !strings.Contains(stderr.String(), errFull.Error()) {
				t.Errorf("exit code %d, want %d: %s", code, want, stderr.String())
			}
		})
	}
}
