// Package agent answers management datagrams of a small InfiniBand subnet, with errors before and after FEC, which
// ibsim does not: a switch with an adapter at each port. Layouts are generated from the tables of the specification
// (IBA 13 to 16; libibmad, fields.c), not from internal/mad, which reads them.
package agent

import (
	"encoding/binary"
	"io"
	"strconv"
	"sync"
	"time"

	"rdma_exporter/internal/mad"
)

// Place is a port of a node.
type Place struct {
	GUID uint64
	Port int
}

// SwitchGUID is that of the switch, Host that of the adapter at one of its ports. The local port is that of Host(1).
const SwitchGUID = 1

// Host returns the port of the adapter at a port of the switch.
func Host(port int) Place { return Place{100 + uint64(port), 1} }

// Port is a port with a link. Counters are by name; those of a lane have "/" and its number.
type Port struct {
	Lanes    int // 1, 2, 4, 8, 12
	FEC      uint16
	Counters map[string]uint64 // PortCountersExtended, PortExtendedSpeedsCounters
}

// Agent is the subnet. Its fields may be changed between datagrams, under Lock.
type Agent struct {
	sync.Mutex
	Ports map[Place]*Port

	// Capability bits: of ClassPortInfo, of PortInfo, of PortInfoExtended.
	Performance, Performance2, Port, Port2, Extended uint32

	Status map[uint16]uint16 // of answers, by attribute
	// Bytes of an answer's datagram that arrive, by attribute; a kernel passes whole ones (256) on only.
	Cut   map[uint16]int
	Asked map[uint16]int // datagrams by attribute

	answers chan *mad.Datagram // of the port opened last
}

// Attributes by class and number: performance management, and subnet management by directed route.
const (
	ClassPortInfo    = 0x0401
	SamplesControl   = 0x0410
	CountersExtended = 0x041d
	SpeedsCounters   = 0x041f // PortExtendedSpeedsCounters
	NodeDescription  = 0x8110
	NodeInfo         = 0x8111
	SwitchInfo       = 0x8112
	PortInfo         = 0x8115
	PortInfoExtended = 0x8133
)

// Capability bits of an agent that has all.
const (
	PerformanceExtended = 1 << 9  // ClassPortInfo: PortCountersExtended
	PerformanceRSFEC    = 1 << 14 // ClassPortInfo: PortExtendedSpeedsCounters with the layout of RS-FEC
	Performance2Errors  = 1 << 1  // ClassPortInfo, CapabilityMask2: 64-bit errors
	PortSpeeds          = 1 << 14 // PortInfo: extended speeds
	PortMask2           = 1 << 15 // PortInfo: CapabilityMask2 is valid
	Port2Extended       = 1 << 1  // PortInfo, CapabilityMask2: PortInfoExtended
	ExtendedFEC         = 1 << 0  // PortInfoExtended: FECModeActive is valid
)

// New has a switch with hosts at some ports, 4X links and RS(544,514).
func New(hosts int) *Agent {
	a := &Agent{
		Ports: map[Place]*Port{}, Performance: PerformanceExtended | PerformanceRSFEC, Performance2: Performance2Errors,
		Port: PortSpeeds | PortMask2, Port2: Port2Extended, Extended: ExtendedFEC,
		Status: map[uint16]uint16{}, Cut: map[uint16]int{}, Asked: map[uint16]int{},
	}
	for p := 1; p <= hosts; p++ {
		a.Ports[Place{SwitchGUID, p}] = &Port{Lanes: 4, FEC: 4, Counters: map[string]uint64{}}
		a.Ports[Host(p)] = &Port{Lanes: 4, FEC: 4, Counters: map[string]uint64{}}
	}
	return a
}

// field is a place in an attribute: first bit and width.
type field struct{ at, width int }

// counters64 are the counters of PortCountersExtended.
var counters64 = map[string]field{
	"transmit_data": {64, 64}, "receive_data": {128, 64}, "symbol_errors": {576, 64}, "link_error_recoveries": {640, 64},
	"link_downed":    {704, 64},
	"receive_errors": {768, 64}, "transmit_discards": {960, 64}, "excessive_buffer_overrun_errors": {1216, 64},
	"vl15_dropped": {1280, 64}, "transmit_wait": {1344, 64},
}

// speeds are the counters of PortExtendedSpeedsCounters with Fire code or without FEC, and with RS-FEC. Lanes follow
// each other.
var (
	always = map[string]field{"sync_header_errors": {128, 16}, "unknown_blocks": {144, 16}}
	lanes  = map[bool]map[string]field{
		false: {"error_detection": {160, 16}, "corrected_blocks": {352, 32}, "uncorrectable_blocks": {736, 32}},
		true:  {"corrected_symbols": {352, 32}},
	}
	totals = map[bool]map[string]field{
		true: {"corrected_blocks": {1120, 32}, "uncorrectable_blocks": {1152, 32}, "corrected_symbols": {1184, 32}},
	}
)

// IsRS reports whether a FEC mode is a Reed-Solomon code: 2 to 4 of the specification, and those of NVIDIA.
func IsRS(mode uint16) bool { return mode >= 2 }

// put writes a number into bits, of which 0 is the highest of the first byte.
func put(b []byte, f field, v uint64) {
	for i := range f.width {
		bit := f.at + f.width - 1 - i
		b[bit/8] &^= 1 << (7 - bit%8)
		b[bit/8] |= byte(v>>i&1) << (7 - bit%8)
	}
}

