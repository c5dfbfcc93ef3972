package host

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/snapshot"
)

// Numbers of PAUSE_GET and FEC_GET, include/uapi/linux/ethtool_netlink.h.
const (
	ethtoolMsgPauseGet = 21
	ethtoolMsgFECGet   = 29

	pauseAutoneg = 2
	pauseRX      = 3
	pauseTX      = 4
	pauseStats   = 5

	pauseStatTXFrames = 2
	pauseStatRXFrames = 3
	pauseStatTXStorms = 4

	fecActive = 4
	fecStats  = 5

	fecStatCorrected     = 2
	fecStatUncorrectable = 3
	fecStatCorrectedBits = 4
)

// Answers to PAUSE_GET and FEC_GET.
type (
	Pause = snapshot.Pause
	FEC   = snapshot.FEC
)

func (c *ethtoolClient) Pause(_ context.Context, netdev string) (Pause, error) {
	msg, err := c.withStats(ethtoolMsgPauseGet, netdev)
	if err != nil {
		return Pause{}, &Error{"query", "ethtool/" + netdev + "/pause", err}
	}
	return parsePause(msg), nil
}

func (c *ethtoolClient) FEC(_ context.Context, netdev string) (FEC, error) {
	msg, err := c.withStats(ethtoolMsgFECGet, netdev)
	if err != nil {
		return FEC{}, &Error{"query", "ethtool/" + netdev + "/fec", err}
	}
	return parseFEC(msg), nil
}

// withStats queries a setting with its statistics, and without them if the kernel rejects the flag.
func (c *ethtoolClient) withStats(cmd uint8, netdev string) ([]byte, error) {
	msg, err := c.query(cmd, netdev, ethtoolFlagStats)
	if errors.Is(err, unix.EINVAL) {
		return c.query(cmd, netdev, 0)
	}
	return msg, err
}

// parsePause parses the body of ETHTOOL_MSG_PAUSE_GET_REPLY.
func parsePause(msg []byte) (p Pause) {
	numbers(msg, map[uint16]**uint64{pauseAutoneg: &p.Autoneg, pauseRX: &p.RX, pauseTX: &p.TX})
	for t, v := range attrs(msg) {
		if t == pauseStats {
			numbers(v, map[uint16]**uint64{pauseStatTXFrames: &p.TXFrames, pauseStatRXFrames: &p.RXFrames, pauseStatTXStorms: &p.TXStormEvents})
		}
	}
	return p
}

// parseFEC parses the body of ETHTOOL_MSG_FEC_GET_REPLY.
func parseFEC(msg []byte) (f FEC) {
	numbers(msg, map[uint16]**uint64{fecActive: &f.Active})
	to := map[uint16]**uint64{fecStatCorrected: &f.Corrected, fecStatUncorrectable: &f.Uncorrectable, fecStatCorrectedBits: &f.CorrectedBits}
	for t, v := range attrs(msg) {
		if t != fecStats {
			continue
		}
		for t, v := range attrs(v) {
			if p := to[t]; p != nil {
				*p = total(v)
			}
		}
	}
	return f
}

// total is the first number of a FEC statistic: the port's, followed by those of its lanes. Empty is unsupported, all ones is unknown.
func total(v []byte) *uint64 {
	if len(v) < 8 || len(v)%8 != 0 {
		return nil
	}
	n := binary.NativeEndian.Uint64(v)
	if n == math.MaxUint64 {
		return nil
	}
	return &n
}
