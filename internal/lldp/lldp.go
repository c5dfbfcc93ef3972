// Package lldp parses frames of the Link Layer Discovery Protocol, IEEE 802.1AB-2016. It is pure: bytes in, a Neighbour
// out. Frames are untrusted input: texts are limited in length and made printable.
package lldp

import (
	"cmp"
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

// Neighbour is the content of a frame. Missing texts are empty.
type Neighbour struct {
	Source            string // source MAC address of the frame
	ChassisID         string // 8.5.2, as text: an address, a name, or hex digits of binary data
	PortID            string // 8.5.3, likewise
	PortDescription   string // 8.5.5
	SystemName        string // 8.5.6
	ManagementAddress string // 8.5.9, the first IPv4 or IPv6 address
	Enabled           uint16 // 8.5.8, enabled capabilities
	// TTL is how long the information is valid, 8.5.4; 0: the neighbour shuts down.
	TTL time.Duration

	portIsName bool // the port ID is a name, not an address or a number
}

// System returns the name of the neighbour, or else its chassis ID.
func (n *Neighbour) System() string { return cmp.Or(n.SystemName, n.ChassisID) }

// Port returns the name of the neighbour's port: the port ID or, if the ID is an address or an index (Junos), the port
// description if there is one.
func (n *Neighbour) Port() string {
	if !n.portIsName && n.PortDescription != "" {
		return n.PortDescription
	}
	return n.PortID
}

// Forwards reports whether the neighbour is a bridge or a router: a switch, not another host.
func (n *Neighbour) Forwards() bool {
	return n.Enabled&(CapabilityBridge|CapabilityRouter|CapabilityCVLAN|CapabilitySVLAN) != 0
}

// errShort is the error of a truncated frame.
var errShort = errors.New("truncated frame")

// Parse parses a frame from its Ethernet header on, with or without VLAN tags. It rejects what 9.2.7.7.1 requires a
// receiver to discard: a frame whose first three TLVs are not chassis ID, port ID and TTL, that has one of these twice,
// or that has a TLV longer than the frame.
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
			return Neighbour{}, fmt.Errorf("TLV %d has type %d: the first three have to be chassis ID, port ID and TTL, once each", tlvs, kind)
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

// payload returns the part after the Ethernet header.
func payload(frame []byte) ([]byte, error) {
	const addresses, ethertype, tag = 12, 2, 4
	for at := addresses; at+ethertype <= len(frame); at += tag {
		switch t := binary.BigEndian.Uint16(frame[at:]); t {
		case EtherType:
			return frame[at+ethertype:], nil
		case 0x8100, 0x88a8: // IEEE 802.1Q tag
		default:
			return nil, fmt.Errorf("EtherType %#04x is not LLDP", t)
		}
	}
	return nil, errShort
}

// next splits off a TLV: 7 bits of type, 9 of length, 8.4.
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

// take decodes a TLV. Unknown ones (organisation-specific) and malformed optional ones are ignored.
func (n *Neighbour) take(kind byte, v []byte) error {
	switch kind {
	case TypeChassisID:
		if len(v) < 2 {
			return errors.New("empty chassis ID")
		}
		n.ChassisID, _ = render(chassisIDs[v[0]], v[1:])
	case TypePortID:
		if len(v) < 2 {
			return errors.New("empty port ID")
		}
		n.PortID, n.portIsName = render(portIDs[v[0]], v[1:])
	case TypeTTL:
		if len(v) < 2 {
			return errors.New("truncated TTL")
		}
		n.TTL = time.Duration(binary.BigEndian.Uint16(v)) * time.Second
	case TypePortDescription:
		n.PortDescription = printable(v)
	case TypeSystemName:
		n.SystemName = printable(v)
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

// managementAddress decodes the leading address: length, family (IANA address family number), bytes.
func managementAddress(v []byte) (string, bool) {
	if len(v) < 1 || len(v) < 1+int(v[0]) || v[0] < 1 {
		return "", false
	}
	return network(v[1 : 1+int(v[0])])
}

// network decodes an address after its family.
func network(v []byte) (string, bool) {
	const ipv4, ipv6 = 1, 2
	a, ok := netip.AddrFromSlice(v[1:])
	if !ok || v[0] == ipv4 != a.Is4() || v[0] != ipv4 && v[0] != ipv6 {
		return "", false
	}
	return a.String(), true
}
