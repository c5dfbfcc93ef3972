//go:build e2e

package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/program"
)

const (
	ownAddress  = "10.0.2.15"
	noNeighbour = "10.0.2.77" // no machine of qemu's network has this address
	peersFlags  = "--no-alerting --collect.no-budget --collector.ebpf=on"
)

func pairsSeries(peer string) string {
	return fmt.Sprintf(`rdma_port_peer_queue_pairs{device="rxe0",peer=%q,port="1"}`, peer)
}

func lostSeries(peer, certainty string) string {
	return fmt.Sprintf(`rdma_port_peer_lost_total{certainty=%q,device="rxe0",peer=%q,port="1"}`, certainty, peer)
}

// TestPeers: peers of queue pairs of soft RoCE, seen by eBPF programs.
func TestPeers(t *testing.T) {
	exporter := program.Exporter(t)
	g := bootGuest(t, 1, 1)
	t.Logf("kernel %s", g.must(t, "uname -r"))
	build := exec.CommandContext(t.Context(), "gcc", "-Wall", "-Werror", "-O2", "-o", filepath.Join(g.share, "pairs"),
		"pairs/pairs.c", "-libverbs")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.must(t, "cp "+shareMount+"/pairs /tmp/")
	eventually(t, func() error {
		return okWith(g.run("grep -q ffff /sys/class/infiniband/rxe0/ports/1/gids/1"))
	})
	g.pairs(t, "older", "hold 2")
	g.startExporter(t, exporter, strings.Fields(peersFlags)...)

	for _, step := range []struct {
		name string
		run  func(*testing.T, *guest)
	}{
		{"older than the programs", testOlderPairs},
		{"known peers", testKnownPeers},
		{"restart of the exporter", testPeersRestart},
		{"killed", testPeersKilled},
		{"normal disconnects", testNormalDisconnects},
		{"ten thousand pairs", testManyPairs},
		{"no neighbour", testNoNeighbour},
		{"retries exceeded", testRetriesExceeded},
		{"retries exceeded, program leaves", testRetriesLeave},
		{"cut", testCut},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, g) }) {
			break
		}
	}
	t.Run("logs", func(t *testing.T) { testLogs(t, g) })
}

// pairs runs the program in the background, with its output in a file, and waits until it is ready or has ended.
func (g *guest) pairs(t *testing.T, name, args string) (output string) {
	t.Helper()
	file := "/tmp/pairs." + name
	g.must(t, "rm -f "+file+"; (/tmp/pairs rxe0 1 "+args+"; echo ended) >"+file+" 2>&1 &")
	within(t, patienceOfGuest, func() (err error) {
		if output, err = g.run("cat " + file); err == nil && !strings.Contains(output, "ready ") &&
			!strings.Contains(output, "ended") {
			return errors.New("not ready")
		}
		return err
	})
	return output
}

func (g *guest) killPairs(t *testing.T) {
	t.Helper()
	g.must(t, "kill -9 $(pidof pairs); sleep 1")
}

// nothingLost expects that no peer is lost beyond those of before.
func (g *guest) nothingLost(t *testing.T) {
	t.Helper()
	s, err := scrape(t.Context(), g.url)
	if err != nil {
		t.Fatal(err)
	}
	for key := range s {
		if strings.HasPrefix(key, "rdma_port_peer_lost_total") {
			t.Errorf("%s %f", key, s[key])
		}
	}
}

// settle makes rounds until what has happened is judged.
func (g *guest) settle(t *testing.T) {
	t.Helper()
	for range 4 {
		if _, err := scrape(t.Context(), g.url); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
	}
}

func testOlderPairs(t *testing.T, g *guest) {
	g.expectWithin(t, patienceOfGuest, samples{
		pairsSeries("known"): 0, pairsSeries("unknown"): 4, `rdma_port_peers{device="rxe0",port="1"}`: 0,
		`rdma_port_gid_info{device="rxe0",gid="` + ownAddress + `",port="1"}`: 1,
	})
	g.killPairs(t)
	g.expect(t, samples{pairsSeries("known"): 0, pairsSeries("unknown"): 0})
	g.nothingLost(t)
}

func testKnownPeers(t *testing.T, g *guest) {
	output := g.pairs(t, "known", "hold 8")
	g.expect(t, samples{
		pairsSeries("known"): 16, pairsSeries("unknown"): 0, `rdma_port_peers{device="rxe0",port="1"}`: 1,
	})
	want := map[[2]uint32]bool{}
	for line := range strings.Lines(output) {
		var a, b uint32
		if n, _ := fmt.Sscanf(line, "%d %d", &a, &b); n == 2 {
			want[[2]uint32{a, b}], want[[2]uint32{b, a}] = true, true
		}
	}
	within(t, patienceOfGuest, func() error {
		groups, err := g.keptGroups()
		if err != nil {
			return err
		}
		for _, one := range groups {
			if one.Device != "rxe0" || one.Port != 1 || one.Command != "pairs" || len(one.Pairs) != len(want) ||
				slices.ContainsFunc(one.Pairs, func(p [2]uint32) bool { return !want[p] }) {
				return fmt.Errorf("%+v, want %v", one, want)
			}
		}
		if len(groups) != 1 {
			return fmt.Errorf("%d groups", len(groups))
		}
		return nil
	})
}

