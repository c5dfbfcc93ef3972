package infiniband

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/snapshot"
)

// The driver of a device without a function: only positive evidence counts.
func TestDriverWithoutFunction(t *testing.T) {
	const real, soft = "sys/devices/platform/x/infiniband/", "sys/devices/virtual/infiniband/"
	for _, c := range []struct {
		name, at, files, driver string
		kind                    snapshot.FunctionType
	}{
		{"rxe7", soft, "-- D/parent --\neth0\n", "rxe", snapshot.Software},
		{"lab", soft, "-- D/node_desc --\nSoftware iWARP stack\n", "siw", snapshot.Software},
		{"rxe7", real, "-- D/parent --\neth0\n", "rxe", snapshot.Software},
		{"a-node-desc", soft, "-- D/node_desc --\nlab-1 siw0\n", "", snapshot.Software},
		{"rocep1s0", real, "-- D/hca_type --\nMT4129\n", "mlx5_core", snapshot.FunctionUnknown},
		{"ibp1s0", real, "-- D/hca_type --\nMT4113\n", "mlx5_core", snapshot.FunctionUnknown},
		{"rocep1s0", real, "-- D/hca_type --\nMT4103\n", "mlx4_core", snapshot.FunctionUnknown},
		{"rocep1s0", real, "-- D/hca_type --\nMT41692\n", "mlx5_core", snapshot.FunctionUnknown},
		{"ib0", real, "-- D/hca_type --\nMT26428\n", "mlx4_core", snapshot.FunctionUnknown},
		{"ib0", real, "-- D/hca_type --\nMT23108\n", "", snapshot.FunctionUnknown},
		{"ib0", real, "-- D/hca_type --\nMT25208 (MT23108 compat mode)\n", "", snapshot.FunctionUnknown},
		{"ib0", real, "-- D/hca_type --\nMT\n", "", snapshot.FunctionUnknown},
		{"mlx5_3", real, "-- D/node_type --\n1: CA\n", "mlx5_core", snapshot.FunctionUnknown},
		{"bnxt_re0", real, "-- D/hca_type --\n0x1760\n", "bnxt_en", snapshot.FunctionUnknown},
		{"efa_0", real, "-- D/node_type --\n7: unspecified\n", "efa", snapshot.FunctionUnknown},
		{"hfi1_0", real, "-- D/node_type --\n1: CA\n", "hfi1", snapshot.FunctionUnknown},
		{"mlx5_bond", real, "-- D/node_type --\n1: CA\n", "", snapshot.FunctionUnknown},
		{"irdma0", real, "-- D/node_type --\n4: RNIC\n", "", snapshot.FunctionUnknown},
	} {
		t.Run(c.name+" "+c.files, func(t *testing.T) {
			r := collectortest.ReadsOf(
				t,
				strings.ReplaceAll(c.files, "D/", c.at+c.name+"/")+"-- "+sysfs.ClassDir+"/"+c.name+" -> ../../"+
					strings.TrimPrefix(c.at, "sys/")+c.name+" --\n",
			)
			d := snapshot.Device{Name: c.name}
			d.FunctionType, d.Path = sysfs.PCIFunction(r, sysfs.ClassDir+"/"+c.name)
			if driver := sysfs.DriverOf(r, &d); driver != c.driver || d.FunctionType != c.kind || d.Path != "" {
				t.Errorf("%q on %q, function %q", driver, d.FunctionType, d.Path)
			}
		})
	}
}

func TestDefaultRoute(t *testing.T) {
	const route = "-- proc/1/net/route --\nIface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	const low = "-- sys/class/net/bond0/lower_eth0 -> ../eth0 --\n-- sys/class/net/bond0/lower_eth1 -> ../eth1 --\n-- sys/class/net/eth0/mtu --\n1500\n-- sys/class/net/eth1/mtu --\n1500\n" +
		"-- sys/class/net/vlan7/lower_bond0 -> ../bond0 --\n"
	for _, c := range []struct {
		name, files string
		want        []string
	}{
		{"none", "-- proc/uptime --\n1 1\n", nil},
		{"plain", route + "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\neth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n" + low, []string{"eth0"}},
		{"the lower metric", route + "eth1\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0\neth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n" + low, []string{"eth0"}},
		{"a VLAN on a bond", route + "vlan7\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" + low, []string{"bond0", "eth0", "eth1", "vlan7"}},
		{"a route that is down", route + "eth0\t00000000\t0101A8C0\t0002\t0\t0\t0\t00000000\t0\t0\t0\n" + low, nil},
		{"odd lines", route + "eth0\neth0\t00000000\t0\tzz\t0\t0\t0\t00000000\n../..\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n", nil},
		{
			"IPv6 alone", "-- proc/1/net/ipv6_route --\n00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n" +
				"00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth1\n" + low,
			[]string{"eth1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := routedNetdevs(collectortest.ReadsOf(t, c.files))
			slices.Sort(got)
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestVirtualFunctions(t *testing.T) {
	const pf = "sys/devices/pci/0000:18:00.0"
	for _, c := range []struct {
		name, tree string
		want       any
	}{
		{"none of eight", "-- " + pf + "/sriov_totalvfs --\n8\n", uint64(0)},
		{"two of eight", "-- " + pf + "/sriov_totalvfs --\n8\n-- " + pf + "/virtfn0 -> ../0000:18:00.1 --\n-- " + pf + "/virtfn1 -> ../0000:18:00.2 --\n", uint64(2)},
		{"all of one", "-- " + pf + "/sriov_totalvfs --\n1\n-- " + pf + "/virtfn0 -> ../0000:18:00.1 --\n", uint64(1)},
		{"no capability", "-- " + pf + "/vendor --\n0x15b3\n", nil},
		{"no number", "-- " + pf + "/sriov_totalvfs --\nmany\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collectortest.ReadsOf(t, c.tree)
			if got := collectortest.Value(readVirtualFunctions(r, pf)); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if len(r.Issues) != 0 {
				t.Error(r.Issues)
			}
		})
	}
}
