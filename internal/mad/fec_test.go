package mad

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"testing"

	"rdma_exporter/internal/mad/perf"
)

// pesc is PortExtendedSpeedsCounters with the first numbers at some bytes, of 16 bits below byte 44.
func pesc(at map[int]uint64) []byte {
	b := make([]byte, Size-atData)
	for i, v := range at {
		if i < 44 {
			binary.BigEndian.PutUint16(b[i:], uint16(v))
		} else {
			binary.BigEndian.PutUint32(b[i:], uint32(v))
		}
	}
	return b
}

func TestDecodeFECCounts(t *testing.T) {
	// The places are the bits of libibmad, fields.c, IB_PESC_* and IB_PESC_RSFEC_*, by 8.
	b := pesc(map[int]uint64{
		128 / 8: 1, 144 / 8: 2, 160 / 8: 99, 352 / 8: 30, 384 / 8: 31, 448 / 8: 33, 704 / 8: 41, 736 / 8: 50,
		768 / 8: 51, 1088 / 8: 61,
		1120 / 8: 70, 1152 / 8: 71, 1184 / 8: 1<<32 - 1,
	})
	const port = -1
	// lanes are the counts of 12 lanes, of which the first are not 0.
	lanes := func(name string, first ...uint64) (out []FECCount) {
		first = append(first, make([]uint64, maxLanes)...)
		for i := range maxLanes {
			out = append(out, FECCount{name, i, first[i]})
		}
		return out
	}
	headers := []FECCount{{"sync_header_errors", port, 1}, {"unknown_blocks", port, 2}}
	for _, c := range []struct {
		name string
		mode FECMode
		want []FECCount
	}{
		{"no FEC", noFEC, headers},
		{"Fire code", fireCode, slices.Concat(headers,
			lanes("corrected_blocks", 30, 31, 0, 33, 0, 0, 0, 0, 0, 0, 0, 41),
			lanes("uncorrectable_blocks", 50, 51, 0, 0, 0, 0, 0, 0, 0, 0, 0, 61))},
		{"RS(544,514) with PLR", rs544WithPLR, slices.Concat(headers,
			lanes("corrected_symbols", 30, 31, 0, 33, 0, 0, 0, 0, 0, 0, 0, 41),
			[]FECCount{
				{"corrected_blocks", port, 70}, {"uncorrectable_blocks", port, 71}, {"corrected_symbols", port, 1<<32 - 1},
			})},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := decodeFECCounts(b, c.mode)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	for _, c := range []struct {
		name string
		b    []byte
		mode FECMode
	}{
		{"short", b[:len(b)-1], rs544},
		{"long", append(slices.Clone(b), 0), rs544},
		{"empty", nil, noFEC},
		{"mode that is reserved", b, 5},
		{"mode that is not available", b, 0xff},
	} {
		if got, err := decodeFECCounts(c.b, c.mode); !errors.Is(err, ErrMalformed) || got != nil {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

func TestFECCountAtEnd(t *testing.T) {
	for c, want := range map[FECCount]bool{
		{"sync_header_errors", -1, 0xffff}:         true,
		{"sync_header_errors", -1, 0xfffe}:         false,
		{"corrected_symbols", 3, 0xffff}:           false,
		{"corrected_symbols", 3, 0xffffffff}:       true,
		{"uncorrectable_blocks", -1, 0xffffffff}:   true,
		{"something else", -1, 0xffffffffffffffff}: false,
	} {
		if c.AtEnd() != want {
			t.Errorf("%+v: %v", c, !want)
		}
	}
}

func TestDecodePortInfoExtended(t *testing.T) {
	for _, c := range []struct {
		name string
		at   map[int]byte
		want PortInfoExtended
		text string
	}{
		{"RS(544,514)", map[int]byte{3: 1, 5: 4}, PortInfoExtended{true, rs544}, "RS(544,514)"},
		{"with PLR", map[int]byte{3: 1, 5: 13}, PortInfoExtended{true, rs544WithPLR}, "RS(544,514) PLR"},
		{"off", map[int]byte{3: 1}, PortInfoExtended{true, noFEC}, "none"},
		{"FEC mode not supported", map[int]byte{3: 2, 5: 2}, PortInfoExtended{false, rs528}, "RS(528,514)"},
		{"not available", map[int]byte{3: 1, 5: 0xff}, PortInfoExtended{true, 0xff}, ""},
	} {
		if got := decodePortInfoExtended(sparse(64, c.at)); got != c.want || got.FEC.String() != c.text {
			t.Errorf("%s: %+v %q", c.name, got, got.FEC)
		}
	}
}

// TestFECCapabilities: without the bits the attributes are not queried.
func TestFECCapabilities(t *testing.T) {
	if i := perf.DecodeInfo(sparse(72, map[int]byte{2: 0x40})); !reflect.DeepEqual(i, perf.Info{FEC: true}) {
		t.Errorf("%+v", i)
	}
	for _, c := range []struct {
		at   map[int]byte
		want bool
	}{
		{map[int]byte{22: 0x80, 61: 0x02}, true},
		{map[int]byte{22: 0x80, 61: 0x10}, false},
		{map[int]byte{22: 0x40, 61: 0x02}, false}, // CapabilityMask2 is not valid
	} {
		if p := decodePortInfo(sparse(64, c.at)); p.Extended != c.want {
			t.Errorf("%v: %v", c.at, p.Extended)
		}
	}
}

func FuzzFEC(f *testing.F) {
	f.Add(pesc(map[int]uint64{44: 7, 148: 9}), uint16(rs544))
	f.Add([]byte("short"), uint16(fireCode))
	f.Add(pesc(nil), uint16(5))
	f.Fuzz(func(t *testing.T, b []byte, mode uint16) {
		got, err := decodeFECCounts(b, FECMode(mode))
		if good := len(b) == Size-atData && FECMode(mode).String() != ""; good != (err == nil) || good != (len(got) > 0) {
			t.Fatalf("%d bytes, mode %d: %v, %v", len(b), mode, got, err)
		}
		for _, c := range got {
			if c.Lane < -1 || c.Lane >= maxLanes || c.Value > 1<<32-1 {
				t.Fatalf("%+v", c)
			}
		}
		if len(b) == 64 {
			decodePortInfoExtended(b)
		}
	})
}
