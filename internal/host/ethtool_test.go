package host

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/linkmode"
)

func sameLinkModes(a, b LinkModes) bool {
	return same(a.Speed, b.Speed) && same(a.Lanes, b.Lanes) && same(a.Autoneg, b.Autoneg) && same(a.Duplex, b.Duplex) &&
		slices.Equal(a.Supported, b.Supported) && slices.Equal(a.Advertised, b.Advertised) && slices.Equal(a.Peer, b.Peer)
}

func TestParseLinkModes(t *testing.T) {
	header := attr(ethtoolHeader|nested, attr(1, u32(5)), attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0")))
	whole := slices.Concat(header, attr(unix.ETHTOOL_A_LINKMODES_AUTONEG, u8(1)), attr(3|nested, attr(1, u32(92))),
		attr(unix.ETHTOOL_A_LINKMODES_SPEED, u32(400_000)), attr(unix.ETHTOOL_A_LINKMODES_DUPLEX, u8(1)),
		attr(unix.ETHTOOL_A_LINKMODES_LANES, u32(4)))
	for _, c := range []struct {
		name string
		msg  []byte
		want LinkModes
	}{
		{"whole", whole, LinkModes{Speed: ptr(400_000), Lanes: ptr(4), Autoneg: ptr(1), Duplex: ptr(1)}},
		{"without lanes", whole[:len(whole)-8], LinkModes{Speed: ptr(400_000), Autoneg: ptr(1), Duplex: ptr(1)}},
		{
			"no link: all unknown", slices.Concat(header, attr(unix.ETHTOOL_A_LINKMODES_AUTONEG, u8(0)),
				attr(unix.ETHTOOL_A_LINKMODES_SPEED, u32(math.MaxUint32)),
				attr(unix.ETHTOOL_A_LINKMODES_DUPLEX, u8(math.MaxUint8)), attr(unix.ETHTOOL_A_LINKMODES_LANES, u32(0))),
			LinkModes{Autoneg: ptr(0)},
		},
		{"speed 0", slices.Concat(header, attr(unix.ETHTOOL_A_LINKMODES_SPEED, u32(0)), attr(unix.ETHTOOL_A_LINKMODES_DUPLEX, u8(0))), LinkModes{Duplex: ptr(0)}},
		{"a speed of a wrong size", slices.Concat(header, attr(unix.ETHTOOL_A_LINKMODES_SPEED, make([]byte, 6)), attr(unix.ETHTOOL_A_LINKMODES_LANES, u32(1))), LinkModes{Lanes: ptr(1)}},
		{"cut", whole[:len(whole)-12], LinkModes{Speed: ptr(400_000), Autoneg: ptr(1)}},
		{
			"link modes of both sides", slices.Concat(
				header,
				attr(unix.ETHTOOL_A_LINKMODES_OURS|nested, attr(2, u32(93)),
					attr(unix.ETHTOOL_A_BITSET_VALUE, slices.Concat(u32(1<<6), u32(0), u32(1<<2|1<<25))),
					attr(unix.ETHTOOL_A_BITSET_MASK, slices.Concat(u32(1<<6|1<<13), u32(0), u32(1<<2|1<<25)))),
				attr(unix.ETHTOOL_A_LINKMODES_PEER|nested, attr(1, nil), attr(2, u32(93)),
					attr(unix.ETHTOOL_A_BITSET_VALUE, slices.Concat(u32(0), u32(0), u32(1<<2)))),
			),
			LinkModes{Supported: linkmode.SetOf(6, 13, 66, 89), Advertised: linkmode.SetOf(6, 66, 89), Peer: linkmode.SetOf(66)},
		},
		{"a set of broken words", slices.Concat(header, attr(unix.ETHTOOL_A_LINKMODES_PEER|nested, attr(unix.ETHTOOL_A_BITSET_VALUE, make([]byte, 6)))), LinkModes{}},
		{"a set too large", slices.Concat(header, attr(unix.ETHTOOL_A_LINKMODES_PEER|nested, attr(unix.ETHTOOL_A_BITSET_VALUE, make([]byte, 4096)))), LinkModes{}},
		{"only a header", header, LinkModes{}},
		{"empty", nil, LinkModes{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parseLinkModes(c.msg); !sameLinkModes(got, c.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func FuzzParseLinkModes(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(slices.Concat(attr(ethtoolHeader, attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0"))),
		attr(unix.ETHTOOL_A_LINKMODES_SPEED, u32(100_000)),
		attr(unix.ETHTOOL_A_LINKMODES_LANES, u32(4))))
	f.Add(attr(unix.ETHTOOL_A_LINKMODES_SPEED, u32(math.MaxUint32)))
	f.Fuzz(func(t *testing.T, msg []byte) {
		m := parseLinkModes(msg)
		if !sameLinkModes(m, m.Known()) {
			t.Fatalf("%+v holds what is unknown", m)
		}
		if m.Speed != nil && *m.Speed == 0 || m.Lanes != nil && *m.Lanes == 0 {
			t.Fatalf("%+v", m)
		}
	})
}

func TestParseLinkState(t *testing.T) {
	header := attr(ethtoolHeader|nested, attr(1, u32(5)), attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0")))
	for _, c := range []struct {
		name string
		msg  []byte
		want LinkState
	}{
		{"up, with a count", slices.Concat(header, attr(unix.ETHTOOL_A_LINKSTATE_LINK, u8(1)), attr(unix.ETHTOOL_A_LINKSTATE_EXT_DOWN_CNT, u32(3))), LinkState{Link: ptr(1), ExtDownCount: ptr(3)}},
		{
			"down", slices.Concat(header, attr(unix.ETHTOOL_A_LINKSTATE_LINK, u8(0)),
				attr(unix.ETHTOOL_A_LINKSTATE_EXT_STATE, u8(0)),
				attr(unix.ETHTOOL_A_LINKSTATE_EXT_SUBSTATE, u8(6)), attr(unix.ETHTOOL_A_LINKSTATE_EXT_DOWN_CNT, u32(4))),
			LinkState{Link: ptr(0), ExtState: ptr(0), ExtSubstate: ptr(6), ExtDownCount: ptr(4)},
		},
		{"a driver without extended states", slices.Concat(header, attr(unix.ETHTOOL_A_LINKSTATE_LINK, u8(1))), LinkState{Link: ptr(1)}},
		{"empty", nil, LinkState{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parseLinkState(c.msg); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}
