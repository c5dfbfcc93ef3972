package fabric

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/mad"
)

// text formats a fabric: nodes in order, then each link once.
func (f *Fabric) text() string {
	var b strings.Builder
	for _, guid := range sortedNodes(f.Nodes) {
		fmt.Fprintf(&b, "%s ", f.Nodes[guid].Description)
	}
	var links []string
	for a, z := range f.Links {
		if a.compare(z) < 0 {
			links = append(links, fmt.Sprintf("%d/%d-%d/%d", a.GUID, a.Port, z.GUID, z.Port))
		}
	}
	slices.Sort(links)
	b.WriteString(strings.Join(links, " "))
	for _, q := range questions {
		if n := f.Unanswered[q]; n > 0 {
			fmt.Fprintf(&b, " %s:%d", q, n)
		}
	}
	return b.String()
}

const (
	allNodes = "leaf1 leaf2 spine1 spine2 sm gpu-11 gpu-12 gpu-21 gpu-22 "
	allLinks = "1/1-11/1 1/2-12/1 1/3-3/1 1/4-4/1 1/9-9/1 2/1-21/1 2/2-22/1 2/3-3/2 2/4-4/2"
)

// Queries by class and attribute.
const (
	askedName     = 0x8110
	askedNode     = 0x8111
	askedPort     = 0x8115
	askedCounters = 0x0412
)

func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leafSpine()
		first := s.sweep(t, nil, Options{})
		if got := first.text(); got != allNodes+allLinks || !first.Full {
			t.Error(got)
		}
		// Each link is followed once. The local node is queried for itself, and its port again at the end. Links between
		// switches count at both ends.
		if s.asked[askedNode] != 10 || s.asked[askedName] != 9 || s.asked[askedPort] != 4*(switchPorts+1)+6 ||
			s.asked[askedCounters] != 4+9 {
			t.Errorf("asked %v", s.asked)
		}
		if len(first.Managers) != 1 || first.Managers[0].Node != 9 || first.Managers[0].Info.State != mad.SMMaster {
			t.Errorf("%+v", first.Managers)
		}
		second := s.sweep(t, first, Options{Adapters: true})
		if got := second.text(); got != allNodes+allLinks || second.Full {
			t.Error(got)
		}
		if s.asked[askedNode] != 1 || s.asked[askedName] != 1 || s.asked[askedCounters] != 18 {
			t.Errorf("asked %v", s.asked)
		}
	})
}

