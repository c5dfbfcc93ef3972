package netlink

import (
	"math"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
)

func statNest(number uint16, value uint64) []byte {
	return Attr(statsGroupStat|nested, Attr(number, u64s(value)))
}

func TestParseStandardStats(t *testing.T) {
	header := Attr(statsHeader|nested, Attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0")))
	group := func(id uint32, stats ...[]byte) []byte {
		return Attr(statsGroup|nested,
			slices.Concat(append([][]byte{Attr(statsGroupID, u32(id)), Attr(3, u32(20))}, stats...)...))
	}
	for _, c := range []struct {
		name string
		msg  []byte
		want []host.Stat
	}{
		{
			"groups", slices.Concat(header, group(0, statNest(0, 5)), group(1, statNest(4, 7), statNest(21, 8)),
				group(3, Attr(5|nested, Attr(7, u32(64))), statNest(3, 9))),
			[]host.Stat{{Name: "SymbolErrorDuringCarrier", Value: 5}, {Name: "FrameCheckSequenceErrors", Value: 7}, {Name: "FrameTooLongErrors", Value: 8}, {Name: "etherStatsJabbers", Value: 9}},
		},
		{"what is not set, not known, or no number", slices.Concat(header, group(1, statNest(4, math.MaxUint64), statNest(99, 1), Attr(statsGroupStat|nested, Attr(5, u32(1)))), group(9, statNest(0, 1))), nil},
		{"a driver without any", header, nil},
		{"a group without a number", Attr(statsGroup|nested, statNest(0, 5)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parseStandardStats(c.msg); !slices.Equal(got, c.want) {
				t.Error(got)
			}
		})
	}
}

func FuzzParseStandardStats(f *testing.F) {
	f.Add(Attr(statsGroup|nested, Attr(statsGroupID, u32(1)), statNest(4, 7)))
	f.Fuzz(func(t *testing.T, msg []byte) {
		for _, s := range parseStandardStats(msg) {
			if s.Name == "" || s.Value == math.MaxUint64 {
				t.Fatal(s)
			}
		}
	})
}
