//go:build e2e

package netns

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	vnl "github.com/vishvananda/netlink"

	"rdma_exporter/collector"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/rounds"
)

const (
	flaps    = 200
	patience = 20 * time.Second
	interval = 5 * time.Millisecond  // between rounds
	pace     = 10 * time.Millisecond // between flaps, which are much shorter
	// settled is longer than the collector waits for the event of an interface that came up while it was read first.
	settled = 4 * time.Second
	// still is how long a result has to be stable: longer than any delay in the kernel and the exporter.
	still = 5 * time.Second
)

// link is a veth pair: our end has a carrier while both ends are up.
type link struct {
	t         *testing.T
	own, peer vnl.Link
}

func newLink(t *testing.T, name string) *link {
	t.Helper()
	l := &link{t: t}
	t.Cleanup(l.remove)
	l.add(name)
	return l
}

func (l *link) add(name string) {
	l.t.Helper()
	peer := name + "-peer"
	l.must(vnl.LinkAdd(&vnl.Veth{LinkAttrs: vnl.LinkAttrs{Name: name}, PeerName: peer}))
	var err error
	if l.own, err = vnl.LinkByName(name); err == nil {
		l.peer, err = vnl.LinkByName(peer)
	}
	l.must(err)
	l.must(vnl.LinkSetUp(l.own))
	l.must(vnl.LinkSetUp(l.peer))
}

func (l *link) remove() { l.must(vnl.LinkDel(l.own)) }

func (l *link) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// lose removes and restores the carrier from the other end.
func (l *link) lose() {
	l.must(vnl.LinkSetDown(l.peer))
	l.must(vnl.LinkSetUp(l.peer))
}

// toggle sets our end down and up.
func (l *link) toggle() {
	l.must(vnl.LinkSetDown(l.own))
	l.must(vnl.LinkSetUp(l.own))
}

// times repeats an action, during rounds.
func (l *link) times(n int, do func()) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for range n {
		do()
		<-tick.C
	}
}

// heard signals when the exporter listens, and can block it from receiving events.
type heard struct {
	host.Events
	listening chan struct{}
	gate      chan struct{} // events are received once it is closed
}

func (h *heard) Links(ctx context.Context, listening func(), each func(host.LinkEvent)) error {
	return h.Events.Links(ctx, func() {
		listening()
		close(h.listening)
	}, func(e host.LinkEvent) {
		<-h.gate
		each(e)
	})
}

// watch is an exporter that has seen the link, and collects continuously.
type watch struct {
	t      *testing.T
	events *heard
	rounds *rounds.Scheduler

	mu          sync.Mutex
	downs, ups  float64
	there       bool
	faults      []string
	collections int
}

func newWatch(t *testing.T, netdev string, buffer int, gate chan struct{}) *watch {
	t.Helper()
	opened, err := live.Open(rooted.Paths{RootFS: tree(t, netdev)})
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{
		t: t, events: &heard{Events: netlink.NewEvents(opened.Files, buffer), listening: make(chan struct{}), gate: gate},
	}
	h := opened.Host
	h.Events = w.events
	ctx, cancel := context.WithCancel(context.Background())
	w.rounds = rounds.New(ctx, rounds.Options{
		Host: &h, Collectors: collector.All(collector.Options{}), Timeout: patience, Logger: slog.New(slog.DiscardHandler),
	})
	var listening, collecting sync.WaitGroup
	done := make(chan struct{})
	t.Cleanup(func() {
		close(done)
		collecting.Wait() // a round that is cut off waits for its deadline
		cancel()
		listening.Wait()
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	listening.Go(func() { w.rounds.Listen(ctx) })
	select {
	case <-w.events.listening:
	case <-time.After(patience):
		t.Fatal("the exporter does not listen")
	}
	w.collect()
	collecting.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.collect()
			case <-done:
				return
			}
		}
	})
	return w
}