// arrive returns the place that a datagram reaches.
func (a *Agent) arrive(d *mad.Datagram) (Place, bool) {
	if d.Class() != mad.ClassSubnetDirected {
		switch {
		case d.LID == SwitchGUID+1:
			return Place{SwitchGUID, int(d.MAD[65])}, true
		case d.LID > 100:
			return Place{uint64(d.LID), 1}, a.Ports[Place{uint64(d.LID), 1}] != nil
		}
		return Place{}, false
	}
	switch path := d.MAD[129 : 129+int(d.MAD[7])]; len(path) {
	case 0:
		return Host(1), true
	case 1:
		return Place{SwitchGUID, 1}, path[0] == 1
	case 2:
		at := Host(int(path[1]))
		return at, a.Ports[at] != nil
	}
	return Place{}, false
}

// Send answers.
func (a *Agent) Send(d *mad.Datagram, _ time.Duration) error {
	a.Lock()
	defer a.Unlock()
	at, ok := a.arrive(d)
	attribute := uint16(d.Class())<<8 | uint16(d.MAD[17])
	a.Asked[attribute]++
	if !ok {
		return nil
	}
	m := *d
	m.MAD[3] = 0x81
	binary.BigEndian.PutUint16(m.MAD[4:], a.Status[attribute])
	data := m.MAD[64:]
	if d.Class() == mad.ClassPerformance {
		a.performance(data, attribute, a.Ports[at])
	} else {
		a.subnet(data[:64], attribute, at, int(binary.BigEndian.Uint32(d.MAD[20:])))
	}
	if n, ok := a.Cut[attribute]; ok && n < mad.Size {
		return nil // a kernel does not pass it on: internal/host, decodeUMAD
	}
	a.answers <- &m
	return nil
}

func (a *Agent) performance(b []byte, attribute uint16, p *Port) {
	switch attribute {
	case ClassPortInfo:
		put(b, field{16, 16}, uint64(a.Performance))
		put(b, field{32, 27}, uint64(a.Performance2))
	case SamplesControl:
		put(b, field{16, 8}, 7)
	case CountersExtended:
		for name, f := range counters64 {
			put(b, f, p.Counters[name])
		}
	case SpeedsCounters:
		a.speeds(b, p)
	}
}

func (a *Agent) speeds(b []byte, p *Port) {
	for name, f := range always {
		put(b, f, p.Counters[name])
	}
	for name, f := range lanes[IsRS(p.FEC)] {
		for lane := range 12 {
			put(b, field{f.at + lane*f.width, f.width}, p.Counters[name+"/"+strconv.Itoa(lane)])
		}
	}
	for name, f := range totals[IsRS(p.FEC)] {
		put(b, f, p.Counters[name])
	}
}

func (a *Agent) subnet(b []byte, attribute uint16, at Place, modifier int) {
	isSwitch := at.GUID == SwitchGUID
	switch attribute {
	case SwitchInfo: // nothing has changed
	case NodeDescription:
		copy(b, "gpu-"+strconv.Itoa(int(at.GUID-100))+" mlx5_0")
		if isSwitch {
			clear(b)
			copy(b, "leaf1")
		}
	case NodeInfo:
		kind, ports := uint64(1), uint64(1)
		if isSwitch {
			kind, ports = 2, uint64(len(a.Ports)/2)
		}
		put(b, field{16, 8}, kind)
		put(b, field{24, 8}, ports)
		put(b, field{96, 64}, at.GUID)
		put(b, field{288, 8}, uint64(at.Port))
	case PortInfo:
		a.port(b, at, modifier)
	case PortInfoExtended:
		if p := a.Ports[Place{at.GUID, modifier}]; p != nil {
			put(b, field{0, 32}, uint64(a.Extended))
			put(b, field{32, 16}, uint64(p.FEC))
		}
	}
}

// port is PortInfo. Of a switch, LID and capabilities are those of port 0.
func (a *Agent) port(b []byte, at Place, number int) {
	isSwitch := at.GUID == SwitchGUID
	if !isSwitch {
		number = 1
	}
	if isSwitch && number == 0 || !isSwitch {
		lid := at.GUID
		if isSwitch {
			lid = SwitchGUID + 1
		}
		put(b, field{128, 16}, lid)
		put(b, field{160, 32}, uint64(a.Port))
		put(b, field{480, 16}, uint64(a.Port2))
	}
	p := a.Ports[Place{at.GUID, number}]
	put(b, field{260, 4}, 4) // Active
	put(b, field{264, 4}, 5) // LinkUp
	if p == nil {
		return
	}
	width := map[int]uint64{1: 1, 4: 2, 8: 4, 12: 8, 2: 16}[p.Lanes]
	for _, f := range []field{{232, 8}, {240, 8}, {248, 8}} {
		put(b, f, width)
	}
	for _, f := range []field{{256, 4}, {280, 4}, {284, 4}} {
		put(b, f, 7)
	}
	put(b, field{280, 4}, 4)
	put(b, field{496, 4}, 8) // NDR
	put(b, field{500, 4}, 15)
	put(b, field{507, 5}, 15)
}

// Open opens the local port.
func (a *Agent) Open() mad.Transport {
	return &line{Agent: a, answers: a.open(), closed: make(chan struct{})}
}

func (a *Agent) open() chan *mad.Datagram {
	a.Lock()
	defer a.Unlock()
	a.answers = make(chan *mad.Datagram, 1000)
	return a.answers
}

// line is the local port, opened.
type line struct {
	*Agent
	answers chan *mad.Datagram
	closed  chan struct{}
	once    sync.Once
}

// Receive waits for an answer.
func (l *line) Receive(d *mad.Datagram) error {
	select {
	case m := <-l.answers:
		*d = *m
		return nil
	case <-l.closed:
		return io.ErrClosedPipe
	}
}

// Close ends Receive.
func (l *line) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}