// TestSweepFaults: after a change, a sweep with and one without knowledge of the previous sweep have the same result.
func TestSweepFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*subnet)
		want   string
	}{
		{"a host's link is gone", func(s *subnet) { s.unplug(End{1, 1}) }, "leaf1 leaf2 spine1 spine2 sm gpu-12 gpu-21 gpu-22 1/2-12/1 1/3-3/1 1/4-4/1 1/9-9/1 2/1-21/1 2/2-22/1 2/3-3/2 2/4-4/2"},
		{"a link with an alternative route is gone", func(s *subnet) { s.unplug(End{1, 3}) }, allNodes + strings.Replace(allLinks, "1/3-3/1 ", "", 1)},
		{"a switch hangs", func(s *subnet) { s.nodes[3].silent = true }, "leaf1 leaf2 spine2 sm gpu-11 gpu-12 gpu-21 gpu-22 " + strings.NewReplacer("1/3-3/1 ", "", "2/3-3/2 ", "").Replace(allLinks) + " node:2"},
		{"a host hangs", func(s *subnet) { s.nodes[22].silent = true }, "leaf1 leaf2 spine1 spine2 sm gpu-11 gpu-12 gpu-21 " + strings.Replace(allLinks, "2/2-22/1 ", "", 1) + " node:1"},
		{"counters of a port", func(s *subnet) { s.nodes[2].ports[1].mute = true }, allNodes + allLinks + " counters:1"},
		{"the subnet manager", func(s *subnet) { s.nodes[9].manager = 0 }, allNodes + allLinks + " subnet_manager:1"},
		{"a loop of switches", func(s *subnet) { s.connect(End{3, 5}, End{4, 5}) }, allNodes + allLinks + " 3/5-4/5"},
		{"a host is new", func(s *subnet) {
			s.nodes[23] = &device{kind: mad.ChannelAdapter, name: "gpu-23", ports: map[int]*plug{}}
			s.connect(End{23, 1}, End{2, 5})
		}, allNodes + "gpu-23 " + strings.Replace(allLinks, " 2/4-4/2", " 2/4-4/2 2/5-23/1", 1)},
		{"a second port of a host", func(s *subnet) { s.connect(End{22, 2}, End{1, 5}) }, allNodes + strings.Replace(allLinks, " 1/9-9/1", " 1/5-22/2 1/9-9/1", 1)},
		{"two cables are exchanged", func(s *subnet) {
			s.unplug(End{1, 1})
			s.unplug(End{2, 1})
			s.connect(End{21, 1}, End{1, 1})
			s.connect(End{11, 1}, End{2, 1})
			s.nodes[1].ports[1].downed, s.nodes[2].ports[1].downed = 1, 1
		}, allNodes + strings.NewReplacer("1/1-11/1", "1/1-21/1", "2/1-21/1", "2/1-11/1").Replace(allLinks)},
		{"two cables are exchanged, without a counter", func(s *subnet) {
			s.unplug(End{1, 1})
			s.unplug(End{2, 1})
			s.connect(End{21, 1}, End{1, 1})
			s.connect(End{11, 1}, End{2, 1})
		}, allNodes + strings.NewReplacer("1/1-11/1", "1/1-21/1", "2/1-21/1", "2/1-11/1").Replace(allLinks)},
		{"two cables are exchanged, with saturated counters", func(s *subnet) {
			s.exchange()
			s.nodes[1].ports[3].downed, s.nodes[1].ports[4].downed = 255, 255
		}, allNodes + strings.NewReplacer("1/3-3/1", "1/3-4/1", "1/4-4/1", "1/4-3/1").Replace(allLinks)},
		{"two cables are exchanged, and counters do not answer", func(s *subnet) {
			s.exchange()
			s.nodes[1].ports[3].mute, s.nodes[1].ports[4].mute = true, true
			// Port 9 is not queried.
		}, allNodes + strings.NewReplacer("1/3-3/1", "1/3-4/1", "1/4-4/1", "1/4-3/1").Replace(allLinks) + " counters:3"},
		{"a second port of a host that does not answer", func(s *subnet) {
			s.connect(End{22, 2}, End{1, 5})
			s.lost = func(d *mad.Datagram, _ *device, at End) bool {
				return at == End{22, 2} && binary.BigEndian.Uint16(d.MAD[16:]) == 0x15
			}
		}, allNodes + strings.Replace(allLinks, " 1/9-9/1", " 1/5-22/2 1/9-9/1", 1) + " port:1"},
		{"a switch reports a changed port", func(s *subnet) {
			s.nodes[11].name = "gpu-eleven"
			s.nodes[1].changed = true
		}, strings.Replace(allNodes, "gpu-11", "gpu-eleven", 1) + allLinks},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := leafSpine()
				s.nodes[1].ports[3].downed, s.nodes[1].ports[4].downed = 255, 255
				before := s.sweep(t, nil, Options{})
				tt.change(s)
				if got := s.sweep(t, before, Options{}).text(); got != tt.want {
					t.Errorf("with what was known:\ngot  %s\nwant %s", got, tt.want)
				}
				if got := s.sweep(t, nil, Options{}).text(); got != tt.want {
					t.Errorf("with nothing:\ngot  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// dying is a transport that fails after some datagrams: it receives nothing more, or sends nothing more.
type dying struct {
	*sampleLine
	left  atomic.Int64
	sends bool
}

func (d *dying) Send(m *mad.Datagram, timeout time.Duration) error {
	switch {
	case d.left.Add(-1) >= 0:
		return d.sampleLine.Send(m, timeout)
	case d.sends:
		return io.ErrShortWrite
	}
	return d.Close()
}

// TestSweepFails: a local port without a way into the subnet, from the start or during the sweep, is an error.
func TestSweepFails(t *testing.T) {
	const ever = 1 << 40
	for _, tt := range []struct {
		name   string
		change func(*subnet)
		left   int64
		sends  bool
		want   string
	}{
		{"the local port is silent", func(s *subnet) { s.nodes[9].silent = true }, ever, false, "the local port does not answer: query NodeInfo of direct 0: no answer"},
		{"no link", func(s *subnet) { s.unplug(End{9, 1}) }, ever, false, "the local port has no link"},
		{"the first switch hangs", func(s *subnet) { s.nodes[1].silent = true }, ever, false, "the node behind the local port does not answer"},
		{"receive fails", func(*subnet) {}, 40, false, "the local port does not answer: query PortInfo of direct 0: io: read/write on closed pipe"},
		{"send fails", func(*subnet) {}, 40, true, "the local port does not answer: query PortInfo of direct 0: short write"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := leafSpine()
				before := s.sweep(t, nil, Options{})
				tt.change(s)
				for _, known := range []*Fabric{before, nil} {
					d := &dying{sampleLine: s.open(), sends: tt.sends}
					d.left.Store(tt.left)
					c := mad.NewClient(d, mad.Options{Timeout: time.Second})
					if f, err := Sweep(t.Context(), c, known, Options{}); f != nil || fmt.Sprint(err) != tt.want {
						t.Error(f, err)
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestSweepEnds: a subnet that is larger or deeper than possible (wrong answers) is an error.
func TestSweepEnds(t *testing.T) {
	for want, e := range map[string]*endless{
		"the fabric has more than 5000 ports of switches": {ports: 36},
		"the fabric is deeper than 50 hops":               {ports: 2},
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e.sampleLine = leafSpine().open()
				c := mad.NewClient(e, mad.Options{})
				defer c.Close()
				if f, err := Sweep(t.Context(), c, nil, Options{MaxPorts: 5000}); f != nil || fmt.Sprint(err) != want ||
					e.seen.Load() > 5000 {
					t.Errorf("%v after %d switches, want %s", err, e.seen.Load(), want)
				}
			})
		})
	}
}

// TestSweepOfDeadAgents: agents that do not answer delay a sweep by seconds, whatever their number of ports, and other
// results are complete.
func TestSweepOfDeadAgents(t *testing.T) {
	const ends = 9*9 + 4*9 // ports of switches that have a link
	dead := func(d *mad.Datagram, _ *device, _ End) bool { return d.Class() != mad.ClassSubnetDirected }
	for _, tt := range []struct {
		name     string
		lost     func(*mad.Datagram, *device, End) bool
		o        Options
		most     time.Duration
		counters int // unanswered
		managers int
	}{
		{"none", nil, Options{}, 0, 0, 1},
		{"all that is reached by LID", dead, Options{}, 9 * time.Second, ends, 0},
		{"all, for no longer than that", dead, Options{Within: 2 * time.Second}, 2 * time.Second, ends, 0},
		{"counters", func(d *mad.Datagram, n *device, at End) bool {
			return dead(d, n, at) && d.Class() == mad.ClassPerformance
		}, Options{Within: time.Second}, time.Second, ends, 1},
		{"counters of two ports of a leaf", func(d *mad.Datagram, n *device, _ End) bool {
			return d.Class() == mad.ClassPerformance && n.lid == 12 && (d.MAD[65] == 3 || d.MAD[65] == 5)
		}, Options{}, 3 * time.Second, 2 + 4, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tree(4, 9, 5)
				c := mad.NewClient(s.open(), mad.Options{Retries: 2})
				defer c.Close()
				before, err := Sweep(t.Context(), c, nil, tt.o)
				if err != nil {
					t.Fatal(err)
				}
				s.lost = tt.lost
				for _, known := range []*Fabric{before, nil} {
					f, err := Sweep(t.Context(), c, known, tt.o)
					if err != nil {
						t.Fatal(err)
					}
					if f.Took > tt.most || f.Unanswered[AskCounters] != tt.counters || len(f.Managers) != tt.managers ||
						f.Unanswered[AskManager] != 1-tt.managers || len(f.Links) != 2*81 {
						t.Errorf("took %s; %d managers, %d links; unanswered %v", f.Took, len(f.Managers), len(f.Links)/2, f.Unanswered)
					}
				}
			})
		})
	}
}

// TestCountersByLID: an adapter port without a LID is not used to reach the agent.
func TestCountersByLID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leafSpine()
		s.connect(End{22, 2}, End{1, 5})
		s.nodes[22].ports[1].lid = 0
		for range 20 { // the ports are in a map
			if f := s.sweep(t, nil, Options{Adapters: true}); f.Port(End{22, 2}).Counters == nil ||
				f.Unanswered[AskCounters] != 0 {
				t.Fatal(f.Unanswered)
			}
		}
	})
}

