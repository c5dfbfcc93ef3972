//go:build e2e

package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/program"
)

const otherAddress = "10.0.2.16"

// farEnd is what a queue pair is connected to.
type farEnd struct {
	peer    uint32 // number
	address string
}

// TestPeersOfPrograms: the peers of programs of Debian and of the kernel are those that they, or iproute2, print.
func TestPeersOfPrograms(t *testing.T) {
	exporter := program.Exporter(t)
	g := bootGuest(t, 1, 1)
	g.must(t, "ip addr add "+otherAddress+"/24 dev eth0")
	g.gidOf(t, ownAddress)
	g.gidOf(t, otherAddress)
	g.startExporter(t, exporter, strings.Fields(peersFlags)...)
	g.expect(t, samples{pairsSeries("known"): 0, pairsSeries("unknown"): 0})

	for _, step := range []struct {
		name string
		run  func(*testing.T, *guest)
	}{
		{"rping", testPeersOfRping},
		{"perftest", testPeersOfPerftest},
		{"NVMe over RDMA", testPeersOfNVMe},
		{"without eBPF programs", testPeersByCM},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, g) }) {
			break
		}
	}
	t.Run("logs", func(t *testing.T) { testLogs(t, g) })
}

// gidOf waits for an address in the table of the port, and returns its index.
func (g *guest) gidOf(t *testing.T, address string) (index string) {
	t.Helper()
	as16 := netip.MustParseAddr("::ffff:" + address).As16()
	eventually(t, func() (err error) {
		index, err = g.run(fmt.Sprintf("cd /sys/class/infiniband/rxe0/ports/1/gids; grep -l %02x%02x:%02x%02x * 2>/dev/null",
			as16[12], as16[13], as16[14], as16[15]))
		return okWith(index, err)
	})
	return index
}

// toolConnections are the connections of rdma_cm as iproute2 prints them, by the number of their queue pair.
func (g *guest) toolConnections(t *testing.T) map[uint32]farEnd {
	t.Helper()
	var pairs, ids []struct {
		LQPN, RQPN uint32
		State      string
		Address    string `json:"dst-addr"`
	}
	for command, into := range map[string]any{"qp": &pairs, "cm_id": &ids} {
		if err := json.Unmarshal([]byte(g.must(t, "rdma -j res show "+command)), into); err != nil {
			t.Fatal(err)
		}
	}
	ends := map[uint32]farEnd{}
	for _, id := range ids {
		if id.State == "CONNECT" {
			ends[id.LQPN] = farEnd{address: netip.MustParseAddrPort(id.Address).Addr().String()}
		}
	}
	for _, pair := range pairs {
		if one, ok := ends[pair.LQPN]; ok {
			ends[pair.LQPN] = farEnd{pair.RQPN, one.address}
		}
	}
	return ends
}

// keptEnds are the ends that the exporter knows, all of one command.
func (g *guest) keptEnds(command string) (map[uint32]farEnd, error) {
	groups, err := g.keptGroups()
	ends := map[uint32]farEnd{}
	for _, one := range groups {
		if one.Command != command {
			err = errors.Join(err, fmt.Errorf("command %q, want %q", one.Command, command))
		}
		for _, pair := range one.Pairs {
			ends[pair[0]] = farEnd{pair[1], addressOf(one.Peer)}
		}
	}
	return ends, err
}

// expectEnds waits until the exporter knows these ends, of two addresses, and nothing else.
func (g *guest) expectEnds(t *testing.T, command string, want map[uint32]farEnd) {
	t.Helper()
	g.expect(t, samples{
		pairsSeries("known"): float64(len(want)), pairsSeries("unknown"): 0, `rdma_port_peers{device="rxe0",port="1"}`: 2,
	})
	within(t, patienceOfGuest, func() error {
		got, err := g.keptEnds(command)
		if !maps.Equal(got, want) {
			err = errors.Join(err, fmt.Errorf("%v, want %v", got, want))
		}
		return err
	})
	t.Logf("%d queue pairs are equal: %v", len(want), want)
}

