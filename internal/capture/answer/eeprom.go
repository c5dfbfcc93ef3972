package answer

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/transceiver"
)

// PageSize is the size of a page of a module with the lower memory, in bytes.
const PageSize = 256

// EEPROM is the recorded part of one page of a module: 256 bytes including the lower memory if that was read.
type EEPROM struct {
	data  [PageSize]byte
	known [PageSize]bool
}

// eepromLine is the number of bytes per line.
const eepromLine = 16

// Encode writes lines "OFFSET: BYTES" in hex, so that bytes can be found by the offsets in the standards.
func (e *EEPROM) Encode() []byte {
	var b bytes.Buffer
	for at := 0; at < len(e.data); {
		end := at
		for end < len(e.data) && e.known[end] && (end == at || end%eepromLine != 0) {
			end++
		}
		if end == at {
			at++
			continue
		}
		fmt.Fprintf(&b, "%d: % x\n", at, e.data[at:end])
		at = end
	}
	return b.Bytes()
}

// DecodeEEPROM returns the reverse of Encode.
func DecodeEEPROM(path string, data []byte) (*EEPROM, error) {
	e := &EEPROM{}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(line, ": ")
		at, err := strconv.ParseUint(name, 10, 8)
		b, notHex := hex.DecodeString(strings.Join(strings.Fields(value), ""))
		if !ok || err != nil || notHex != nil || int(at)+len(b) > len(e.data) {
			return e, access.ErrGarbled(path, []byte(line))
		}
		e.Put(int(at), b)
	}
	return e, nil
}

// Put adds bytes from at on.
func (e *EEPROM) Put(at int, b []byte) {
	for i, c := range b[:min(len(b), len(e.data)-at)] {
		e.data[at+i], e.known[at+i] = c, true
	}
}

// Get returns up to n bytes from at, as far as they are known.
func (e *EEPROM) Get(at, n int) []byte {
	end := at
	for end < min(at+n, len(e.data)) && e.known[end] {
		end++
	}
	return slices.Clone(e.data[at:end])
}

var eepromEntry = lazy.Regexp(`^ethtool/[^/]+/eeprom/[0-9a-f]{2}-[0-9a-f]{2}-[0-9]+$`)

// IsEEPROM reports whether an entry is a page of a module.
func IsEEPROM(name string) bool { return eepromEntry().MatchString(name) }

// IsIdentity reports whether an entry is the page with the module's identity: page 00h of A0h.
func IsIdentity(name string) bool { return IsEEPROM(name) && strings.HasSuffix(name, "/50-00-0") }

// Private returns where the module has identifying data. It depends on the identifier (00h:0 and 00h:128).
func (e *EEPROM) Private() (transceiver.Place, bool) {
	for _, at := range []int{0, 128} {
		if e.known[at] {
			return transceiver.Private(e.data[at])
		}
	}
	return transceiver.Place{}, false
}

// Serial returns the serial number; empty if missing or incomplete.
func (e *EEPROM) Serial(at transceiver.Ref) string {
	b := e.Get(int(at.Offset), int(at.Length))
	if len(b) < int(at.Length) {
		return ""
	}
	return strings.TrimRight(string(b), " \x00")
}

// Forget removes bytes.
func (e *EEPROM) Forget(from, to int) { clear(e.known[from:to]) }

// Replace overwrites bytes and adjusts their checksum.
func (e *EEPROM) Replace(at, sum int, text string) {
	for i := range len(text) {
		e.data[sum] += text[i] - e.data[at+i]
		e.data[at+i] = text[i]
	}
}
