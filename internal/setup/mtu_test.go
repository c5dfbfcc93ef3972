package setup

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// interfaces returns IPoIB interfaces of ports for jobs, with mode and MTU.
func interfaces(modes map[string]uint64, order ...string) *snapshot.Node {
	n := rails(len(order))
	for i, mode := range order {
		p := portOf(n, i)
		p.LinkLayer, p.Netdev[0].MTU = "InfiniBand", pointer(modes[mode])
		p.PKeyTable = []uint16{0xffff}
		n.Setup.Files["sys/class/infiniband/"+n.InfiniBand.Devices[i].Name+"/device/net/"+p.Netdev[0].Name+
			"/mode"] = hostdata.SetupFile{
			Text: mode,
		}
	}
	return n
}

// withLanes returns InfiniBand ports with a number of virtual lanes, and tables with the virtual lane of each service
// level in hexadecimal, repeated.
func withLanes(count uint64, tables ...string) func() *snapshot.Node {
	return func() *snapshot.Node {
		n := interfaces(nil, make([]string, len(tables))...)
		for i, table := range tables {
			s := &snapshot.IBPortSettings{MTU: pointer(uint64(4096)), DataVLs: &count}
			for sl := 0; sl < 16 && table != ""; sl++ {
				vl, _ := strconv.ParseUint(table[sl%len(table):][:1], 16, 4)
				s.VLs = append(s.VLs, uint8(vl))
			}
			portOf(n, i).Settings = s
		}
		return n
	}
}

