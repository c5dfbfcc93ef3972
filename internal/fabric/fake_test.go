package fabric

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rdma_exporter/internal/mad"
)

// subnet answers management datagrams as specified in IBA 13 and 14.
type subnet struct {
	mu    sync.Mutex
	start End
	nodes map[GUID]*device
	asked map[uint16]int                                 // by attribute
	lost  func(d *mad.Datagram, to *device, at End) bool // on its way; nil: none is
}

// device is a node.
type device struct {
	kind     mad.NodeType
	name     string
	ports    map[int]*plug
	lid      uint16 // of a switch
	changed  bool
	silent   bool
	wide     bool // counters of 64 bits
	vendor   bool // Mellanox
	refuses  bool // the vendor's attribute
	manager  byte // state of a subnet manager; 0 none
	fec      bool // PortInfoExtended, and PortExtendedSpeedsCounters with RS-FEC
	causes   bool // PortRcvErrorDetails
	tick     byte // Tick of PortSamplesControl; 0: no PortXmitWait in PortCounters
	tickless bool // no answer to PortSamplesControl
	chip     uint16
}

// plug is a port.
type plug struct {
	to      End // 0: no cable
	lid     uint16
	enabled byte // link widths: 1 is 1X, 2 is 4X
	active  byte
	downed  byte   // LinkDownedCounter
	errors  byte   // PortRcvErrors
	fec     byte   // FECModeActive
	ended   bool   // counters of FEC and SymbolErrorCounter have reached their end
	wait    uint32 // PortXmitWait
	mute    bool   // no counters
	fdr10   byte   // 1: enabled, 2: active
}

const smLID = 9

func (s *subnet) connect(a, b End) {
	for _, x := range [][2]End{{a, b}, {b, a}} {
		s.nodes[x[0].GUID].ports[x[0].Port] = &plug{to: x[1], enabled: 3, active: 2, lid: uint16(x[0].GUID)}
	}
}

func (s *subnet) unplug(a End) {
	b := s.nodes[a.GUID].ports[a.Port].to
	s.nodes[a.GUID].ports[a.Port].to, s.nodes[b.GUID].ports[b.Port].to = End{}, End{}
}

// exchange swaps the cables of leaf 1 to the spines 3 and 4.
func (s *subnet) exchange() {
	s.unplug(End{1, 3})
	s.unplug(End{1, 4})
	s.connect(End{1, 3}, End{4, 1})
	s.connect(End{1, 4}, End{3, 1})
}

// leafSpine returns two leaf switches 1 and 2, two spines 3 and 4, and hosts 11, 12 at leaf 1 and 21, 22 at leaf 2.
// Host 9 at leaf 1 runs the subnet manager and is the one that sweeps.
func leafSpine() *subnet {
	s := &subnet{nodes: map[GUID]*device{}, asked: map[uint16]int{}, start: End{9, 1}}
	for guid, name := range map[GUID]string{1: "leaf1", 2: "leaf2", 3: "spine1", 4: "spine2"} {
		s.nodes[guid] = &device{kind: mad.Switch, name: name, ports: map[int]*plug{}, lid: uint16(guid)}
	}
	for guid, name := range map[GUID]string{9: "sm", 11: "gpu-11", 12: "gpu-12", 21: "gpu-21", 22: "gpu-22"} {
		s.nodes[guid] = &device{kind: mad.ChannelAdapter, name: name, ports: map[int]*plug{}}
	}
	s.nodes[9].manager = byte(mad.SMMaster)
	for _, l := range [][2]End{
		{{9, 1}, {1, 9}},
		{{11, 1}, {1, 1}},
		{{12, 1}, {1, 2}},
		{{21, 1}, {2, 1}},
		{{22, 1}, {2, 2}},
		{{1, 3}, {3, 1}},
		{{1, 4}, {4, 1}},
		{{2, 3}, {3, 2}},
		{{2, 4}, {4, 2}},
	} {
		s.connect(l[0], l[1])
	}
	return s
}

