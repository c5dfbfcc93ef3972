package netlink

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/linkmode"
)

func sameLinkModes(a, b host.LinkModes) bool {
	return same(a.Speed, b.Speed) && same(a.Lanes, b.Lanes) && same(a.Autoneg, b.Autoneg) && same(a.Duplex, b.Duplex) &&
		slices.Equal(a.Supported, b.Supported) && slices.Equal(a.Advertised, b.Advertised) && slices.Equal(a.Peer, b.Peer)
}

func TestParseLinkModes(t *testing.T) {
	header := Attr(ethtoolHeader|nested, Attr(1, u32(5)), Attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0")))
	whole := slices.Concat(header, Attr(unix.ETHTOOL_A_LINKMODES_AUTONEG, U8(1)), Attr(3|nested, Attr(1, u32(92))),
		Attr(unix.ETHTOOL_A_LINKMODES_SPEED, u32(400_000)), Attr(unix.ETHTOOL_A_LINKMODES_DUPLEX, U8(1)),
		Attr(unix.ETHTOOL_A_LINKMODES_LANES, u32(4)))
	for _, c := range []struct {
		name string
		msg  []byte
		want host.LinkModes
	}{
		{"whole", whole, host.LinkModes{Speed: ptr(400_000), Lanes: ptr(4), Autoneg: ptr(1), Duplex: ptr(1)}},
		{"without lanes", whole[:len(whole)-8], host.LinkModes{Speed: ptr(400_000), Autoneg: ptr(1), Duplex: ptr(1)}},
		{
			"no link: all unknown", slices.Concat(header, Attr(unix.ETHTOOL_A_LINKMODES_AUTONEG, U8(0)),
				Attr(unix.ETHTOOL_A_LINKMODES_SPEED, u32(math.MaxUint32)),
				Attr(unix.ETHTOOL_A_LINKMODES_DUPLEX, U8(math.MaxUint8)), Attr(unix.ETHTOOL_A_LINKMODES_LANES, u32(0))),
			host.LinkModes{Autoneg: ptr(0)},
		},
		{"speed 0", slices.Concat(header, Attr(unix.ETHTOOL_A_LINKMODES_SPEED, u32(0)), Attr(unix.ETHTOOL_A_LINKMODES_DUPLEX, U8(0))), host.LinkModes{Duplex: ptr(0)}},
		{"a speed of a wrong size", slices.Concat(header, Attr(unix.ETHTOOL_A_LINKMODES_SPEED, make([]byte, 6)), Attr(unix.ETHTOOL_A_LINKMODES_LANES, u32(1))), host.LinkModes{Lanes: ptr(1)}},
		{"cut", whole[:len(whole)-12], host.LinkModes{Speed: ptr(400_000), Autoneg: ptr(1)}},
		{
			"link modes of both sides", slices.Concat(
				header,
				Attr(unix.ETHTOOL_A_LINKMODES_OURS|nested, Attr(2, u32(93)),
					Attr(unix.ETHTOOL_A_BITSET_VALUE, slices.Concat(u32(1<<6), u32(0), u32(1<<2|1<<25))),
					Attr(unix.ETHTOOL_A_BITSET_MASK, slices.Concat(u32(1<<6|1<<13), u32(0), u32(1<<2|1<<25)))),
				Attr(unix.ETHTOOL_A_LINKMODES_PEER|nested, Attr(1, nil), Attr(2, u32(93)),
					Attr(unix.ETHTOOL_A_BITSET_VALUE, slices.Concat(u32(0), u32(0), u32(1<<2)))),
			),
			host.LinkModes{Supported: linkmode.SetOf(6, 13, 66, 89), Advertised: linkmode.SetOf(6, 66, 89), Peer: linkmode.SetOf(66)},
		},
		{"a set of broken words", slices.Concat(header, Attr(unix.ETHTOOL_A_LINKMODES_PEER|nested, Attr(unix.ETHTOOL_A_BITSET_VALUE, make([]byte, 6)))), host.LinkModes{}},
		{"a set too large", slices.Concat(header, Attr(unix.ETHTOOL_A_LINKMODES_PEER|nested, Attr(unix.ETHTOOL_A_BITSET_VALUE, make([]byte, 4096)))), host.LinkModes{}},
		{"only a header", header, host.LinkModes{}},
		{"empty", nil, host.LinkModes{}},
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
	f.Add(slices.Concat(Attr(ethtoolHeader, Attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0"))),
		Attr(unix.ETHTOOL_A_LINKMODES_SPEED, u32(100_000)),
		Attr(unix.ETHTOOL_A_LINKMODES_LANES, u32(4))))
	f.Add(Attr(unix.ETHTOOL_A_LINKMODES_SPEED, u32(math.MaxUint32)))
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
	header := Attr(ethtoolHeader|nested, Attr(1, u32(5)), Attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0")))
	for _, c := range []struct {
		name string
		msg  []byte
		want host.LinkState
	}{
		{"up, with a count", slices.Concat(header, Attr(unix.ETHTOOL_A_LINKSTATE_LINK, U8(1)), Attr(unix.ETHTOOL_A_LINKSTATE_EXT_DOWN_CNT, u32(3))), host.LinkState{Link: ptr(1), ExtDownCount: ptr(3)}},
		{
			"down", slices.Concat(header, Attr(unix.ETHTOOL_A_LINKSTATE_LINK, U8(0)),
				Attr(unix.ETHTOOL_A_LINKSTATE_EXT_STATE, U8(0)),
				Attr(unix.ETHTOOL_A_LINKSTATE_EXT_SUBSTATE, U8(6)), Attr(unix.ETHTOOL_A_LINKSTATE_EXT_DOWN_CNT, u32(4))),
			host.LinkState{Link: ptr(0), ExtState: ptr(0), ExtSubstate: ptr(6), ExtDownCount: ptr(4)},
		},
		{"a driver without extended states", slices.Concat(header, Attr(unix.ETHTOOL_A_LINKSTATE_LINK, U8(1))), host.LinkState{Link: ptr(1)}},
		{"empty", nil, host.LinkState{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ParseLinkState(c.msg); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}
