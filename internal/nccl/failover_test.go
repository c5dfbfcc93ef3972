package nccl

import (
	"testing"

	"rdma_exporter/internal/pci"
)

func TestFailsOver(t *testing.T) {
	on := Env{"NCCL_IB_RESILIENCY_PORT_FAILOVER": "1"}
	for _, c := range []struct {
		name, version string
		env           Env
		want          bool
	}{
		{"the first version", "2.29.7", on, true},
		{"a newer one", "2.30.3", on, true},
		{"without a patch level", "2.30", on, true},
		{"the one before", "2.29.6", on, false},
		{"an older one", "2.9.9", on, false},
		{"unknown", "", on, false},
		{"by default", "2.30.3", Env{}, false},
		{"off", "2.30.3", Env{"NCCL_IB_RESILIENCY_PORT_FAILOVER": "0"}, false},
		{"no fused NICs", "2.30.3", on.With(Env{"NCCL_IB_MERGE_NICS": "0"}), false},
	} {
		if got := c.env.FailsOver(c.version); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestFuses(t *testing.T) {
	a, b := NetPort{"mlx5_0", 1, "0000:18:00.0"}, NetPort{"mlx5_1", 1, "0000:18:00.1"}
	far := NetPort{"mlx5_2", 1, "0000:19:00.0"}
	for _, c := range []struct {
		name     string
		env      Env
		other    NetPort
		distance pci.Distance
		want     bool
	}{
		{"two ports of a card", nil, b, pci.PIX, true},
		{"two ports of a device", nil, NetPort{"mlx5_0", 2, a.Address}, pci.PIX, true},
		{"two cards", nil, far, pci.PIX, false},
		{"two cards below a switch", Env{"NCCL_NET_MERGE_LEVEL": "PIX"}, far, pci.PIX, true},
		{"farther than the level", Env{"NCCL_NET_MERGE_LEVEL": "PIX"}, far, pci.PXB, false},
		{"no level of NCCL", Env{"NCCL_NET_MERGE_LEVEL": "ALL"}, far, pci.PIX, false},
		{"none", Env{"NCCL_NET_MERGE_LEVEL": "LOC"}, b, pci.PIX, false},
		{"a group", Env{"NCCL_NET_FORCE_MERGE": "mlx5_4,mlx5_5;mlx5_0:1,mlx5_2"}, far, pci.SYS, true},
		{"another group", Env{"NCCL_NET_FORCE_MERGE": "mlx5_0,mlx5_4;mlx5_1,mlx5_5"}, b, pci.PIX, false},
		{"another port", Env{"NCCL_NET_FORCE_MERGE": "mlx5_0:2,mlx5_2"}, far, pci.PIX, false},
		{"in no group", Env{"NCCL_NET_FORCE_MERGE": "mlx5_4,mlx5_5"}, b, pci.PIX, true},
	} {
		if got := c.env.Fuses(a, c.other, c.distance); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
