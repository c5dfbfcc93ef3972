package capture

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/transceiver"
)

// pageSize is the size of a page of a module with the lower memory, in bytes.
const pageSize = 256

// eeprom is the recorded part of one page of a module: 256 bytes including the lower memory if that was read.
type eeprom struct {
	data  [pageSize]byte
	known [pageSize]bool
}

// eepromLine is the number of bytes per line.
const eepromLine = 16

// encode writes lines "OFFSET: BYTES" in hex, so that bytes can be found by the offsets in the standards.
func (e *eeprom) encode() []byte {
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

// decodeEEPROM is the reverse of encode.
func decodeEEPROM(path string, data []byte) (*eeprom, error) {
	e := &eeprom{}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(line, ": ")
		at, err := strconv.ParseUint(name, 10, 8)
		b, notHex := hex.DecodeString(strings.Join(strings.Fields(value), ""))
		if !ok || err != nil || notHex != nil || int(at)+len(b) > len(e.data) {
			return e, host.ErrGarbled(path, []byte(line))
		}
		e.put(int(at), b)
	}
	return e, nil
}

// put adds bytes from at on.
func (e *eeprom) put(at int, b []byte) {
	for i, c := range b[:min(len(b), len(e.data)-at)] {
		e.data[at+i], e.known[at+i] = c, true
	}
}

// get returns up to n bytes from at, as far as they are known.
func (e *eeprom) get(at, n int) []byte {
	end := at
	for end < min(at+n, len(e.data)) && e.known[end] {
		end++
	}
	return slices.Clone(e.data[at:end])
}

var eepromEntry = lazy.Regexp(`^ethtool/[^/]+/eeprom/[0-9a-f]{2}-[0-9a-f]{2}-[0-9]+$`)

// isEEPROM reports whether an entry is a page of a module.
func isEEPROM(name string) bool { return eepromEntry().MatchString(name) }

// isIdentity reports whether an entry is the page with the module's identity: page 00h of A0h.
func isIdentity(name string) bool { return isEEPROM(name) && strings.HasSuffix(name, "/50-00-0") }

// private is where the module has identifying data. It depends on the identifier (00h:0 and 00h:128).
func (e *eeprom) private() (transceiver.Place, bool) {
	for _, at := range []int{0, 128} {
		if e.known[at] {
			return transceiver.Private(e.data[at])
		}
	}
	return transceiver.Place{}, false
}

// serial is the serial number; empty if missing or incomplete.
func (e *eeprom) serial(at transceiver.Ref) string {
	b := e.get(int(at.Offset), int(at.Length))
	if len(b) < int(at.Length) {
		return ""
	}
	return strings.TrimRight(string(b), " \x00")
}

// forget removes bytes.
func (e *eeprom) forget(from, to int) { clear(e.known[from:to]) }

// replace overwrites bytes and adjusts their checksum.
func (e *eeprom) replace(at, sum int, text string) {
	for i := range len(text) {
		e.data[sum] += text[i] - e.data[at+i]
		e.data[at+i] = text[i]
	}
}
