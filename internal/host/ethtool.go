package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/linkmode"
)

// ethtoolHeader is ETHTOOL_A_*_HEADER of all requests but STATS_GET.
const ethtoolHeader = 1

// ethtoolClient queries the generic netlink family "ethtool" (since Linux 5.6).
type ethtoolClient struct {
	here   *network
	family genlFamily
	// linkStateCountsNot is set once the kernel has rejected the flag for statistics in LINKSTATE_GET: it is too old for
	// the count.
	linkStateCountsNot atomic.Bool
	stats              netdevStats
}

func (c *ethtoolClient) LinkModes(_ context.Context, netdev string) (LinkModes, error) {
	return query(c.here, "ethtool/"+netdev, "/linkmodes", func() (LinkModes, error) {
		msg, err := c.query(unix.ETHTOOL_MSG_LINKMODES_GET, netdev, unix.ETHTOOL_FLAG_COMPACT_BITSETS)
		return parseLinkModes(msg), err
	})
}

func (c *ethtoolClient) LinkState(_ context.Context, netdev string) (LinkState, error) {
	return query(c.here, "ethtool/"+netdev, "/linkstate", func() (LinkState, error) {
		msg, err := c.linkState(netdev)
		return parseLinkState(msg), err
	})
}

// linkState queries with statistics. Older kernels return EINVAL for the flag.
func (c *ethtoolClient) linkState(netdev string) ([]byte, error) {
	if !c.linkStateCountsNot.Load() {
		msg, err := c.query(unix.ETHTOOL_MSG_LINKSTATE_GET, netdev, unix.ETHTOOL_FLAG_STATS)
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EOPNOTSUPP) {
			return msg, err
		}
	}
	msg, err := c.query(unix.ETHTOOL_MSG_LINKSTATE_GET, netdev, 0)
	if err == nil {
		c.linkStateCountsNot.Store(true)
	}
	return msg, err
}

// parseLinkState parses the body of ETHTOOL_MSG_LINKSTATE_GET_REPLY.
func parseLinkState(msg []byte) (s LinkState) {
	attributes{
		unix.ETHTOOL_A_LINKSTATE_LINK:         &s.Link,
		unix.ETHTOOL_A_LINKSTATE_EXT_STATE:    &s.ExtState,
		unix.ETHTOOL_A_LINKSTATE_EXT_SUBSTATE: &s.ExtSubstate,
		unix.ETHTOOL_A_LINKSTATE_EXT_DOWN_CNT: &s.ExtDownCount,
	}.decode(msg)
	return s
}

func (c *ethtoolClient) query(cmd uint8, netdev string, flags uint32, more ...*nl.RtAttr) ([]byte, error) {
	return c.queryWith(ethtoolHeader, cmd, netdev, flags, more...)
}

// queryWith is ask with another number of the header.
func (c *ethtoolClient) queryWith(
	header int, cmd uint8, netdev string, flags uint32, more ...*nl.RtAttr,
) ([]byte, error) {
	id, err := c.family.id(unix.ETHTOOL_GENL_NAME)
	if err != nil {
		return nil, err
	}
	req := nl.NewNetlinkRequest(int(id), 0)
	req.AddData(genlHeader{cmd, unix.ETHTOOL_GENL_VERSION})
	h := nl.NewRtAttr(header|unix.NLA_F_NESTED, nil)
	h.AddRtAttr(unix.ETHTOOL_A_HEADER_DEV_NAME, nl.ZeroTerminated(netdev))
	if flags != 0 {
		h.AddRtAttr(unix.ETHTOOL_A_HEADER_FLAGS, nl.Uint32Attr(flags))
	}
	req.AddData(h)
	for _, a := range more {
		req.AddData(a)
	}
	msgs, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, err
	}
	if len(msgs) == 0 || len(msgs[0]) < sizeofGenlHeader {
		return nil, fmt.Errorf("%w: empty reply", ErrMalformed)
	}
	return msgs[0][sizeofGenlHeader:], nil
}

// parseLinkModes parses the body of ETHTOOL_MSG_LINKMODES_GET_REPLY.
func parseLinkModes(msg []byte) (m LinkModes) {
	attributes{
		unix.ETHTOOL_A_LINKMODES_AUTONEG: &m.Autoneg,
		unix.ETHTOOL_A_LINKMODES_SPEED:   &m.Speed,
		unix.ETHTOOL_A_LINKMODES_DUPLEX:  &m.Duplex,
		unix.ETHTOOL_A_LINKMODES_LANES:   &m.Lanes,
		// mask: supported modes, value: advertised modes
		unix.ETHTOOL_A_LINKMODES_OURS: func(v []byte) {
			m.Supported, m.Advertised = bitset(v, unix.ETHTOOL_A_BITSET_MASK), bitset(v, unix.ETHTOOL_A_BITSET_VALUE)
		},
		unix.ETHTOOL_A_LINKMODES_PEER: func(v []byte) { m.Peer = bitset(v, unix.ETHTOOL_A_BITSET_VALUE) },
	}.decode(msg)
	return m.Known()
}

// maxBitset limits a set, in bytes: Linux 7.3 has 125 link modes.
const maxBitset = 128

// bitset parses one set of a compact bitset; nil if it is missing, not a multiple of the word size, or too large.
func bitset(msg []byte, which uint16) linkmode.Set {
	for t, v := range attrs(msg) {
		if t != which || len(v)%4 != 0 || len(v) > maxBitset {
			continue
		}
		s := make(linkmode.Set, len(v)/4)
		for i := range s {
			s[i] = binary.NativeEndian.Uint32(v[4*i:])
		}
		return s
	}
	return nil
}

// Known removes values that the kernel marks as unknown: SPEED_UNKNOWN and DUPLEX_UNKNOWN (all ones), speed 0 and lanes
// 0.
func (m LinkModes) Known() LinkModes {
	if m.Speed != nil && (*m.Speed == math.MaxUint32 || *m.Speed == 0) {
		m.Speed = nil
	}
	if m.Duplex != nil && *m.Duplex == math.MaxUint8 {
		m.Duplex = nil
	}
	if m.Lanes != nil && *m.Lanes == 0 {
		m.Lanes = nil
	}
	return m
}
