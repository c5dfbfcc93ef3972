package replay

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

func TestHolders(t *testing.T) {
	queues := uint64(8)
	want := []host.RDMAHolder{
		{PID: 0, Contexts: 1}, {PID: 4711, Contexts: 2, Regions: 212, RegionBytes: 868220928}, {PID: 4712, QPs: &queues},
	}
	text := answer.Encode(want)
	if got := string(text); got != "0: contexts=1 regions=0 bytes=0\n4711: contexts=2 regions=212 bytes=868220928\n4712: contexts=0 regions=0 bytes=0 qps=8\n" {
		t.Errorf("%q", got)
	}
	a, err := capture.Parse([]byte("-- capture.json --\n{\"version\":1,\"rounds\":[\"0s\"]}\n-- " + holdersPath("mlx5_0") +
		" --\n" + string(text) + "-- rdma/mlx5_1/holders !EINVAL --\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Play(a, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rec := NewRecorder(p.Host())
	if got, err := rec.Host().RDMA.Holders(t.Context(), "mlx5_0", false); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := rec.Host().RDMA.Holders(t.Context(), "mlx5_1", false); access.ReasonOf(err) != access.Invalid {
		t.Errorf("%v", err)
	}
	rec.EndRound(0)
	if got := rec.Archive(capture.Meta{}).Rounds[0].Entries; len(got) != 2 || string(got[0].Data) != string(text) ||
		got[1].Kind != capture.Error {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{
		"x: contexts=1\n", "1: contexts=x\n", "1: queues=1\n", "1: qps=x\n", "1\n", "-1: contexts=1\n",
	} {
		if _, err := answer.Decode[[]host.RDMAHolder]("x", []byte(bad)); !errors.Is(err, access.ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
