package netlink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/linkmode"
)

// ethtoolHeader is ETHTOOL_A_*_HEADER of all requests but STATS_GET.
const ethtoolHeader = 1

// EthtoolClient queries the generic netlink family "ethtool" (since Linux 5.6).
type EthtoolClient struct {
	Here   *network
	family genlFamily
	// linkStateCountsNot is set once the kernel has rejected the flag for statistics in LINKSTATE_GET: it is too old for
	// the count.
	linkStateCountsNot atomic.Bool
	Stats              netdevStats
}

func (c *EthtoolClient) LinkModes(_ context.Context, netdev string) (host.LinkModes, error) {
	return query(c.Here, "ethtool/"+netdev, "/linkmodes", func() (host.LinkModes, error) {
		msg, err := c.query(unix.ETHTOOL_MSG_LINKMODES_GET, netdev, unix.ETHTOOL_FLAG_COMPACT_BITSETS)
		return parseLinkModes(msg), err
	})
}

func (c *EthtoolClient) LinkState(_ context.Context, netdev string) (host.LinkState, error) {
	return query(c.Here, "ethtool/"+netdev, "/linkstate", func() (host.LinkState, error) {
		msg, err := c.linkState(netdev)
		return ParseLinkState(msg), err
	})
}

// linkState queries with statistics. Older kernels return EINVAL for the flag.
func (c *EthtoolClient) linkState(netdev string) ([]byte, error) {
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

// ParseLinkState parses the body of ETHTOOL_MSG_LINKSTATE_GET_REPLY.
func ParseLinkState(msg []byte) (s host.LinkState) {
	attributeList{
		unix.ETHTOOL_A_LINKSTATE_LINK:         &s.Link,
		unix.ETHTOOL_A_LINKSTATE_EXT_STATE:    &s.ExtState,
		unix.ETHTOOL_A_LINKSTATE_EXT_SUBSTATE: &s.ExtSubstate,
		unix.ETHTOOL_A_LINKSTATE_EXT_DOWN_CNT: &s.ExtDownCount,
	}.decode(msg)
	return s
}

func (c *EthtoolClient) query(cmd uint8, netdev string, flags uint32, more ...*nl.RtAttr) ([]byte, error) {
	return c.queryWith(ethtoolHeader, cmd, netdev, flags, more...)
}

// queryWith is ask with another number of the header.
func (c *EthtoolClient) queryWith(
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
		return nil, fmt.Errorf("%w: empty reply", access.ErrMalformed)
	}
	return msgs[0][sizeofGenlHeader:], nil
}

