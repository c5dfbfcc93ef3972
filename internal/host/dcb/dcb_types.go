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
	DCBX   *uint64 `capture:"dcbx,open"` // flags DCBX*
	PFC    *PFC    `capture:"pfc_"`
	ETS    *ETS    `capture:"ets_"`
	Buffer *Buffer `capture:"buffer_"`
	// Trusted selectors, the first has precedence; empty but not nil: none.
	Trust []uint8 `capture:"trust,enum=dcb"`
	Apps  []App   `capture:"app_,group,has=apps"` // sorted; empty but not nil: empty table
}

// PerPriority is one value per priority or traffic class.
type PerPriority [Priorities]uint64

// ETS is struct ieee_ets without the recommendation of the peer.
type ETS struct {
	Willing      uint64      `capture:"willing"`
	Capability   uint64      `capture:"capability"` // number of traffic classes
	CreditBased  uint64      `capture:"cbs"`
	Bandwidth    PerPriority `capture:"bandwidth"`      // tc_tx_bw: percent by traffic class
	Algorithm    PerPriority `capture:"algorithm"`      // tc_tsa by traffic class
	TrafficClass PerPriority `capture:"priority_class"` // prio_tc by priority
}

// PFC is struct ieee_pfc.
type PFC struct {
	Capability uint64 `capture:"capability"`  // number of traffic classes that may use PFC simultaneously
	Enabled    uint64 `capture:"enabled,hex"` // bit P: priority P
	MBC        uint64 `capture:"mbc"`         // MACsec bypass capability
	Delay      uint64 `capture:"delay"`       // of the link; mlx5: length of the cable in metres
	// Frames sent and received per priority. mlx5 reports them as of its last reading of all statistics.
	Requests    PerPriority `capture:"requests"`
	Indications PerPriority `capture:"indications"`
}

// Buffer is struct dcbnl_buffer: the receive buffers of the port.
type Buffer struct {
	Total  uint64      `capture:"total"`    // bytes
	Sizes  PerPriority `capture:"sizes"`    // bytes by buffer
	Buffer PerPriority `capture:"priority"` // by priority
}

// App is struct dcb_app: the priority of a protocol.
type App struct {
	Selector uint8  `capture:",name,enum=dcb"`
	Priority uint8  `capture:"_,name,max=7"`
	Protocol uint16 `capture:",value"`
}

// SortApps sorts by selector, priority and protocol.
func SortApps(apps []App) {
	slices.SortFunc(apps, func(a, b App) int {
		return cmp.Or(cmp.Compare(a.Selector, b.Selector), cmp.Compare(a.Priority, b.Priority),
			cmp.Compare(a.Protocol, b.Protocol))
	})
}
