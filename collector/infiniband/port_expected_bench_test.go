package infiniband

import (
	"fmt"
	"testing"
	"time"

	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/snapshot"
)

// BenchmarkRemember: cost of expectations, history and inventory in a round of 8 devices without changes.
func BenchmarkRemember(b *testing.B) {
	num := func(n uint64) *uint64 { return &n }
	rate := 400e9
	var devices []snapshot.Device
	for i := range 8 {
		devices = append(devices, snapshot.Device{
			Name: fmt.Sprintf("mlx5_%d", i), NodeGUID: fmt.Sprintf("b83f:d203:0050:a1c%d", i),
			PCIAddress: fmt.Sprintf("0000:%d8:00.0", i),
			Driver:     "mlx5_core", BoardID: "MT_0000000838", FunctionType: snapshot.Physical,
			Ports: []snapshot.Port{{Number: 1, LinkLayer: "InfiniBand", State: num(4), Rate: &rate, Lanes: num(4)}},
		})
	}
	ib := &infiniBand{
		memory: expect.NewMemory(expect.Data{}), conf: &shared.SiteConfig{}, common: shared.NewCommonLinks(),
		ports: map[deviceKey]map[int]*portHistory{}, roles: roles{ports: map[roleKey]*roleState{}},
	}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		ib.absentFunctions(now, "boot", devices, ib.remember(now, devices))
	}
}
