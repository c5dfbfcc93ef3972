package modules

import (
	"fmt"
	"testing"
)

func TestFlavour(t *testing.T) {
	for _, c := range []struct {
		name, taint string
		ofed        bool
		want        string
	}{
		{"mlx5_core", "", false, "in-tree"},
		{"mlx5_core", "", true, "in-tree"},
		{"mlx5_core", "OE", true, "ofed"},
		{"mlx5_ib", "O", true, "ofed"},
		{"ib_core", "OE", true, "ofed"},
		{"rdma_cm", "OE", true, "ofed"},
		{"iw_cm", "OE", true, "ofed"},
		{"mlx_compat", "OE", true, "ofed"},
		{"mlx5_core", "OE", false, "out-of-tree"},
		{"irdma", "OE", true, "out-of-tree"},
		{"bnxt_re", "OE", false, "out-of-tree"},
		{"efa", "E", false, "in-tree"}, // unsigned alone is no sign of another source
		{"mlx5_core", "PE", true, "in-tree"},
	} {
		t.Run(fmt.Sprintf("%s %q ofed=%v", c.name, c.taint, c.ofed), func(t *testing.T) {
			if got := flavour(c.name, c.taint, c.ofed); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