// addressOf returns the IPv4 address of a GID.
func addressOf(gid string) string {
	a, err := netip.ParseAddr(gid)
	if err != nil {
		return err.Error()
	}
	return a.Unmap().String()
}

// expectNone expects that all queue pairs are gone, and that nobody is accused of it.
func (g *guest) expectNone(t *testing.T) {
	t.Helper()
	g.expect(t, samples{pairsSeries("known"): 0, pairsSeries("unknown"): 0})
	g.settle(t)
	g.nothingLost(t)
}

// awaitConnections waits until rdma_cm has as many connections, with a peer: it says CONNECT before there is one.
func (g *guest) awaitConnections(t *testing.T, number int) (found map[uint32]farEnd) {
	t.Helper()
	within(t, patienceOfGuest, func() error {
		found = g.toolConnections(t)
		early := slices.ContainsFunc(slices.Collect(maps.Values(found)), func(e farEnd) bool { return e.peer == 0 })
		if early || len(found) != number {
			return fmt.Errorf("%v, want %d", found, number)
		}
		return nil
	})
	return found
}

func (g *guest) rping(t *testing.T) {
	t.Helper()
	const endless = " -C 1000000000 >/dev/null 2>&1 &"
	g.must(t, "rping -s -a "+otherAddress+endless)
	eventually(t, func() error { return okWith(g.run("rdma res show cm_id | grep -q LISTEN")) })
	g.must(t, "rping -c -a "+otherAddress+" -I "+ownAddress+endless)
}

func testPeersOfRping(t *testing.T, g *guest) {
	g.rping(t)
	g.expectEnds(t, "rping", g.awaitConnections(t, 2))
	g.must(t, "kill -9 $(pidof rping)")
	g.expectNone(t)
}

var (
	perftestEnd = regexp.MustCompile(`(local|remote) address: .* QPN (0x[0-9a-f]+) .*\s+GID: ([0-9:]+)`)
	mappedGID   = regexp.MustCompile(`^(?:00:){10}255:255:`)
)

// perftestEnds returns the ends that ib_write_bw has printed: in the order of its queue pairs, first its own.
func perftestEnds(t *testing.T, output string) map[uint32]farEnd {
	t.Helper()
	found := map[string][]farEnd{}
	for _, m := range perftestEnd.FindAllStringSubmatch(output, -1) {
		number, err := strconv.ParseUint(m[2], 0, 24)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(mappedGID.ReplaceAllString(m[3], ""), ":") // decimal bytes with two digits
		for i, part := range parts {
			parts[i] = strings.TrimPrefix(part, "0")
		}
		found[m[1]] = append(found[m[1]], farEnd{uint32(number), strings.Join(parts, ".")})
	}
	if len(found["local"]) == 0 || len(found["local"]) != len(found["remote"]) {
		t.Fatalf("%v of\n%s", found, output)
	}
	ends := map[uint32]farEnd{}
	for i, near := range found["local"] {
		ends[near.peer] = found["remote"][i]
	}
	return ends
}

func testPeersOfPerftest(t *testing.T, g *guest) {
	const pairs = 4
	// It prints its ends when it has ended.
	command := func(address, name string) string {
		return fmt.Sprintf("ib_write_bw -d rxe0 -x %s -q %d -s 64 -D 40 ", g.gidOf(t, address), pairs) + name
	}
	g.must(t, command(ownAddress, ">/tmp/server 2>&1 &"))
	eventually(t, func() error { return okWith(g.run("netstat -ltn | grep -q :18515")) })
	g.must(t, command(otherAddress, "127.0.0.1 >/tmp/client 2>&1 &"))
	g.expect(t, samples{pairsSeries("known"): 2 * pairs, pairsSeries("unknown"): 0})
	var got map[uint32]farEnd
	within(t, patienceOfGuest, func() (err error) {
		if got, err = g.keptEnds("ib_write_bw"); len(got) != 2*pairs {
			err = errors.Join(err, fmt.Errorf("%d", len(got)))
		}
		return err
	})
	within(t, 2*patienceOfGuest, func() error { return okWith(g.run("! pidof ib_write_bw")) })
	want := perftestEnds(t, g.must(t, "cat /tmp/server"))
	maps.Copy(want, perftestEnds(t, g.must(t, "cat /tmp/client")))
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	t.Logf("%d queue pairs are equal: %v", len(want), want)
	g.expectNone(t)
}

