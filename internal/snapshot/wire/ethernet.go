// Package wire is what a netdev says of its link: statistics, pause, FEC and the transceiver, as plain typed data.
package wire

import (
	"slices"
	"time"
)

// Ethernet is the counters of the netdevs of RDMA ports.
type Ethernet struct {
	Netdevs []NetdevCounters
}

// NetdevCounters is the counters of the netdev of a port, or of a member of its bond.
type NetdevCounters struct {
	Device string
	Port   int
	// link_layer of the port: an InfiniBand netdev (IPoIB) lists statistics that do not apply to InfiniBand.
	LinkLayer string
	Netdev    string
	Stats     *NetdevReading // nil if no recent reading is available
	// Pause and FEC, as Stats; without the statistics that the driver has in its own.
	Pause *Pause
	FEC   *FEC
	// FECCode is the FEC in use: none, FC, RS(N,K), or RS if the rate of a lane is unknown; empty: unknown.
	FECCode string
	// PFC is the samples between rounds; nil if none are taken or the driver reports no durations.
	PFC *PFCSamples
}

// NetdevReading is one reading of a driver's own statistics (ethtool -S), named by NetdevStat. It is shared and
// immutable.
type NetdevReading struct {
	At     time.Time     // when the driver had answered
	Took   time.Duration // wall time in the kernel
	Counts []NetdevCount
	// Shown are the exposed priorities as a bit set: those with PFC or a non-zero count. Eight per netdev would be most of
	// all series.
	Shown uint8
}

// Exposes reports whether a count is exposed.
func (r *NetdevReading) Exposes(c *NetdevCount) bool {
	return !c.ByPriority() || r.Shown&(1<<c.Index) != 0
}

// NetdevCount is one value.
type NetdevCount struct {
	What  NetdevStat
	Label string // direction (transmit, receive), severity or event; empty if What has none
	Index int    // priority, lane or queue; -1 if What has none, or the driver reports a total
	Value float64
}

// ByPriority reports whether the index is a priority.
func (c *NetdevCount) ByPriority() bool {
	return c.Index >= 0 && c.What != LaneErrors && c.What != QueueDiscards
}

// Has reports whether the driver has a statistic. A nil reading has none.
func (r *NetdevReading) Has(what NetdevStat, label string) bool {
	return r != nil &&
		slices.ContainsFunc(r.Counts, func(c NetdevCount) bool { return c.What == what && c.Label == label })
}

// NetdevStat is the meaning of a driver's statistic.
type NetdevStat uint8

// Statistics of drivers. They are counters unless noted.
const (
	PFCPauseFrames             NetdevStat = iota // by direction and priority
	PFCPauseSeconds                              // by direction and priority
	PFCPauseTransitions                          // by direction and priority
	GlobalPauseFrames                            // by direction
	GlobalPauseSeconds                           // by direction
	GlobalPauseTransitions                       // by direction
	PauseStormEvents                             // by severity: warning, error
	PriorityBytes                                // by direction and priority
	PriorityPackets                              // by direction and priority
	PriorityDiscards                             // by priority
	PriorityBufferDiscards                       // by priority
	PriorityCongestionDiscards                   // by priority
	PriorityMarked                               // by priority: packets marked with ECN by the device
	QueueDiscards                                // by class of service of the receive buffer, which is not a priority
	Discards                                     // by direction
	TransmitErrors                               // frames
	OutOfBuffer
	DeviceQueueExhausted // packets for queues of the device itself
	SteeringMisses       // packets that matched no steering rule of the device
	BufferThresholdEvents
	FECCorrectedBits
	FECCorrectedBlocks
	FECUncorrectableBlocks
	PCSSymbolErrors
	CRCErrors
	FrameErrors
	MACFaults           // by end: local, remote
	LaneErrors          // by lane
	LinkDowns           // of the physical link
	LinkRecoveries      // of the physical link, without going down
	PCIeStallRatio      // by direction: share of the last second, not a counter
	PCIeStallEvents     // by direction
	PCIeBufferOverflows // packets
	PCIeRecoveries      // by direction
	ModuleEvents        // by event
	NumNetdevStats      // number of these
)

// Pause is the answer to ethtool netlink PAUSE_GET; nil: not sent. It is link-level flow control (802.3x), unrelated to
// PFC.
type Pause struct {
	Autoneg *uint64 // ETHTOOL_A_PAUSE_AUTONEG, 0 or 1
	RX      *uint64 // received pause frames are honoured
	TX      *uint64 // ETHTOOL_A_PAUSE_TX: pause frames are sent
	// ETHTOOL_A_PAUSE_STATS: frames, and times that the device stopped sending them after a pause storm (Linux 7.3).
	TXFrames      *uint64
	RXFrames      *uint64
	TXStormEvents *uint64
}

// FEC is the answer to ethtool netlink FEC_GET; nil: not sent. Statistics are those of the port, those of Lanes are in
// the order of lanes.
type FEC struct {
	// ETHTOOL_A_FEC_ACTIVE, bit of its link mode; not sent if no FEC is in use.
	Active        *uint64
	Corrected     *uint64 // ETHTOOL_A_FEC_STAT_CORRECTED, blocks
	Uncorrectable *uint64 // ETHTOOL_A_FEC_STAT_UNCORR, blocks
	CorrectedBits *uint64 // ETHTOOL_A_FEC_STAT_CORR_BITS

	LaneCorrected     []uint64
	LaneCorrectedBits []uint64
	LaneUncorrectable []uint64

	Histogram []FECBin // ETHTOOL_A_FEC_STAT_HIST, since Linux 6.18
}

// FECBin is a bin of the histogram: blocks with Low to High symbols in error that FEC corrected.
type FECBin struct {
	Low    uint64
	High   uint64
	Blocks uint64
	Lanes  []uint64 // blocks by lane; nil: not reported
}

// PFCSamples is the short samples of a netdev's pause times since it was first seen.
type PFCSamples struct {
	Interval *float64          // seconds between samples at present; nil: none are taken
	Sampled  float64           // seconds covered by samples
	Refused  map[string]uint64 // samples that were not taken, by reason
	Flows    []PFCFlow
}

// PFCFlow is a direction and priority in the samples.
type PFCFlow struct {
	Direction, Priority string
	Stalled             float64  // seconds in samples that were paused for more than half of their length
	Ratios              []uint64 // samples by paused ratio, in buckets
	RatioSum            float64
}

// Stat is one counter as the kernel names it.
type Stat struct {
	Name  string
	Value uint64
}
