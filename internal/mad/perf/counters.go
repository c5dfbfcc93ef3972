// Package perf decodes the attributes of performance management (IBA 16.1): the counters of a port and which of them an
// agent has.
package perf

import "encoding/binary"

// Attributes of performance management (IBA 16.1).
const (
	AttrClassPortInfo        = 0x0001
	AttrPortSamplesControl   = 0x0010
	AttrPortCounters         = 0x0012
	AttrReceiveErrorDetails  = 0x0015
	AttrPortCountersExtended = 0x001d
)

// Counter is a counter of a port, named as in PortCounters (IBA 16.1.3.5).
type Counter int

const (
	SymbolErrors Counter = iota
	LinkErrorRecoveries
	LinkDowned
	ReceiveErrors
	ReceiveRemotePhysicalErrors
	ReceiveSwitchRelayErrors
	TransmitDiscards
	TransmitConstraintErrors
	ReceiveConstraintErrors
	LocalLinkIntegrityErrors
	ExcessiveBufferOverrunErrors
	VL15Dropped
	TransmitWait // ticks
	TransmitData // words of 4 bytes
	ReceiveData  // words of 4 bytes
	TransmitPackets
	ReceivePackets
	TransmitUnicast
	ReceiveUnicast
	TransmitMulticast
	ReceiveMulticast
	NumCounters
)

// place is the position of a counter: its first bit in PortCounters, its first byte in PortCountersExtended.
type place struct {
	bit, width uint // width 0: not read from there
	extended   uint
}

// places follow IBA 16.1.3.5 and 16.1.4.11. Data and packets are not read from PortCounters: their 32 bits saturate
// within a second and within a minute.
var places = [NumCounters]place{
	SymbolErrors:                 {32, 16, 72},
	LinkErrorRecoveries:          {48, 8, 80},
	LinkDowned:                   {56, 8, 88},
	ReceiveErrors:                {64, 16, 96},
	ReceiveRemotePhysicalErrors:  {80, 16, 104},
	ReceiveSwitchRelayErrors:     {96, 16, 112},
	TransmitDiscards:             {112, 16, 120},
	TransmitConstraintErrors:     {128, 8, 128},
	ReceiveConstraintErrors:      {136, 8, 136},
	LocalLinkIntegrityErrors:     {152, 4, 144},
	ExcessiveBufferOverrunErrors: {156, 4, 152},
	VL15Dropped:                  {176, 16, 160},
	TransmitWait:                 {320, 32, 168},
	TransmitData:                 {0, 0, 8},
	ReceiveData:                  {0, 0, 16},
	TransmitPackets:              {0, 0, 24},
	ReceivePackets:               {0, 0, 32},
	TransmitUnicast:              {0, 0, 40},
	ReceiveUnicast:               {0, 0, 48},
	TransmitMulticast:            {0, 0, 56},
	ReceiveMulticast:             {0, 0, 64},
}

// Bits of ClassPortInfo's masks (IBA 16.1.2.1).
const (
	capExtendedWidth       = 1 << 9  // CapabilityMask: PortCountersExtended
	capExtendedWidthNoIETF = 1 << 10 // without unicast and multicast
	capTransmitWait        = 1 << 12
	capRSFECCounters       = 1 << 14 // PortExtendedSpeedsCounters has a layout of its own with RS-FEC
	cap2ExtendedErrors     = 1 << 1  // 64-bit errors in PortCountersExtended
)

// Info is which counters an agent of performance management has: ClassPortInfo (IBA 13.4.8.1).
type Info struct {
	Extended       bool // PortCountersExtended: 64-bit data and packets
	Casts          bool // with unicast and multicast
	ExtendedErrors bool // with 64-bit errors and transmit wait
	TransmitWait   bool // in PortCounters
	FEC            bool // PortExtendedSpeedsCounters, whatever FEC is in use
}

