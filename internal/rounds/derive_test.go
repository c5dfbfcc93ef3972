package rounds

import (
	"context"
	"strings"
	"testing"

	"rdma_exporter/collector"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// TestDerive: Derive gets the complete node, in any order of the collectors, and a panic in it costs only its own
// samples.
func TestDerive(t *testing.T) {
	derives := (&counting{}).collector("derives")
	derives.Derive = func(n *snapshot.Node, s collector.Sink) {
		n.Setup = &hostdata.Setup{Rows: make([]hostdata.SetupRow, len(n.InfiniBand.Devices))}
		s.Emit(probe, float64(len(n.InfiniBand.Devices)), "derived")
	}
	reads := (&counting{do: func(_ context.Context, n *snapshot.Node) error {
		n.InfiniBand = &snapshot.InfiniBand{Devices: make([]snapshot.Device, 3)}
		return nil
	}}).collector("reads")
	s := scheduler(t, 0, derives, reads)
	for range 2 {
		p, err := s.Collect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := `probe{device="derived"} 3`; !strings.Contains(textOf(p), want) || len(p.Node().Setup.Rows) != 3 {
			t.Errorf("lacks %s, %d rows\n%s", want, len(p.Node().Setup.Rows), textOf(p))
		}
	}
	p, err := s.Collect(t.Context(), []string{"derives"}) // without the section that it needs
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(textOf(p), `probe{device="derives"} 1`) || strings.Contains(textOf(p), `"derived"`) {
		t.Errorf("%s", textOf(p))
	}
	p, err = s.Collect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := `rdma_scrape_errors_total{collector="derives",reason="panic"} 1`; !strings.Contains(textOf(p), want) {
		t.Errorf("lacks %s\n%s", want, textOf(p))
	}
}
