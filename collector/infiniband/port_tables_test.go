package infiniband

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/snapshot"
)

func TestGIDFamily(t *testing.T) {
	for gid, want := range map[string]string{
		"0000:0000:0000:0000:0000:ffff:0a00:0111": "ipv4",
		"0000:0000:0000:0000:0000:ffff:a9fe:0111": "ipv4", // 169.254.1.17: link-local, and used on small fabrics
		"fe80:0000:0000:0000:ba3f:d2ff:fe8e:0210": "link_local",
		"febf:0000:0000:0000:0000:0000:0000:0001": "link_local",
		"2001:0db8:0070:0000:0000:0000:0000:0012": "ipv6",
		"fd00:0000:0000:0000:0000:0000:0000:0012": "ipv6",
		"0000:0000:0000:0000:0000:0000:0000:0000": "",
		"fe80::1%eth0": "",
		"10.0.0.1":     "",
		"":             "",
		"x":            "",
	} {
		if got := gidFamily(gid); got != want {
			t.Errorf("%s: %q, want %q", gid, got, want)
		}
	}
}

func TestRoCEv2GIDs(t *testing.T) {
	const (
		v4    = "0000:0000:0000:0000:0000:ffff:0a00:0111"
		v6    = "2001:0db8:0070:0000:0000:0000:0000:0012"
		local = "fe80:0000:0000:0000:ba3f:d2ff:fe8e:0210"
		v1    = "IB/RoCE v1"
		v2    = "RoCE v2"
	)
	type entry struct{ kind, gid string }
	for _, c := range []struct {
		name   string
		table  []entry
		want   map[string]snapshot.GIDFamily
		issues int
	}{
		{"of one address", []entry{{v1, local}, {v2, local}, {v1, v4}, {v2, v4}}, map[string]snapshot.GIDFamily{"link_local": {Entries: 1, First: 1}, "ipv4": {Entries: 1, First: 3}}, 0},
		{"the lowest by number, not by name", []entry{{}, {}, {v2, v4}, {}, {}, {}, {}, {}, {}, {}, {v2, v4}, {v2, v6}}, map[string]snapshot.GIDFamily{"ipv4": {Entries: 2, First: 2}, "ipv6": {Entries: 1, First: 11}}, 0},
		{"RoCE v1 only", []entry{{v1, v4}}, map[string]snapshot.GIDFamily{}, 0},
		{"one of an unknown type may be any", []entry{{v2, v4}, {v2, "fe80"}}, nil, 1},
		{"one that cannot be read", []entry{{v2, v4}, {v2, "!EIO"}}, nil, 1},
		{"one that went between two reads", []entry{{v2, v4}, {v2, "!EINVAL"}}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			for i, e := range c.table {
				switch {
				case e.kind == "":
					fmt.Fprintf(&b, "-- %s/gids/%d --\n%s\n-- %s/gid_attrs/types/%d !EINVAL --\n",
						portOne, i, "0000:0000:0000:0000:0000:0000:0000:0000", portOne, i)
					continue
				case e.gid[0] == '!':
					fmt.Fprintf(&b, "-- %s/gids/%d %s --\n", portOne, i, e.gid)
				default:
					fmt.Fprintf(&b, "-- %s/gids/%d --\n%s\n", portOne, i, e.gid)
				}
				fmt.Fprintf(&b, "-- %s/gid_attrs/types/%d --\n%s\n", portOne, i, e.kind)
			}
			r := collectortest.ReadsOf(t, b.String())
			if _, got := readGIDs(r, portOne, "Ethernet"); !maps.Equal(got, c.want) || (got == nil) != (c.want == nil) {
				t.Errorf("%v, want %v", got, c.want)
			}
			if len(r.Issues) != c.issues {
				t.Error(r.Issues)
			}
		})
	}
}

func FuzzGIDFamily(f *testing.F) {
	f.Add("0000:0000:0000:0000:0000:ffff:0a00:0111")
	f.Add("fe80::1%a")
	f.Fuzz(func(t *testing.T, s string) {
		if family := gidFamily(s); strings.Contains(s, "%") && family != "" {
			t.Errorf("%q: %s", s, family)
		}
	})
}

const portOne = "sys/class/infiniband/mlx5_0/ports/1"

func gidTable(types ...string) string {
	var b strings.Builder
	for i, kind := range types {
		fmt.Fprintf(&b, "-- %s/gids/%d --\nfe80:0000:0000:0000:0000:0000:0000:0001\n", portOne, i)
		switch {
		case strings.HasPrefix(kind, "!"):
			fmt.Fprintf(&b, "-- %s/gid_attrs/types/%d %s --\n", portOne, i, kind)
		case kind != "":
			fmt.Fprintf(&b, "-- %s/gid_attrs/types/%d --\n%s\n", portOne, i, kind)
		}
	}
	return b.String()
}

