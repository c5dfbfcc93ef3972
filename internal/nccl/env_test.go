package nccl

import (
	"fmt"
	"maps"
	"testing"
)

func TestHCAs(t *testing.T) {
	for _, c := range []struct {
		text   string
		device string
		port   int
		want   bool
	}{
		{"", "mlx5_0", 1, true},
		{"mlx5", "mlx5_0", 1, true},
		{"mlx5_1", "mlx5_10", 1, true},
		{"=mlx5_1", "mlx5_10", 1, false},
		{"=mlx5_1", "mlx5_1", 2, true},
		{"mlx5_0:1,mlx5_1:1", "mlx5_1", 2, false},
		{"mlx5_0:1,mlx5_1:1", "mlx5_1", 1, true},
		{"=mlx5_0:1:0:2,mlx5_1::3", "mlx5_0", 1, true},
		{"=mlx5_0:1:0:2,mlx5_1::3", "mlx5_0", 2, false},
		{"=mlx5_0:1:0:2,mlx5_1::3", "mlx5_1", 2, true},
		{"^mlx5_bond", "mlx5_bond_0", 1, false},
		{"^mlx5_bond", "mlx5_0", 1, true},
		{"^=mlx5_1", "mlx5_10", 1, true},
		{"^=mlx5_1", "mlx5_1", 1, false},
		{",", "mlx5_1", 1, true},
	} {
		t.Run(fmt.Sprintf("%q %s:%d", c.text, c.device, c.port), func(t *testing.T) {
			if got := (Env{"NCCL_IB_HCA": c.text}).AllowsPort(c.device, c.port); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestConf(t *testing.T) {
	got := ParseConf("# NCCL_IB_HCA=no\nNCCL_IB_HCA=mlx5_0,mlx5_1\r\n\nNCCL_NET_GDR_LEVEL=PIX\nNCCL_NET_GDR_LEVEL=SYS\nnonsense\n")
	if want := (Env{"NCCL_IB_HCA": "mlx5_0,mlx5_1", "NCCL_NET_GDR_LEVEL": "PIX"}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if both := (Env{"NCCL_NET_GDR_LEVEL": "PHB"}).With(got); both["NCCL_NET_GDR_LEVEL"] != "PHB" ||
		both["NCCL_IB_HCA"] == "" {
		t.Errorf("%v", both)
	}
	if n := (Env{"A": "0x10", "B": "ten"}).Integer("B", 7) + (Env{"A": "0x10"}).Integer("A", 0); n != 23 {
		t.Errorf("%d", n)
	}
}

func FuzzParseConf(f *testing.F) {
	f.Add("NCCL_DEBUG=INFO\n#x\n=\n")
	f.Fuzz(func(t *testing.T, text string) {
		ParseConf(text).GDRLevel()
		ParseConf(text).AllowsPort("mlx5_0", 1)
	})
}