func TestMTU(t *testing.T) {
	with := func(mtus ...uint64) func() *snapshot.Node {
		return func() *snapshot.Node {
			n := rails(len(mtus))
			for i, mtu := range mtus {
				portOf(n, i).Netdev[0].MTU = pointer(mtu)
			}
			return n
		}
	}
	changed := func(node func() *snapshot.Node, change func(*snapshot.Node)) func() *snapshot.Node {
		return func() *snapshot.Node {
			n := node()
			change(n)
			return n
		}
	}
	mtus := map[string]uint64{"connected": 65520, "datagram": 2044}
	ib := func(order ...string) func() *snapshot.Node {
		return func() *snapshot.Node { return interfaces(mtus, order...) }
	}
	run(t, []settingCase{
		{"as wanted", "rdma_active_mtu", with(9000, 4200), "", `
			eth0 ok "4096" want "4096" guide
			eth1 ok "4096" want "4096" guide`},
		{"the row of the netdev differs", "rdma_active_mtu", with(1500, 4191, 300), "", ""},
		{"the row of one netdev differs", "rdma_active_mtu", with(9000, 1500, 9000, 9000), "", `
			eth0 ok "4096" want "4096" guide
			eth2 ok "4096" want "4096" guide
			eth3 ok "4096" want "4096" guide`},
		{"the row of the netdev is unknown", "rdma_active_mtu", changed(with(9000), func(n *snapshot.Node) { portOf(n, 0).Netdev[0].MTU = nil }), "", ""},
		{"down", "rdma_active_mtu", changed(with(1500), func(n *snapshot.Node) { portOf(n, 0).State = pointer(uint64(1)) }), "", ""},
		{"slow", "rdma_active_mtu", changed(with(1500), func(n *snapshot.Node) { portOf(n, 0).Rate = pointer(25e9) }), "", ""},
		{"for storage", "rdma_active_mtu", changed(with(1500), func(n *snapshot.Node) { portOf(n, 0).Role = "other" }), "", ""},
		{"InfiniBand", "rdma_active_mtu", withLanes(4, "01230123"), "", `mlx5_0/1 ok "4096" want "4096" guide`},
		{"InfiniBand, 2048", "rdma_active_mtu", changed(withLanes(4, "01230123"), func(n *snapshot.Node) { portOf(n, 0).Settings.MTU = pointer(uint64(2048)) }), "", `
			mlx5_0/1 differs "2048" want "4096" guide`},
		{"InfiniBand, not queried", "rdma_active_mtu", ib("datagram"), "", `mlx5_0/1 unknown "" want "4096" guide`},
		{"InfiniBand, down", "rdma_active_mtu", changed(ib("datagram"), func(n *snapshot.Node) { portOf(n, 0).State = pointer(uint64(1)) }), "", ""},

		{"as on all", "sl_to_vl", withLanes(4, "0123", "0123"), "", `
			mlx5_0/1 ok "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3 of 4" want "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3 of 4" guide
			mlx5_1/1 ok "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3 of 4" want "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3 of 4" guide`},
		{"one of three", "sl_to_vl", withLanes(4, "0123", "0123", "0000"), "", `
			mlx5_0/1 ok "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3 of 4" want "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3 of 4" guide
			mlx5_1/1 ok "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3 of 4" want "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3 of 4" guide
			mlx5_2/1 differs "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 of 4" want "0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3 of 4" machine`},
		{"discarded", "sl_to_vl", withLanes(4, "f000"), "", `mlx5_0/1 differs "15,0,0,0,15,0,0,0,15,0,0,0,15,0,0,0 of 4" want "0 in use" guide`},
		{"a lane that is not in use", "sl_to_vl", withLanes(2, "3000"), "", `mlx5_0/1 differs "3,0,0,0,3,0,0,0,3,0,0,0,3,0,0,0 of 2" want "0 in use" guide`},
		{"one virtual lane", "sl_to_vl", withLanes(1, ""), "", ""},
		{"not queried", "sl_to_vl", ib("datagram"), "", `mlx5_0/1 unknown "" want "0 in use" guide`},

		{"the site wants 1024", "rdma_active_mtu", with(1500), "1024", `eth0 ok "1024" want "1024" site`},
		{"the site wants 1024, it is 4096", "rdma_active_mtu", with(9000), "1024", `eth0 differs "4096" want "1024" site`},

		{"as wanted", "netdev_mtu", with(9000, 4200), "", `
			eth0 ok "9000" want "9000" guide
			eth1 ok "4200" want "4200" guide`},
		{"one of four", "netdev_mtu", with(9000, 1500, 9000, 9000), "", `
			eth0 ok "9000" want "9000" guide
			eth1 differs "1500" want "9000" machine RDMAPortMisconfigured/mtu
			eth2 ok "9000" want "9000" guide
			eth3 ok "9000" want "9000" guide`},
		{"all are low", "netdev_mtu", with(1500, 1500, 1500), "", `
			eth0 differs "1500" want "9000" guide
			eth1 differs "1500" want "9000" guide
			eth2 differs "1500" want "9000" guide`},
		{"two against one are no majority", "netdev_mtu", with(9000, 9000, 9216), "", `
			eth0 ok "9000" want "9000" guide
			eth1 ok "9000" want "9000" guide
			eth2 ok "9216" want "9216" guide`},
		{"unknown", "netdev_mtu", changed(with(9000), func(n *snapshot.Node) { portOf(n, 0).Netdev[0].MTU = nil }), "", `eth0 unknown "" want "9000" guide`},
		{"for storage, on another board", "netdev_mtu", changed(with(1500, 9000, 9000, 9000), func(n *snapshot.Node) {
			for i := range n.InfiniBand.Devices {
				portOf(n, i).Role, n.InfiniBand.Devices[i].BoardID = "other", "B"
			}
			n.InfiniBand.Devices[0].BoardID = "A"
		}), "", ""},
		{"a bond", "netdev_mtu", changed(with(1500), func(n *snapshot.Node) { portOf(n, 0).Netdev[0].Member = true }), "", `mlx5_0/1 differs "1500" want "9000" guide`},
		{"the site wants 4200", "netdev_mtu", with(9000), "4200", `eth0 differs "9000" want "4200" site`},

		{"as wanted", "ipoib_mode", ib("connected", "connected"), "", `
			eth0 ok "connected" want "connected" machine
			eth1 ok "connected" want "connected" machine`},
		{"datagram among connected", "ipoib_mode", ib("connected", "datagram", "connected"), "", `
			eth0 ok "connected" want "connected" machine
			eth1 differs "datagram" want "connected" machine
			eth2 ok "connected" want "connected" machine`},
		{"one each", "ipoib_mode", ib("connected", "datagram"), "", ""},
		{"unknown", "ipoib_mode", changed(ib("connected", "connected", "connected"), func(n *snapshot.Node) {
			n.Setup.Files["sys/class/infiniband/mlx5_2/device/net/eth2/mode"] = hostdata.SetupFile{Unread: "io"}
		}), "", `
			eth0 ok "connected" want "connected" machine
			eth1 ok "connected" want "connected" machine
			eth2 unknown "" want "connected" machine`},
		{"not in use", "ipoib_mode", changed(ib("connected", "connected"), func(n *snapshot.Node) {
			portOf(n, 0).Netdev[0].Admin, portOf(n, 1).Netdev[0].Admin = pointer(false), nil
		}), "", ""},
		{"Ethernet", "ipoib_mode", with(9000, 9000), "", ""},
		{"the site wants datagram", "ipoib_mode", ib("connected"), "datagram", `eth0 differs "connected" want "datagram" site`},

		{"as wanted", "ipoib_mtu", ib("datagram", "datagram", "connected"), "", `
			eth0 ok "2044" want "2044" machine
			eth1 ok "2044" want "2044" machine`},
		{"differs in one mode", "ipoib_mtu", changed(ib("datagram", "datagram", "datagram"), func(n *snapshot.Node) { portOf(n, 1).Netdev[0].MTU = pointer(uint64(4092)) }), "", `
			eth0 ok "2044" want "2044" machine
			eth1 differs "4092" want "2044" machine
			eth2 ok "2044" want "2044" machine`},
		{"unknown", "ipoib_mtu", changed(ib("datagram", "datagram", "datagram"), func(n *snapshot.Node) { portOf(n, 1).Netdev[0].MTU = nil }), "", `
			eth0 ok "2044" want "2044" machine
			eth1 unknown "" want "2044" machine
			eth2 ok "2044" want "2044" machine`},
		{"the site wants 4092", "ipoib_mtu", ib("datagram"), "4092", `eth0 differs "2044" want "4092" site`},
	})
}