func TestLink(t *testing.T) {
	for _, tt := range []struct {
		name           string
		aSup, aEn      mad.Link
		bSup, bEn      mad.Link
		rate           float64 // Gb/s, of what both have enabled
		lanes          int
		differs, known bool
	}{
		{"alike", mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x7f}, 400, 4, false, true},
		{"an older switch", mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x3f}, mad.Link{Widths: 3, Speeds: 0x3f}, 200, 4, false, true},
		{"one end is set to a lower speed", mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x3f}, 200, 4, true, true},
		{"one end is set to fewer lanes", mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 1, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x7f}, 100, 1, true, true},
		{"both are set lower", mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 1, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 1, Speeds: 0x7f}, 100, 1, false, true},
		{"nothing in common", mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 1, Speeds: 0x7f}, mad.Link{Widths: 3, Speeds: 0x7f}, mad.Link{Widths: 2, Speeds: 0x7f}, 0, 0, true, true},
		{name: "the other end does not answer", aSup: mad.Link{Widths: 3, Speeds: 0x7f}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(time.Time{})
			a, b := End{1, 1}, End{2, 1}
			f.connect(a, b)
			up := mad.PortInfo{State: mad.PortActive, PhysicalState: mad.PhysicalLinkUp, Supported: tt.aSup, Enabled: tt.aEn}
			f.Nodes[1] = &Node{Ports: map[int]*Port{1: {Info: up}}}
			if tt.known {
				up.Supported, up.Enabled = tt.bSup, tt.bEn
				f.Nodes[2] = &Node{Ports: map[int]*Port{1: {Info: up}}}
			}
			for _, e := range []End{a, b} {
				_, enabled, ok := f.Common(e)
				if rate := enabled.Rate() * 8 / 1e9; rate != tt.rate || enabled.Widths.Lanes() != tt.lanes ||
					f.Differs(e) != tt.differs || ok != tt.known {
					t.Errorf("%v Gb/s over %d lanes, %v %v", rate, enabled.Widths.Lanes(), f.Differs(e), ok)
				}
			}
		})
	}
}

