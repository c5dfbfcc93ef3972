// Package linkmode decodes the Ethernet link modes of ethtool: the modes that a port and its link partner support. It
// is pure.
package linkmode

import (
	"slices"
	"strconv"
	"strings"
)

// Mode is one link mode.
type Mode struct {
	Name  string // as in the kernel's string set, without the duplex: 400000baseKR4
	Speed uint64 // Mb/s
	Lanes uint64
}

// names are the modes of 10 Gb/s and more, by bit: enum ethtool_link_mode_bit_indices of include/uapi/linux/ethtool.h.
// All are full duplex.
var names = map[int]string{
	12: "10000baseT", 18: "10000baseKX4", 19: "10000baseKR", 20: "10000baseR_FEC", 21: "20000baseMLD2", 22: "20000baseKR2",
	23: "40000baseKR4", 24: "40000baseCR4", 25: "40000baseSR4", 26: "40000baseLR4", 27: "56000baseKR4",
	28: "56000baseCR4", 29: "56000baseSR4", 30: "56000baseLR4", 31: "25000baseCR", 32: "25000baseKR",
	33: "25000baseSR", 34: "50000baseCR2", 35: "50000baseKR2", 36: "100000baseKR4", 37: "100000baseSR4",
	38: "100000baseCR4", 39: "100000baseLR4_ER4", 40: "50000baseSR2", 42: "10000baseCR", 43: "10000baseSR",
	44: "10000baseLR", 45: "10000baseLRM", 46: "10000baseER", 52: "50000baseKR", 53: "50000baseSR", 54: "50000baseCR",
	55: "50000baseLR_ER_FR", 56: "50000baseDR", 57: "100000baseKR2", 58: "100000baseSR2", 59: "100000baseCR2",
	60: "100000baseLR2_ER2_FR2", 61: "100000baseDR2", 62: "200000baseKR4", 63: "200000baseSR4",
	64: "200000baseLR4_ER4_FR4", 65: "200000baseDR4", 66: "200000baseCR4", 69: "400000baseKR8", 70: "400000baseSR8",
	71: "400000baseLR8_ER8_FR8", 72: "400000baseDR8", 73: "400000baseCR8", 75: "100000baseKR", 76: "100000baseSR",
	77: "100000baseLR_ER_FR", 78: "100000baseCR", 79: "100000baseDR", 80: "200000baseKR2", 81: "200000baseSR2",
	82: "200000baseLR2_ER2_FR2", 83: "200000baseDR2", 84: "200000baseCR2", 85: "400000baseKR4", 86: "400000baseSR4",
	87: "400000baseLR4_ER4_FR4", 88: "400000baseDR4", 89: "400000baseCR4", 93: "800000baseCR8", 94: "800000baseKR8",
	95: "800000baseDR8", 96: "800000baseDR8_2", 97: "800000baseSR8", 98: "800000baseVR8", 103: "200000baseCR",
	104: "200000baseKR", 105: "200000baseDR", 106: "200000baseDR_2", 107: "200000baseSR", 108: "200000baseVR",
	109: "400000baseCR2", 110: "400000baseKR2", 111: "400000baseDR2", 112: "400000baseDR2_2", 113: "400000baseSR2",
	114: "400000baseVR2", 115: "800000baseCR4", 116: "800000baseKR4", 117: "800000baseDR4", 118: "800000baseDR4_2",
	119: "800000baseSR4", 120: "800000baseVR4", 121: "1600000baseCR8", 122: "1600000baseKR8", 123: "1600000baseDR8",
	124: "1600000baseDR8_2",
}

// Of returns the mode of a bit, if it is one of 10 Gb/s or more. Bits of ports, pause and FEC are not.
func Of(bit int) (Mode, bool) {
	name, ok := names[bit]
	if !ok {
		return Mode{}, false
	}
	return parse(name), true
}

// Bit returns the bit of a mode by name.
func Bit(name string) (int, bool) {
	for bit, n := range names {
		if n == name {
			return bit, true
		}
	}
	return 0, false
}

// parse parses SPEEDbaseMEDIUM. The number of lanes ends the first word of the medium: KR4, LR8_ER8_FR8, DR4_2; without
// a number it is one lane (IEEE 802.3, 1.2.3).
func parse(name string) Mode {
	speed, medium, _ := strings.Cut(name, "base")
	medium, _, _ = strings.Cut(medium, "_")
	m := Mode{Name: name, Lanes: 1}
	m.Speed, _ = strconv.ParseUint(speed, 10, 64)
	if lanes := medium[len(strings.TrimRight(medium, "0123456789")):]; lanes != "" {
		m.Lanes, _ = strconv.ParseUint(lanes, 10, 64)
	}
	return m
}

// Set is a set of bits in 32-bit words, lowest first, as in netlink; nil: not sent.
type Set []uint32

// SetOf returns a set of bits. It is never nil.
func SetOf(bits ...int) Set {
	s := Set{}
	for _, b := range bits {
		for len(s) <= b/32 {
			s = append(s, 0)
		}
		s[b/32] |= 1 << (b % 32)
	}
	return s
}

// Bits lists the bits that are set.
func (s Set) Bits() []int {
	var out []int
	for i, word := range s {
		for b := range 32 {
			if word&(1<<b) != 0 {
				out = append(out, 32*i+b)
			}
		}
	}
	return out
}

// And returns the intersection of two sets.
func (s Set) And(o Set) Set {
	out := make(Set, min(len(s), len(o)))
	for i := range out {
		out[i] = s[i] & o[i]
	}
	return out
}

// Fastest returns the highest speed in a set, in Mb/s, and the lanes of its modes, 0 if they differ. Both are 0 for a
// set without a mode of 10 Gb/s or more.
func (s Set) Fastest() (speed, lanes uint64) {
	for _, b := range s.Bits() {
		m, ok := Of(b)
		switch {
		case !ok || m.Speed < speed:
		case m.Speed > speed:
			speed, lanes = m.Speed, m.Lanes
		case m.Lanes != lanes:
			lanes = 0
		}
	}
	return speed, lanes
}

// String lists the bits: link modes by name, others by number.
func (s Set) String() string {
	var out []string
	for _, b := range s.Bits() {
		if m, ok := Of(b); ok {
			out = append(out, m.Name)
		} else {
			out = append(out, strconv.Itoa(b))
		}
	}
	return strings.Join(out, " ")
}

// maxBit limits the bits of a set: Linux 7.3 has 125.
const maxBit = 1023

// Parse parses the format of String.
func Parse(text string) (Set, bool) {
	var bits []int
	for word := range strings.FieldsSeq(text) {
		b, ok := Bit(word)
		if !ok {
			n, err := strconv.ParseUint(word, 10, 16)
			if err != nil || n > maxBit {
				return nil, false
			}
			b = int(n)
		}
		bits = append(bits, b)
	}
	slices.Sort(bits)
	return SetOf(bits...), true
}
