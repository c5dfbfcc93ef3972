package host

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"testing"
)

func u64s(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}

func TestParsePause(t *testing.T) {
	header := attr(ethtoolHeader|nested, attr(1, u32(5)), attr(ethtoolHeaderDevName, str("eth0")))
	for _, c := range []struct {
		name string
		msg  []byte
		want Pause
	}{
		{
			"whole", slices.Concat(header, attr(pauseAutoneg, u8(0)), attr(pauseRX, u8(1)), attr(pauseTX, u8(0)),
				attr(pauseStats|nested, attr(1, nil), attr(pauseStatTXFrames, u64s(7)), attr(pauseStatRXFrames, u64s(8)), attr(pauseStatTXStorms, u64s(9))), attr(6, u32(0))),
			Pause{Autoneg: ptr(0), RX: ptr(1), TX: ptr(0), TXFrames: ptr(7), RXFrames: ptr(8), TXStormEvents: ptr(9)},
		},
		{"a driver without statistics", slices.Concat(header, attr(pauseRX, u8(1)), attr(pauseTX, u8(1)), attr(pauseStats|nested)), Pause{RX: ptr(1), TX: ptr(1)}},
		{"empty", nil, Pause{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parsePause(c.msg); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestParseFEC(t *testing.T) {
	header := attr(ethtoolHeader|nested, attr(1, u32(5)), attr(ethtoolHeaderDevName, str("eth0")))
	for _, c := range []struct {
		name string
		msg  []byte
		want FEC
	}{
		{
			"totals before lanes", slices.Concat(header, attr(fecActive, u32(50)),
				attr(fecStats|nested, attr(fecStatCorrected, u64s(10, 4, 6)), attr(fecStatUncorrectable, u64s(3)), attr(fecStatCorrectedBits, u64s(99)), attr(5, u32(1)))),
			FEC{Active: ptr(50), Corrected: ptr(10), Uncorrectable: ptr(3), CorrectedBits: ptr(99)},
		},
		{"what the driver does not count is empty", slices.Concat(header, attr(fecActive, u32(51)), attr(fecStats|nested, attr(fecStatCorrected, nil), attr(fecStatUncorrectable, u64s(0)))), FEC{Active: ptr(51), Uncorrectable: ptr(0)}},
		{"not known", slices.Concat(header, attr(fecStats|nested, attr(fecStatCorrected, u64s(math.MaxUint64)))), FEC{}},
		{"a broken number", slices.Concat(header, attr(fecStats|nested, attr(fecStatCorrected, make([]byte, 12)))), FEC{}},
		{"off", header, FEC{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parseFEC(c.msg); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func FuzzParsePauseAndFEC(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(attr(pauseStats|nested, attr(pauseStatTXFrames, u64s(7))))
	f.Add(attr(fecStats|nested, attr(fecStatCorrected, u64s(10, 4, 6))))
	f.Fuzz(func(t *testing.T, msg []byte) {
		parsePause(msg)
		if e := parseFEC(msg); e.Corrected != nil && *e.Corrected == math.MaxUint64 {
			t.Fatalf("%+v holds what is not known", e)
		}
	})
}