// tree has leaf switches from 11 on, spines from 101 on and hosts from 201 on. The first host runs the subnet manager
// and is the one that sweeps.
func tree(spines, leaves, hosts int) *subnet {
	s := &subnet{nodes: map[GUID]*device{}, asked: map[uint16]int{}, start: End{201, 1}}
	add := func(guid int, kind mad.NodeType) GUID {
		if s.nodes[GUID(guid)] == nil {
			s.nodes[GUID(guid)] = &device{kind: kind, name: fmt.Sprint(guid), ports: map[int]*plug{}}
		}
		return GUID(guid)
	}
	for l := range leaves {
		leaf := add(11+l, mad.Switch)
		for h := range hosts {
			s.connect(End{add(201+l*hosts+h, mad.ChannelAdapter), 1}, End{leaf, 1 + h})
		}
		for p := range spines {
			s.connect(End{add(101+p, mad.Switch), 1 + l}, End{leaf, 1 + hosts + p})
		}
	}
	for guid, n := range s.nodes {
		if n.kind == mad.Switch {
			n.lid = uint16(guid)
		}
	}
	s.nodes[201].manager, s.nodes[201].ports[1].lid = byte(mad.SMMaster), smLID
	return s
}

const switchPorts = 9

// arrive finds the destination of a datagram: a node, and the port that receives it.
func (s *subnet) arrive(d *mad.Datagram) (*device, End, bool) {
	if d.Class() != mad.ClassSubnetDirected {
		for guid, n := range s.nodes {
			for number, p := range n.ports {
				if d.LID != 0 && (n.lid == d.LID || n.kind != mad.Switch && p.lid == d.LID) {
					return n, End{guid, number}, !n.silent
				}
			}
		}
		return nil, End{}, false
	}
	at := s.start
	for _, port := range d.MAD[129 : 129+int(d.MAD[7])] {
		p := s.nodes[at.GUID].ports[int(port)]
		if p == nil || p.to == (End{}) {
			return nil, End{}, false
		}
		at = p.to
	}
	return s.nodes[at.GUID], at, !s.nodes[at.GUID].silent
}

func (s *subnet) answer(d *mad.Datagram) *mad.Datagram {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, at, ok := s.arrive(d)
	attribute, modifier := binary.BigEndian.Uint16(d.MAD[16:]), int(binary.BigEndian.Uint32(d.MAD[20:]))
	s.asked[uint16(d.Class())<<8|attribute]++
	if !ok || s.lost != nil && s.lost(d, n, at) {
		return nil
	}
	a := *d
	a.MAD[3] = 0x81
	data := a.MAD[64:]
	if d.Class() == mad.ClassPerformance {
		if !performance(data, n, attribute) {
			return nil
		}
		if attribute == 0x15 && !n.causes || attribute == 0x10 && n.tick == 0 {
			a.MAD[5] = 3 << 2 // attribute not supported
		}
		return &a
	}
	switch attribute {
	case 0x10:
		copy(data, n.name)
	case 0x11:
		data[2], data[3], data[36] = byte(n.kind), byte(len(n.ports)), byte(at.Port)
		if n.kind == mad.Switch {
			data[3] = switchPorts
		}
		binary.BigEndian.PutUint64(data[12:], uint64(at.GUID))
		binary.BigEndian.PutUint16(data[30:], n.chip)
		if n.vendor {
			binary.BigEndian.PutUint16(data[38:], 0x02c9)
		}
	case 0x12:
		if n.changed {
			data[11] = 4
		}
	case 0x15:
		s.portInfo(data, n, modifier)
	case 0x33:
		if p := n.ports[modifier]; p != nil {
			data[3], data[5] = 1, p.fec
		}
	case 0xff90:
		if n.refuses {
			a.MAD[5] = 3 << 2 // attribute not supported
		}
		if p := n.ports[modifier]; p != nil {
			data[7], data[11], data[15] = 1, p.fdr10&1, p.fdr10>>1
		}
	case 0x20:
		if n.manager == 0 {
			return nil
		}
		data[20] = n.manager
	}
	return &a
}

