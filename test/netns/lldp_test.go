//go:build e2e

package netns

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/lldp"
	"rdma_exporter/internal/rounds"
)

// ear signals when the exporter receives frames.
type ear struct {
	host.LLDP
	listening chan struct{}
}

func (e *ear) Receive(
	ctx context.Context, names []string, under func(int, func()) error, listening func(), each func(string, []byte),
) error {
	return e.LLDP.Receive(ctx, names, under, func() {
		listening()
		e.listening <- struct{}{}
	}, each)
}

// announcer sends frames from the other end of a link, like a switch.
type announcer struct {
	t  *testing.T
	fd int
	to syscall.SockaddrLinklayer
}

func newAnnouncer(t *testing.T, l *link) *announcer {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	return &announcer{t: t, fd: fd, to: syscall.SockaddrLinklayer{Ifindex: l.peer.Attrs().Index, Halen: 6}}
}

// say announces a system with a TTL. The groups are those of IEEE 802.1AB; 01:80:c2:00:00:02 is that of LACP.
func (a *announcer) say(system string, seconds, group byte) {
	a.t.Helper()
	frame := lldp.Frame([6]byte{2, 0, 0, 0, 0, 9},
		lldp.TLV{Type: lldp.TypeChassisID, Value: []byte("\x07" + system)},
		lldp.TLV{Type: lldp.TypePortID, Value: []byte("\x05swp1")},
		lldp.TLV{Type: lldp.TypeTTL, Value: []byte{0, seconds}}, lldp.TLV{Type: lldp.TypeSystemName, Value: []byte(system)},
		lldp.TLV{Type: lldp.TypeCapabilities, Value: []byte{0, 4, 0, 4}})
	frame[5] = group
	if err := syscall.Sendto(a.fd, frame, 0, &a.to); err != nil {
		a.t.Fatal(err)
	}
}

// groups returns the multicast addresses in the filter of an interface: /proc/net/dev_mcast.
func groups(t *testing.T, netdev string) (out []string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/net/dev_mcast")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 5 && f[1] == netdev && strings.HasPrefix(f[4], "0180c2") {
			out = append(out, f[4])
		}
	}
	slices.Sort(out)
	return out
}

// listener is an exporter that receives LLDP on a link.
type listener struct {
	t      *testing.T
	netdev string
	ear    *ear
	rounds *rounds.Scheduler
	stop   func()
}

func newListener(t *testing.T, netdev string) *listener {
	t.Helper()
	opened, err := live.Open(rooted.Paths{RootFS: tree(t, netdev)})
	if err != nil {
		t.Fatal(err)
	}
	e := &listener{
		t:      t,
		netdev: netdev,
		ear:    &ear{LLDP: netlink.NewLLDP(opened.Files), listening: make(chan struct{}, 16)},
	}
	h := opened.Host
	h.LLDP = e.ear
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	e.rounds = rounds.New(ctx, rounds.Options{
		Host: &h, Collectors: collector.All(collector.Options{ListenLLDP: true}), Timeout: patience,
		Logger: slog.New(slog.DiscardHandler),
	})
	running.Go(func() { e.rounds.Listen(ctx) })
	e.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(func() {
		e.stop()
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// joins waits until frames are received. The first round determines the interfaces.
func (e *listener) joins() {
	e.t.Helper()
	e.series()
	select {
	case <-e.ear.listening:
	case <-time.After(patience):
		e.t.Fatal("the exporter does not listen")
	}
}

// series returns the series on neighbours.
func (e *listener) series() (out []string) {
	e.t.Helper()
	p, err := e.rounds.Collect(context.Background(), nil)
	if err != nil {
		e.t.Fatal(err)
	}
	for line := range strings.Lines(string(exposition.AppendText(nil, p.Families))) {
		if strings.HasPrefix(line, "rdma_port_neighbour_info{") || strings.HasPrefix(line, "rdma_port_lldp_neighbours{") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// expect waits for a system, and a number of neighbours; 0: none.
func (e *listener) expect(system string, n int) {
	e.t.Helper()
	var want, got []string
	if n > 0 {
		want = []string{
			fmt.Sprintf(`rdma_port_neighbour_info{device="rxe0",netdev=%q,port="1",port_id="swp1",source="lldp",system=%q} 1`, e.netdev, system),
			fmt.Sprintf(`rdma_port_lldp_neighbours{device="rxe0",netdev=%q,port="1"} %d`, e.netdev, n),
		}
	}
	slices.Sort(want)
	tick := time.NewTicker(10 * interval)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if got = e.series(); slices.Equal(slices.Sorted(slices.Values(got)), want) {
			return
		}
	}
	e.t.Fatalf("%q, want %q", got, want)
}

// TestLLDP: real frames on a real interface are received, counted, and valid for their TTL; the groups are joined while
// the exporter listens.
func TestLLDP(t *testing.T) {
	t.Parallel()
	l := newLink(t, "veth-ll")
	if got := groups(t, "veth-ll"); got != nil {
		t.Fatalf("groups %q before", got)
	}
	e, a := newListener(t, "veth-ll"), newAnnouncer(t, l)
	e.joins()
	if got := groups(t, "veth-ll"); !slices.Equal(got, []string{"0180c2000000", "0180c2000003", "0180c200000e"}) {
		t.Errorf("groups %q", got)
	}
	e.expect("", 0)
	a.say("leaf-1", 120, 0x02) // not a group of LLDP
	e.expect("", 0)
	a.say("leaf-1", 120, 0x0e)
	e.expect("leaf-1", 1)
	a.say("leaf-2", 2, 0x03)
	e.expect("leaf-2", 2)
	e.expect("leaf-1", 1) // the TTL of leaf-2 has expired
	a.say("leaf-1", 0, 0x00)
	e.expect("", 0)

	e.stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); groups(t, "veth-ll") != nil; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("groups %q after the end", groups(t, "veth-ll"))
		}
	}
}
