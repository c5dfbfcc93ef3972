package replay

import (
	"errors"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/test/archives"
)

// TestAgentsArePlayedAndRecorded: answers of agents and subnet managers are restored and continue, and are recorded
// unchanged.
func TestAgentsArePlayedAndRecorded(t *testing.T) {
	a := archives.Parse(t, `-- capture.json --
{"version":2,"rounds":["0s","15s"]}
-- subnet/mlx5_0/1/agent/17-1 --
symbol_error: 70000
port_xmit_data: 1000
wide: 1
-- subnet/mlx5_0/1/manager/1 --
state: 3
priority: 14
activity: 10
guid: b83f:d203:00a1:c0de
-- subnet/mlx5_0/1/manager/2 !ETIMEDOUT --
-- +15s/subnet/mlx5_0/1/agent/17-1 --
symbol_error: 70000
port_xmit_data: 1500
wide: 1
-- +15s/subnet/mlx5_0/1/manager/1 --
state: 3
priority: 14
activity: 13
guid: b83f:d203:00a1:c0de
`)
	p := play(t, a)
	h := p.Host()
	recorder := NewRecorder(h)
	subnet := recorder.Host().Subnet
	own := &host.Agent{LID: 17, Port: 1}
	for _, c := range []struct {
		after    time.Duration
		data     uint64
		activity uint64
	}{{0, 1000, 10}, {15 * time.Second, 1500, 13}, {45 * time.Second, 2500, 19}} {
		if err := p.Seek(archives.Start.Add(c.after)); err != nil {
			t.Fatal(err)
		}
		got, err := subnet.Counters(t.Context(), "mlx5_0", 1, own)
		if want := []host.Stat{{Name: "symbol_error", Value: 70000}, {Name: "port_xmit_data", Value: c.data}}; err != nil ||
			!got.Wide || !slices.Equal(got.Stats, want) {
			t.Errorf("%s: %+v %v, want %v", c.after, got, err, want)
		}
		m, err := subnet.Manager(t.Context(), "mlx5_0", 1, 1)
		if err != nil || *m.Activity != c.activity || *m.State != 3 || *m.Priority != 14 || m.GUID != "b83f:d203:00a1:c0de" {
			t.Errorf("%s: %+v %v", c.after, m, err)
		}
		if _, err := subnet.Manager(t.Context(), "mlx5_0", 1, 2); !errors.Is(err, syscall.ETIMEDOUT) {
			t.Error(err)
		}
		if c.after <= 15*time.Second {
			recorder.EndRound(c.after)
		}
	}
	if _, err := subnet.Counters(t.Context(), "mlx5_0", 1, &host.Agent{LID: 18, Port: 1}); !access.IsAbsent(err) {
		t.Error(err)
	}
	if got, want := archives.Format(t, recorder.Archive(a.Meta)), archives.Format(t, a); got != want {
		t.Errorf("recorded:\n%s\nwant:\n%s", got, want)
	}
}

func TestAnswersOfPortSettings(t *testing.T) {
	mtu, lanes := uint64(4096), uint64(4)
	want := host.IBPortSettings{MTU: &mtu, DataVLs: &lanes, VLs: []uint8{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 15}}
	const text = "mtu: 4096\ndata_vls: 4\nvls: 0 1 2 3 0 1 2 3 0 1 2 3 0 1 2 15\n"
	p := play(t,
		archives.Parse(t, "-- capture.json --\n{\"version\":2,\"rounds\":[\"0s\"]}\n-- subnet/mlx5_0/1/settings --\n"+text))
	recorder := NewRecorder(p.Host())
	got, err := recorder.Host().Subnet.PortSettings(t.Context(), "mlx5_0", 1)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := p.PortSettings(t.Context(), "mlx5_1", 1); !access.IsAbsent(err) {
		t.Error(err)
	}
	if got := string(answer.Encode(got)); got != text {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"mtu: x\n", "vls: 0 1\n", "vls: 0 1 2 3 0 1 2 3 0 1 2 3 0 1 2 16\n"} {
		if got, err := answer.Decode[host.IBPortSettings]("x", []byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}