// keptGroup are the queue pairs of one process with one peer, as the exporter keeps them over a restart.
type keptGroup struct {
	Device, Peer, Command string
	Port                  int
	Pairs                 [][2]uint32
}

func (g *guest) keptGroups() ([]keptGroup, error) {
	text, err := g.run("cat /var/lib/rdma_exporter/peers/state.v1.json")
	if err != nil {
		return nil, okWith(text, err)
	}
	var kept struct{ Value struct{ Groups []keptGroup } }
	err = json.Unmarshal([]byte(text), &kept)
	return kept.Value.Groups, err
}

func (g *guest) stopExporter(t *testing.T) {
	t.Helper()
	g.must(t, "kill $(pidof rdma_exporter); while pidof rdma_exporter; do sleep 1; done")
}

func (g *guest) startAgain(t *testing.T, flags string) {
	t.Helper()
	g.must(t, "/tmp/rdma_exporter "+flags+" --web.listen-address=:"+guestPort+" >>"+shareMount+"/exporter.log 2>&1 &")
}

// testPeersRestart: what was known before counts again, a pair connected meanwhile does not.
func testPeersRestart(t *testing.T, g *guest) {
	g.stopExporter(t)
	g.pairs(t, "meanwhile", "hold 1")
	g.startAgain(t, peersFlags)
	g.expectWithin(t, patienceOfGuest, samples{pairsSeries("known"): 16, pairsSeries("unknown"): 2})
	g.nothingLost(t)
}

// testPeersKilled: the end of healthy programs accuses nobody.
func testPeersKilled(t *testing.T, g *guest) {
	g.killPairs(t)
	g.expect(t, samples{pairsSeries("known"): 0, pairsSeries("unknown"): 0})
	g.settle(t)
	g.nothingLost(t)
}

func testNormalDisconnects(t *testing.T, g *guest) {
	if out := g.pairs(t, "error", "error 50"); !strings.Contains(out, "done") {
		t.Fatal(out)
	}
	g.expect(t, samples{pairsSeries("known"): 0, pairsSeries("unknown"): 0})
	g.settle(t)
	g.nothingLost(t)
}

func testManyPairs(t *testing.T, g *guest) {
	memory := func() int {
		var kB int
		if _, err := fmt.Sscan(g.must(t, "awk '/VmRSS/ {print $2}' /proc/$(pidof rdma_exporter)/status"), &kB); err != nil {
			t.Fatal(err)
		}
		return kB
	}
	before, start := memory(), time.Now()
	if out := g.pairs(t, "cycle", "cycle 5000"); !strings.Contains(out, "done") {
		t.Fatal(out)
	}
	took := time.Since(start)
	g.expect(t, samples{
		pairsSeries("known"): 0, pairsSeries("unknown"): 0, "rdma_gdr_trace_lost_events_total{}": 0,
	})
	after := memory()
	t.Logf("10,000 queue pairs connected and destroyed in %v, resident %d kB before, %d kB after", took, before, after)
	if after > before+32<<10 {
		t.Errorf("%d kB more", after-before)
	}
	g.nothingLost(t)
}

// testNoNeighbour: a failed move to RTR names its peer within seconds.
func testNoNeighbour(t *testing.T, g *guest) {
	const attempts = 2
	out := g.pairs(t, "to", fmt.Sprintf("to %d ::ffff:%s", attempts, noNeighbour))
	failed := time.Now()
	const etimedout = 110
	if strings.Count(out, fmt.Sprintf("failed %d", etimedout)) != attempts {
		t.Fatalf("%s", out)
	}
	g.expect(t, samples{
		lostSeries(noNeighbour, "exact"): attempts,
		`rdma_port_peer_unreachable_info{command="pairs",device="rxe0",error="timed_out",peer="` + noNeighbour + `",port="1"}`: 1,
		pairsSeries("known"): 0,
	})
	t.Logf("named %v after the last attempt", time.Since(failed).Round(100*time.Millisecond))
}

// testRetriesExceeded: queue pairs that the driver puts into ERR.
func testRetriesExceeded(t *testing.T, g *guest) {
	out := g.pairs(t, "lose", "lose 3")
	start := time.Now()
	g.expectWithin(t, patienceOfGuest, samples{lostSeries(ownAddress, "nearly_exact"): 3})
	t.Logf("%s\nnamed %v after the program was ready", out, time.Since(start).Round(100*time.Millisecond))
	g.killPairs(t)
	g.settle(t)
	g.expect(t, samples{lostSeries(ownAddress, "nearly_exact"): 3})
	g.expectGone(t, lostSeries(ownAddress, "candidate"))
}

// testRetriesLeave: the program has ended before its queue pairs could be listed. Both ends were destroyed within
// seconds.
func testRetriesLeave(t *testing.T, g *guest) {
	g.pairs(t, "leave", "leave 1")
	g.expectWithin(t, patienceOfGuest, samples{lostSeries(ownAddress, "candidate"): 2})
	g.expect(t, samples{lostSeries(ownAddress, "nearly_exact"): 3})
}
