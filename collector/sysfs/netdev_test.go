package sysfs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/counters"
	"rdma_exporter/internal/snapshot"
)

func netdevNames(nds []snapshot.Netdev) string {
	var out []string
	for _, nd := range nds {
		out = append(out, nd.Name)
	}
	return strings.Join(out, " ")
}

// function is the part of a tree with the netdevs of the PCI function of mlx5_0.
const function = `-- sys/class/infiniband/mlx5_0 -> ../../devices/pci/0000:18:00.0/infiniband/mlx5_0 --
-- sys/devices/pci/0000:18:00.0/infiniband/mlx5_0/device -> ../.. --
`

func netdevFiles(name, kind, devPort string) string {
	dir := "sys/devices/pci/0000:18:00.0/net/" + name
	return "-- " + dir + "/type --\n" + kind + "\n-- " + dir + "/dev_port --\n" + devPort + "\n"
}

func TestNetdevOfAPort(t *testing.T) {
	const gid = "-- sys/devices/pci/0000:18:00.0/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0 "
	for _, c := range []struct {
		name, tree     string
		port           int
		layer, netlink string
		want           string
	}{
		{"reported by netlink", function + netdevFiles("eth0", "1", "0"), 1, "Ethernet", "eth7", "eth7"},
		{"of the function", function + netdevFiles("eth0", "1", "0"), 1, "Ethernet", "", "eth0"},
		{"IPoIB of the function", function + netdevFiles("eth0", "1", "0") + netdevFiles("ib0", "32", "0"), 1, "InfiniBand", "", "ib0"},
		{"an Ethernet netdev is not that of an InfiniBand port", function + netdevFiles("eth0", "1", "0"), 1, "InfiniBand", "", ""},
		{"the second port", function + netdevFiles("eth0", "1", "0") + netdevFiles("eth1", "1", "1"), 2, "Ethernet", "", "eth1"},
		{
			"of a function with one port, the second of its card", function + netdevFiles("eth1", "1", "1") +
				"-- sys/devices/pci/0000:18:00.0/infiniband/mlx5_0/ports/1/state --\n4: ACTIVE\n",
			1, "Ethernet", "", "eth1",
		},
		{"of another port", function + netdevFiles("eth0", "1", "0"), 2, "Ethernet", "", ""},
		{"child interface of a P_Key", function + netdevFiles("ib0.8001", "32", "0") + netdevFiles("ib1", "32", "0"), 1, "InfiniBand", "", "ib1"},
		{
			"child interface by another name",
			function + netdevFiles("a", "32", "0") + "-- sys/devices/pci/0000:18:00.0/net/a/iflink --\n7\n-- sys/devices/pci/0000:18:00.0/net/a/ifindex --\n9\n" +
				netdevFiles("ib1", "32", "0") + "-- sys/devices/pci/0000:18:00.0/net/ib1/iflink --\n7\n-- sys/devices/pci/0000:18:00.0/net/ib1/ifindex --\n7\n",
			1, "InfiniBand", "", "ib1",
		},
		{
			"representor of a virtual function", function + netdevFiles("eth0", "1", "0") + netdevFiles("eth1", "1", "0") +
				"-- sys/devices/pci/0000:18:00.0/net/eth0/phys_port_name --\npf0vf1\n-- sys/devices/pci/0000:18:00.0/net/eth1/phys_port_name --\np0\n",
			1, "Ethernet", "", "eth1",
		},
		{"a driver without port names", function + netdevFiles("eth0", "1", "0") + "-- sys/devices/pci/0000:18:00.0/net/eth0/phys_port_name !EOPNOTSUPP --\n", 1, "Ethernet", "", "eth0"},
		{"of the first GID", function + gid + "--\neth9\n", 1, "Ethernet", "", "eth9"},
		{"the first GID has none", function + gid + "!EINVAL --\n", 1, "Ethernet", "", ""},
		{"a software device", "-- sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0 --\neth3\n", 1, "Ethernet", "", "eth3"},
		{"nothing", "-- sys/class/infiniband/mlx5_0/ports/1/state --\n1: DOWN\n", 1, "Ethernet", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collectortest.ReadsOf(t, c.tree)
			d := &snapshot.Device{Name: "mlx5_0"}
			if got := netdevNames(NetdevsOf(r.Reader, d, c.port, c.layer, c.netlink)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestMembersOfABond(t *testing.T) {
	const (
		slaves  = "-- sys/class/net/bond0/bonding/mode --\n802.3ad 4\n-- sys/class/net/bond0/lower_eth1 -> ../eth1 --\n-- sys/class/net/bond0/lower_eth0 -> ../eth0 --\n"
		masters = "-- sys/class/net/eth0/master -> ../bond0 --\n-- sys/class/net/eth1/master -> ../bond0 --\n"
		// The second member's function has no RDMA device.
		lag = "-- sys/class/net/eth0/device/infiniband/mlx5_bond_0/fw_ver --\n"
	)
	own := func(netdev, device string) string {
		return "-- sys/class/net/" + netdev + "/device/infiniband/" + device + "/fw_ver --\n"
	}
	for _, c := range []struct{ name, tree, netdev, want string }{
		{"no bond", "-- sys/class/net/eth0/flags --\n0x1003\n", "eth0", "eth0"},
		{"the bond is reported", slaves + masters + lag, "bond0", "eth0 eth1"},
		{"a member is reported", slaves + masters + lag, "eth1", "eth0 eth1"},
		{"members without device", slaves + masters, "bond0", "eth0 eth1"},
		{"a member with a device of its own", slaves + masters + lag + own("eth1", "mlx5_1"), "eth0", "eth0"},
		{"all members are another's", slaves + masters + own("eth0", "mlx5_0") + own("eth1", "mlx5_1"), "bond0", "bond0"},
		{"a bridge", "-- sys/class/net/eth0/master -> ../br0 --\n-- sys/class/net/br0/bridge/bridge_id --\nx\n", "eth0", "eth0"},
		{"a bond without members", "-- sys/class/net/bond0/bonding/mode --\n802.3ad 4\n", "bond0", "bond0"},
		{"the bond cannot be listed", "-- sys/class/net/bond0 !EIO --\n" + masters, "eth0", "eth0"},
		{"a name that is a path", slaves, "../bond0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collectortest.ReadsOf(t, c.tree)
			if got := strings.Join(bondMembers(r, "mlx5_bond_0", c.netdev), " "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestLinkOfANetdev(t *testing.T) {
	r := collectortest.ReadsOf(t, "-- sys/class/net/up/flags --\n0x1003\n-- sys/class/net/up/ifindex --\n5\n-- sys/class/net/up/carrier_up_count --\n7\n-- sys/class/net/up/carrier_down_count --\n6\n"+
		"-- sys/class/net/down/flags --\n0x1002\n-- sys/class/net/odd/flags --\nx\n-- sys/class/net/odd/carrier_up_count --\n-1\n")
	yes, old := true, uint64(9)
	// Odd's are of an earlier reading.
	kept := []snapshot.Netdev{{Name: "up"}, {Name: "down"}, {Name: "odd", Admin: &yes, CarrierUps: &old}, {Name: "gone"}}
	var got []string
	for _, nd := range WithLink(r.Reader, kept) {
		admin := "unknown"
		if nd.Admin != nil {
			admin = map[bool]string{true: "up", false: "down"}[*nd.Admin]
		}
		got = append(
			got,
			fmt.Sprint(
				nd.Name,
				" ",
				admin,
				" ",
				collectortest.Value(nd.Index),
				" ",
				collectortest.Value(nd.CarrierUps),
				" ",
				collectortest.Value(nd.CarrierDowns),
			),
		)
	}
	if !slices.Equal(got, []string{
		"up up 5 7 6", "down down <nil> <nil> <nil>", "odd unknown <nil> <nil> <nil>", "gone unknown <nil> <nil> <nil>",
	}) {
		t.Errorf("%q", got)
	}
	if kept[0].Admin != nil || kept[2].Admin != &yes {
		t.Error("what was read earlier was changed")
	}
}

func TestByNumber(t *testing.T) {
	names := []string{"10", "9", "x", "0", "100", "a"}
	slices.SortFunc(names, counters.ByNumber)
	if got := strings.Join(names, " "); got != "0 9 10 100 a x" {
		t.Error(got)
	}
}
