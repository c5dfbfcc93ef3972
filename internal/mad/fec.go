package mad

import (
	"encoding/binary"
	"fmt"
)

// Attributes with errors before and after FEC.
const (
	attrPortInfoExtended           = 0x0033 // subnet management, IBA 14.2.5.19
	attrPortExtendedSpeedsCounters = 0x001f // performance management, IBA 16.1.4.12
)

// FECMode is FECModeActive of PortInfoExtended. The numbers are not those of the vendor's PHY registers (mlxlink).
type FECMode uint16

// The modes: those of the specification, and from 8 on those of NVIDIA (ibdm, IBFECMode).
const (
	noFEC        FECMode = 0
	fireCode     FECMode = 1
	rs528        FECMode = 2
	rs271        FECMode = 3
	rs544        FECMode = 4
	rs277        FECMode = 8
	rs163        FECMode = 9
	adaptiveRS   FECMode = 10
	onDemandRS   FECMode = 11
	rs544WithPLR FECMode = 13
	rs271WithPLR FECMode = 14
)

// fecNames are the codes of modes; PLR is retransmission by the physical layer.
var fecNames = map[FECMode]string{
	noFEC: "none", fireCode: "FC", rs528: "RS(528,514)", rs271: "RS(271,257)", rs544: "RS(544,514)", rs277: "RS(277,257)",
	rs163:      "RS(163,155)",
	adaptiveRS: "RS adaptive", onDemandRS: "RS on demand", rs544WithPLR: "RS(544,514) PLR",
	rs271WithPLR: "RS(271,257) PLR",
}

// String returns the code; empty: unknown.
func (m FECMode) String() string { return fecNames[m] }

// IsRS reports whether PortExtendedSpeedsCounters has the layout of RS-FEC.
func (m FECMode) IsRS() bool { return m >= rs528 && fecNames[m] != "" }

// PortInfoExtended is part of the attribute of that name: the FEC in use.
type PortInfoExtended struct {
	Known bool // the port reports its FEC (CapabilityMask, IsFECModeSupported)
	FEC   FECMode
}

func decodePortInfoExtended(b []byte) PortInfoExtended {
	const isFECModeSupported = 1 << 0
	return PortInfoExtended{
		Known: binary.BigEndian.Uint32(b)&isFECModeSupported != 0, FEC: FECMode(binary.BigEndian.Uint16(b[4:])),
	}
}

// FECCount is a counter of PortExtendedSpeedsCounters: of the port, or of a lane.
type FECCount struct {
	Name  string // as in fecPlaces
	Lane  int    // -1 for the port
	Value uint64
}

// AtEnd reports whether the counter has stopped at its highest value.
func (c FECCount) AtEnd() bool {
	for _, p := range fecPlaces {
		if p.name == c.Name {
			return c.Value >= 1<<p.bits-1
		}
	}
	return false
}

// maxLanes is the number of lanes in PortExtendedSpeedsCounters: that of a 12X link.
const maxLanes = 12

// fecPlaces are the counters by their first byte in PortExtendedSpeedsCounters, for the modes that have them (IBA
// 16.1.4.12; libibmad, fields.c, IB_PESC_* and IB_PESC_RSFEC_*). Not included: ErrorDetectionCounterLane, which RS-FEC
// does not have.
var fecPlaces = []struct {
	name  string
	at    int
	bits  int
	lanes bool
	has   func(FECMode) bool
}{
	{"sync_header_errors", 16, 16, false, anyFEC},
	{"unknown_blocks", 18, 16, false, anyFEC},
	{"corrected_blocks", 44, 32, true, isFireCode},
	{"uncorrectable_blocks", 92, 32, true, isFireCode},
	{"corrected_symbols", 44, 32, true, FECMode.IsRS},
	{"corrected_blocks", 140, 32, false, FECMode.IsRS},
	{"uncorrectable_blocks", 144, 32, false, FECMode.IsRS},
	{"corrected_symbols", 148, 32, false, FECMode.IsRS},
}

func anyFEC(FECMode) bool       { return true }
func isFireCode(m FECMode) bool { return m == fireCode }

// decodeFECCounts parses PortExtendedSpeedsCounters. Its layout depends on the FEC in use, which it does not contain.
// Lanes beyond the width of the link are 0.
func decodeFECCounts(b []byte, mode FECMode) (out []FECCount, err error) {
	if len(b) != Size-atData {
		return nil, fmt.Errorf("%w: PortExtendedSpeedsCounters of %d bytes, want %d", ErrMalformed, len(b), Size-atData)
	}
	if mode.String() == "" {
		return nil, fmt.Errorf("%w: PortExtendedSpeedsCounters: layout with FEC mode %d is unknown", ErrMalformed, mode)
	}
	for _, p := range fecPlaces {
		if !p.has(mode) {
			continue
		}
		if !p.lanes {
			out = append(out, FECCount{p.name, -1, bigEndian(b[p.at:], p.bits)})
			continue
		}
		for lane := range maxLanes {
			out = append(out, FECCount{p.name, lane, bigEndian(b[p.at+lane*p.bits/8:], p.bits)})
		}
	}
	return out, nil
}

func bigEndian(b []byte, bits int) uint64 {
	if bits == 16 {
		return uint64(binary.BigEndian.Uint16(b))
	}
	return uint64(binary.BigEndian.Uint32(b))
}
