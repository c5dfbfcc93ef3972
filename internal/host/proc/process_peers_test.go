package proc

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// tcpLine is a line of /proc/net/tcp (tcp4_seq_show, net/ipv4/tcp_ipv4.c): addresses in the order of the host's bytes.
func tcpLine(local, remote, state string, inode int) string {
	return fmt.Sprintf("   0: %s %s %s 00000000:00000000 00:00000000 00000000  1000        0 %d 1 0000000000000000 20 4 30 10 -1\n",
		local, remote, state, inode)
}

const (
	thisHost = "0B00000A" // 10.0.0.11
	nextHost = "0C00000A" // 10.0.0.12
	lastHost = "0D00000A" // 10.0.0.13
)

// TestPeers: other hosts that processes with NCCL and without an RDMA device have connections to, and the interfaces.
func TestPeers(t *testing.T) {
	const title = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	const routes = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
		"eno1\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"eno1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
		"ens1\t0001000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
	const maps = "7f00 r-xp 00000000 00:00 0 /usr/lib/libnccl.so.2.27.3\n"
	table := title +
		tcpLine("00000000:A001", "00000000:0000", "0A", 10) + // listens
		tcpLine(thisHost+":A001", nextHost+":B002", "01", 11) +
		tcpLine(thisHost+":A003", nextHost+":B004", "01", 12) +
		tcpLine(thisHost+":A005", lastHost+":B006", "01", 13) +
		tcpLine(thisHost+":A007", nextHost+":0050", "01", 14) + // a service
		tcpLine(thisHost+":A009", thisHost+":B00A", "01", 15) + // this host
		tcpLine(thisHost+":A00B", nextHost+":B00C", "06", 16) // TIME_WAIT
	files := func(tcp, sockstat string) map[string]string {
		return map[string]string{
			"stat": statText, "maps": maps, "ns/x": "", "net/tcp": tcp, "net/route": routes,
			"net/sockstat": sockstat,
		}
	}
	const few = "sockets: used 300\nTCP: inuse 40 orphan 0 tw 3 alloc 60 mem 4\n"
	gpu := "/dev/nvidia0"
	p, processes := NewProcessTree(t)
	for pid, c := range map[int]struct {
		network string
		open    []string
		files   map[string]string
	}{
		1:  {"net:[1]", nil, map[string]string{"stat": statText, "ns/x": ""}},
		42: {"net:[1]", []string{gpu, "socket:[11]", "socket:[12]", "socket:[13]", "socket:[10]"}, files(table, few)},
		43: {"net:[1]", []string{gpu, "socket:[14]", "socket:[15]", "socket:[16]", "socket:[99]"}, files(table, few)},
		44: {"net:[1]", []string{gpu, "/dev/infiniband/uverbs0", "socket:[11]"}, files(table, few)},
		45: {"net:[2]", []string{gpu, "socket:[11]"}, files(table, few)},
		46: {"net:[3]", []string{gpu, "socket:[11]"}, files(table, "TCP: inuse 16000 orphan 0 tw 500 alloc 1 mem 4\n")},
		47: {"net:[4]", []string{gpu, "socket:[11]"}, files("no table\nat all\n", few)},
	} {
		p.Process(pid, c.open, c.files)
		if err := os.Symlink(c.network, fmt.Sprintf("%s/proc/%d/ns/net", p.Dir, pid)); err != nil {
			t.Fatal(err)
		}
	}
	found, _, err := processes.Processes(t.Context(), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]string{
		42: "2 eno1", 43: "0 ", 44: "unknown ", 45: "1 ", // by the interfaces of its own network nobody counts
		46: "unknown ", 47: "unknown ",
	}
	for i := range found {
		one := &found[i]
		got := "unknown " + one.PeersOver
		if one.Peers != nil {
			got = fmt.Sprint(*one.Peers, " ", one.PeersOver)
		}
		if got != want[one.PID] {
			t.Errorf("%d: %q, want %q", one.PID, got, want[one.PID])
		}
		if !isProcess(one) {
			t.Errorf("%d: rejected from a helper", one.PID)
		}
		if one.PeersOver += " " + strings.Repeat("x", 16); isProcess(one) {
			t.Errorf("%d: accepted from a helper: %q", one.PID, one.PeersOver)
		}
	}
	if len(found) != len(want) {
		t.Errorf("%d processes, want %d", len(found), len(want))
	}
}

// TestPeersOverIPv6: mapped addresses are those of IPv4; interfaces of IPv6 are those with the address.
func TestPeersOverIPv6(t *testing.T) {
	p, processes := NewProcessTree(t)
	const (
		four  = "0000000000000000FFFF00000B00000A"
		own   = "000000FD000000000000000001000000"
		other = "000000FD000000000000000002000000"
	)
	six := "  sl  local_address remote_address\n" +
		tcpLine(four+":A001", "0000000000000000FFFF00000C00000A:B002", "01", 11) +
		tcpLine(own+":A003", other+":B004", "01", 12)
	p.Process(1, nil, map[string]string{"stat": statText, "ns/x": ""})
	p.Process(42, []string{"/dev/nvidia0", "socket:[11]", "socket:[12]"}, map[string]string{
		"stat": statText, "ns/x": "", "maps": "7f00 r-xp 00000000 00:00 0 /usr/lib/libnccl.so.2\n",
		"net/tcp": "  sl  local_address rem_address\n", "net/tcp6": six,
		"net/sockstat": "TCP: inuse 4 orphan 0 tw 3 alloc 60 mem 4\n",
		"net/if_inet6": "fd000000000000000000000000000001 03 40 00 80     ens1\n" +
			"00000000000000000000000000000001 01 80 10 80       lo\n",
	})
	for _, pid := range []int{1, 42} {
		if err := os.Symlink("net:[1]", fmt.Sprintf("%s/proc/%d/ns/net", p.Dir, pid)); err != nil {
			t.Fatal(err)
		}
	}
	found, _, err := processes.Processes(t.Context(), nil, false)
	if err != nil || len(found) != 1 || found[0].Peers == nil || *found[0].Peers != 2 || found[0].PeersOver != "ens1" {
		t.Errorf("%+v %v", found, err)
	}
}
