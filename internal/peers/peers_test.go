package peers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/snapshot/qp"
)

// Errors of Linux.
const (
	enetunreach  = 101
	etimedout    = 110
	ehostunreach = 113
)

// base is when the programs were attached.
var base = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)

const (
	nic  = "mlx5_3"
	near = "0000:0000:0000:0000:0000:ffff:0a00:0011"
	far  = "0000:0000:0000:0000:0000:ffff:0a00:0012"
)

// course is events, counters and lists of one device with one port, each at a time in seconds.
type course struct {
	t      *testing.T
	table  *Table
	seq    uint64
	since  time.Time
	queues map[uint64]qp.QueuePair // what RDMA netlink lists
	lists  int
	events []qp.PairEvent
}

func newCourse(t *testing.T) *course {
	c := &course{t: t, table: New(), since: base, queues: map[uint64]qp.QueuePair{}}
	c.round(0, 0)
	return c
}

func when(s float64) time.Time { return base.Add(time.Duration(s * float64(time.Second))) }

func (c *course) event(s float64, e qp.PairEvent) {
	c.seq++
	e.Seq, e.At, e.Device, e.PID = c.seq, when(s), nic, 4711
	c.events = append(c.events, e)
}

func (c *course) connect(s float64, number uint64, peer string) {
	c.event(s, qp.PairEvent{
		Kind: qp.PairConnected, Port: 1, QPN: number, Peer: peer, PeerQPN: number + 100, RoCE: true, Command: "python3",
	})
	c.queues[number] = qp.QueuePair{QPN: number, PeerQPN: number + 100, Port: 1, PID: 4711, State: 3}
}

func (c *course) refuse(s float64, peer string, roce bool, errno int) {
	c.event(s, qp.PairEvent{
		Kind: qp.PairRefused, Port: 1, QPN: 9, Peer: peer, RoCE: roce, Errno: errno, Command: "python3",
	})
}

// fail puts a queue pair into ERR by the hardware: no event.
func (c *course) fail(number uint64) {
	q := c.queues[number]
	q.State = stateERR
	c.queues[number] = q
}

// put puts it there by its process.
func (c *course) put(s float64, number uint64) {
	c.fail(number)
	c.event(s, qp.PairEvent{Kind: qp.PairError, QPN: number})
}

func (c *course) end(s float64, number uint64) {
	c.event(s, qp.PairEvent{Kind: qp.PairEnded, QPN: number})
	delete(c.queues, number)
}

// round is a round of the exporter: the counter of exceeded retries has a value.
func (c *course) round(s float64, exceeded uint64) {
	c.table.Take(&qp.Pairs{Since: c.since, Events: c.events})
	c.events = nil
	c.table.Count(nic, 1, exceeded, when(s))
	if c.table.Wants(nic, when(s)) {
		c.lists++
		var found []qp.QueuePair
		for _, q := range c.queues {
			found = append(found, q)
		}
		c.table.List(nic, found, when(s))
	}
	c.table.Judge(when(s))
}

// lost expects the lost peers, each "PEER CERTAINTY PAIRS" with the last group of the peer's address.
func (c *course) lost(want ...string) {
	c.t.Helper()
	var got []string
	for _, l := range c.table.Sum().Lost {
		got = append(got, fmt.Sprintf("%s %s %d", l.Peer[strings.LastIndexByte(l.Peer, ':')+1:], l.Certainty, l.Pairs))
	}
	if !reflect.DeepEqual(got, want) {
		c.t.Errorf("lost %q, want %q", got, want)
	}
}

// known expects the queue pairs of the port.
func (c *course) known(known, connected, peers int) {
	c.t.Helper()
	got := c.table.Sum().Ports
	want := []qp.PeersOfPort{{Device: nic, Port: 1, Known: known, Connected: &connected, Peers: peers}}
	if !reflect.DeepEqual(got, want) {
		b, _ := json.Marshal(got)
		c.t.Errorf("%s, want %d of %d, %d peers", b, known, connected, peers)
	}
}

