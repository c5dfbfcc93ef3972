//go:build e2e

package kernel

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// startEnd starts one end of a pair, and returns its number.
func (g *guest) startEnd(t *testing.T, device, peer string) (number string) {
	t.Helper()
	eventually(t, func() error {
		return okWith(g.run("grep -q ffff:0a09 /sys/class/infiniband/" + device + "/ports/1/gids/1"))
	})
	file := "/tmp/" + device
	g.must(t, "mkfifo "+file+".in; /tmp/pairs "+device+" 1 end 1 ::ffff:"+peer+" <>"+file+".in >"+file+" 2>&1 &")
	within(t, patienceOfGuest, func() error {
		out, err := g.run("cat " + file)
		var found bool
		if number, found = strings.CutPrefix(out, "number "); err == nil && !found {
			err = errors.New(out)
		}
		return err
	})
	return number
}

// tellEnd gives an end a number, and waits for its answer.
func (g *guest) tellEnd(t *testing.T, device, number, want string) {
	t.Helper()
	g.must(t, "echo "+number+" >/tmp/"+device+".in")
	within(t, patienceOfGuest, func() error {
		out, err := g.run("tail -n 1 /tmp/" + device)
		if err == nil && !strings.HasPrefix(out, want) {
			err = errors.New(out)
		}
		return err
	})
}

// testCut: two ends on a wire of their own that loses everything from one moment on. Only the end that sends notices.
func testCut(t *testing.T, g *guest) {
	const near, far = "10.9.0.1", "10.9.0.2"
	for _, command := range []string{
		"ip link add v1 type veth peer name v2",
		// Both addresses are of this machine: what it sends to them goes to the wire, and comes from there.
		"ip rule add pref 500 iif lo lookup main && ip rule add pref 1000 lookup local && ip rule del pref 0",
		"for v in v1 v2; do echo 1 >/proc/sys/net/ipv4/conf/$v/accept_local; echo 0 >/proc/sys/net/ipv4/conf/$v/rp_filter; done",
		"echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter; ip addr add " + near + "/24 dev v1; ip addr add " + far + "/24 dev v2",
		"ip link set v1 up; ip link set v2 up",
		"ip neigh replace " + far + " dev v1 nud permanent lladdr $(cat /sys/class/net/v2/address)",
		"ip neigh replace " + near + " dev v2 nud permanent lladdr $(cat /sys/class/net/v1/address)",
		"rdma link add rxe1 type rxe netdev v1; rdma link add rxe2 type rxe netdev v2",
		"modprobe sch_netem",
	} {
		g.must(t, command)
	}
	ownNumber, peerNumber := g.startEnd(t, "rxe1", far), g.startEnd(t, "rxe2", near)
	g.tellEnd(t, "rxe1", peerNumber, "ready")
	g.tellEnd(t, "rxe2", ownNumber, "ready")
	g.tellEnd(t, "rxe1", "1", "completion 0")
	known := func(device string) string { return strings.ReplaceAll(pairsSeries("known"), "rxe0", device) }
	g.expect(t, samples{known("rxe1"): 1, known("rxe2"): 1})
	g.must(t, "/usr/bin/tc qdisc add dev v1 root netem delay 200s")
	g.tellEnd(t, "rxe1", "1", "completion 12") // IBV_WC_RETRY_EXC_ERR
	cut := time.Now()
	lost := strings.ReplaceAll(lostSeries(far, "nearly_exact"), "rxe0", "rxe1")
	g.expectWithin(t, patienceOfGuest, samples{lost: 1})
	t.Logf("named %v after the completion", time.Since(cut).Round(100*time.Millisecond))
	g.killPairs(t)
	g.settle(t)
	s, err := scrape(t.Context(), g.url)
	if err != nil {
		t.Fatal(err)
	}
	for key := range s {
		if strings.HasPrefix(key, "rdma_port_peer_lost_total") && !strings.Contains(key, `"rxe0"`) && key != lost {
			t.Errorf("%s %f", key, s[key])
		}
	}
}
