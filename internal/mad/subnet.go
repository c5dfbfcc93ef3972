package mad

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"rdma_exporter/internal/words"
)

// Attributes of subnet management (IBA 14.2.5).
const (
	attrNodeDescription = 0x0010
	attrNodeInfo        = 0x0011
	attrSwitchInfo      = 0x0012
	attrPortInfo        = 0x0015
	attrSLToVL          = 0x0017
	attrSMInfo          = 0x0020
	attrMellanoxPort    = 0xff90 // Mellanox ExtendedPortInfo
)

// NodeType is the type of a node (IBA 14.2.5.3).
type NodeType uint8

const (
	ChannelAdapter NodeType = 1
	Switch         NodeType = 2
	Router         NodeType = 3
)

var nodeTypes = map[NodeType]string{ChannelAdapter: "channel_adapter", Switch: "switch", Router: "router"}

func (t NodeType) String() string { return cmp.Or(nodeTypes[t], "unknown") }

// NodeInfo is the attribute of that name (IBA 14.2.5.3).
type NodeInfo struct {
	Type      NodeType
	Ports     int // not counting port 0 of a switch
	GUID      uint64
	DeviceID  uint16
	VendorID  uint32
	LocalPort int // that received the request
}

func decodeNodeInfo(b []byte) NodeInfo {
	return NodeInfo{
		Type: NodeType(b[2]), Ports: int(b[3]),
		GUID: binary.BigEndian.Uint64(b[12:]), DeviceID: binary.BigEndian.Uint16(b[30:]), LocalPort: int(b[36]),
		VendorID: binary.BigEndian.Uint32(b[36:]) & 0xffffff,
	}
}

// decodeNodeDescription decodes the text up to its terminator (IBA 14.2.5.2). An operator may have set it: it is a
// foreign text.
func decodeNodeDescription(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return words.Foreign(string(bytes.TrimSpace(text)))
}

// SwitchInfo is part of the attribute of that name (IBA 14.2.5.4).
type SwitchInfo struct {
	// Changed: the state of a port has changed since the subnet manager cleared this flag.
	Changed bool
}

func decodeSwitchInfo(b []byte) SwitchInfo {
	return SwitchInfo{Changed: b[11]&0x04 != 0}
}

// PortState is the logical state of a port (IBA 14.2.5.6, PortState).
type PortState uint8

// The states. Of a port that is down, only the physical state is valid (C14-24.2.1).
const (
	PortDown   PortState = 1
	PortInit   PortState = 2
	PortArmed  PortState = 3
	PortActive PortState = 4
)

// PhysicalLinkUp is a PortPhysicalState (IBA 14.2.5.6).
const PhysicalLinkUp = 5

// Bits of CapabilityMask (IBA 14.2.5.6). Switches have it at port 0 only.
const (
	capIsSM           = 1 << 1
	capExtendedSpeeds = 1 << 14
	capMask2          = 1 << 15 // CapabilityMask2 is valid

	cap2PortInfoExtended = 1 << 1
)

// PortInfo is part of the attribute of that name (IBA 14.2.5.6).
type PortInfo struct {
	LID           uint16
	SMLID         uint16 // of the master subnet manager
	Capabilities  uint32
	Extended      bool // PortInfoExtended is supported; of a switch, valid at port 0
	State         PortState
	PhysicalState uint8
	MTU           int // NeighborMTU, bytes: of the largest packets that the port sends; 0: none is valid
	DataVLs       int // OperationalVLs: virtual lanes for data; 0: none is valid
	Supported     Link
	Enabled       Link
	Active        Link
}

// Up reports whether subnet management datagrams pass.
func (p *PortInfo) Up() bool { return p.PhysicalState == PhysicalLinkUp && p.State > PortDown }

// IsSM reports whether a subnet manager has registered at the port.
func (p *PortInfo) IsSM() bool { return p.Capabilities&capIsSM != 0 }