// TestFDR10: nodes of the vendor are queried for FDR10 on links at QDR in each sweep, and those that reject it in full
// sweeps only.
func TestFDR10(t *testing.T) {
	s := leafSpine()
	s.nodes[1].vendor, s.nodes[3].vendor = true, true
	s.nodes[4].vendor, s.nodes[4].refuses = true, true
	s.nodes[1].ports[3].fdr10, s.nodes[3].ports[1].fdr10 = 3, 3
	s.nodes[1].ports[1].fdr10 = 3 // at one end alone
	asked := func() int { return s.asked[mad.ClassSubnetDirected<<8|0xff90] }
	f := s.sweep(t, nil, Options{})
	for e, want := range map[End]string{
		{1, 3}: "FDR10", {3, 1}: "FDR10", {1, 4}: "QDR", {4, 1}: "QDR", {2, 3}: "QDR", {11, 1}: "QDR",
	} {
		if got := f.Port(e).Info.Active.Speeds.Name(); got != want {
			t.Errorf("%v: %s, want %s", e, got, want)
		}
	}
	for e, want := range map[End][2]bool{{1, 3}: {true, true}, {3, 1}: {true, true}, {1, 4}: {}, {2, 3}: {}} {
		if is, known := f.FDR10(e); is != want[0] || known != want[1] || f.Degraded(e) {
			t.Errorf("%v: %v %v", e, is, known)
		}
	}
	if n := asked(); n != 9 {
		t.Errorf("asks %d times, want each port of three switches with a link", n)
	}
	s.nodes[1].ports[3].fdr10, s.nodes[3].ports[1].fdr10 = 1, 1
	f = s.sweep(t, f, Options{})
	if is, known := f.FDR10(End{1, 3}); is || !known || !f.Degraded(End{1, 3}) {
		t.Errorf("QDR in the place of FDR10: %v %v", is, known)
	}
	if n := asked(); n != 7 {
		t.Errorf("asks %d times again, want all but who has refused", n)
	}
	s.sweep(t, nil, Options{})
	if n := asked(); n != 9 {
		t.Errorf("asks %d times in a full sweep", n)
	}
}