func (s *subnet) portInfo(data []byte, n *device, number int) {
	p := n.ports[number]
	if n.kind == mad.Switch && number == 0 {
		binary.BigEndian.PutUint16(data[16:], n.lid)
		data[32], data[33] = 4, 0x50
		if n.fec {
			data[22], data[61] = 0x80, 2
		}
		return
	}
	data[32], data[33] = 1, 0x20 // Down, Polling
	if p == nil {
		return
	}
	if n.kind != mad.Switch {
		binary.BigEndian.PutUint16(data[16:], p.lid)
		binary.BigEndian.PutUint16(data[18:], smLID)
		if n.manager != 0 {
			data[23] = 2
		}
	}
	if p.to != (End{}) {
		data[29], data[30], data[31], data[32], data[33], data[35] = p.enabled, 3, p.active, 0x74, 0x50, 0x47
	}
}

// performance answers queries of performance management. It reports whether there is an answer.
func performance(data []byte, n *device, attribute uint16) bool {
	p := n.ports[int(data[1])]
	switch attribute {
	case 0x01:
		if n.wide {
			data[2], data[7] = 0x02, 0x40
		}
		if n.fec {
			data[2] |= 0x40
		}
		if n.tick > 0 {
			data[2] |= 0x10
		}
		return true
	case 0x10:
		data[2] = n.tick
		return !n.tickless
	case 0x12:
		if p != nil {
			data[7], data[9] = p.downed, p.errors
			binary.BigEndian.PutUint32(data[40:], p.wait)
			if p.ended {
				data[4], data[5] = 0xff, 0xff
			}
		}
	case 0x15:
		data[5], data[9] = 3, 1
	case 0x1f:
		for i := range 4 {
			binary.BigEndian.PutUint32(data[44+4*i:], uint32(100+i))
			binary.BigEndian.PutUint32(data[92+4*i:], uint32(i))
		}
		data[17], data[19] = 5, 6
		binary.BigEndian.PutUint32(data[140:], 390)
		binary.BigEndian.PutUint32(data[144:], 2)
		binary.BigEndian.PutUint32(data[148:], 406)
		if p != nil && p.ended {
			for _, at := range []int{48, 52, 148} {
				binary.BigEndian.PutUint32(data[at:], 1<<32-1)
			}
		}
	case 0x1d:
		binary.BigEndian.PutUint64(data[8:], 1<<40)
		binary.BigEndian.PutUint64(data[168:], 1<<33)
		if p != nil {
			binary.BigEndian.PutUint64(data[168:], 1<<33+uint64(p.wait))
		}
	}
	return p != nil && !p.mute
}

// sampleLine is a transport into a subnet.
type sampleLine struct {
	*subnet
	back chan *mad.Datagram
	gone chan struct{}
	once sync.Once
}

func (l *sampleLine) Send(d *mad.Datagram, _ time.Duration) error {
	if a := l.answer(d); a != nil {
		l.back <- a
	}
	return nil
}

func (l *sampleLine) Receive(d *mad.Datagram) error {
	select {
	case a := <-l.back:
		*d = *a
		return nil
	case <-l.gone:
		return io.ErrClosedPipe
	}
}

func (l *sampleLine) Close() error {
	l.once.Do(func() { close(l.gone) })
	return nil
}

func (s *subnet) open() *sampleLine {
	return &sampleLine{subnet: s, back: make(chan *mad.Datagram, 1000), gone: make(chan struct{})}
}

// sweep sweeps and counts the queries.
func (s *subnet) sweep(t *testing.T, known *Fabric, o Options) *Fabric {
	t.Helper()
	c := mad.NewClient(s.open(), mad.Options{Timeout: time.Second})
	defer c.Close()
	clear(s.asked)
	f, err := Sweep(t.Context(), c, known, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// endless is a subnet in which each port leads to another new switch.
type endless struct {
	*sampleLine
	ports byte // of each
	seen  atomic.Uint64
}

func (e *endless) Send(d *mad.Datagram, _ time.Duration) error {
	a := *d
	a.MAD[3] = 0x81
	data := a.MAD[64:]
	switch binary.BigEndian.Uint16(d.MAD[16:]) {
	case 0x11:
		data[2], data[3], data[36] = byte(mad.Switch), e.ports, 1
		binary.BigEndian.PutUint64(data[12:], e.seen.Add(1))
	case 0x15:
		data[32], data[33] = 4, 0x50
	}
	e.back <- &a
	return nil
}