func TestPartition(t *testing.T) {
	keys := func(table ...uint16) func() *snapshot.Node {
		return func() *snapshot.Node {
			n := interfaces(map[string]uint64{"datagram": 2044}, "datagram")
			portOf(n, 0).PKeyTable = table
			return n
		}
	}
	run(t, []settingCase{
		{"as wanted", "pkey_membership", keys(0xffff), "", `mlx5_0/1 ok "full" want "full" guide`},
		{"of another partition", "pkey_membership", keys(0x8001, 0x7fff), "", `mlx5_0/1 ok "full" want "full" guide`},
		{"limited", "pkey_membership", keys(0x7fff), "", `mlx5_0/1 differs "limited" want "full" guide`},
		{"limited at index 0", "pkey_membership", keys(0x7fff, 0x8001), "", `mlx5_0/1 differs "limited" want "full" guide`},
		{"an empty table", "pkey_membership", func() *snapshot.Node { n := keys()(); portOf(n, 0).PKeyTable = []uint16{}; return n }, "", `mlx5_0/1 differs "none" want "full" guide`},
		{"unknown", "pkey_membership", func() *snapshot.Node { n := keys()(); portOf(n, 0).PKeyTable = nil; return n }, "", `mlx5_0/1 unknown "" want "full" guide`},
		{"down", "pkey_membership", func() *snapshot.Node { n := keys(0x7fff)(); portOf(n, 0).State = pointer(uint64(1)); return n }, "", ""},
		{"Ethernet", "pkey_membership", func() *snapshot.Node { return rails(1) }, "", ""},
		{"the site wants limited", "pkey_membership", keys(0x7fff), "limited", `mlx5_0/1 ok "limited" want "limited" site`},
	})
}

func TestRoCEMTU(t *testing.T) {
	for netdev, want := range map[uint64]uint64{
		9000: 4096, 65535: 4096, 4192: 4096, 4191: 2048, 2144: 2048, 2143: 1024, 1500: 1024, 1120: 1024, 1119: 512, 608: 512,
		607: 256, 352: 256, 351: 0, 68: 0, 0: 0,
	} {
		if got, ok := RoCEMTU(netdev); got != want || ok != (want != 0) {
			t.Errorf("%d: %d %v, want %d", netdev, got, ok, want)
		}
	}
}