// connectNVMe exports a file by the kernel's target, and connects the kernel's initiator to it.
func (g *guest) connectNVMe(t *testing.T) {
	t.Helper()
	const uuid = "8a3f5c1e-0d2b-4e57-9c61-7f04b2a9d318"
	for _, command := range []string{
		"modprobe nvmet_rdma && modprobe nvme_rdma && mount -t configfs none /sys/kernel/config && truncate -s 16M /tmp/disk",
		"cd /sys/kernel/config/nvmet && mkdir -p subsystems/lab/namespaces/1 ports/1",
		"cd /sys/kernel/config/nvmet/subsystems/lab && echo 1 >attr_allow_any_host && cd namespaces/1 && " +
			"echo /tmp/disk >device_path && echo 1 >buffered_io && echo 1 >enable",
		"cd /sys/kernel/config/nvmet/ports/1 && echo rdma >addr_trtype && echo ipv4 >addr_adrfam && " +
			"echo " + otherAddress + " >addr_traddr && echo 4420 >addr_trsvcid && " +
			"ln -s /sys/kernel/config/nvmet/subsystems/lab subsystems/lab",
		"echo -n transport=rdma,traddr=" + otherAddress + ",host_traddr=" + ownAddress + ",trsvcid=4420,nqn=lab," +
			"hostnqn=nqn.2014-08.org.nvmexpress:uuid:" + uuid + ",hostid=" + uuid + " >/dev/nvme-fabrics",
	} {
		g.must(t, command)
	}
	eventually(t, func() error { return okWith(g.run("dd if=/dev/nvme0n1 of=/dev/null bs=64k count=8")) })
}

// testPeersOfNVMe: an admin queue and one for I/O, each with two ends. Their queue pairs belong to the kernel, and are
// known again after a restart of the exporter.
func testPeersOfNVMe(t *testing.T, g *guest) {
	g.connectNVMe(t)
	ends := g.awaitConnections(t, 4)
	g.expectEnds(t, "kernel", ends)
	g.stopExporter(t)
	g.startAgain(t, peersFlags)
	g.expectEnds(t, "kernel", ends)
}

var capturedConnection = regexp.MustCompile(`(?m)^([0-9]+): port=1 pid=[0-9]+ peer=(\S+)$`)

// testPeersByCM: an exporter without eBPF programs knows the connections of rdma_cm, which are all.
func testPeersByCM(t *testing.T, g *guest) {
	g.rping(t)
	want := map[uint32]string{}
	for number, one := range g.awaitConnections(t, 6) {
		want[number] = one.address
	}
	g.stopExporter(t)
	g.startAgain(t, strings.Replace(peersFlags, "ebpf=on", "ebpf=off", 1))
	g.expect(t, samples{
		pairsSeries("known"): 6, pairsSeries("unknown"): 0, `rdma_port_peers{device="rxe0",port="1"}`: 2,
	})
	g.expectGone(t, "rdma_peer_queue_pairs_dropped_total{}")
	text := g.must(t, "/tmp/rdma_exporter capture --output=/tmp/all >/dev/null 2>&1; sed -n '/^-- rdma.rxe0.connections/,/^-- /p' /tmp/all")
	got := map[uint32]string{}
	for _, m := range capturedConnection.FindAllStringSubmatch(text, -1) {
		number, err := strconv.ParseUint(m[1], 10, 24)
		if err != nil {
			t.Fatal(err)
		}
		got[uint32(number)] = addressOf(m[2])
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v of\n%s", got, want, text)
	}
	t.Logf("%d connections are equal: %v", len(want), slices.Sorted(maps.Keys(want)))
	g.must(t, "echo 1 >/sys/class/nvme/nvme0/delete_controller; kill -9 $(pidof rping)")
	g.awaitConnections(t, 0)
}
