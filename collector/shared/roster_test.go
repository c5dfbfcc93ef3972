package shared

import (
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/played"
)

// TestDeviceLimit: physical functions and virtual functions of guests come first, the others in the order of their
// numbers.
func TestDeviceLimit(t *testing.T) {
	h := played.Machine(t, collectortest.ManyFunctions)
	for limit, want := range map[int]string{
		0: "mlx5_0 mlx5_10 mlx5_3 mlx5_4 mlx5_9", 5: "mlx5_0 mlx5_10 mlx5_3 mlx5_4 mlx5_9",
		4: "mlx5_0 mlx5_4 mlx5_3 mlx5_9", 3: "mlx5_0 mlx5_4 mlx5_3", 1: "mlx5_0",
	} {
		ro := NewRoster(Options{MaxDevices: limit})
		for range 2 { // the second is the kept result
			var n snapshot.Node
			roster, err := ro.Of(h, &n)
			if got := strings.Join(roster.Names, " "); err != nil || got != want ||
				len(n.Reduced.LeftOut) != 5-len(roster.Names) {
				t.Errorf("limit %d: %s, left out %v; want %s", limit, got, n.Reduced.LeftOut, want)
			}
		}
	}
}