func TestGIDs(t *testing.T) {
	for _, c := range []struct {
		name, layer, tree string
		want              map[string]uint64
		issues            string
	}{
		{"RoCE", "Ethernet", gidTable("IB/RoCE v1", "RoCE v2", "IB/RoCE v1", "RoCE v2", "RoCE v2", "!EINVAL", "!EINVAL"), map[string]uint64{"roce_v1": 2, "roce_v2": 3}, ""},
		{"InfiniBand", "InfiniBand", gidTable("IB/RoCE v1", "IB/RoCE v1", "!EINVAL"), map[string]uint64{"ib": 2}, ""},
		{"an empty table", "Ethernet", gidTable("!EINVAL", "!EINVAL"), map[string]uint64{"roce_v1": 0, "roce_v2": 0}, ""},
		{"no file of the type", "InfiniBand", gidTable("IB/RoCE v1", ""), nil, ""},
		{"an empty type", "Ethernet", gidTable("RoCE v2", " "), nil, "malformed"},
		{"a garbled type", "Ethernet", gidTable("RoCE v2", "RoCE v3"), nil, "malformed"},
		{"a type that cannot be read", "Ethernet", gidTable("RoCE v2", "!EIO", "RoCE v2"), nil, "io"},
		{"no table", "Ethernet", "-- " + portOne + "/state --\n4: ACTIVE\n", nil, ""},
		{"EFA", "Unknown", gidTable("IB/RoCE v1"), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collectortest.ReadsOf(t, c.tree)
			if got, _ := readGIDs(r, portOne, c.layer); !maps.Equal(got, c.want) || (got == nil) != (c.want == nil) {
				t.Errorf("%v, want %v", got, c.want)
			}
			var issues []string
			for _, i := range r.Issues {
				issues = append(issues, i.Reason)
			}
			if got := strings.Join(issues, " "); got != c.issues {
				t.Errorf("issues %q", got)
			}
		})
	}
}

func pkeyTable(n int, used map[int]string) string {
	var b strings.Builder
	for i := range n {
		v := used[i]
		if v == "" {
			v = "0x0000"
		}
		fmt.Fprintf(&b, "-- %s/pkeys/%d --\n%s\n", portOne, i, v)
	}
	return b.String()
}

func TestPKeys(t *testing.T) {
	for _, c := range []struct {
		name, tree string
		want       any
	}{
		{"the default one", pkeyTable(1, map[int]string{0: "0xffff"}), uint64(1)},
		{"three of 128", pkeyTable(128, map[int]string{0: "0xffff", 1: "0x8001", 2: "0x0002"}), uint64(3)},
		{"a gap of seven", pkeyTable(32, map[int]string{0: "0xffff", 8: "0x8001"}), uint64(2)},
		{"a gap of eight ends the table", pkeyTable(32, map[int]string{0: "0xffff", 9: "0x8001"}), uint64(1)},
		{"two gaps of seven", pkeyTable(32, map[int]string{0: "0xffff", 8: "0x8001", 16: "0x8002"}), uint64(3)},
		{"empty", pkeyTable(16, nil), uint64(0)},
		{"no table: iWARP", "-- " + portOne + "/state --\n4: ACTIVE\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collectortest.ReadsOf(t, c.tree)
			count, table := readPKeys(r, portOne)
			if got := collectortest.Value(count); got != c.want || count != nil && uint64(len(table)) != *count {
				t.Errorf("%v, want %v", got, c.want)
			}
			if len(r.Issues) != 0 {
				t.Error(r.Issues)
			}
		})
	}
}

// TestGarbledPKeys: an invalid entry leaves neither count nor table.
func TestGarbledPKeys(t *testing.T) {
	for _, text := range []string{"0x18001", "0xfffffffff", "x", "-1"} {
		r := collectortest.ReadsOf(t, pkeyTable(16, map[int]string{0: "0xffff", 1: text}))
		if n, table := readPKeys(r, portOne); n != nil || table != nil || len(r.Issues) != 1 ||
			r.Issues[0].Reason != "malformed" {
			t.Errorf("%q: %v, %v, %v", text, collectortest.Value(n), table, r.Issues)
		}
	}
}

func TestPortNumbers(t *testing.T) {
	r := collectortest.ReadsOf(t, "-- sys/class/infiniband/a/ports/1/state --\n-- sys/class/infiniband/a/ports/2/state --\n-- sys/class/infiniband/a/ports/x --\n-- sys/class/infiniband/a/ports/0/x --\n-- sys/class/infiniband/b/fw_ver --\n")
	if got := fmt.Sprint(sysfs.PortNumbers(r, "a")); got != "[1 2]" {
		t.Error(got)
	}
	if got := sysfs.PortNumbers(r, "b"); got != nil || len(r.Issues) != 0 {
		t.Errorf("a device whose ports are still being made: %v, %v", got, r.Issues)
	}
}