func decodePortInfo(b []byte) PortInfo {
	p := PortInfo{
		LID: binary.BigEndian.Uint16(b[16:]), SMLID: binary.BigEndian.Uint16(b[18:]),
		Capabilities: binary.BigEndian.Uint32(b[20:]),
		State:        PortState(b[32] & 15), PhysicalState: b[33] >> 4,
		Enabled:   Link{Widths(b[29]), Speeds(b[35] & baseSpeeds)},
		Supported: Link{Widths(b[30]), Speeds(b[32] >> 4 & baseSpeeds)},
		Active:    Link{Widths(b[31]), Speeds(b[35] >> 4 & baseSpeeds)},
	}
	if mtu := b[36] >> 4; mtu >= 1 && mtu <= 5 {
		p.MTU = 128 << mtu
	}
	if vls := b[43] >> 4; vls >= 1 && int(vls) < len(dataVLs) {
		p.DataVLs = dataVLs[vls]
	}
	p.Extended = p.Capabilities&capMask2 != 0 && binary.BigEndian.Uint16(b[60:])&cap2PortInfoExtended != 0
	// Switch ports other than 0 have no mask. Unsupported speeds are 0 there.
	if p.Capabilities == 0 || p.Capabilities&capExtendedSpeeds != 0 {
		p.Active.Speeds |= Speeds(b[62]>>4)<<extendedShift | Speeds(b[56]>>5&1)<<extended2Shift
		p.Supported.Speeds |= Speeds(b[62]&15)<<extendedShift | Speeds(b[56]>>3&1)<<extended2Shift
		p.Enabled.Speeds |= Speeds(b[56]&1) << extended2Shift
		if enabled := b[63] & 31; enabled != noExtended {
			p.Enabled.Speeds |= Speeds(enabled&extendedSpeeds) << extendedShift
		}
	}
	return p
}

// dataVLs are the virtual lanes of the values of OperationalVLs: VL0, VL0 and VL1, VL0 to VL3, VL0 to VL7, VL0 to VL14.
var dataVLs = [...]int{0, 1, 2, 4, 8, 15}

// ServiceLevels is the number of service levels (IBA 7.6.5).
const ServiceLevels = 16

// decodeSLToVL decodes SLtoVLMappingTable (IBA 14.2.5.9): the virtual lane of each service level, four bits each.
// Packets on VL15 are discarded.
func decodeSLToVL(b []byte) (vls [ServiceLevels]uint8) {
	for sl := range vls {
		vls[sl] = b[sl/2] >> (4 * (1 - sl%2)) & 15
	}
	return vls
}

// Nodes whose ports have the vendor's attribute (infiniband-diags, ibdiag_common.c, is_mlnx_ext_port_info_supported):
// by VendorID, those of Mellanox and of Bull (built with Mellanox chips); by DeviceID, first and last, Mellanox chips
// under any vendor.
var (
	fdr10Vendors = []uint32{0x0002c9, 0x00119f}
	fdr10Devices = [][2]uint16{
		{0xc738, 0xc73b},
		{0xc839, 0xc839},
		{0xcb20, 0xcb20},
		{0xcf08, 0xcf09},
		{0xd2f0, 0xd2f0},
		{0x1003, 0x101b},
		{0xa2d2, 0xa2d2},
	}
)

// MayHaveMellanoxPort reports whether the ports of a node may be queried for MellanoxPort. Ports without it reject the
// query.
func (n *NodeInfo) MayHaveMellanoxPort() bool {
	return slices.Contains(fdr10Vendors, n.VendorID) ||
		slices.ContainsFunc(fdr10Devices, func(d [2]uint16) bool { return d[0] <= n.DeviceID && n.DeviceID <= d[1] })
}

// MayBeFDR10 reports whether a link shown as QDR may run at FDR10.
func (p *PortInfo) MayBeFDR10() bool { return p.Up() && p.Active.Speeds == QDR }

// MellanoxPort is the vendor's attribute ExtendedPortInfo: where FDR10 is supported, enabled and active, in bit 0 of
// bytes 7, 11 and 15 (OpenSM, ib_types.h, ib_mlnx_ext_port_info_t; libibmad, fields.c, IB_MLNX_EXT_PORT_*;
// infiniband-diags, FDR10 of ibdiag_common.h).
type MellanoxPort struct{ Supported, Enabled, Active bool }

func decodeMellanoxPort(b []byte) MellanoxPort {
	return MellanoxPort{Supported: b[7]&1 != 0, Enabled: b[11]&1 != 0, Active: b[15]&1 != 0}
}

// Add adds the vendor's attribute to PortInfo.
func (p *PortInfo) Add(m MellanoxPort) {
	for _, x := range []struct {
		has bool
		to  *Link
	}{{m.Supported, &p.Supported}, {m.Enabled, &p.Enabled}, {m.Active, &p.Active}} {
		if x.has {
			x.to.Speeds |= FDR10
		}
	}
}

// SMState is the state of a subnet manager (IBA 14.2.5.13).
type SMState uint8

const (
	SMNotActive   SMState = 0
	SMDiscovering SMState = 1
	SMStandby     SMState = 2
	SMMaster      SMState = 3
)

// SMInfo is the attribute of that name (IBA 14.2.5.13), without its key.
type SMInfo struct {
	GUID     uint64 // of its port
	Activity uint32 // increases with each datagram sent, answers included
	Priority int
	State    SMState
}

func decodeSMInfo(b []byte) SMInfo {
	return SMInfo{
		GUID: binary.BigEndian.Uint64(b), Activity: binary.BigEndian.Uint32(b[16:]), Priority: int(b[20] >> 4),
		State: SMState(b[20] & 15),
	}
}