func DecodeInfo(b []byte) Info {
	mask, mask2 := binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:])>>5
	extended := mask&(capExtendedWidth|capExtendedWidthNoIETF) != 0
	return Info{
		Extended: extended, Casts: mask&capExtendedWidth != 0,
		ExtendedErrors: extended && mask2&cap2ExtendedErrors != 0, TransmitWait: mask&capTransmitWait != 0,
		FEC: mask&capRSFECCounters != 0,
	}
}

// Extends reports whether the agent has a counter in PortCountersExtended.
func (i *Info) Extends(k Counter) bool {
	switch {
	case places[k].width > 0:
		return i.ExtendedErrors
	case k >= TransmitUnicast:
		return i.Casts
	}
	return i.Extended
}

// Counters are the counters of a port that it has reported.
type Counters struct {
	values [NumCounters]uint64
	known  uint32
	short  uint32 // those from PortCounters, which saturate
}

// Saturated reports whether a counter of PortCounters has stopped at its highest value.
func (c *Counters) Saturated(k Counter) bool {
	return c.short&(1<<k) != 0 && c.values[k] == 1<<places[k].width-1
}

// Get returns a counter, and whether it is known.
func (c *Counters) Get(k Counter) (uint64, bool) { return c.values[k], c.known&(1<<k) != 0 }

// Since returns the counters that have increased since an earlier reading, and by how much. A lower value was cleared
// and counts from 0.
func (c *Counters) Since(before *Counters) (out Counters) {
	for k := range NumCounters {
		now, reported := c.Get(k)
		then, known := before.Get(k)
		if now < then {
			then = 0
		}
		if reported && known && now > then {
			out.Set(k, now-then)
		}
	}
	return out
}

// Empty reports whether no counter is known.
func (c *Counters) Empty() bool { return c.known == 0 }

// Set sets a counter.
func (c *Counters) Set(k Counter, v uint64) {
	c.values[k] = v
	c.known |= 1 << k
}

// readShort reads PortCounters. Its counters saturate.
func (c *Counters) ReadShort(b []byte, info Info) {
	for k, at := range places {
		if at.width == 0 || Counter(k) == TransmitWait && !info.TransmitWait {
			continue
		}
		word := binary.BigEndian.Uint32(b[at.bit/32*4:])
		c.Set(Counter(k), uint64(word<<(at.bit%32)>>(32-at.width)))
		c.short |= 1 << k
	}
}

// readExtended reads PortCountersExtended.
func (c *Counters) ReadExtended(b []byte, info Info) {
	for k, at := range places {
		if info.Extends(Counter(k)) {
			c.Set(Counter(k), binary.BigEndian.Uint64(b[at.extended:]))
		}
	}
}

// Tick is the length of a tick of TransmitWait in symbol times, the time that a lane takes for a byte: Tick of
// PortSamplesControl + 1 (IBA 16.1.3.2). 0: unknown.
type Tick int

func DecodeTick(b []byte) Tick { return Tick(b[2]) + 1 }

// Bytes returns the data that a port with some lanes can send in a tick. Switches with a tick of 8 (Quantum and later)
// count 8 bytes of the port, whatever its width (NVIDIA, ibdiagnet user manual, Congestion Assessment on InfiniBand
// Links).
func (t Tick) Bytes(lanes int) float64 {
	if t == 8 {
		lanes = 1
	}
	return float64(t) * float64(lanes)
}

// ReceiveErrorDetails are the receive errors of a port by cause, 16 bits each, which saturate (IBA 16.1.4.3).
type ReceiveErrorDetails [len(ReceiveErrorCauses)]uint16

// ReceiveErrorCauses are the causes in the order of PortRcvErrorDetails.
var ReceiveErrorCauses = [...]string{
	"local_physical", "malformed_packet", "buffer_overrun", "dlid_mapping", "vl_mapping", "looping",
}

func DecodeReceiveErrorDetails(b []byte) (d ReceiveErrorDetails) {
	for i := range d {
		d[i] = binary.BigEndian.Uint16(b[4+2*i:])
	}
	return d
}
