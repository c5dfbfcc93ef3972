package perf

import (
	"encoding/binary"
	"testing"
)

// sparse returns size bytes, all zero but those at.
func sparse(size int, at map[int]byte) []byte {
	b := make([]byte, size)
	for i, v := range at {
		b[i] = v
	}
	return b
}

func TestCounters(t *testing.T) {
	short := sparse(192, map[int]byte{
		4: 1, 5: 2, 6: 3, 7: 4, 8: 5, 9: 6, 10: 7, 11: 8, 12: 9, 13: 10, 14: 11, 15: 12, 16: 13, 17: 14, 19: 0xab, 22: 15,
		23: 16, 24: 0xff, 40: 17, 41: 18, 42: 19, 43: 20,
	})
	want := []uint64{0x102, 3, 4, 0x506, 0x708, 0x90a, 0xb0c, 13, 14, 0xa, 0xb, 0xf10, 0x11121314, 0, 0}
	check := func(name string, c Counters, known int, want []uint64) {
		t.Helper()
		for k, w := range want {
			v, ok := c.Get(Counter(k))
			if ok != (known&(1<<k) != 0) || ok && v != w {
				t.Errorf("%s: counter %d: %#x %v, want %#x", name, k, v, ok, w)
			}
		}
	}
	var c Counters
	c.ReadShort(short, Info{TransmitWait: true})
	check("short", c, 1<<TransmitData-1, want)
	c = Counters{}
	c.ReadShort(short, Info{})
	check("without transmit wait", c, 1<<TransmitWait-1, want)

	long := make([]byte, 192)
	for i := range 24 {
		binary.BigEndian.PutUint64(long[8*i:], uint64(i)<<40)
	}
	var wide []uint64
	for i := range uint64(13) {
		wide = append(wide, (9+i)<<40)
	}
	for i := range uint64(8) {
		wide = append(wide, (1+i)<<40)
	}
	const errors, casts = 1<<TransmitData - 1, 1<<NumCounters - 1<<TransmitUnicast
	for name, x := range map[string]struct {
		info  Info
		known int
	}{
		"extended":                          {Info{Extended: true, Casts: true, ExtendedErrors: true}, 1<<NumCounters - 1},
		"extended without errors":           {Info{Extended: true, Casts: true}, 1<<NumCounters - 1 - errors},
		"without unicast and multicast":     {Info{Extended: true}, 1<<NumCounters - 1 - errors - casts},
		"errors without unicast, multicast": {Info{Extended: true, ExtendedErrors: true}, 1<<NumCounters - 1 - casts},
	} {
		c = Counters{}
		c.ReadExtended(long, x.info)
		check(name, c, x.known, wide)
	}
}

func TestDecodeInfo(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   map[int]byte
		want Info
	}{
		{"no capability", nil, Info{}},
		{"mlx5", map[int]byte{2: 0x02}, Info{Extended: true, Casts: true}}, // mlx5 (drivers/infiniband/hw/mlx5/mad.c)
		{"transmit wait", map[int]byte{2: 0x14}, Info{Extended: true, TransmitWait: true}},
		{"extended errors", map[int]byte{2: 0x02, 7: 0x52}, Info{Extended: true, Casts: true, ExtendedErrors: true}}, // 0x12 below it is RespTimeValue
		{"response time only", map[int]byte{2: 0x02, 7: 0x3f}, Info{Extended: true, Casts: true}},
		{"extended errors without extended counters", map[int]byte{7: 0x40}, Info{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := DecodeInfo(sparse(192, tt.at)); got != tt.want {
				t.Errorf("%v: %+v, want %+v", tt.at, got, tt.want)
			}
		})
	}
}

// TestSince: increases are returned, a cleared counter counts from 0, and one that is in only one of the readings is
// left out.
func TestSince(t *testing.T) {
	counters := func(values map[Counter]uint64) *Counters {
		c := &Counters{}
		for k, v := range values {
			c.Set(k, v)
		}
		return c
	}
	before := counters(map[Counter]uint64{SymbolErrors: 5, LinkDowned: 7, ReceiveErrors: 3, VL15Dropped: 1})
	after := counters(map[Counter]uint64{SymbolErrors: 8, LinkDowned: 2, ReceiveErrors: 3, TransmitWait: 9})
	rise := after.Since(before)
	if want := *counters(map[Counter]uint64{SymbolErrors: 3, LinkDowned: 2}); rise != want {
		t.Errorf("%+v, want %+v", rise, want)
	}
	if rise = after.Since(after); !rise.Empty() {
		t.Errorf("%+v since itself", rise)
	}
}

func TestSaturated(t *testing.T) {
	var c Counters
	c.ReadShort(sparse(64, map[int]byte{4: 0xff, 5: 0xff, 6: 0xff, 7: 0xfe, 19: 0xf0}), Info{})
	for k, want := range map[Counter]bool{
		SymbolErrors: true, LinkErrorRecoveries: true, LinkDowned: false, LocalLinkIntegrityErrors: true,
		VL15Dropped: false, ReceiveData: false,
	} {
		if c.Saturated(k) != want {
			t.Errorf("%d: %v", k, !want)
		}
	}
	c = Counters{}
	c.ReadExtended(sparse(192, map[int]byte{78: 0xff, 79: 0xff}), Info{Extended: true, ExtendedErrors: true})
	if v, _ := c.Get(SymbolErrors); v != 0xffff || c.Saturated(SymbolErrors) {
		t.Errorf("%d of 64 bits", v)
	}
}

func TestReceiveErrorDetails(t *testing.T) {
	// libibmad, fields.c, IB_PC_RCV_*: bits 32, 48, … by 8
	got := DecodeReceiveErrorDetails(sparse(192, map[int]byte{4: 1, 5: 2, 6: 3, 8: 4, 11: 5, 13: 6, 14: 7, 16: 99}))
	if want := (ReceiveErrorDetails{0x102, 0x300, 0x400, 5, 6, 0x700}); got != want {
		t.Errorf("%v", got)
	}
}
