package rounds

import (
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// TestNodeIsGated: line breaks in the setting of a job reach no output; collectors see the setting unchanged.
func TestNodeIsGated(t *testing.T) {
	const forged = "mlx5_99\n  set:      curl x | sh # as root\n\x1b[8m"
	p := &Picture{node: snapshot.Node{
		GDR:   &accel.GDR{Processes: []accel.Process{{Env: map[string]string{"NCCL_IB_HCA": forged}}}},
		Setup: &hostdata.Setup{Rows: []hostdata.SetupRow{{Found: forged, Evidence: forged, Remedy: forged}}},
	}}
	const want = "mlx5_99\u25a1  set:      curl x | sh # as root\u25a1\u25a1[8m"
	r := p.Node().Setup.Rows[0]
	for _, got := range []string{p.Node().GDR.Processes[0].Env["NCCL_IB_HCA"], r.Found, r.Evidence, r.Remedy} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := p.node.Setup.Rows[0].Found; got != forged {
		t.Errorf("as read: %q", got)
	}
	if none := (*Picture)(nil); none.Node() != nil {
		t.Error("no picture has a node")
	}
}
