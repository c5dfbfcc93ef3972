package infiniband

import (
	"fmt"
	"testing"

	"rdma_exporter/internal/pci"
)

func TestWithoutDevice(t *testing.T) {
	cx7 := [5]string{"0x020700", "0x15b3", "0x1021", "0x15b3", "0x0041"}
	cx6 := [5]string{"0x020000", "0x15b3", "0x101d", "0x15b3", "0x0016"}
	bound := nicFunction{ids: cx7, kind: pci.RDMAOnly, driver: "mlx5_core", place: "/00.0", rdma: true}
	function := func(ids [5]string, kind pci.RDMAKind, driver string) nicFunction {
		return nicFunction{address: "0000:2b:00.0", ids: ids, kind: kind, driver: driver, place: "/00.0"}
	}
	for name, c := range map[string]struct {
		all   []nicFunction
		apart bool
		want  string
	}{
		"all have one":               {[]nicFunction{bound, bound}, false, "[]"},
		"like one, without driver":   {[]nicFunction{bound, function(cx7, pci.RDMAOnly, "")}, false, "[0000:2b:00.0 true]"},
		"like one, given to a guest": {[]nicFunction{bound, function(cx7, pci.RDMAOnly, "vfio-pci")}, false, "[]"},
		"unlike, without driver":     {[]nicFunction{bound, function(cx6, pci.RDMAEthernet, "")}, false, "[0000:2b:00.0 false]"},
		"unlike, an Ethernet NIC":    {[]nicFunction{bound, function(cx6, pci.RDMAEthernet, "mlx5_core")}, false, "[]"},
		"unlike, made for RDMA": {
			[]nicFunction{bound, function([5]string{"0x020700", "0x15b3", "0x101b"}, pci.RDMAOnly, "mlx5_core")},
			false,
			"[0000:2b:00.0 false]",
		},
		"its device may be in another namespace": {
			[]nicFunction{bound, function([5]string{"0x020700", "0x15b3", "0x101b"}, pci.RDMAOnly, "mlx5_core")}, true, "[]",
		},
		"its port is in a bond": {
			[]nicFunction{bound, {address: "0000:2b:00.1", ids: cx7, kind: pci.RDMAOnly, driver: "mlx5_core", member: true}},
			false,
			"[]",
		},
		"no RDMA": {[]nicFunction{bound, function([5]string{"0x020000", "0x8086", "0x1572"}, "", "")}, false, "[]"},
		"IDs unknown, at the place of three": {
			[]nicFunction{bound, bound, bound, function([5]string{1: "0x15b3"}, "", "")}, false, "[0000:2b:00.0 true]",
		},
		"IDs unknown, at the place of two": {[]nicFunction{bound, bound, function([5]string{1: "0x15b3"}, "", "")}, false, "[]"},
	} {
		var found []string
		for _, f := range withoutDevice(c.all, c.apart) {
			found = append(found, fmt.Sprint(f.PCIAddress, " ", f.Like))
		}
		if got := fmt.Sprint(found); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
