package nvml

import (
	"encoding/binary"
	"errors"
	"math"
	"syscall"
	"testing"

	"rdma_exporter/internal/host/access"
)

func TestPCIAddress(t *testing.T) {
	for busID, want := range map[string]string{
		"00000000:1B:00.0": "0000:1b:00.0", "00000009:01:00.0": "0009:01:00.0", "00010000:01:00.0": "10000:01:00.0",
		"0000:3B:00.0": "0000:3b:00.0", "": "",
	} {
		if got := pciAddress(busID); got != want {
			t.Errorf("%q: %q, want %q", busID, got, want)
		}
	}
}

func TestNVMLNumber(t *testing.T) {
	word := func(n uint64) (b [8]byte) {
		binary.NativeEndian.PutUint64(b[:], n)
		return b
	}
	short := word(0)
	binary.NativeEndian.PutUint32(short[:], math.MaxUint32)
	for _, c := range []struct {
		name string
		kind uint32
		v    [8]byte
		want uint64
		ok   bool
	}{
		{"double", 0, word(math.Float64bits(2.5)), 2, true},
		{"negative double", 0, word(math.Float64bits(-1)), 0, false},
		{"NaN", 0, word(math.Float64bits(math.NaN())), 0, false},
		{"unsigned int", 1, short, math.MaxUint32, true},
		{"unsigned long", 2, word(1 << 40), 1 << 40, true},
		{"unsigned long long", 3, word(math.MaxUint64), math.MaxUint64, true},
		{"long long", 4, word(7), 7, true},
		{"negative long long", 4, word(math.MaxUint64), 0, false},
		{"negative int", 5, short, 0, false},
		{"unsigned short", 6, short, math.MaxUint16, true},
		{"unknown type", 7, word(1), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := nvmlNumber(c.kind, c.v); ok != c.ok || ok && got != c.want {
				t.Errorf("type %d of %x: %d %v, want %d %v", c.kind, c.v, got, ok, c.want, c.ok)
			}
		})
	}
}

func TestReasonsOfNVML(t *testing.T) {
	for code, want := range map[uint32]access.Reason{
		2: access.Unsupported, 3: access.Unsupported, 13: access.Unsupported, 25: access.Unsupported,
		4: access.Permission, 17: access.Permission, 9: access.Absent,
		15: access.Gone, 16: access.Gone, 1: access.IO, 10: access.IO, 12: access.IO,
		18: access.IO, 999: access.IO, 12345: access.IO,
	} {
		if got := access.ReasonOf(nvmlError("f", code)); got != want {
			t.Errorf("%d: %s, want %s", code, got, want)
		}
	}
	if err := nvmlError("f", 15); err.Error() != "query f: NVML_ERROR_GPU_IS_LOST" || !errors.Is(err, nvmlGPUIsLost) ||
		!errors.Is(err, syscall.ENODEV) {
		t.Error(err)
	}
	if err := nvmlError("f", 0); err != nil {
		t.Error(err)
	}
}
