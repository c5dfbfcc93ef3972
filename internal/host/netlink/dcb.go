package netlink

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/dcb"
)

// DCB numbers, include/uapi/linux/dcbnl.h. This is the only command used: its answer includes the DCBX mode, and each
// command takes rtnl.
const (
	dcbCmdIEEEGet = 21

	dcbAttrIfname = 1
	dcbAttrIEEE   = 13
	dcbAttrDCBX   = 14

	dcbIEEEETS      = 1
	dcbIEEEPFC      = 2
	dcbIEEEAppTable = 3
	dcbIEEEBuffer   = 10
	dcbIEEETrust    = 11

	// Attribute types of APP table entries and of trusted selectors (dcbnl_app_attr_type_get).
	DCBApp    = 1 // DCB_ATTR_IEEE_APP: IEEE 802.1Q
	DCBAppDCB = 2 // DCB_ATTR_DCB_APP: kernel-defined, such as the PCP

	// Sizes of the structs, the same on all architectures.
	sizeofETS    = 59
	sizeofPFC    = 136
	sizeofBuffer = 44
	sizeofApp    = 4
)

// DCBClient queries DCB by rtnetlink.
type DCBClient struct{ Here *network }

func (c DCBClient) IEEE(_ context.Context, netdev string) (dcb.Config, error) {
	return query(c.Here, "dcb/"+netdev+"/ieee", "", func() (dcb.Config, error) { return askIEEE(netdev) })
}

func dcbRequest(netdev string) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.RTM_GETDCB, 0)
	req.AddData(dcbMsg(dcbCmdIEEEGet))
	req.AddData(nl.NewRtAttr(dcbAttrIfname, nl.ZeroTerminated(netdev)))
	return req
}

func askIEEE(netdev string) (dcb.Config, error) {
	msgs, err := dcbRequest(netdev).Execute(unix.NETLINK_ROUTE, 0)
	if err != nil {
		return dcb.Config{}, err
	}
	if len(msgs) == 0 {
		return dcb.Config{}, fmt.Errorf("%w: empty reply", access.ErrMalformed)
	}
	return parseDCB(msgs[0])
}

// sizeofDCBMsg is struct dcbmsg, which precedes the attributes.
const sizeofDCBMsg = 4

// dcbMsg is struct dcbmsg of a command.
type dcbMsg uint8

// Len returns the size of the struct.
func (dcbMsg) Len() int { return sizeofDCBMsg }

// Serialize encodes address family, command and padding.
func (m dcbMsg) Serialize() []byte { return []byte{unix.AF_UNSPEC, byte(m), 0, 0} }

// parseDCB parses an answer to DCB_CMD_IEEE_GET. Attributes of the wrong size are ignored. Without any valid attribute
// it is an error.
func parseDCB(msg []byte) (c dcb.Config, err error) {
	if len(msg) < sizeofDCBMsg {
		return dcb.Config{}, fmt.Errorf("%w: DCB answer of %d bytes", access.ErrMalformed, len(msg))
	}
	sent := false
	ieee := attributeList{
		dcbIEEEETS:      func(v []byte) { c.ETS = parseETS(v) },
		dcbIEEEPFC:      func(v []byte) { c.PFC = parsePFC(v) },
		dcbIEEEBuffer:   func(v []byte) { c.Buffer = parseBuffer(v) },
		dcbIEEEAppTable: func(v []byte) { c.Apps = parseApps(v) },
		dcbIEEETrust:    func(v []byte) { c.Trust = ParseTrust(v) },
	}
	attributeList{
		dcbAttrDCBX: &c.DCBX,
		dcbAttrIEEE: func(v []byte) { // a nest without the flag for nests
			sent = true
			ieee.decode(v)
		},
	}.decode(msg[sizeofDCBMsg:])
	if !sent {
		return dcb.Config{}, fmt.Errorf("%w: DCB answer without IEEE", access.ErrMalformed)
	}
	return c, nil
}

func parseETS(b []byte) *dcb.ETS {
	if len(b) != sizeofETS {
		return nil
	}
	return &dcb.ETS{
		Willing: uint64(b[0]), Capability: uint64(b[1]), CreditBased: uint64(b[2]),
		Bandwidth: bytesOf(b[3:]), Algorithm: bytesOf(b[19:]), TrafficClass: bytesOf(b[27:]),
	}
}

func parsePFC(b []byte) *dcb.PFC {
	if len(b) != sizeofPFC {
		return nil
	}
	p := &dcb.PFC{
		Capability: uint64(b[0]), Enabled: uint64(b[1]), MBC: uint64(b[2]), Delay: uint64(binary.NativeEndian.Uint16(b[4:])),
	}
	for i := range p.Requests {
		p.Requests[i], p.Indications[i] = binary.NativeEndian.Uint64(b[8+8*i:]), binary.NativeEndian.Uint64(b[72+8*i:])
	}
	return p
}

func parseBuffer(b []byte) *dcb.Buffer {
	if len(b) != sizeofBuffer {
		return nil
	}
	out := &dcb.Buffer{Buffer: bytesOf(b), Total: uint64(binary.NativeEndian.Uint32(b[40:]))}
	for i := range out.Sizes {
		out.Sizes[i] = uint64(binary.NativeEndian.Uint32(b[8+4*i:]))
	}
	return out
}

// bytesOf reads an array of u8.
func bytesOf(b []byte) (out dcb.PerPriority) {
	for i := range out {
		out[i] = uint64(b[i])
	}
	return out
}

func parseApps(b []byte) []dcb.App {
	out := []dcb.App{}
	for t, v := range eachAttribute(b) {
		if (t == DCBApp || t == DCBAppDCB) && len(v) == sizeofApp && v[1] < dcb.Priorities {
			out = append(out, dcb.App{Selector: v[0], Priority: v[1], Protocol: binary.NativeEndian.Uint16(v[2:])})
		}
	}
	dcb.SortApps(out)
	return slices.Compact(out)
}

// ParseTrust parses the trusted selectors, each a u8 with the type of its APP table entries (dcbnl_getapptrust).
func ParseTrust(b []byte) []uint8 {
	out := []uint8{}
	for t, v := range eachAttribute(b) {
		if (t == DCBApp || t == DCBAppDCB) && len(v) == 1 {
			out = append(out, v[0])
		}
	}
	return out
}
