package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/site"
	"rdma_exporter/test/played"
)

const (
	ownGID  = "0000:0000:0000:0000:0000:ffff:0a00:0001"
	peerGID = "0000:0000:0000:0000:0000:ffff:0a00:0011"
)

// watched returns a machine with eBPF programs that have seen these events.
func watched(events, listed string) string {
	const gids = "sys/devices/pci0000:00/0000:18:00.0/infiniband/mlx5_3/ports/1/gids/"
	return collectortest.EthTree("mlx5_3", "eth0") + collectortest.Files(
		gids+"0", "fe80:0000:0000:0000:0000:0000:0000:0000", gids+"1", ownGID, gids+"2", ownGID,
		gids+"10", "fe80:0000:0000:0000:0a00:27ff:fe00:0001", gids+"3", "0000:0000:0000:0000:0000:0000:0000:0000",
		"ebpf/pairs", strings.TrimSpace("age: 60\nlost: 0\n"+events), "rdma/mlx5_3/pairs", strings.TrimSpace(listed))
}

const (
	twoConnected = "pair_1: age=50 kind=connected device=mlx5_3 port=1 qpn=17 pid=4711 command=python3 peer_qpn=18 peer=" +
		peerGID + " roce=1\n" +
		"pair_2: age=50 kind=connected device=mlx5_3 port=1 qpn=19 pid=4711 command=python3 peer_qpn=20 peer=" + ownGID +
		" roce=1\n"
	refusedOnce = "pair_3: age=40 kind=refused device=mlx5_3 port=1 qpn=21 pid=4711 command=python3 peer_qpn=22 peer=" +
		peerGID + " roce=1 errno=110\n"
	listedBoth = "17: peer=18 port=1 pid=4711 state=3\n19: peer=20 port=1 pid=4711 state=3\n"
	older      = "23: peer=24 port=1 pid=99 state=3\n"
	ownGIDs    = `rdma_port_gid_info{device="mlx5_3",gid="10.0.0.1",port="1"} 1
rdma_port_gid_info{device="mlx5_3",gid="fe80::a00:27ff:fe00:1",port="1"} 1`
)

func TestPeers(t *testing.T) {
	const lost = `rdma_port_peer_lost_total{certainty=%q,device="mlx5_3",peer="10.0.0.17",port="1"} 1`
	for name, x := range map[string]struct {
		machine string
		retries []uint64
		want    []string // beside the addresses
	}{
		"nothing observed": {collectortest.EthTree("mlx5_3", "eth0"), nil, nil},
		"connected": {watched(twoConnected, listedBoth+older), nil, []string{
			`rdma_port_peers{device="mlx5_3",port="1"} 2`,
			`rdma_port_peer_queue_pairs{device="mlx5_3",peer="known",port="1"} 2`,
			`rdma_port_peer_queue_pairs{device="mlx5_3",peer="unknown",port="1"} 1`, "rdma_peer_queue_pairs_dropped_total 0",
		}},
		"refused": {watched(twoConnected+refusedOnce, listedBoth), nil, []string{
			`rdma_port_peer_queue_pairs{device="mlx5_3",peer="unknown",port="1"} 0`,
			fmt.Sprintf(lost, "exact"),
			`rdma_port_peer_unreachable_info{command="python3",device="mlx5_3",error="timed_out",peer="10.0.0.17",port="1"} 1`,
		}},
		"retries exceeded": {
			watched(twoConnected, strings.Replace(listedBoth, "state=3", "state=6", 1)),
			[]uint64{0, 1},
			[]string{fmt.Sprintf(lost, "nearly_exact")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := played.Machine(t, x.machine)
			with := shared.NewState(shared.Options{})
			c := New(with)
			var retries []shared.PortRetries
			for i, n := range x.retries {
				at := h.Now().Add(time.Duration(i-1) * 15 * time.Second)
				retries = append(retries, shared.PortRetries{Device: "mlx5_3", Port: 1, Exceeded: n, At: at})
			}
			with.Retries.Publish(retries)
			for range 2 { // the events of a recording are those of each round
				_, got := collectortest.Collect(t, h, c.Descs, c.Read, c.Emit)
				for _, want := range x.want {
					if !slices.Contains(got, want) {
						t.Errorf("no %s in\n%s", want, strings.Join(got, "\n"))
					}
				}
				if all := strings.Join(got, "\n"); (len(got) > 0) != strings.Contains(all, ownGIDs) ||
					x.want == nil && len(got) > 0 || !strings.Contains(name, "re") && strings.Contains(all, "_lost_") {
					t.Error(all)
				}
			}
		})
	}
}

