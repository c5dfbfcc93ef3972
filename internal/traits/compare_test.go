package traits

import (
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/internal/snapshot"
)

func TestCompare(t *testing.T) {
	node := func(change func(*snapshot.Node)) Host {
		n := host("mlx5_")
		change(n)
		return Of(n)
	}
	same := node(func(*snapshot.Node) {})
	lossy := node(func(n *snapshot.Node) {
		n.QoS.Netdevs[0].PFC.Enabled[3], n.QoS.Netdevs[1].PFC.Enabled[3] = false, false
		n.InfiniBand.Devices[0].Firmware = "28.42"
		n.GDR.Driver = ""
	})
	slow := node(func(n *snapshot.Node) {
		n.InfiniBand.Devices[1].Ports[0].Rate = new(200e9)
		n.InfiniBand.Devices[0].BoardID, n.InfiniBand.Devices[1].BoardID = "MT_2", "MT_2"
	})
	for name, k := range map[string]struct {
		hosts        []Named
		want         []string
		incomparable string
	}{
		"alike": {[]Named{{"a", same}, {"b", same}, {"c", node(func(n *snapshot.Node) {})}}, nil, ""},
		"two": {
			[]Named{{"a", same}, {"b", lossy}},
			[]string{
				"firmware (compute) MT_1 28.43[a b] MT_1 28.42[b] breaks false",
				"pfc_on_rdma_priority (compute) 3[a] none[b] breaks true",
			},
			"gpu_driver",
		},
		"three": {
			[]Named{{"a", slow}, {"b", same}, {"c", lossy}},
			[]string{
				"kind Dell Inc. XE9680, H200, MT_1[b c] Dell Inc. XE9680, H200, MT_2[a] breaks false",
				"rate (compute) 400 Gb/s[a b c] 200 Gb/s[a] breaks true",
				"firmware (compute) MT_1 28.43[b c] MT_2 28.43[a] MT_1 28.42[c] breaks false",
				"pfc_on_rdma_priority (compute) 3[a b] none[c] breaks true",
			},
			"gpu_driver",
		},
		"nothing known": {[]Named{{"a", same}, {"b", Host{}}}, nil, "*"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Compare(k.hosts) {
				line := d.String()
				for _, v := range d.Values {
					line += fmt.Sprint(" ", v.Value, v.Hosts)
				}
				got = append(got, fmt.Sprint(line, " breaks ", d.Breaks()))
			}
			if strings.Join(got, "\n") != strings.Join(k.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(k.want, "\n"))
			}
			unknown := strings.Join(Incomparable(k.hosts, Compare(k.hosts)), ",")
			if k.incomparable == "*" {
				if !strings.Contains(unknown, "trust_mode compute") {
					t.Errorf("not comparable: %q", unknown)
				}
			} else if unknown != k.incomparable {
				t.Errorf("not comparable: %q, want %q", unknown, k.incomparable)
			}
		})
	}
}
