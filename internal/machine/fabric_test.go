package machine

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/mad"
)

// TestFabricPort: a subnet is swept from the port of the earlier sweeps, or from the selected one.
func TestFabricPort(t *testing.T) {
	const active, down = "4: ACTIVE", "1: DOWN"
	first := umad.MADPort{Device: "mlx5_0", Port: 1, GUID: "0:0"}
	for _, tt := range []struct {
		name   string
		states []string
		before umad.MADPort
		device string
		want   string // that is asked for, or the error
	}{
		{"nothing was seen", []string{active, active}, umad.MADPort{}, "", "/0"},
		{"as before", []string{active, active}, first, "", "mlx5_0/1"},
		{"another is better", []string{"2: INIT", active}, first, "", "mlx5_0/1"},
		{"another has a link", []string{down, active}, first, "", "mlx5_0/1 of node 0:0, the port of earlier sweeps, has no link; another port may be in another fabric: select the port to sweep from with --fabric.device"},
		{"a device is named", []string{down, active}, first, "mlx5_1", "mlx5_1/0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			f := FabricConfig{
				Device: tt.device, Open: func(_ rooted.Paths, device string, port int) (mad.Transport, umad.MADPort, error) {
					got = fmt.Sprintf("%s/%d", device, port)
					return nil, umad.MADPort{}, nil
				},
			}
			if _, _, err := f.openPort(rooted.Paths{RootFS: hosttest.InfiniBandPorts(t, tt.states...)}, tt.before); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestFabricBeforeItsFirstSweep: until a sweep has a result, nothing that an earlier run found has ended.
func TestFabricBeforeItsFirstSweep(t *testing.T) {
	a, err := capture.Load("../cli/testdata/fabric-ok.txtar", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.Play(a, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Seek(p.Last()); err != nil {
		t.Fatal(err)
	}
	x := &Fabric{clock: time.Now, Monitor: &fabric.Monitor{
		Memory: fabric.NewMemory(fabric.Data{}), Logger: slog.New(slog.DiscardHandler),
		Open: func() (mad.Transport, error) {
			return mad.NewPlayer(func(file string) ([]byte, error) { return p.Read(file, nil) }), nil
		},
	}}
	unread := func() bool {
		picture, err := x.CollectWithin(t.Context(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return picture.Unread["rdma_fabric_nodes"]
	}
	x.Monitor.Run(t.Context(), func(sweep func()) {
		if !unread() {
			t.Error("before the first sweep everything has been read")
		}
		sweep()
		if unread() {
			t.Error("after a sweep something is unread")
		}
	})
}
