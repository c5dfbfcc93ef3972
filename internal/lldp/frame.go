package lldp

import "encoding/binary"

// TLV is a part of a frame. Its value has 511 bytes at most.
type TLV struct {
	Type  byte
	Value []byte
}

// Nearest is the group address of the nearest bridge, which no bridge forwards: table 7-1.
var Nearest = [6]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// Frame writes a frame of TLVs, and the one that ends it.
func Frame(source [6]byte, tlvs ...TLV) []byte {
	out := append(Nearest[:len(Nearest):len(Nearest)], source[:]...)
	out = binary.BigEndian.AppendUint16(out, EtherType)
	for _, t := range append(tlvs[:len(tlvs):len(tlvs)], TLV{Type: TypeEnd}) {
		out = binary.BigEndian.AppendUint16(out, uint16(t.Type)<<9|uint16(len(t.Value)))
		out = append(out, t.Value...)
	}
	return out
}
