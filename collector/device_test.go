package collector

import (
	"fmt"
	"slices"
	"testing"
)

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
				"00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth1\n" + low, []string{"eth1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := readerOf(t, c.files).routed()
			slices.Sort(got)
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