// TestEnhancedIPoIB: without the flag of connected mode in its address an interface keeps datagram mode, whoever wants
// another one; a single interface has no siblings.
func TestEnhancedIPoIB(t *testing.T) {
	site := map[string]string{"ipoib_mode": "connected", "ipoib_mtu": "65520"}
	wants := func(id, _ string, _ int, _ string) string { return site[id] }
	for first, want := range map[string][]string{
		"00": {
			`eth0 differs/info "datagram" want "connected" by site; the flags of its address have no connected mode; set: ` + enhanced,
			`eth0 ok "2044" want "at most 4092" by site; an MTU of 65520 needs connected mode`,
		},
		"80": {
			`eth0 differs/info "datagram" want "connected" by site; set: echo connected > /sys/class/net/eth0/mode; ip link set dev eth0 mtu 65520`,
			`eth0 differs/info "2044" want "65520" by site; set: echo connected > /sys/class/net/eth0/mode; ip link set dev eth0 mtu 65520`,
		},
	} {
		n := interfaces(map[string]uint64{"datagram": 2044}, "datagram")
		n.Setup.Files["sys/class/infiniband/mlx5_0/device/net/eth0/address"] = hostdata.SetupFile{Text: first + ":00:10:49"}
		var got []string
		for _, r := range Evaluate(n, wants) {
			if site[r.Setting] != "" {
				got = append(got, rowText(r))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s", first, strings.Join(got, "\n"))
		}
	}
}

// TestOneRowOfMTU: the MTU of a netdev and that of RDMA, which follows from it, are one cause, with one row that
// differs and one remedy.
func TestOneRowOfMTU(t *testing.T) {
	const of = "the netdev has an MTU of 1500 bytes, 96 of them for headers"
	for _, c := range []struct {
		name string
		site map[string]string
		want []string
	}{
		{"guide", nil, []string{`eth0 differs/info "1500" want "9000" by guide; it gives an MTU of RDMA of 1024 bytes; set: ip link set dev eth0 mtu 9000`}},
		{"the site wants 4200", map[string]string{"netdev_mtu": "4200"}, []string{
			`eth0 differs/info "1500" want "4200" by site; it gives an MTU of RDMA of 1024 bytes; set: ip link set dev eth0 mtu 4200`,
		}},
		{"the site has chosen 1500", map[string]string{"netdev_mtu": "1500"}, []string{
			`eth0 ok "1500" want "1500" by site; it gives an MTU of RDMA of 1024 bytes`,
		}},
		{"the site accepts any", map[string]string{"netdev_mtu": Any}, []string{
			`eth0 differs/info "1024" want "4096" by guide; ` + of + `; set: ip link set dev eth0 mtu 9000`,
		}},
		{"the site wants an MTU of RDMA", map[string]string{"rdma_active_mtu": "2048"}, []string{
			`eth0 differs/info "1024" want "2048" by site; ` + of + `; set: ip link set dev eth0 mtu 2144`,
		}},
		{"the site has chosen one of RDMA", map[string]string{"rdma_active_mtu": "1024"}, []string{
			`eth0 ok "1024" want "1024" by site; ` + of,
		}},
		{"the site accepts any of RDMA", map[string]string{"rdma_active_mtu": Any}, []string{
			`eth0 differs/info "1500" want "9000" by guide; it gives an MTU of RDMA of 1024 bytes; set: ip link set dev eth0 mtu 9000`,
		}},
	} {
		n := rails(1)
		portOf(n, 0).Netdev[0].MTU = pointer(uint64(1500))
		var got []string
		for _, r := range Evaluate(n, func(id, _ string, _ int, _ string) string { return c.site[id] }) {
			if strings.HasSuffix(r.Setting, "_mtu") {
				got = append(got, rowText(r))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s", c.name, strings.Join(got, "\n"))
		}
	}
}
