package snapshot

import (
	"slices"
	"time"
)

// Ethernet is what the netdevs of RDMA ports count.
type Ethernet struct {
	Netdevs []NetdevCounters
}

// NetdevCounters is what the netdev of a port, or a member of its bond, counts.
type NetdevCounters struct {
	Device    string
	Port      int
	LinkLayer string // link_layer of the port: a netdev of InfiniBand (IPoIB) lists things that InfiniBand has not
	Netdev    string
	Wire      *Wire // nil where nothing is known that is fresh enough
	// Pause and FEC, as Wire; without the statistics that the driver has among its own.
	Pause *Pause
	FEC   *FEC
	// PFC is what the samples between the rounds came to; nil where none are taken, or the driver tells no durations.
	PFC *PFCSamples
}

// Wire is one reading of a driver's own statistics (ethtool -S), under the names of WireWhat. Readers share it: it never changes.
type Wire struct {
	At     time.Time     // when the driver had answered
	Took   time.Duration // wall time inside the kernel
	Counts []WireCount
	// Shown are the priorities that are told of, a bit each: those that have PFC or have counted something. Eight for each netdev
	// are most of what there is.
	Shown uint8
}

// Tells says whether a count is told of.
func (w *Wire) Tells(c *WireCount) bool { return !c.ByPriority() || w.Shown&(1<<c.Index) != 0 }

// WireCount is one value.
type WireCount struct {
	What  WireWhat
	Label string // direction (transmit, receive), severity or event; empty where What needs none
	Index int    // priority, lane or queue; -1 where What has none, or the driver counts all together
	Value float64
}

// ByPriority says whether the index is a priority.
func (c *WireCount) ByPriority() bool {
	return c.Index >= 0 && c.What != LaneErrors && c.What != QueueDiscards
}

// Has says whether the driver counts something. A nil reading has nothing.
func (w *Wire) Has(what WireWhat, label string) bool {
	return w != nil && slices.ContainsFunc(w.Counts, func(c WireCount) bool { return c.What == what && c.Label == label })
}

// WireWhat says what a driver's statistic counts.
type WireWhat uint8

// What drivers count. Counters, but for the one that says otherwise.
const (
	PFCPauseFrames             WireWhat = iota // by direction and priority
	PFCPauseSeconds                            // by direction and priority
	PFCPauseTransitions                        // by direction and priority
	GlobalPauseFrames                          // by direction
	GlobalPauseSeconds                         // by direction
	GlobalPauseTransitions                     // by direction
	PauseStormEvents                           // by severity: warning, error
	PriorityBytes                              // by direction and priority
	PriorityPackets                            // by direction and priority
	PriorityDiscards                           // by priority
	PriorityBufferDiscards                     // by priority
	PriorityCongestionDiscards                 // by priority
	PriorityMarked                             // by priority: ECN marks that the device made
	QueueDiscards                              // by class of service of the receive buffer, which is no priority
	Discards                                   // by direction
	TransmitErrors                             // frames
	OutOfBuffer
	DeviceQueueExhausted // packets for queues that the device has for itself
	SteeringMisses       // packets that no rule of the device took
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
	PCIeStallRatio      // by direction: a share of the last second, no counter
	PCIeStallEvents     // by direction
	PCIeBufferOverflows // packets
	PCIeRecoveries      // by direction
	ModuleEvents        // by event
	WireWhats           // how many there are
)

// Pause is what ethtool netlink PAUSE_GET tells; nil means not sent. It is link-level flow control (802.3x), and nothing of PFC.
type Pause struct {
	Autoneg *uint64 // ETHTOOL_A_PAUSE_AUTONEG, 0 or 1
	RX      *uint64 // ETHTOOL_A_PAUSE_RX: received pause frames are obeyed
	TX      *uint64 // ETHTOOL_A_PAUSE_TX: pause frames are sent
	// ETHTOOL_A_PAUSE_STATS: frames, and times that the device stopped sending since it had done so for too long (Linux 7.3).
	TXFrames, RXFrames, TXStormEvents *uint64
}

// FEC is what ethtool netlink FEC_GET tells; nil means not sent. Of the statistics the total is taken.
type FEC struct {
	Active        *uint64 // ETHTOOL_A_FEC_ACTIVE, bit of the link mode that stands for it; not sent where none is in use
	Corrected     *uint64 // ETHTOOL_A_FEC_STAT_CORRECTED, blocks
	Uncorrectable *uint64 // ETHTOOL_A_FEC_STAT_UNCORR, blocks
	CorrectedBits *uint64 // ETHTOOL_A_FEC_STAT_CORR_BITS
}

// PFCSamples is what the short samples of a netdev's pause times came to since it was first seen.
type PFCSamples struct {
	Interval *float64          // seconds between samples at present; nil while none are taken
	Sampled  float64           // seconds that samples cover
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
