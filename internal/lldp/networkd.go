package lldp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// networkdAnswer is the answer of systemd-networkd to io.systemd.Network.GetLLDPNeighbors, since systemd 256:
// LLDPNeighborsByInterface and LLDPNeighbor in src/shared/varlink-io.systemd.Network.c. Later versions add fields.
type networkdAnswer struct {
	Neighbors capped[struct {
		InterfaceIndex uint64
		Neighbors      capped[networkdNeighbour]
	}]
}

// networkdNeighbour is a neighbour as lldp_neighbor_build_json writes it (src/libsystemd-network/lldp-neighbor.c). The
// answer has neither its address nor its TTL.
type networkdNeighbour struct {
	// The values of the TLVs, each an array of numbers, with the subtype.
	RawChassisID, RawPortID []byte
	// Texts by cescape (src/basic/escape.c); absent if empty.
	PortDescription, SystemName string
	EnabledCapabilities         *uint16 // nil: not in the frame
}

// mostNeighbours bounds the neighbours of an interface, at the limit of networkd (src/libsystemd-network/sd-lldp-rx.c).
const mostNeighbours = 128

// capped is the first elements of a list: an empty one of three bytes would take thirty times the memory.
type capped[T any] []T

// UnmarshalJSON decodes at most mostNeighbours elements.
func (l *capped[T]) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	switch first, err := d.Token(); {
	case err != nil || first == nil: // null
		return err
	case first != json.Delim('['):
		return errors.New("no list")
	}
	for d.More() && len(*l) < mostNeighbours {
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}

// Sizes of IDs and values, 8.5.2, 8.5.3 and 8.4.
const (
	maxID    = 256
	maxValue = 511
)

// networkdTTL is the TTL of frames of an answer. networkd removes expired neighbours itself.
const networkdTTL = 120

// Networkd returns the neighbours of an interface in an answer of systemd-networkd, as frames in the form of the files
// of earlier versions: Save. IDs of an impossible size are left empty, so that Parse rejects the frame.
func Networkd(answer []byte, index uint64) ([]byte, error) {
	var a networkdAnswer
	if json.Unmarshal(answer, &a) != nil {
		return nil, errors.New("not an answer to GetLLDPNeighbors") // an error of the decoder may quote the other side
	}
	var out []byte
	for _, link := range a.Neighbors {
		if link.InterfaceIndex != index {
			continue
		}
		for i := range link.Neighbors {
			out = Save(out, link.Neighbors[i].frame())
		}
	}
	return out, nil
}

func (n *networkdNeighbour) frame() []byte {
	tlvs := []TLV{
		{TypeChassisID, wholeID(n.RawChassisID)}, {TypePortID, wholeID(n.RawPortID)}, {TypeTTL, []byte{0, networkdTTL}},
	}
	for _, text := range []struct {
		kind  byte
		value string
	}{{TypePortDescription, n.PortDescription}, {TypeSystemName, n.SystemName}} {
		if v := unescaped(text.value); len(v) > 0 {
			tlvs = append(tlvs, TLV{text.kind, v[:min(len(v), maxValue)]})
		}
	}
	if c := n.EnabledCapabilities; c != nil { // those of the system are not in the answer
		tlvs = append(tlvs, TLV{TypeCapabilities, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, *c), *c)})
	}
	return Frame([6]byte{}, tlvs...)
}

func wholeID(id []byte) []byte {
	if len(id) > maxID {
		return nil
	}
	return id
}

// unescaped reverses cescape: two-character escapes of C, and \NNN (octal) for bytes that are not printable ASCII. A
// backslash before anything else is kept.
func unescaped(s string) []byte {
	const letters, meaning = `abfnrtv\"'`, "\a\b\f\n\r\t\v\\\"'"
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		c, n := s[0], 1
		if c == '\\' && len(s) > 1 {
			if i := strings.IndexByte(letters, s[1]); i >= 0 {
				c, n = meaning[i], 2
			} else if v, err := strconv.ParseUint(s[1:min(4, len(s))], 8, 8); err == nil && len(s) >= 4 {
				c, n = byte(v), 4
			}
		}
		out, s = append(out, c), s[n:]
	}
	return out
}

// Save appends a frame as systemd-networkd before 256 saves it in /run/systemd/netif/lldp (link_lldp_save,
// src/network/networkd-lldp-rx.c): after its length in 64 bits, little-endian.
func Save(b, frame []byte) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(frame))), frame...)
}
