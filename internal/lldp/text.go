package lldp

import (
	"bytes"
	"encoding/hex"
	"net"
	"strings"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/words"
)

// maxText limits a text in bytes, as in 8.5.5 to 8.5.7. A TLV has room for twice as much.
const maxText = 255

// printable makes received text printable: other characters become U+FFFD. Some neighbours append a NUL, or add blanks.
func printable(b []byte) string {
	valid := strings.ToValidUTF8(string(bytes.TrimRight(b, "\x00")), string(utf8.RuneError))
	s := words.Replace(valid, func(r rune) bool { return !unicode.IsPrint(r) }, utf8.RuneError)
	return strings.TrimSpace(words.Cut(s, maxText))
}

// idKind is the type of an ID.
type idKind uint8

const (
	idText idKind = iota
	idMAC
	idNetwork
)

// The subtypes of IDs that are not text.
var (
	chassisIDs = map[byte]idKind{4: idMAC, 5: idNetwork} // table 8-2
	portIDs    = map[byte]idKind{3: idMAC, 4: idNetwork} // table 8-3
)

// render formats an ID; isName is true for a name, not for an address or a number.
func render(kind idKind, v []byte) (id string, isName bool) {
	switch kind {
	case idMAC:
		if len(v) == 6 {
			return address(v), false
		}
	case idNetwork:
		if a, ok := network(v); ok {
			return a, false
		}
	case idText:
		if s := printable(v); s != "" && !strings.ContainsRune(s, utf8.RuneError) {
			return s, strings.Trim(s, "0123456789") != ""
		}
	}
	return hex.EncodeToString(v[:min(len(v), maxText/2)]), false
}

// address formats a MAC address.
func address(b []byte) string { return net.HardwareAddr(b).String() }
