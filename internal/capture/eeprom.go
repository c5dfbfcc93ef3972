package capture

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/transceiver"
)

// eeprom is the recorded part of one page of a module: 256 bytes including the lower memory if that was read.
type eeprom struct {
	data  [256]byte
	known [256]bool
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

func decodeEEPROM(path string, data []byte) (*eeprom, error) {
	e := &eeprom{}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(line, ": ")
		at, err := strconv.ParseUint(name, 10, 8)
		b, notHex := decodeHex([]byte(value))
		if !ok || err != nil || notHex != nil || int(at)+len(b) > len(e.data) {
			return e, access.ErrGarbled(path, []byte(line))
		}
		e.put(int(at), b)
	}
	return e, nil
}

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

// ModuleEEPROM adds the answer to the recorded page. If a request fails after others succeeded, its bytes are missing
// in the replay.
func (r *Recorder) ModuleEEPROM(ctx context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	b, err := r.inner.Ethtool.ModuleEEPROM(ctx, netdev, ref)
	name := netlink.EEPROMName(netdev, ref)
	page, now := r.eeprom(name)
	if err == nil {
		page.put(int(ref.Offset), b)
	}
	if err == nil || !now {
		r.answer(name, page.encode(), err)
	}
	return b, err
}

// eeprom is the recorded page, and whether this round has read part of it.
func (r *Recorder) eeprom(name string) (page *eeprom, now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, now := r.now[name]
	if now = now && e.Kind == File; !now {
		e = r.all[name]
	}
	page, err := decodeEEPROM(name, e.Data)
	if err != nil {
		page = &eeprom{}
	}
	return page, now
}

// ModuleEEPROM returns the recorded bytes. Bytes that were not recorded are EIO, as for a module that does not answer.
func (p *Player) ModuleEEPROM(_ context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	name := netlink.EEPROMName(netdev, ref)
	b, err := p.Read(name, nil)
	if err != nil {
		return nil, err
	}
	page, err := decodeEEPROM(name, b)
	if err != nil {
		return nil, err
	}
	out := page.get(int(ref.Offset), int(ref.Length))
	if len(out) == 0 {
		return nil, &access.Error{Op: "query", Path: name, Err: syscall.EIO}
	}
	return out, nil
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

// moduleSerial is the serial number of a transceiver; empty if it is not known.
func moduleSerial(e *Entry) string {
	page, err := decodeEEPROM(e.Path, e.Data)
	if err != nil {
		return ""
	}
	if place, ok := page.private(); ok {
		return page.serial(place.Serial)
	}
	return ""
}

// publicModule leaves out vendor-specific data and pages of unknown layout, and everything but the identifier if that
// is unknown.
func (p *pseudonyms) publicModule(name string, data []byte) []byte {
	e, err := decodeEEPROM(name, data)
	if err != nil {
		return nil
	}
	if !isIdentity(name) {
		return data
	}
	place, ok := e.private()
	if !ok {
		e.forget(3, len(e.data))
		return e.encode()
	}
	at, end := int(place.Serial.Offset), int(place.Serial.Offset)+int(place.Serial.Length)
	if len(e.get(at, end-at)) < end-at {
		e.forget(at, end)
	}
	e.forget(int(place.Vendor.Offset), int(place.Vendor.Offset)+int(place.Vendor.Length))
	return e.encode()
}

// module replaces the serial number of a module and keeps its checksum as valid or invalid as it was.
func (p *pseudonyms) module(name string, data []byte) []byte {
	e, err := decodeEEPROM(name, data)
	if err != nil || !isIdentity(name) {
		return data
	}
	place, ok := e.private()
	if !ok {
		return data
	}
	if text := e.serial(place.Serial); text != "" {
		e.replace(int(place.Serial.Offset), int(place.Checksum.Offset),
			fmt.Sprintf("%-*s", int(place.Serial.Length), p.serials[text]))
	}
	return e.encode()
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
