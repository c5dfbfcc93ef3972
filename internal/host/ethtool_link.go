package host

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/snapshot"
)

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

// Answers to PAUSE_GET and FEC_GET.
type (
	Pause  = snapshot.Pause
	FEC    = snapshot.FEC
	FECBin = snapshot.FECBin
)

func (c *ethtoolClient) Pause(_ context.Context, netdev string) (Pause, error) {
	return query(c.here, "ethtool/"+netdev, "/pause", func() (Pause, error) {
		msg, err := c.withStats(unix.ETHTOOL_MSG_PAUSE_GET, netdev)
		return parsePause(msg), err
	})
}

func (c *ethtoolClient) FEC(_ context.Context, netdev string) (FEC, error) {
	return query(c.here, "ethtool/"+netdev, "/fec", func() (FEC, error) {
		msg, err := c.withStats(unix.ETHTOOL_MSG_FEC_GET, netdev)
		return parseFEC(msg), err
	})
}

// withStats queries a setting with its statistics, and without them if the kernel rejects the flag.
func (c *ethtoolClient) withStats(cmd uint8, netdev string) ([]byte, error) {
	msg, err := c.query(cmd, netdev, unix.ETHTOOL_FLAG_STATS)
	if errors.Is(err, unix.EINVAL) {
		return c.query(cmd, netdev, 0)
	}
	return msg, err
}

// parsePause parses the body of ETHTOOL_MSG_PAUSE_GET_REPLY.
func parsePause(msg []byte) (p Pause) {
	attributes{
		unix.ETHTOOL_A_PAUSE_AUTONEG: &p.Autoneg,
		unix.ETHTOOL_A_PAUSE_RX:      &p.RX,
		unix.ETHTOOL_A_PAUSE_TX:      &p.TX,
		unix.ETHTOOL_A_PAUSE_STATS: attributes{
			unix.ETHTOOL_A_PAUSE_STAT_TX_FRAMES: &p.TXFrames,
			unix.ETHTOOL_A_PAUSE_STAT_RX_FRAMES: &p.RXFrames,
			pauseStatTXStorms:                   &p.TXStormEvents,
		},
	}.decode(msg)
	return p
}

// parseFEC parses the body of ETHTOOL_MSG_FEC_GET_REPLY.
func parseFEC(msg []byte) (f FEC) {
	attributes{fecActive: &f.Active, fecStats: attributes{
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

// knownLanes are the lanes before the first that is unknown; nil if there is none.
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
func parseFECBin(v []byte) (b FECBin, ok bool) {
	var low, high, value *uint64
	attributes{
		fecBinLow: &low, fecBinHigh: &high, fecBinValue: &value,
		fecBinLanes: func(v []byte) { b.Lanes = knownLanes(wordsOf(v)) },
	}.decode(v)
	if low == nil || high == nil || value == nil || *value == math.MaxUint64 || *low > *high {
		return FECBin{}, false
	}
	b.Low, b.High, b.Blocks = *low, *high, *value
	return b, true
}
