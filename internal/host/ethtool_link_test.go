package host

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func u64s(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}

func TestParsePause(t *testing.T) {
	header := attr(ethtoolHeader|nested, attr(1, u32(5)), attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0")))
	for _, c := range []struct {
		name string
		msg  []byte
		want Pause
	}{
		{
			"whole", slices.Concat(header, attr(unix.ETHTOOL_A_PAUSE_AUTONEG, u8(0)),
				attr(unix.ETHTOOL_A_PAUSE_RX, u8(1)), attr(unix.ETHTOOL_A_PAUSE_TX, u8(0)),
				attr(unix.ETHTOOL_A_PAUSE_STATS|nested, attr(1, nil), attr(unix.ETHTOOL_A_PAUSE_STAT_TX_FRAMES, u64s(7)),
					attr(unix.ETHTOOL_A_PAUSE_STAT_RX_FRAMES, u64s(8)),
					attr(pauseStatTXStorms, u64s(9))), attr(6, u32(0))),
			Pause{Autoneg: ptr(0), RX: ptr(1), TX: ptr(0), TXFrames: ptr(7), RXFrames: ptr(8), TXStormEvents: ptr(9)},
		},
		{"a driver without statistics", slices.Concat(header, attr(unix.ETHTOOL_A_PAUSE_RX, u8(1)), attr(unix.ETHTOOL_A_PAUSE_TX, u8(1)), attr(unix.ETHTOOL_A_PAUSE_STATS|nested)), Pause{RX: ptr(1), TX: ptr(1)}},
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
	header := attr(ethtoolHeader|nested, attr(1, u32(5)), attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0")))
	for _, c := range []struct {
		name string
		msg  []byte
		want FEC
	}{
		{
			"totals before lanes", slices.Concat(header, attr(fecActive, u32(50)),
				attr(fecStats|nested, attr(fecStatCorrected, u64s(10, 4, 6)), attr(fecStatUncorrectable, u64s(3)),
					attr(fecStatCorrectedBits, u64s(99, 99, math.MaxUint64, 1)), attr(6, u32(1)))),
			FEC{
				Active: ptr(50), Corrected: ptr(10), LaneCorrected: []uint64{4, 6}, Uncorrectable: ptr(3),
				CorrectedBits: ptr(99), LaneCorrectedBits: []uint64{99},
			},
		},
		{
			"histogram, as include/uapi/linux/ethtool_netlink_generated.h numbers it",
			slices.Concat(header, attr(fecActive, u32(50)), attr(fecStats|nested,
				attr(5|nested, attr(2, u32(0)), attr(3, u32(0)), attr(4, u64s(1<<40)), attr(1, nil), attr(5, u64s(1<<39, 1<<39))),
				attr(5|nested, attr(2, u32(1)), attr(3, u32(3)), attr(4, u32(7))),
				attr(5|nested, attr(2, u32(4)), attr(3, u32(7)), attr(4, u64s(math.MaxUint64))), // unknown
				attr(5|nested, attr(2, u32(9)), attr(3, u32(8)), attr(4, u32(1))),               // no range
				attr(5|nested, attr(2, u32(8)), attr(4, u32(1))),                                // no end
				attr(5|nested, attr(2, u32(15)), attr(3, u32(15)), attr(4, u32(0)), attr(5, make([]byte, 12))),
			)),
			FEC{Active: ptr(50), Histogram: []FECBin{
				{Low: 0, High: 0, Blocks: 1 << 40, Lanes: []uint64{1 << 39, 1 << 39}},
				{Low: 1, High: 3, Blocks: 7},
				{Low: 15, High: 15},
			}},
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
	f.Add(attr(unix.ETHTOOL_A_PAUSE_STATS|nested, attr(unix.ETHTOOL_A_PAUSE_STAT_TX_FRAMES, u64s(7))))
	f.Add(attr(fecStats|nested, attr(fecStatCorrected, u64s(10, 4, 6))))
	bin := slices.Concat(attr(fecBinLow, u32(1)), attr(fecBinHigh, u32(3)), attr(fecBinValue, u32(7)),
		attr(fecBinLanes, u64s(3, 4)))
	f.Add(attr(fecStats|nested, attr(fecStatHistogram|nested, bin)))
	f.Fuzz(func(t *testing.T, msg []byte) {
		parsePause(msg)
		e := parseFEC(msg)
		if e.Corrected != nil && *e.Corrected == math.MaxUint64 || slices.Contains(e.LaneCorrected, math.MaxUint64) {
			t.Fatalf("%+v holds what is not known", e)
		}
		for _, b := range e.Histogram {
			if b.Low > b.High || b.Blocks == math.MaxUint64 || len(b.Lanes) > maxFECLanes || len(e.Histogram) > maxFECBins {
				t.Fatalf("%+v: bin out of range", e)
			}
		}
	})
}
