package app

import (
	"log/slog"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/rounds"
)

// TestBeside: what stands for an absent metric is a metric, and one that is not absent itself where there is nothing to tell.
func TestBeside(t *testing.T) {
	known := map[string]bool{}
	for _, d := range rounds.Descs {
		known[d.Name] = true
	}
	for _, c := range collector.All(collector.Options{}) {
		for _, d := range c.Descs {
			known[d.Name] = true
		}
	}
	all := beside()
	if len(all) == 0 {
		t.Fatal("none")
	}
	for name, other := range all {
		if !known[other] || all[other] != "" {
			t.Errorf("%s: %s", name, other)
		}
	}
}

// TestHealthyIsJudged: what is told only where it is so is judged on a machine where it is not.
func TestHealthyIsJudged(t *testing.T) {
	j := judged(t, "dgx-h100-ib")
	for _, name := range []string{"RDMACounterSaturated", "RDMAReadStuck", "RDMADriverMismatch", "RDMAPKeyMissing"} {
		if !j[name] {
			t.Errorf("%s is not judged", name)
		}
	}
	for _, name := range []string{"RDMADeviceHot", "RDMAPCIeErrors"} {
		if j[name] {
			t.Errorf("%s is judged without data", name)
		}
	}
}

// judged tells of the alerts whether they are judged in the last round of a fixture.
func judged(t *testing.T, name string) map[string]bool {
	t.Helper()
	m, sched := open(t, fixture(name))
	j, err := newJudge(m, sched, slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, j.close()) }()
	for _, at := range m.player.Times() {
		must(t, j.round(t.Context(), at))
	}
	out := map[string]bool{}
	for _, r := range j.engine.Rules() {
		out[r.Name] = out[r.Name] || r.Judged
	}
	return out
}
