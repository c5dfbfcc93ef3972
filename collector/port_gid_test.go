package collector

import (
	"fmt"
	"maps"
	"strings"
	"testing"

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
			r := readerOf(t, b.String())
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
