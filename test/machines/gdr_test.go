//go:build !race

package machines_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/machines"
)

// noMechanism are the reasons that mean a missing mechanism for NICs to access GPU memory, which can be fixed.
var noMechanism = []gdr.Reason{
	gdr.PeermemNotLoaded, gdr.PeermemInvisible, gdr.GPUWithoutDMABUF, gdr.DriverProprietary, gdr.DriverOld,
	gdr.KernelOld, gdr.NICDriverLacks, gdr.DMABUFDisabled, gdr.KernelWithoutP2P, gdr.SmallBAR,
}

// TestGPUDirectAlertHasTheReasons: the alert on a mechanism that is missing has each reason of that.
func TestGPUDirectAlertHasTheReasons(t *testing.T) {
	m, sched := machines.Open(t, machines.Fixture("no-rdma"))
	j, err := verdict.New(m, sched, machines.Builtin(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	expr := ""
	for _, r := range j.Engine.RecordingRules() {
		if r.Name == "gpu:rdma_gdr:no_mechanism" {
			expr = r.Expr
		}
	}
	_, listed, _ := strings.Cut(expr, `reason=~"`)
	listed, _, _ = strings.Cut(listed, `"`)
	in := map[string]bool{}
	for slug := range strings.SplitSeq(listed, "|") {
		in[slug] = true
	}
	for _, r := range gdr.Reasons() {
		if in[string(r)] != slices.Contains(noMechanism, r) {
			t.Errorf("%s: in the rule: %v", r, in[string(r)])
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