// parseLinkModes parses the body of ETHTOOL_MSG_LINKMODES_GET_REPLY.
func parseLinkModes(msg []byte) (m host.LinkModes) {
	attributeList{
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
	for t, v := range eachAttribute(msg) {
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

// Numbers of PAUSE_GET and FEC_GET that x/sys lacks, include/uapi/linux/ethtool_netlink.h.
const (
	pauseStatTXStorms = 4

	fecActive = 4
	fecStats  = 5

	fecStatCorrected     = 2
	fecStatUncorrectable = 3
	fecStatCorrectedBits = 4
	fecStatHistogram     = 5

	fecBinLow   = 2
	fecBinHigh  = 3
	fecBinValue = 4
	fecBinLanes = 5

	// maxFECLanes and maxFECBins limit an answer: Linux has ETHTOOL_MAX_LANES 8 and ETHTOOL_FEC_HIST_MAX 17.
	maxFECLanes = 16
	maxFECBins  = 32
)

func (c *EthtoolClient) Pause(_ context.Context, netdev string) (host.Pause, error) {
	return query(c.Here, "ethtool/"+netdev, "/pause", func() (host.Pause, error) {
		msg, err := c.withStats(unix.ETHTOOL_MSG_PAUSE_GET, netdev)
		return parsePause(msg), err
	})
}

func (c *EthtoolClient) FEC(_ context.Context, netdev string) (host.FEC, error) {
	return query(c.Here, "ethtool/"+netdev, "/fec", func() (host.FEC, error) {
		msg, err := c.withStats(unix.ETHTOOL_MSG_FEC_GET, netdev)
		return parseFEC(msg), err
	})
}

// withStats queries a setting with its statistics, and without them if the kernel rejects the flag.
func (c *EthtoolClient) withStats(cmd uint8, netdev string) ([]byte, error) {
	msg, err := c.query(cmd, netdev, unix.ETHTOOL_FLAG_STATS)
	if errors.Is(err, unix.EINVAL) {
		return c.query(cmd, netdev, 0)
	}
	return msg, err
}

// parsePause parses the body of ETHTOOL_MSG_PAUSE_GET_REPLY.
func parsePause(msg []byte) (p host.Pause) {
	attributeList{
		unix.ETHTOOL_A_PAUSE_AUTONEG: &p.Autoneg,
		unix.ETHTOOL_A_PAUSE_RX:      &p.RX,
		unix.ETHTOOL_A_PAUSE_TX:      &p.TX,
		unix.ETHTOOL_A_PAUSE_STATS: attributeList{
			unix.ETHTOOL_A_PAUSE_STAT_TX_FRAMES: &p.TXFrames,
			unix.ETHTOOL_A_PAUSE_STAT_RX_FRAMES: &p.RXFrames,
			pauseStatTXStorms:                   &p.TXStormEvents,
		},
	}.decode(msg)
	return p
}

// parseFEC parses the body of ETHTOOL_MSG_FEC_GET_REPLY.
func parseFEC(msg []byte) (f host.FEC) {
	attributeList{fecActive: &f.Active, fecStats: attributeList{
		fecStatCorrected:     func(v []byte) { f.Corrected, f.LaneCorrected = fecCounts(v) },
		fecStatUncorrectable: func(v []byte) { f.Uncorrectable, f.LaneUncorrectable = fecCounts(v) },
		fecStatCorrectedBits: func(v []byte) { f.CorrectedBits, f.LaneCorrectedBits = fecCounts(v) },
		fecStatHistogram: func(v []byte) {
			if b, ok := parseFECBin(v); ok && len(f.Histogram) < maxFECBins {
				f.Histogram = append(f.Histogram, b)
			}
		},
	}}.decode(msg)
	return f
}

// fecCounts parses a FEC statistic: the number of the port, followed by those of its lanes. Empty is unsupported, all
// ones is unknown.
func fecCounts(v []byte) (total *uint64, lanes []uint64) {
	all := wordsOf(v)
	if len(all) == 0 || all[0] == math.MaxUint64 {
		return nil, nil
	}
	return &all[0], knownLanes(all[1:])
}

// knownLanes returns the values of the lanes before the first unknown one; nil if there are none.
func knownLanes(v []uint64) []uint64 {
	for i, n := range v {
		if n == math.MaxUint64 || i == maxFECLanes {
			v = v[:i]
			break
		}
	}
	if len(v) == 0 {
		return nil
	}
	return v
}

// wordsOf parses an array of 64-bit numbers; nil if its length is not that of one.
func wordsOf(v []byte) []uint64 {
	if len(v)%8 != 0 {
		return nil
	}
	out := make([]uint64, len(v)/8)
	for i := range out {
		out[i] = binary.NativeEndian.Uint64(v[8*i:])
	}
	return out
}

// parseFECBin parses a bin of the histogram. Its value has 32 or 64 bits.
func parseFECBin(v []byte) (b host.FECBin, ok bool) {
	var low, high, value *uint64
	attributeList{
		fecBinLow: &low, fecBinHigh: &high, fecBinValue: &value,
		fecBinLanes: func(v []byte) { b.Lanes = knownLanes(wordsOf(v)) },
	}.decode(v)
	if low == nil || high == nil || value == nil || *value == math.MaxUint64 || *low > *high {
		return host.FECBin{}, false
	}
	b.Low, b.High, b.Blocks = *low, *high, *value
	return b, true
}
