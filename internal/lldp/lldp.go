// Package lldp reads what a neighbour announces of itself: one frame of the Link Layer Discovery Protocol, IEEE 802.1AB-2016. It is
// pure: bytes in, a Neighbour out. Whatever stands in a frame was sent by somebody else, so that texts are bounded and printable.
package lldp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// EtherType of LLDP, 7.3.
const EtherType = 0x88cc

// Types of TLVs, table 8-1.
const (
	TypeEnd               = 0
	TypeChassisID         = 1
	TypePortID            = 2
	TypeTTL               = 3
	TypePortDescription   = 4
	TypeSystemName        = 5
	TypeSystemDescription = 6
	TypeCapabilities      = 7
	TypeManagementAddress = 8
)

// Capabilities of systems, table 8-4.
const (
	CapabilityBridge  = 1 << 2
	CapabilityRouter  = 1 << 4
	CapabilityStation = 1 << 7
	CapabilityCVLAN   = 1 << 8
	CapabilitySVLAN   = 1 << 9
)

// Neighbour is what one frame says. Texts are empty where it does not.
type Neighbour struct {
	Source            string // MAC address that sent the frame
	ChassisID         string // 8.5.2, as text: an address, a name, or digits of bytes that are no text
	PortID            string // 8.5.3, the same
	PortDescription   string // 8.5.5
	SystemName        string // 8.5.6
	SystemDescription string // 8.5.7
	ManagementAddress string // 8.5.9, the first that is IPv4 or IPv6
	Enabled           uint16 // 8.5.8, enabled capabilities
	// TTL is for how long it holds, 8.5.4; 0: the neighbour says farewell.
	TTL time.Duration

	portIsName bool // the port ID is what a person calls the port
}

// System is what the neighbour is called: by its name, else by its chassis ID.
func (n *Neighbour) System() string {
	if n.SystemName != "" {
		return n.SystemName
	}
	return n.ChassisID
}

// Port is what a person calls the neighbour's port: the port ID, or where that is an address or an index, as Junos sends it, the port's
// description if there is one.
func (n *Neighbour) Port() string {
	if !n.portIsName && n.PortDescription != "" {
		return n.PortDescription
	}
	return n.PortID
}

// Forwards says whether the neighbour is a bridge or a router: a switch, and no other host.
func (n *Neighbour) Forwards() bool {
	return n.Enabled&(CapabilityBridge|CapabilityRouter|CapabilityCVLAN|CapabilitySVLAN) != 0
}

// errShort is of a frame that ends in the middle of something.
var errShort = errors.New("the frame is cut off")

// Parse reads a frame from its Ethernet header on, with VLAN tags or without. It refuses what 9.2.7.7.1 tells a receiver to discard: a
// frame whose first three TLVs are not chassis ID, port ID and TTL, which has one of those twice, or a TLV that is longer than the frame.
func Parse(frame []byte) (n Neighbour, err error) {
	body, err := payload(frame)
	if err != nil {
		return n, err
	}
	tlvs := 0
	for len(body) > 0 {
		var kind byte
		var value []byte
		if kind, value, body, err = next(body); err != nil {
			return Neighbour{}, err
		}
		tlvs++
		if tlvs <= TypeTTL && int(kind) != tlvs || tlvs > TypeTTL && kind != TypeEnd && kind <= TypeTTL {
			return Neighbour{}, fmt.Errorf("TLV %d is of type %d: the first are chassis ID, port ID and TTL, once each", tlvs, kind)
		}
		if kind == TypeEnd { // padding may follow
			break
		}
		if err := n.take(kind, value); err != nil {
			return Neighbour{}, err
		}
	}
	if tlvs < TypeTTL {
		return Neighbour{}, errShort
	}
	n.Source = address(frame[6:12])
	return n, nil
}

// payload is what follows the Ethernet header.
func payload(frame []byte) ([]byte, error) {
	const addresses, ethertype, tag = 12, 2, 4
	for at := addresses; at+ethertype <= len(frame); at += tag {
		switch t := binary.BigEndian.Uint16(frame[at:]); t {
		case EtherType:
			return frame[at+ethertype:], nil
		case 0x8100, 0x88a8: // IEEE 802.1Q: a tag
		default:
			return nil, fmt.Errorf("EtherType %#04x is not that of LLDP", t)
		}
	}
	return nil, errShort
}

// next takes a TLV off: 7 bits of type, 9 of length, 8.4.
func next(b []byte) (kind byte, value, rest []byte, err error) {
	if len(b) < 2 {
		return 0, nil, nil, errShort
	}
	head := binary.BigEndian.Uint16(b)
	length := int(head & 0x1ff)
	if b = b[2:]; len(b) < length {
		return 0, nil, nil, errShort
	}
	return byte(head >> 9), b[:length], b[length:], nil
}

// take reads a TLV. What is not known, as those of organisations, is left out, and so is an optional one that is garbled.
func (n *Neighbour) take(kind byte, v []byte) error {
	switch kind {
	case TypeChassisID:
		if len(v) < 2 {
			return errors.New("the chassis ID is empty")
		}
		n.ChassisID, _ = render(chassisIDs[v[0]], v[1:])
	case TypePortID:
		if len(v) < 2 {
			return errors.New("the port ID is empty")
		}
		n.PortID, n.portIsName = render(portIDs[v[0]], v[1:])
	case TypeTTL:
		if len(v) < 2 {
			return errors.New("the TTL is cut off")
		}
		n.TTL = time.Duration(binary.BigEndian.Uint16(v)) * time.Second
	case TypePortDescription:
		n.PortDescription = text(v)
	case TypeSystemName:
		n.SystemName = text(v)
	case TypeSystemDescription:
		n.SystemDescription = text(v)
	case TypeCapabilities:
		if len(v) >= 4 {
			n.Enabled = binary.BigEndian.Uint16(v[2:])
		}
	case TypeManagementAddress:
		if a, ok := managementAddress(v); ok && n.ManagementAddress == "" {
			n.ManagementAddress = a
		}
	}
	return nil
}

// managementAddress reads the address in front: its length, its family (IANA address family numbers), its bytes.
func managementAddress(v []byte) (string, bool) {
	if len(v) < 1 || len(v) < 1+int(v[0]) || v[0] < 1 {
		return "", false
	}
	return network(v[1 : 1+int(v[0])])
}

// network reads an address behind the number of its family.
func network(v []byte) (string, bool) {
	const ipv4, ipv6 = 1, 2
	a, ok := netip.AddrFromSlice(v[1:])
	if !ok || v[0] == ipv4 != a.Is4() || v[0] != ipv4 && v[0] != ipv6 {
		return "", false
	}
	return a.String(), true
}
