// Package dcb has the answers to requests on data center bridging (include/uapi/linux/dcbnl.h).
package dcb

import (
	"cmp"
	"slices"
)

// Priorities is the number of priorities and of traffic classes, IEEE_8021QAZ_MAX_TCS.
const Priorities = 8

// Selectors of the APP table, IEEE 802.1Q table D-9 and include/uapi/linux/dcbnl.h.
const (
	SelectorEthertype = 1
	SelectorStream    = 2 // TCP or SCTP port
	SelectorDatagram  = 3 // UDP or DCCP port
	SelectorPort      = 4
	SelectorDSCP      = 5
	SelectorPCP       = 255
)

// Transmission selection algorithms, IEEE_8021QAZ_TSA_*.
const (
	Strict      = 0
	CreditBased = 1
	Enhanced    = 2
	Vendor      = 255
)

// Flags of DCBX, DCB_CAP_DCBX_*.
const (
	DCBXHost       = 1
	DCBXLLDManaged = 2
	DCBXCEE        = 4
	DCBXIEEE       = 8
	DCBXStatic     = 16
)

// Config is the answer to IEEE_GET; nil: not sent by the driver.
type Config struct {
	DCBX   *uint64 // flags DCBX*
	PFC    *PFC
	ETS    *ETS
	Buffer *Buffer
	// Trusted selectors, the first has precedence; empty but not nil: none.
	Trust []uint8
	Apps  []App // sorted; empty but not nil: empty table
}

// PerPriority is one value per priority or traffic class.
type PerPriority [Priorities]uint64

// ETS is struct ieee_ets without the recommendation of the peer.
type ETS struct {
	Willing      uint64
	Capability   uint64 // number of traffic classes
	CreditBased  uint64
	Bandwidth    PerPriority // tc_tx_bw: percent by traffic class
	Algorithm    PerPriority // tc_tsa by traffic class
	TrafficClass PerPriority // prio_tc by priority
}

// PFC is struct ieee_pfc.
type PFC struct {
	Capability uint64 // number of traffic classes that may use PFC simultaneously
	Enabled    uint64 // bit P: priority P
	MBC        uint64 // MACsec bypass capability
	Delay      uint64 // of the link; mlx5: length of the cable in metres
	// Frames sent and received per priority. mlx5 reports them as of its last reading of all statistics.
	Requests    PerPriority
	Indications PerPriority
}

// Buffer is struct dcbnl_buffer: the receive buffers of the port.
type Buffer struct {
	Total  uint64      // bytes
	Sizes  PerPriority // bytes by buffer
	Buffer PerPriority // by priority
}

// App is struct dcb_app: the priority of a protocol.
type App struct {
	Selector uint8
	Priority uint8
	Protocol uint16
}

// SortApps sorts by selector, priority and protocol.
func SortApps(apps []App) {
	slices.SortFunc(apps, func(a, b App) int {
		return cmp.Or(cmp.Compare(a.Selector, b.Selector), cmp.Compare(a.Priority, b.Priority),
			cmp.Compare(a.Protocol, b.Protocol))
	})
}
