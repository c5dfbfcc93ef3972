package netlink

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
)

func u64s(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}

func TestParsePause(t *testing.T) {
	header := Attr(ethtoolHeader|nested, Attr(1, u32(5)), Attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0")))
	for _, c := range []struct {
		name string
		msg  []byte
		want host.Pause
	}{
		{
			"whole", slices.Concat(header, Attr(unix.ETHTOOL_A_PAUSE_AUTONEG, U8(0)),
				Attr(unix.ETHTOOL_A_PAUSE_RX, U8(1)), Attr(unix.ETHTOOL_A_PAUSE_TX, U8(0)),
				Attr(unix.ETHTOOL_A_PAUSE_STATS|nested, Attr(1, nil), Attr(unix.ETHTOOL_A_PAUSE_STAT_TX_FRAMES, u64s(7)),
					Attr(unix.ETHTOOL_A_PAUSE_STAT_RX_FRAMES, u64s(8)),
					Attr(pauseStatTXStorms, u64s(9))), Attr(6, u32(0))),
			host.Pause{Autoneg: ptr(0), RX: ptr(1), TX: ptr(0), TXFrames: ptr(7), RXFrames: ptr(8), TXStormEvents: ptr(9)},
		},
		{"a driver without statistics", slices.Concat(header, Attr(unix.ETHTOOL_A_PAUSE_RX, U8(1)), Attr(unix.ETHTOOL_A_PAUSE_TX, U8(1)), Attr(unix.ETHTOOL_A_PAUSE_STATS|nested)), host.Pause{RX: ptr(1), TX: ptr(1)}},
		{"empty", nil, host.Pause{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parsePause(c.msg); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestParseFEC(t *testing.T) {
	header := Attr(ethtoolHeader|nested, Attr(1, u32(5)), Attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0")))
	for _, c := range []struct {
		name string
		msg  []byte
		want host.FEC
	}{
		{
			"totals before lanes", slices.Concat(header, Attr(fecActive, u32(50)),
				Attr(fecStats|nested, Attr(fecStatCorrected, u64s(10, 4, 6)), Attr(fecStatUncorrectable, u64s(3)),
					Attr(fecStatCorrectedBits, u64s(99, 99, math.MaxUint64, 1)), Attr(6, u32(1)))),
			host.FEC{
				Active: ptr(50), Corrected: ptr(10), LaneCorrected: []uint64{4, 6}, Uncorrectable: ptr(3),
				CorrectedBits: ptr(99), LaneCorrectedBits: []uint64{99},
			},
		},
		{
			"histogram, as include/uapi/linux/ethtool_netlink_generated.h numbers it",
			slices.Concat(header, Attr(fecActive, u32(50)), Attr(fecStats|nested,
				Attr(5|nested, Attr(2, u32(0)), Attr(3, u32(0)), Attr(4, u64s(1<<40)), Attr(1, nil), Attr(5, u64s(1<<39, 1<<39))),
				Attr(5|nested, Attr(2, u32(1)), Attr(3, u32(3)), Attr(4, u32(7))),
				Attr(5|nested, Attr(2, u32(4)), Attr(3, u32(7)), Attr(4, u64s(math.MaxUint64))), // unknown
				Attr(5|nested, Attr(2, u32(9)), Attr(3, u32(8)), Attr(4, u32(1))),               // no range
				Attr(5|nested, Attr(2, u32(8)), Attr(4, u32(1))),                                // no end
				Attr(5|nested, Attr(2, u32(15)), Attr(3, u32(15)), Attr(4, u32(0)), Attr(5, make([]byte, 12))),
			)),
			host.FEC{Active: ptr(50), Histogram: []host.FECBin{
				{Low: 0, High: 0, Blocks: 1 << 40, Lanes: []uint64{1 << 39, 1 << 39}},
				{Low: 1, High: 3, Blocks: 7},
				{Low: 15, High: 15},
			}},
		},
		{"what the driver does not count is empty", slices.Concat(header, Attr(fecActive, u32(51)), Attr(fecStats|nested, Attr(fecStatCorrected, nil), Attr(fecStatUncorrectable, u64s(0)))), host.FEC{Active: ptr(51), Uncorrectable: ptr(0)}},
		{"not known", slices.Concat(header, Attr(fecStats|nested, Attr(fecStatCorrected, u64s(math.MaxUint64)))), host.FEC{}},
		{"a broken number", slices.Concat(header, Attr(fecStats|nested, Attr(fecStatCorrected, make([]byte, 12)))), host.FEC{}},
		{"off", header, host.FEC{}},
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
	f.Add(Attr(unix.ETHTOOL_A_PAUSE_STATS|nested, Attr(unix.ETHTOOL_A_PAUSE_STAT_TX_FRAMES, u64s(7))))
	f.Add(Attr(fecStats|nested, Attr(fecStatCorrected, u64s(10, 4, 6))))
	bin := slices.Concat(Attr(fecBinLow, u32(1)), Attr(fecBinHigh, u32(3)), Attr(fecBinValue, u32(7)),
		Attr(fecBinLanes, u64s(3, 4)))
	f.Add(Attr(fecStats|nested, Attr(fecStatHistogram|nested, bin)))
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
