package setup

import (
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// routes gives netdevs addresses: the text of /proc/net/route.
func routes(n *snapshot.Node, lines ...string) {
	text := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	for _, l := range lines {
		f := strings.Fields(l) // netdev, subnet and mask in hex
		text += fmt.Sprintf("%s\t%s\t00000000\t0001\t0\t0\t100\t%s\t0\t0\t0\n", f[0], f[1], f[2])
	}
	n.Setup.Files["proc/1/net/route"] = hostdata.SetupFile{Text: text}
}

// arp sets the settings of netdevs: arp_ignore, arp_announce, rp_filter.
func arp(n *snapshot.Node, of map[string][3]int) {
	for netdev, v := range of {
		for i, name := range []string{"arp_ignore", "arp_announce", "rp_filter"} {
			n.Setup.Files["proc/sys/net/ipv4/conf/"+netdev+"/"+name] = hostdata.SetupFile{Text: fmt.Sprint(v[i])}
		}
	}
}

// resolve adds neighbours: address, flags, MAC address and netdev.
func resolve(n *snapshot.Node, lines ...string) {
	text := "IP address       HW type     Flags       HW address            Mask     Device\n"
	for _, l := range lines {
		f := strings.Fields(l)
		text += fmt.Sprintf("%-16s 0x1         %s         %s     *        %s\n", f[0], f[1], f[2], f[3])
	}
	n.Setup.Files["proc/1/net/arp"] = hostdata.SetupFile{Text: text}
}

// TestConflicts: the addresses of all rows, each once. Settings that the site accepts, or that do not permit it, have
// none.
func TestConflicts(t *testing.T) {
	for name, k := range map[string]struct {
		arp  map[string][3]int
		site string
		want string
	}{
		"the defaults":     {arp: map[string][3]int{"all": {0, 0, 0}, "eth0": {0, 0, 0}, "eth1": {0, 0, 0}}, want: "[10.0.0.8 10.0.0.9] true"},
		"as wanted":        {arp: map[string][3]int{"all": {1, 2, 2}, "eth0": {0, 0, 0}, "eth1": {0, 0, 0}}, want: "[] true"},
		"the site accepts": {arp: map[string][3]int{"all": {0, 0, 0}, "eth0": {0, 0, 0}, "eth1": {0, 0, 0}}, site: "*", want: "[] true"},
		"any":              {arp: map[string][3]int{"all": {0, 0, 0}, "eth0": {0, 0, 0}, "eth1": {0, 0, 0}}, site: Any, want: "[] false"},
		"unknown":          {want: "[] false"},
	} {
		n := rails(2)
		routes(n, "eth0 0000000A 00FFFFFF", "eth1 0000000A 00FFFFFF")
		arp(n, k.arp)
		resolve(n, "10.0.0.9 0x2 aa eth0", "10.0.0.9 0x2 bb eth1", "10.0.0.8 0x2 cc eth0", "10.0.0.8 0x2 aa eth1",
			"10.0.0.7 0x2 cc eth0", "10.0.0.7 0x2 cc eth1")
		rows := Evaluate(n, func(setting, _ string, _ int, _ string) string {
			if setting == "arp_of_shared_subnets" {
				return k.site
			}
			return ""
		})
		if addresses, ok := Conflicts(rows); fmt.Sprint(addresses, ok) != k.want {
			t.Errorf("%s: %v %v, want %s", name, addresses, ok, k.want)
		}
	}
}

func TestAddress(t *testing.T) {
	with := func(n int, change func(*snapshot.Node)) func() *snapshot.Node {
		return func() *snapshot.Node {
			node := rails(n)
			change(node)
			return node
		}
	}
	mode := func(text string) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			n.Setup.Files["sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode"] = hostdata.SetupFile{Text: text}
		}
	}
	gpu := func(n *snapshot.Node) { n.GDR.GPUs = []accel.GDRGPU{{Index: "0"}} }
	without := func(i int) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			gpu(n)
			portOf(n, i).RoCEv2 = map[string]snapshot.GIDFamily{"link_local": {Entries: 1, First: 1}}
		}
	}
	twoRails := func(n *snapshot.Node) {
		routes(n, "eth0 0000000A 00FFFFFF", "eth1 0000000A 00FFFFFF", "eno1 0000000A 00FFFFFF")
	}
	run(t, []settingCase{
		{"as wanted", "roce_default_gid_type", with(2, mode("RoCE v2")), "", `mlx5_0/1 ok "RoCE v2" want "RoCE v2" guide`},
		{"differs", "roce_default_gid_type", with(2, mode("IB/RoCE v1")), "", `mlx5_0/1 differs "IB/RoCE v1" want "RoCE v2" guide`},
		{"unknown", "roce_default_gid_type", with(1, func(n *snapshot.Node) {
			n.Setup.Files["sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode"] = hostdata.SetupFile{Unread: "denied"}
		}), "", `mlx5_0/1 unknown "" want "RoCE v2" guide`},
		{"does not exist", "roce_default_gid_type", with(2, func(*snapshot.Node) {}), "", ""},
		{"the site wants v1", "roce_default_gid_type", with(2, mode("RoCE v2")), "IB/RoCE v1", `mlx5_0/1 differs "RoCE v2" want "IB/RoCE v1" site`},

		{"as wanted", "nccl_default_gid", with(2, gpu), "", `
			mlx5_0/1 ok "roce_v2 ipv4" want "roce_v2 ipv4" guide
			mlx5_1/1 ok "roce_v2 ipv4" want "roce_v2 ipv4" guide`},
		{"one of three has none", "nccl_default_gid", with(3, without(1)), "", `
			mlx5_0/1 ok "roce_v2 ipv4" want "roce_v2 ipv4" guide
			mlx5_1/1 differs "index 0" want "roce_v2 ipv4" machine RDMAPortMisconfigured/roce_v2_gid
			mlx5_2/1 ok "roce_v2 ipv4" want "roce_v2 ipv4" guide`},
		{"one of three has IPv6", "nccl_default_gid", with(3, func(n *snapshot.Node) {
			gpu(n)
			portOf(n, 1).RoCEv2 = map[string]snapshot.GIDFamily{"ipv6": {Entries: 1, First: 3}}
		}), "", `
			mlx5_0/1 ok "roce_v2 ipv4" want "roce_v2 ipv4" guide
			mlx5_1/1 differs "index 0" want "roce_v2 ipv4" machine RDMAPortMisconfigured/roce_v2_gid
			mlx5_2/1 ok "roce_v2 ipv4" want "roce_v2 ipv4" guide`},
		{"one of two has none: which one is the exception", "nccl_default_gid", with(2, without(1)), "", `
			mlx5_0/1 ok "roce_v2 ipv4" want "roce_v2 ipv4" guide
			mlx5_1/1 differs "index 0" want "roce_v2 ipv4" guide`},
		{"IPv6 only", "nccl_default_gid", with(1, func(n *snapshot.Node) {
			gpu(n)
			portOf(n, 0).RoCEv2 = map[string]snapshot.GIDFamily{"ipv6": {Entries: 1, First: 3}}
		}), "", `mlx5_0/1 differs "index 0" want "roce_v2 ipv4" guide`},
		{"unknown", "nccl_default_gid", with(1, func(n *snapshot.Node) { gpu(n); portOf(n, 0).RoCEv2 = nil }), "", `mlx5_0/1 unknown "" want "roce_v2 ipv4" guide`},
		{"without GPUs", "nccl_default_gid", with(1, func(*snapshot.Node) {}), "", ""},
		{"down", "nccl_default_gid", with(1, func(n *snapshot.Node) { gpu(n); portOf(n, 0).State = pointer(uint64(1)) }), "", ""},
		{"for storage", "nccl_default_gid", with(1, func(n *snapshot.Node) { gpu(n); portOf(n, 0).Role = "other" }), "", ""},
		{"with virtual functions", "nccl_default_gid", with(1, func(n *snapshot.Node) { gpu(n); n.InfiniBand.Devices[0].VirtualFunctions = pointer(uint64(4)) }), "", ""},
		{"the site wants IPv6", "nccl_default_gid", with(1, func(n *snapshot.Node) {
			gpu(n)
			portOf(n, 0).RoCEv2 = map[string]snapshot.GIDFamily{"ipv6": {Entries: 1, First: 3}}
		}), "index 0", `mlx5_0/1 ok "index 0" want "index 0" site`},

		{"as wanted", "arp_of_shared_subnets", with(2, func(n *snapshot.Node) {
			twoRails(n)
			arp(n, map[string][3]int{"all": {0, 0, 0}, "eth0": {1, 2, 2}, "eth1": {2, 2, 0}})
		}), "", `
			eth0 ok "arp_ignore=1 arp_announce=2 rp_filter=2" want "arp_ignore=1 arp_announce=2 rp_filter=2" guide
			eth1 ok "arp_ignore=2 arp_announce=2 rp_filter=0" want "arp_ignore=2 arp_announce=2 rp_filter=0" guide`},
		{"the larger value applies", "arp_of_shared_subnets", with(2, func(n *snapshot.Node) {
			twoRails(n)
			arp(n, map[string][3]int{"all": {1, 2, 1}, "eth0": {0, 0, 0}, "eth1": {0, 0, 2}})
		}), "", `
			eth0 differs "arp_ignore=1 arp_announce=2 rp_filter=1" want "arp_ignore=1 arp_announce=2 rp_filter=2" guide
			eth1 ok "arp_ignore=1 arp_announce=2 rp_filter=2" want "arp_ignore=1 arp_announce=2 rp_filter=2" guide`},
		{"the defaults", "arp_of_shared_subnets", with(2, func(n *snapshot.Node) {
			twoRails(n)
			arp(n, map[string][3]int{"all": {0, 0, 0}, "eth0": {0, 0, 0}, "eth1": {0, 0, 0}})
		}), "", `
			eth0 differs "arp_ignore=0 arp_announce=0 rp_filter=0" want "arp_ignore=1 arp_announce=2 rp_filter=2" guide
			eth1 differs "arp_ignore=0 arp_announce=0 rp_filter=0" want "arp_ignore=1 arp_announce=2 rp_filter=2" guide`},
		{"an address is answered by two ports", "arp_of_shared_subnets", with(3, func(n *snapshot.Node) {
			routes(n, "eth0 0000000A 00FFFFFF", "eth1 0000000A 00FFFFFF", "eth2 0001000A 00FFFFFF")
			arp(n, map[string][3]int{"all": {0, 0, 0}, "eth0": {0, 0, 0}, "eth1": {1, 2, 2}, "eth2": {0, 0, 0}})
			resolve(n, "10.0.0.9 0x2 aa eth0", "10.0.0.9 0x2 bb eth1", "10.0.0.8 0x2 aa eth0", "10.0.0.8 0x2 aa eth1",
				"10.0.0.8 0x2 cc eth2")
		}), "", `
			eth0 differs "arp_ignore=0 arp_announce=0 rp_filter=0" want "arp_ignore=1 arp_announce=2 rp_filter=2" machine RDMAPortMisconfigured/address
			eth1 ok "arp_ignore=1 arp_announce=2 rp_filter=2" want "arp_ignore=1 arp_announce=2 rp_filter=2" guide`},
		{"the entry of an operator, and one without an answer", "arp_of_shared_subnets", with(2, func(n *snapshot.Node) {
			twoRails(n)
			arp(n, map[string][3]int{"all": {0, 0, 0}, "eth0": {0, 0, 0}, "eth1": {1, 2, 1}})
			resolve(n, "10.0.0.9 0x2 aa eth0", "10.0.0.9 0x6 bb eth1", "10.0.0.8 0x2 aa eth0", "10.0.0.8 0x0 00 eth1")
		}), "", `
			eth0 differs "arp_ignore=0 arp_announce=0 rp_filter=0" want "arp_ignore=1 arp_announce=2 rp_filter=2" guide
			eth1 differs "arp_ignore=1 arp_announce=2 rp_filter=1" want "arp_ignore=1 arp_announce=2 rp_filter=2" guide`},
		{"unknown", "arp_of_shared_subnets", with(2, func(n *snapshot.Node) { twoRails(n); arp(n, map[string][3]int{"all": {1, 2, 2}, "eth0": {1, 2, 2}}) }), "", `
			eth0 ok "arp_ignore=1 arp_announce=2 rp_filter=2" want "arp_ignore=1 arp_announce=2 rp_filter=2" guide
			eth1 unknown "" want "arp_ignore=1 arp_announce=2 rp_filter=2" guide`},
		{"a subnet for each", "arp_of_shared_subnets", with(2, func(n *snapshot.Node) { routes(n, "eth0 0000000A 00FFFFFF", "eth1 0001000A 00FFFFFF") }), "", ""},
		{"a larger subnet apart", "arp_of_shared_subnets", with(2, func(n *snapshot.Node) { routes(n, "eth0 0000000A 00FFFFFF", "eth1 0000000A 0000FFFF") }), "", ""},
		{"no routes", "arp_of_shared_subnets", with(2, func(*snapshot.Node) {}), "", ""},
		{"the site wants strict", "arp_of_shared_subnets", with(2, func(n *snapshot.Node) {
			routes(n, "eth0 0000000A 00FFFFFF", "eth1 0000000A 00FFFFFF")
			arp(n, map[string][3]int{"all": {1, 2, 1}, "eth0": {0, 0, 0}, "eth1": {0, 0, 2}})
		}), "* rp_filter=1", `
			eth0 ok "arp_ignore=1 arp_announce=2 rp_filter=1" want "* rp_filter=1" site
			eth1 differs "arp_ignore=1 arp_announce=2 rp_filter=2" want "* rp_filter=1" site`},

		{"one for each", "mesh_subnets", with(2, func(n *snapshot.Node) {
			portOf(n, 0).Netdev[0].Wire, portOf(n, 1).Netdev[0].Wire = "card/p0", "card/p0"
			routes(n, "eth0 0000000A 00FFFFFF", "eth1 0001000A 00FFFFFF")
		}), "", `
			eth0 ok "own" want "own" guide
			eth1 ok "own" want "own" guide`},
		{"one twice", "mesh_subnets", with(3, func(n *snapshot.Node) {
			portOf(n, 0).Netdev[0].Wire, portOf(n, 1).Netdev[0].Wire = "card/p0", "card/p0"
			portOf(n, 2).Netdev[0].Wire = "card/p1"
			routes(n, "eth0 0000000A 00FFFFFF", "eth1 0000000A 00FFFFFF", "eth2 0000000A 00FFFFFF")
		}), "", `
			eth0 differs "shared" want "own" guide
			eth1 differs "shared" want "own" guide`},
		{"physical ports of their own", "mesh_subnets", with(2, twoRails), "", ""},
		{"the site shares them", "mesh_subnets", with(2, func(n *snapshot.Node) {
			portOf(n, 0).Netdev[0].Wire, portOf(n, 1).Netdev[0].Wire = "card/p0", "card/p0"
			routes(n, "eth0 0000000A 00FFFFFF", "eth1 0000000A 00FFFFFF")
		}), "shared", `
			eth0 ok "shared" want "shared" site
			eth1 ok "shared" want "shared" site`},
	})
}

func TestConnected(t *testing.T) {
	for _, c := range []struct{ line, netdev, subnet string }{
		{"eth0 0000010A 00000000 0001 0 0 100 00FFFFFF 0 0 0", "eth0", "10.1.0.0/24"},
		{"eth0 0000FEA9 00000000 0001 0 0 100 0000FFFF 0 0 0", "eth0", "169.254.0.0/16"},
		{"eth0 0000010A 0100000A 0003 0 0 100 00FFFFFF 0 0 0", "", ""}, // by a gateway
		{"eth0 00000000 00000000 0001 0 0 100 00000000 0 0 0", "", ""}, // default
		{"eth0 0500010A 00000000 0005 0 0 100 FFFFFFFF 0 0 0", "", ""}, // a host
		{"eth0 0000010A 00000000 0000 0 0 100 00FFFFFF 0 0 0", "", ""}, // not up
		{"Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT", "", ""},
		{"eth0 0000010A", "", ""},
	} {
		netdev, subnet, ok := values.Connected(strings.Fields(c.line))
		if ok != (c.netdev != "") || ok && (netdev != c.netdev || subnet.String() != c.subnet) {
			t.Errorf("%s: %s %s %v", c.line, netdev, subnet, ok)
		}
	}
}