// TestFECRequests: the FEC in use is queried again only after the link was down or runs at another rate, and a node
// that rejects PortRcvErrorDetails is not queried again.
func TestFECRequests(t *testing.T) {
	s := leafSpine()
	s.nodes[1].fec, s.nodes[1].ports[3].errors = true, 1
	s.nodes[1].ports[3].fec = 4
	const extended, counts, causes = mad.ClassSubnetDirected<<8 |
		0x33, mad.ClassPerformance<<8 | 0x1f, mad.ClassPerformance<<8 | 0x15
	links := len(s.nodes[1].ports)
	var f *Fabric
	for i, step := range []struct {
		change                   func()
		extended, counts, causes int
	}{
		{func() {}, links, links, 1},
		{func() {}, 0, links, 0},
		{func() { s.nodes[1].ports[3].downed++ }, 1, links, 0},
		{func() { s.nodes[1].ports[4].active = 1 }, 1, links, 0},
		{func() { s.nodes[1].fec = false }, 0, 0, 0},
	} {
		step.change()
		if i == 4 {
			f = nil // a full sweep, since capabilities are remembered
		}
		f = s.sweep(t, f, Options{})
		if s.asked[extended] != step.extended || s.asked[counts] != step.counts || i < 4 && s.asked[causes] != step.causes {
			t.Errorf("step %d: %d, %d and %d datagrams, want %+v", i, s.asked[extended], s.asked[counts], s.asked[causes], step)
		}
	}
	if f.Port(End{1, 3}).FEC != nil {
		t.Error("FEC of a node without the capability")
	}
}

// TestTicks: the length of a tick is queried once per switch and full sweep. Where none of the first switches answers,
// no other is queried; where one does, silent ones cost little.
func TestTicks(t *testing.T) {
	const asked = uint16(mad.ClassPerformance)<<8 | 0x10
	for name, c := range map[string]struct {
		answer func(switches int) bool
		asked  int
		known  int
	}{
		"all answer":    {func(int) bool { return true }, 17, 17},
		"none answers":  {func(int) bool { return false }, tickProbes, 0},
		"some do not":   {func(n int) bool { return n != 2 && n != 7 }, 17, 15},
		"only one does": {func(n int) bool { return n == 1 }, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tree(8, 9, 1)
				for i := range 17 {
					guid := GUID(11 + i)
					if i >= 9 {
						guid = GUID(101 + i - 9)
					}
					s.nodes[guid].tick, s.nodes[guid].tickless = 7, !c.answer(i)
				}
				f := s.sweep(t, nil, Options{})
				known := 0
				for _, n := range f.Nodes {
					if n.tick == 8 {
						known++
					}
				}
				if known != c.known || c.asked != 0 && s.asked[asked] != c.asked {
					t.Errorf("%d known, %d queries; want %d and %d", known, s.asked[asked], c.known, c.asked)
				}
				f = s.sweep(t, f, Options{})
				if s.asked[asked] != 0 || (f.Nodes[12].tick == 8) != c.answer(1) {
					t.Errorf("%d queries in the next sweep", s.asked[asked])
				}
			})
		})
	}
}
