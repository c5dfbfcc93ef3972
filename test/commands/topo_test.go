package commands_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/internal/cli"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/topo"
	"rdma_exporter/test/machines"
)

// drawn returns the output of topo for a recorded machine.
func drawn(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Run(t.Context(), append([]string{"--replay=" + machines.Fixture(name), "topo"}, args...), &out,
		&errs); code != command.OK {
		t.Fatalf("%s: exit code %d: %s", name, code, errs.String())
	}
	return out.Bytes()
}

// replayTime is a time of day, by the clock of the replay.
var replayTime = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`)

func TestTopo(t *testing.T) {
	for _, name := range []string{
		"dgx-h100-ib", "hgx-h200-fresh", "dgx-spark-ok", "gb200-c2c", "vm-passthrough", "homelab-t4", "acs-on", "gen4-slot",
		"pcie-width-loss", "no-peermem-no-dmabuf", "gdr-dmabuf-open-ok", "gdr-ebpf-cache-ok", "gdr-ebpf-mixed",
		"inference-stacks", "inference-no-dmabuf", "inference-efa", "gb200-imex-missing",
		"mi300x-bnxt-ok", "mi300x-ionic-ok", "mi300x-not-ready", "sriov-vf", "rxe-siw", "no-rdma", "h200-vm",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machines.Golden(t, "topo/"+name+".txt", replayTime.ReplaceAll(drawn(t, name), []byte("TIME")))
		})
	}
	machines.Golden(t, "topo/acs-on.json", drawn(t, "acs-on", "--json"))
}

// TestTopoWhatIf: another NCCL and other settings make another verdict.
func TestTopoWhatIf(t *testing.T) {
	for _, c := range []struct {
		name, machine string
		args          []string
		reason        string
	}{
		{"C2C", "gb200-c2c", nil, "direct_c2c"},
		{"C2C not used by NCCL 2.25", "gb200-c2c", []string{"--nccl-version=2.25.1"}, "c2c_not_used"},
		{"C2C set by the job", "gb200-c2c", []string{"--nccl-version=2.26.2", "--nccl-env=NCCL_NET_GDR_C2C=1"}, "direct_c2c"},
		{"GDR level", "homelab-t4", []string{"--nccl-env=NCCL_NET_GDR_LEVEL=PHB"}, "gpu_driver_proprietary"},
		{"HCA excluded", "acs-on", []string{"--nccl-env=NCCL_IB_HCA=^mlx5_0"}, "beyond_host_bridge"},
		{"GDR read disabled", "acs-on", []string{"--nccl-env=NCCL_NET_GDR_READ=0"}, "gdr_read_disabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m topo.Machine
			if err := json.Unmarshal(drawn(t, c.machine, append(c.args, "--json")...), &m); err != nil {
				t.Fatal(err)
			}
			reasons := ""
			for _, g := range m.GPUs {
				reasons += g.Reason + " "
			}
			if !strings.Contains(reasons, c.reason) {
				t.Errorf("%s %q: %s, want %s", c.machine, c.args, reasons, c.reason)
			}
		})
	}
}