func TestRefused(t *testing.T) {
	for _, x := range []struct {
		name  string
		roce  bool
		errno int
		want  []string
	}{
		{"no neighbour", true, etimedout, []string{"0011 exact 1"}},
		{"no route", true, enetunreach, []string{"0011 exact 1"}},
		{"host unreachable", true, ehostunreach, []string{"0011 exact 1"}},
		{"invalid argument", true, 22, nil},
		{"no memory", true, 12, nil},
		{"InfiniBand", false, etimedout, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCourse(t)
			c.refuse(1, near, x.roce, x.errno)
			c.round(2, 0)
			c.lost(x.want...)
			c.known(0, 0, 0)
		})
	}
}

// TestRefusedIsTold: what an alert has to say of a failed move.
func TestRefusedIsTold(t *testing.T) {
	c := newCourse(t)
	c.refuse(1, near, true, etimedout)
	c.refuse(3, near, true, ehostunreach)
	c.round(4, 0)
	want := qp.LostPeer{
		Device: nic, Port: 1, Peer: near, Certainty: qp.LostExactly, Pairs: 2, First: when(1), Last: when(3),
		Errno: ehostunreach, PID: 4711, Command: "python3",
	}
	if got := c.table.Sum().Lost; len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCourses(t *testing.T) {
	for name, x := range map[string]struct {
		run  func(*course)
		want []string
	}{
		"retries exceeded, program lives": {func(c *course) {
			c.fail(1)
			c.fail(2)
			c.round(15, 2)
			c.round(30, 2)
		}, []string{"0011 nearly_exact 2"}},
		"then the program ends": {func(c *course) {
			c.fail(1)
			c.round(15, 1)
			for n := range uint64(4) {
				c.end(16, n+1)
			}
			c.round(30, 1)
		}, []string{"0011 nearly_exact 1"}},
		"program ends at once": {func(c *course) {
			for n := range uint64(4) {
				c.end(14, n+1)
			}
			c.round(15, 1)
			c.round(30, 1)
		}, []string{"0011 candidate 2", "0012 candidate 2"}},
		"program ends seconds later": {func(c *course) {
			c.round(15, 1)
			c.end(19, 3)
			c.round(30, 1)
		}, []string{"0012 candidate 1"}},
		"program ends much later": {func(c *course) {
			c.round(15, 1)
			c.round(30, 1)
			c.end(40, 3)
			c.round(45, 1)
			c.round(90, 1)
		}, nil},
		"healthy disconnect": {func(c *course) {
			c.put(10, 1)
			c.end(11, 1)
			c.round(15, 0)
		}, nil},
		"healthy disconnect beside exceeded retries": {func(c *course) {
			c.put(10, 1)
			c.put(10, 3)
			c.round(15, 1)
			c.end(16, 1)
			c.end(16, 3)
			c.round(30, 1)
		}, nil},
		"program killed": {func(c *course) {
			for n := range uint64(4) {
				c.end(14, n+1)
			}
			c.round(15, 0)
			c.round(30, 0)
		}, nil},
		"killed long before the retries": {func(c *course) {
			c.end(1, 1)
			c.round(15, 0)
			c.round(30, 1)
			c.round(45, 1)
		}, nil},
		"fatal event": {func(c *course) {
			c.fail(1)
			c.event(10, qp.PairEvent{Kind: qp.PairEvented, QPN: 1, Event: "qp_access_error"})
			c.round(15, 1)
		}, nil},
		"in ERR before the rise": {func(c *course) {
			c.fail(1)
			c.since = when(10) // a loss of events: a list without a rise
			c.round(45, 0)
			c.round(90, 1)
		}, nil},
		"counter of a replaced device": {func(c *course) {
			c.round(15, 7)
			c.fail(1)
			c.round(50, 3)
		}, nil},
		"rise of unknown time": {func(c *course) {
			c.fail(1)
			c.round(600, 1)
		}, nil},
		"silent cut, program waits": {func(c *course) {
			c.round(15, 0)
			c.round(3600, 0)
		}, nil},
		"twice": {func(c *course) {
			c.fail(1)
			c.round(45, 1)
			c.fail(3)
			c.round(90, 2)
		}, []string{"0011 nearly_exact 1", "0012 nearly_exact 1"}},
		"numbers used again": {func(c *course) {
			c.end(10, 1)
			c.connect(11, 1, far)
			c.fail(1)
			c.round(15, 1)
		}, []string{"0012 nearly_exact 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourse(t)
			for n, peer := range []string{near, near, far, far} {
				c.connect(0.5, uint64(n+1), peer)
			}
			c.round(1, 0)
			c.known(4, 4, 2)
			x.run(c)
			c.lost(x.want...)
		})
	}
}

// TestHealthyHour: jobs connect, disconnect, are killed and fail by themselves for an hour; nobody is named.
func TestHealthyHour(t *testing.T) {
	c, r, number, ended := newCourse(t), rand.New(rand.NewPCG(1, 2)), uint64(1), 0
	var living []uint64
	for s := 1.0; s < 3600; s += 15 {
		for range 1 + r.IntN(8) {
			c.connect(s+r.Float64(), number, []string{near, far}[r.IntN(2)])
			living = append(living, number)
			number++
		}
		for n := r.IntN(12); n > 0 && len(living) > 0; n-- {
			i := r.IntN(len(living))
			one := living[i]
			living = slices.Delete(living, i, i+1)
			switch at := s + 2 + 10*r.Float64(); r.IntN(3) {
			case 0: // disconnects
				c.put(at, one)
				c.end(at+0.1, one)
			case 1: // is killed
				c.end(at, one)
			case 2: // an access error: the program ends later
				c.fail(one)
				c.event(at, qp.PairEvent{Kind: qp.PairEvented, QPN: one, Event: "qp_access_error"})
				c.end(at+1, one)
			}
			ended++
		}
		slices.SortStableFunc(c.events, func(a, b qp.PairEvent) int { return a.At.Compare(b.At) })
		for i := range c.events {
			c.events[i].Seq = c.seq - uint64(len(c.events)-1-i)
		}
		c.round(s+14, 0)
	}
	if c.lost(); number < 500 || ended < 500 {
		t.Errorf("%d queue pairs, %d of them ended", number, ended)
	}
}

// TestListsAreBounded: a counter that rises in each round asks for a list each half minute.
func TestListsAreBounded(t *testing.T) {
	c := newCourse(t)
	c.connect(1, 1, near)
	for i := range 240 {
		c.round(float64(15*i)+2, uint64(i))
	}
	if most := 1 + 3600/int(listAgain.Seconds()); c.lists > most || c.lists < most/2 {
		t.Errorf("%d lists in an hour", c.lists)
	}
	c.round(3650, 239)
	c.lists = 0
	for i := range 240 {
		c.round(float64(15*i)+3700, 239)
	}
	if c.lists != 0 {
		t.Errorf("%d lists without a reason", c.lists)
	}
}

// restarted returns the course with the table of a process that has read what this one has kept.
func (c *course) restarted(s float64) *course {
	b, err := json.Marshal(c.table.Data())
	if err != nil {
		c.t.Fatal(err)
	}
	var kept Saved
	if err := json.Unmarshal(b, &kept); err != nil {
		c.t.Fatal(err)
	}
	next := &course{t: c.t, table: New(), since: when(s), queues: c.queues}
	next.table.Absorb(kept)
	return next
}

func TestRestart(t *testing.T) {
	c := newCourse(t)
	for n := range uint64(6) {
		c.connect(1, n+1, near)
	}
	c.round(2, 0)
	delete(c.queues, 1)                                                              // ended between the two runs
	c.queues[2] = qp.QueuePair{QPN: 2, PeerQPN: 77, Port: 1, PID: 4711, State: 3}    // another peer
	c.queues[3] = qp.QueuePair{QPN: 3, PeerQPN: 103, Port: 1, PID: 4712, State: 3}   // another process
	c.queues[50] = qp.QueuePair{QPN: 50, PeerQPN: 150, Port: 1, PID: 4711, State: 3} // a new one
	c = c.restarted(10)
	c.round(11, 0)
	c.known(3, 6, 1)
	c.end(12, 50)
	c.fail(4)
	c.round(20, 0)
	c.known(3, 5, 1)
	c.round(60, 1)
	c.lost("0011 nearly_exact 1")
}

// TestRestartWithoutList: nothing counts that is not confirmed.
func TestRestartWithoutList(t *testing.T) {
	c := newCourse(t)
	c.connect(1, 1, near)
	c.round(2, 0)
	c = c.restarted(10)
	c.table.Take(&qp.Pairs{Since: when(10)})
	c.table.Count(nic, 1, 0, when(11))
	c.table.NotListed(nic, when(11))
	if got := c.table.Sum().Ports; len(got) != 1 || got[0].Known != 0 || got[0].Connected != nil {
		t.Errorf("%+v", got)
	}
}

// TestStateOfLateDirectory: a state directory that becomes available after the first list.
func TestStateOfLateDirectory(t *testing.T) {
	c := newCourse(t)
	c.connect(1, 1, near)
	c.round(2, 0)
	kept := c.table.Data()
	next := &course{t: t, table: New(), since: when(10), queues: c.queues}
	next.round(11, 0)
	next.known(0, 1, 0)
	next.table.Absorb(kept)
	next.round(50, 0)
	next.known(1, 1, 1)
}

// TestLostEvents: after a gap what has ended meanwhile is gone, and what was connected meanwhile has no peer.
func TestLostEvents(t *testing.T) {
	c := newCourse(t)
	c.connect(1, 1, near)
	c.connect(1, 2, near)
	c.round(2, 0)
	delete(c.queues, 1)
	c.queues[3] = qp.QueuePair{QPN: 3, PeerQPN: 103, Port: 1, PID: 4711, State: 3}
	c.seq += 1000
	c.connect(40, 4, far)
	c.round(45, 0)
	c.known(2, 3, 2)
}

// TestManyPairs: ten thousand queue pairs made and ended in a minute, and more at a time than fit.
func TestManyPairs(t *testing.T) {
	c := newCourse(t)
	for round := range 4 {
		for i := range uint64(2500) {
			n := uint64(round)*2500 + i + 1
			c.connect(float64(15*round), n, near)
			c.end(float64(15*round)+1, n)
		}
		c.round(float64(15*round)+2, 0)
	}
	c.known(0, 0, 0)
	c.lost()
	c.round(200, 0)
	if n := len(c.table.ends) + len(c.table.pairs) + len(c.table.older) + len(c.table.saved); n != 0 {
		t.Errorf("%d entries left", n)
	}
	for i := range uint64(maxPairs + 10) {
		c.event(201, qp.PairEvent{Kind: qp.PairConnected, Port: 1, QPN: i + 1, Peer: near})
	}
	c.round(202, 0)
	if s := c.table.Sum(); s.Dropped != 10 || s.Ports[0].Known != maxPairs {
		t.Errorf("%d dropped, %d known", s.Dropped, s.Ports[0].Known)
	}
	for i := range uint64(maxPairs + 10) {
		c.event(203, qp.PairEvent{Kind: qp.PairEnded, QPN: i + 1})
	}
	c.round(204, 0)
	if n := len(c.table.ends); n > maxPairs {
		t.Errorf("%d ends", n)
	}
}

func TestLostIsBounded(t *testing.T) {
	c := newCourse(t)
	for i := range maxLost + 3 {
		c.refuse(float64(i), fmt.Sprintf("0000:0000:0000:0000:0000:ffff:0a00:%04x", i), true, etimedout)
	}
	c.round(100, 0)
	got := c.table.Sum().Lost
	if len(got) != maxLost || !strings.HasSuffix(got[0].Peer, ":0003") {
		t.Errorf("%d lost, the first %s", len(got), got[0].Peer)
	}
}

func TestRetain(t *testing.T) {
	c := newCourse(t)
	c.connect(1, 1, near)
	c.round(2, 0)
	c.table.Retain([]string{"mlx5_0"})
	if got := c.table.Sum().Ports; len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
