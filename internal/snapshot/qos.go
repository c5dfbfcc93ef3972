package snapshot

// QoS is the configuration of traffic priorities on Ethernet ports.
type QoS struct {
	Netdevs []NetdevQoS
	Ports   []PortQoS
}

// Priorities is the number of priorities, and of traffic classes.
const Priorities = 8

// NetdevQoS is data center bridging of a netdev: rtnetlink DCB_CMD_IEEE_GET, and files of MLNX_OFED.
type NetdevQoS struct {
	Device string
	Port   int
	Name   string

	PFC     *PFC
	Classes *Classes
	Buffers *Buffers
	Trust   string   // dscp, pcp: source of the priority of a received packet; empty: unknown
	DCBX    []string // flags DCB_CAP_DCBX_*: host, lld_managed, cee, ieee, static
	// DSCPs are the DSCPs mapped to each priority by the APP table; nil: none.
	DSCPs *[Priorities][]uint8

	// Congestion notification by priority, from MLNX_OFED: of the notification point (sends CNPs) and of the reaction
	// point (reduces its rate). CNPs have a DSCP and an 802.1p priority.
	Notification, Reaction [Priorities]*uint64
	CNPDSCP, CNPPriority   *uint64
}

// PFC is priority flow control: struct ieee_pfc.
type PFC struct {
	Capable        uint64 // number of priorities that may have PFC simultaneously
	Enabled        [Priorities]bool
	Sent, Received [Priorities]uint64 // frames
}

// Classes are traffic classes: struct ieee_ets.
type Classes struct {
	Algorithm [Priorities]uint64 // by class: 0 strict, 1 credit-based shaper, 2 ETS, 255 vendor
	Bandwidth [Priorities]uint64 // percent by class, for ETS
	OfPrio    [Priorities]uint64 // class by priority
}

// Buffers are receive buffers: struct dcbnl_buffer.
type Buffers struct {
	Sizes  [Priorities]uint64 // bytes
	OfPrio [Priorities]uint64 // buffer by priority
}

// PortQoS is the RoCE settings of a port.
type PortQoS struct {
	Device string
	Port   int
	// TrafficClass of all RoCE packets of the port, the byte in the IP header: MLNX_OFED's tc/N/traffic_class; nil: not
	// set.
	TrafficClass *uint64
	// Site configuration: lossless, lossy, auto; dcqcn, zerotouch_rtt, off. Empty: none.
	PinnedRoCE, PinnedCongestionControl string
}