// TestNames: only lost peers have names, by the configuration file before /etc/hosts.
func TestNames(t *testing.T) {
	const refusedIPv6 = "pair_4: age=40 kind=refused device=mlx5_3 port=1 qpn=25 pid=4711 command=x peer_qpn=26 " +
		"peer=fd00:0000:0000:0000:0000:0000:0000:0017 roce=1 errno=113\n"
	name := func(peer, name, by string) string {
		return fmt.Sprintf(`rdma_port_peer_name_info{device="mlx5_3",name=%q,peer=%q,port="1",source=%q} 1`, name, peer, by)
	}
	hosts := collectortest.Files("etc/hosts", "10.0.0.1 self\n10.0.0.17 gpu-17\nfd00::17 gpu\x1b[8m\n\xff\xff\nfd00::17 gpu-6 x")
	const conf = "peers: [{address: 10.0.0.17, name: gpu-17 mlx5_3}, {address: 10.0.0.1, name: self}]"
	for title, x := range map[string]struct {
		machine, conf string
		want          []string
	}{
		"unknown":       {watched(twoConnected+refusedOnce, listedBoth), "peers: [{address: 10.0.0.18, name: a}]", nil},
		"by the site":   {watched(twoConnected+refusedOnce, listedBoth), conf, []string{name("10.0.0.17", "gpu-17 mlx5_3", "site")}},
		"nothing lost":  {watched(twoConnected, listedBoth) + hosts, conf, nil},
		"by /etc/hosts": {watched(twoConnected+refusedOnce, listedBoth) + hosts, "", []string{name("10.0.0.17", "gpu-17", "hosts")}},
		"by both": {watched(refusedOnce+refusedIPv6, "") + hosts, conf, []string{
			name("10.0.0.17", "gpu-17 mlx5_3", "site"), name("fd00::17", "gpu-6", "hosts"),
		}},
	} {
		t.Run(title, func(t *testing.T) {
			parsed, err := site.Parse([]byte(x.conf))
			if err != nil {
				t.Fatal(err)
			}
			store := &site.Store{}
			store.Replace(parsed)
			c := New(shared.NewState(shared.Options{Site: store}))
			_, got := collectortest.Collect(t, played.Machine(t, x.machine), c.Descs, c.Read, c.Emit)
			got = slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, "rdma_port_peer_name_info") })
			if !slices.Equal(got, x.want) {
				t.Errorf("%q, want %q", got, x.want)
			}
		})
	}
}

// TestConnections: without eBPF programs the peers of rdma_cm are known. The queue pairs of mlx5 are not listed: each
// would take a firmware command.
func TestConnections(t *testing.T) {
	const id = "17: port=1 pid=4711 peer=" + peerGID + "\n"
	const two, refused = id + "19: port=1 pid=0 peer=" + ownGID + "\n", "-- rdma/mlx5_3/connections !EOPNOTSUPP --\n"
	of := func(text string) string {
		return collectortest.EthTree("mlx5_3", "eth0") +
			collectortest.Files("rdma/mlx5_3/connections", strings.TrimSpace(text),
				"rdma/mlx5_3/pairs", strings.TrimSpace(listedBoth+older))
	}
	for name, x := range map[string]struct {
		machine string
		want    []string
	}{
		"no answer":     {collectortest.EthTree("mlx5_3", "eth0"), nil},
		"not supported": {collectortest.EthTree("mlx5_3", "eth0") + refused, nil},
		"two": {of(two), []string{
			`rdma_port_peers{device="mlx5_3",port="1"} 2`, `rdma_port_peer_queue_pairs{device="mlx5_3",peer="known",port="1"} 2`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(shared.NewState(shared.Options{}))
			h := played.Machine(t, x.machine)
			for range 2 {
				n, got := collectortest.Collect(t, h, c.Descs, c.Read, c.Emit)
				if !slices.Equal(got, x.want) || len(n.Issues) > 0 {
					t.Errorf("%q, want %q; %v", got, x.want, n.Issues)
				}
			}
		})
	}
}