// collect runs a round; counters must not decrease.
func (w *watch) collect() {
	p, err := w.rounds.Collect(context.Background(), nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.collections++
	if err != nil {
		w.faults = append(w.faults, err.Error())
		return
	}
	downs, there := sample(p, "down")
	ups, _ := sample(p, "up")
	w.there = there
	if !there {
		return
	}
	if downs < w.downs || ups < w.ups {
		w.faults = append(w.faults, fmt.Sprintf("%v downs and %v ups became %v and %v", w.downs, w.ups, downs, ups))
	}
	w.downs, w.ups = downs, ups
}

// sample returns the counter of the only port.
func sample(p *rounds.Picture, to string) (v float64, ok bool) {
	for _, line := range strings.Split(string(exposition.AppendText(nil, p.Families)), "\n") {
		name, value, _ := strings.Cut(line, " ")
		if strings.HasPrefix(name, "rdma_port_link_transitions_total{") && strings.Contains(name, fmt.Sprintf("to=%q", to)) {
			_, err := fmt.Sscan(value, &v)
			return v, err == nil
		}
	}
	return 0, false
}

// expect waits for the counts, and checks that they are stable for a while. Less than 0 is any.
func (w *watch) expect(ups, downs float64, stay time.Duration) {
	w.t.Helper()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	deadline, since := time.Now().Add(patience), time.Time{}
	for {
		<-tick.C
		w.mu.Lock()
		there, gotUps, gotDowns, faults, n := w.there, w.ups, w.downs, w.faults, w.collections
		w.mu.Unlock()
		now := time.Now()
		good := there && gotDowns == downs && (gotUps == ups || ups < 0)
		switch {
		case len(faults) > 0:
			w.t.Fatal(strings.Join(faults, "\n"))
		case !there && now.Before(deadline): // a recreated interface: what was stable was the one before
			since = time.Time{}
		case good && since.IsZero() && stay > 0:
			since = now
		case good && now.Sub(since) >= stay:
			w.t.Logf("%v downs and %v ups, %d rounds", gotDowns, gotUps, n)
			return
		case !good && (!since.IsZero() || now.After(deadline)):
			w.t.Fatalf("%v downs and %v ups, want %v and %v", gotDowns, gotUps, downs, ups)
		}
	}
}

func open() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func TestLinks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		do    func(*link)
		count float64 // downs and ups
	}{
		{"lost", func(l *link) { l.lose() }, flaps},
		{"by hand", func(l *link) { l.toggle() }, 0},
		{"mixed", func(l *link) { l.lose(); l.toggle() }, flaps},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t, "veth-"+c.name[:2])
			w := newWatch(t, l.own.Attrs().Name, host.EventBuffer, open())
			l.times(flaps, func() { c.do(l) })
			w.expect(c.count, c.count, still)
			if n := w.events.Overruns(); n != 0 {
				t.Errorf("%d overruns", n)
			}
		})
	}
}

// TestOverrun: lost events do not lose link losses.
func TestOverrun(t *testing.T) {
	t.Parallel()
	l := newLink(t, "veth-ov")
	gate := make(chan struct{})
	w := newWatch(t, l.own.Attrs().Name, 1, gate)
	l.times(flaps, l.lose)
	close(gate)
	w.expect(flaps, flaps, still)
	if w.events.Overruns() == 0 {
		t.Error("no overrun: the test does not show what it is for")
	}
}

// TestMadeAgain: a recreated interface counts from 0, and the exporter continues its counts.
func TestMadeAgain(t *testing.T) {
	t.Parallel()
	l := newLink(t, "veth-ag")
	w := newWatch(t, l.own.Attrs().Name, host.EventBuffer, open())
	l.times(3, l.lose)
	w.expect(3, 3, 0)
	l.remove()
	l.add("veth-ag")
	w.expect(-1, 3, settled)
	l.times(2, l.lose)
	w.expect(-1, 5, still)
}
