// Package dump parses module memories written by hand from the tables of the standards, for tests.
//
// A line "[A0 lower]", "[A2 page 11 bank 1]" begins 128 bytes. They are 0 except for lines "OFFSET: bytes": in hex, as
// "text", or sum(FIRST-LAST) for a checksum. Text after " #" is a comment. "[want]" is followed by the expected result
// of decoding.
package dump

import (
	"fmt"
	"strconv"
	"strings"
)

const half = 128

// Half identifies 128 bytes of a module: the lower memory of an I2C address, or a page in its upper half.
type Half struct {
	Address, Bank, Page uint8
	Upper               bool
}

// Memory is the memory of a module.
type Memory map[Half]*[half]byte

// Parse parses a dump and its expected result.
func Parse(text string) (m Memory, want string, err error) {
	text, want, _ = strings.Cut(text, "[want]\n")
	m = Memory{}
	var to *[half]byte
	for line := range strings.Lines(text) {
		line, _, _ := strings.Cut(strings.TrimSpace(line), " #")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			h, err := parseHalf(line)
			if err != nil {
				return nil, "", fmt.Errorf("%q: %w", line, err)
			}
			to = &[half]byte{}
			m[h] = to
		default:
			offset, bytes, ok := strings.Cut(line, ": ")
			at, err := strconv.Atoi(offset)
			if !ok || err != nil || to == nil {
				return nil, "", fmt.Errorf("%q: no bytes", line)
			}
			if err := fill(to, at%half, bytes); err != nil {
				return nil, "", fmt.Errorf("%q: %w", line, err)
			}
		}
	}
	return m, want, nil
}

func parseHalf(line string) (h Half, err error) {
	f := strings.Fields(strings.Trim(line, "[]"))
	h.Address = map[string]uint8{"A0": 0x50, "A2": 0x51}[f[0]]
	if f[1] == "page" {
		page, err := strconv.ParseUint(f[2], 16, 8)
		if err != nil {
			return h, err
		}
		h.Page, h.Upper = uint8(page), true
	}
	if len(f) > 4 {
		bank, err := strconv.ParseUint(f[4], 10, 8)
		if err != nil {
			return h, err
		}
		h.Bank = uint8(bank)
	}
	return h, nil
}

func fill(to *[half]byte, at int, bytes string) error {
	for bytes = strings.TrimSpace(bytes); bytes != ""; bytes = strings.TrimSpace(bytes) {
		if bytes[0] == '"' {
			s, rest, _ := strings.Cut(bytes[1:], `"`)
			at += copy(to[at:], s)
			bytes = rest
			continue
		}
		var token string
		token, bytes, _ = strings.Cut(bytes, " ")
		var first, last int
		if n, _ := fmt.Sscanf(token, "sum(%d-%d)", &first, &last); n == 2 {
			for _, b := range to[first%half : last%half+1] {
				to[at] += b
			}
			at++
			continue
		}
		b, err := strconv.ParseUint(token, 16, 8)
		if err != nil {
			return err
		}
		to[at] = byte(b)
		at++
	}
	return nil
}

// Captured returns the memory in the format of captures, by ADDRESS-PAGE-BANK: lines "OFFSET: BYTES".
func (m Memory) Captured() map[string]string {
	out := map[string]string{}
	for _, upper := range []bool{false, true} {
		at := 0
		if upper {
			at = half
		}
		for h, b := range m {
			if h.Upper == upper {
				out[fmt.Sprintf("%02x-%02x-%d", h.Address, h.Page, h.Bank)] += fmt.Sprintf("%d: % x\n", at, *b)
			}
		}
	}
	return out
}
