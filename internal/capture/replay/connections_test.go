package replay

import (
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/qp"
)

func TestConnections(t *testing.T) {
	want := []qp.Connection{
		{QPN: 17, Port: 1, PID: 4711, Peer: "0000:0000:0000:0000:0000:ffff:0a00:0011"},
		{QPN: 19, Port: 2, Peer: "fe80:0000:0000:0000:b83f:d203:00ab:cde7"},
	}
	text := answer.Encode(want)
	if got := string(text); got != "17: port=1 pid=4711 peer="+want[0].Peer+"\n19: port=2 pid=0 peer="+want[1].Peer+"\n" {
		t.Errorf("%q", got)
	}
	a, err := capture.Parse([]byte("-- capture.json --\n{\"version\":1,\"rounds\":[\"0s\"]}\n-- " +
		answer.ConnectionsOf("mlx5_0") + " --\n" + string(text) + "-- rdma/mlx5_1/connections !EOPNOTSUPP --\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Play(a, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rec := NewRecorder(p.Host())
	if got, err := rec.Host().RDMA.Connections(t.Context(), "mlx5_0"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := rec.Host().RDMA.Connections(t.Context(), "mlx5_1"); access.ReasonOf(err) != access.Unsupported {
		t.Errorf("%v", err)
	}
	rec.EndRound(0)
	if got := rec.Archive(capture.Meta{}).Rounds[0].Entries; len(got) != 2 || string(got[0].Data) != string(text) ||
		got[1].Kind != capture.Error {
		t.Errorf("%+v", got)
	}
}
