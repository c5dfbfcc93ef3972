package netlink

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
)

// Numbers of STATS_GET, include/uapi/linux/ethtool_netlink.h. The number of its header differs from that of all other
// requests.
const (
	statsHeader = 2
	statsGroups = 3
	statsGroup  = 4

	statsGroupID   = 1
	statsGroupStat = 4

	standardGroups = 4 // eth-phy, eth-mac, eth-ctrl, rmon: the groups of Linux 5.13
)

// standardNames are the statistics by group and number, as the kernel's string sets name them (net/ethtool/stats.c).
var standardNames = [standardGroups]map[uint16]string{
	0: {0: "SymbolErrorDuringCarrier"},
	1: {
		0: "FramesTransmittedOK", 3: "FramesReceivedOK", 4: "FrameCheckSequenceErrors", 5: "AlignmentErrors",
		6: "OctetsTransmittedOK", 10: "FramesLostDueToIntMACXmitError", 12: "OctetsReceivedOK",
		13: "FramesLostDueToIntMACRcvError", 19: "InRangeLengthErrors", 20: "OutOfRangeLengthField",
		21: "FrameTooLongErrors",
	},
	2: {0: "MACControlFramesTransmitted", 1: "MACControlFramesReceived", 2: "UnsupportedOpcodesReceived"},
	3: {0: "etherStatsUndersizePkts", 1: "etherStatsOversizePkts", 2: "etherStatsFragments", 3: "etherStatsJabbers"},
}

// StandardStats is ETHTOOL_MSG_STATS_GET. For a driver without any of them the kernel's answer is empty: EOPNOTSUPP
// here.
func (c *EthtoolClient) StandardStats(_ context.Context, netdev string) ([]host.Stat, error) {
	return query(c.Here, "ethtool/"+netdev, "/standard", func() ([]host.Stat, error) {
		msg, err := c.queryWith(statsHeader, unix.ETHTOOL_MSG_STATS_GET, netdev, 0, standardBits())
		stats := parseStandardStats(msg)
		if err == nil && len(stats) == 0 {
			err = unix.EOPNOTSUPP
		}
		return stats, err
	})
}

// standardBits selects all groups, as a compact bitset.
func standardBits() *nl.RtAttr {
	a := nl.NewRtAttr(statsGroups|unix.NLA_F_NESTED, nil)
	a.AddRtAttr(unix.ETHTOOL_A_BITSET_NOMASK, nil)
	a.AddRtAttr(unix.ETHTOOL_A_BITSET_SIZE, nl.Uint32Attr(standardGroups))
	a.AddRtAttr(unix.ETHTOOL_A_BITSET_VALUE, nl.Uint32Attr(1<<standardGroups-1))
	return a
}

// parseStandardStats parses the body of ETHTOOL_MSG_STATS_GET_REPLY. Each statistic is a nest of one attribute, whose
// type is its number.
func parseStandardStats(msg []byte) (out []host.Stat) {
	attributeList{statsGroup: func(group []byte) {
		var id *uint64
		attributeList{statsGroupID: &id}.decode(group)
		if id == nil || *id >= standardGroups {
			return
		}
		attributeList{statsGroupStat: func(nest []byte) {
			for number, v := range eachAttribute(nest) {
				name := standardNames[*id][number]
				if name == "" || len(v) != 8 {
					continue
				}
				if n := binary.NativeEndian.Uint64(v); n != math.MaxUint64 { // not set
					out = append(out, host.Stat{Name: name, Value: n})
				}
			}
		}}.decode(group)
	}}.decode(msg)
	return out
}
