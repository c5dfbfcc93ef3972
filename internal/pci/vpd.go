package pci

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// VPD is the vital product data of a function (PCI 2.2, appendix I).
type VPD struct {
	Identifier string            // product name
	Fields     map[string]string // by keyword: PN, SN, V0 to VZ, …
}

// Tags of resources. A large one has a 7-bit type and a 16-bit length, a small one a 4-bit type and a 3-bit length.
const (
	vpdLarge      = 0x80
	vpdIdentifier = 0x82
	vpdReadOnly   = 0x90
	vpdReadWrite  = 0x91
	vpdEnd        = 0x78 >> 3 // a small resource
)

// ErrVPD is wrapped by errors of truncated or malformed data.
var ErrVPD = errors.New("invalid vital product data")

// ParseVPD parses vital product data. The valid part is returned with an error.
func ParseVPD(b []byte) (VPD, error) {
	v := VPD{Fields: map[string]string{}}
	for at := 0; at < len(b); {
		tag := b[at]
		if tag&vpdLarge == 0 {
			if tag>>3 == vpdEnd {
				return v, nil
			}
			if tag == 0 { // flash without data
				return v, fmt.Errorf("%w: tag 0 at %d", ErrVPD, at)
			}
			at += 1 + int(tag&7)
			continue
		}
		if len(b)-at < 3 {
			return v, fmt.Errorf("%w: truncated at %d", ErrVPD, at)
		}
		length := int(binary.LittleEndian.Uint16(b[at+1:]))
		at += 3
		data := b[at:min(at+length, len(b))]
		switch tag {
		case vpdIdentifier:
			v.Identifier = vpdText(data)
		case vpdReadOnly, vpdReadWrite:
			v.fields(data)
		}
		if at += length; at > len(b) {
			return v, fmt.Errorf("%w: resource 0x%02x ends at %d of %d", ErrVPD, tag, at, len(b))
		}
	}
	return v, fmt.Errorf("%w: no end tag", ErrVPD)
}

// fields parses keywords: two letters, a length, and the value. The checksum (RV) and the writable area (RW) are not
// text.
func (v *VPD) fields(b []byte) {
	for len(b) >= 3 {
		key, length := string(b[:2]), min(int(b[2]), len(b)-3)
		b = b[3:]
		if key != "RV" && key != "RW" {
			v.Fields[key] = vpdText(b[:length])
		}
		b = b[length:]
	}
}

func vpdText(b []byte) string { return strings.TrimRight(string(b), "\x00 ") }

// nvlinkMark marks the functions that manage NVLink switches.
const nvlinkMark = "SW_MNG"

// Public returns the part without identifying data: the product, and whether it is a NIC. Serial numbers are left out.
func (v VPD) Public() VPD {
	out := VPD{Identifier: v.Identifier, Fields: map[string]string{}}
	for key, text := range v.Fields {
		switch {
		case key == "PN":
			out.Fields[key] = text
		case strings.Contains(text, nvlinkMark):
			out.Fields[key] = nvlinkMark
		}
	}
	return out
}

// Bytes encodes the same data.
func (v VPD) Bytes() []byte {
	var fields []byte
	for _, key := range slices.Sorted(maps.Keys(v.Fields)) {
		text := v.Fields[key][:min(len(v.Fields[key]), 255)]
		fields = append(append(fields, key...), byte(len(text)))
		fields = append(fields, text...)
	}
	b := binary.LittleEndian.AppendUint16([]byte{vpdIdentifier}, uint16(len(v.Identifier)))
	b = append(append(b, v.Identifier...), vpdReadOnly)
	b = append(binary.LittleEndian.AppendUint16(b, uint16(len(fields))), fields...)
	return append(b, vpdEnd<<3)
}

// ManagesNVLink reports whether the function manages NVLink switches and is not a NIC: a field (in practice a vendor
// field) or the name contains SW_MNG. NVIDIA's fabric manager finds them that way on HGX B200 and B300.
func (v VPD) ManagesNVLink() bool {
	if strings.Contains(v.Identifier, nvlinkMark) {
		return true
	}
	for _, text := range v.Fields {
		if strings.Contains(text, nvlinkMark) {
			return true
		}
	}
	return false
}

// infiniBandRates are the InfiniBand generations in product names, with the rate of a port in Gb/s. half marks cards
// that reach it with half of the four lanes at their fastest speed.
var infiniBandRates = map[string]struct {
	rate float64
	half bool
}{
	"HDR100": {100, true},
	"HDR":    {200, false},
	"HDR200": {200, false},
	"NDR200": {200, true},
	"NDR":    {400, false},
	"NDR400": {400, false},
	"XDR":    {800, false},
}

// InfiniBandLimit returns the highest rate of a port of the card in bits per second, if its supported widths and speeds
// suggest twice as much: the product name contains HDR100 or NDR200, and nothing faster. Otherwise it is 0.
func (v VPD) InfiniBandLimit() float64 {
	var most float64
	var half bool
	for _, word := range strings.FieldsFunc(strings.ToUpper(v.Identifier), func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		if x := infiniBandRates[word]; x.rate > most || x.rate == most && x.half {
			most, half = x.rate, x.half
		}
	}
	if !half {
		return 0
	}
	return most * 1e9
}
