package lldp

import "encoding/binary"

// TLV is an element of a frame. Its value has at most 511 bytes.
type TLV struct {
	Type  byte
	Value []byte
}

// Nearest is the group address of the nearest bridge. Bridges do not forward it: table 7-1.
var Nearest = [6]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// Frame encodes a frame of TLVs, and adds the end TLV.
func Frame(source [6]byte, tlvs ...TLV) []byte {
	out := append(Nearest[:len(Nearest):len(Nearest)], source[:]...)
	out = binary.BigEndian.AppendUint16(out, EtherType)
	for _, t := range append(tlvs[:len(tlvs):len(tlvs)], TLV{Type: TypeEnd}) {
		out = binary.BigEndian.AppendUint16(out, uint16(t.Type)<<9|uint16(len(t.Value)))
		out = append(out, t.Value...)
	}
	return out
}
