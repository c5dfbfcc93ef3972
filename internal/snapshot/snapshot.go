// Package snapshot is the data of one round: a section per collector, as plain typed data. It depends only on the
// standard library and on internal/transceiver.
//
// A nil pointer or an empty string is an unknown value: absent is not zero.
package snapshot

import (
	"cmp"
	"time"

	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/snapshot/qp"
	"rdma_exporter/internal/snapshot/wire"
)

// Node is one reading of a machine. A section is nil until its collector has read it.
type Node struct {
	InfiniBand *InfiniBand
	HWCounters *HWCounters
	Ethernet   *wire.Ethernet
	Modules    *hostdata.Modules
	Health     *hostdata.Health
	QoS        *QoS
	PCIe       *accel.PCIe
	Sensors    *hostdata.Sensors
	Optics     *wire.Optics
	GDR        *accel.GDR
	GPUs       *accel.GPUs
	Neighbours *Neighbours
	Setup      *hostdata.Setup
	KernelLog  *hostdata.KernelLog
	Peers      *qp.Peers

	// Issues are the items that could not be read. Each affects only its own samples.
	Issues []Issue
	// Devices is whether the read of each RDMA device has returned.
	Devices []DeviceRead
	// Pending are the sources (source.Source by name) that are read in the background and have no result yet.
	Pending []string
	// Reduced is what is left out of the data; nil: nothing.
	Reduced *Reduced
}

// Reduced is the data that is left out on a host with many functions.
type Reduced struct {
	// Parts are the virtual functions and subfunctions beside their physical function.
	Parts   map[string]bool
	Metrics map[string]bool // that are read of parts; nil: all
	LeftOut []string        // devices beyond the limit, which are not read
}

// Reduces reports whether metrics of parts are left out.
func (r *Reduced) Reduces() bool { return r != nil && r.Metrics != nil && len(r.Parts) > 0 }

// Of reports whether only some metrics of a device are read.
func (r *Reduced) Of(device string) bool { return r.Reduces() && r.Parts[device] }

// LeavesOut reports whether a metric of a device is left out.
func (r *Reduced) LeavesOut(device, metric string) bool { return r.Of(device) && !r.Metrics[metric] }

// Compare orders devices by importance: parts last, and mlx5_9 before mlx5_10, so that a device that is added does not
// replace another.
func (r *Reduced) Compare(a, b string) int {
	rank := func(name string) int {
		if r != nil && r.Parts[name] {
			return 1
		}
		return 0
	}
	return cmp.Or(rank(a)-rank(b), len(a)-len(b), cmp.Compare(a, b))
}

// Issue is one item that could not be read.
type Issue struct {
	Device string // RDMA device; empty: none
	Source string // source.Source of the item; empty: none
	Needs  string // permission required by the source
	Reason string // access.Reason
	Err    error
}

// DeviceRead is how the read of one device ended.
type DeviceRead struct {
	Device string // empty for a read of all devices together
	Stuck  bool   // it has not returned from the kernel
	Late   bool   // it did not end in time, and is not known to be blocked
	// Quarantined is the number of items that are not read any more after repeated failures.
	Quarantined uint64
	Discarded   bool // the device was replaced during the read: nothing of it was used
}

// InfiniBand is /sys/class/infiniband and related data.
type InfiniBand struct {
	Devices []Device
	// Missing are devices that are expected and missing.
	Missing []MissingDevice
	// Renamed are devices that have exchanged names since an earlier boot.
	Renamed []RenamedDevice
	// Ignored are the devices (Number 0) and ports excluded from alerts by the site configuration, missing ones included.
	Ignored []PortID
	// Ages are the ages of the state of each device that was ever read.
	Ages []DataAge
	Boot hostdata.Boot
	// Stack is the kernel's RDMA stack; nil: the host has no RDMA-capable hardware, or unknown.
	Stack *hostdata.Stack
	// None is set if the kernel has no RDMA device, selected or not.
	None *hostdata.NoDevice
	// Bare are the PCI functions without an RDMA device that may be expected to have one, beside others that have one.
	Bare []hostdata.BareFunction
}

// OnlyVirtual returns the number of devices if all are virtual functions; 0 if one is not, or without any.
func (n *InfiniBand) OnlyVirtual() int {
	if n == nil {
		return 0
	}
	for i := range n.Devices {
		if n.Devices[i].FunctionType != Virtual {
			return 0
		}
	}
	return len(n.Devices)
}

// DataAge is the age of a device's state. State that is too old to be exposed has an age as well.
type DataAge struct {
	Device string
	Age    time.Duration // 0: read in this round
}

// PortID names a port, or with Number 0 a device.
type PortID struct {
	Device string `json:"device"`
	Number int    `json:"port"`
}

// MissingDevice is a device that was present before or is pinned, and is missing.
type MissingDevice struct {
	Name       string // former name, or its PCI address if another device has that name now
	PCIAddress string
	NodeGUID   string
	Reason     string // expect.Reason
	Seen       string // this_boot, earlier_boot, never; siblings: never, but functions like it have a device
}

// RenamedDevice is a device whose PCI function had another name in an earlier boot.
type RenamedDevice struct {
	Name, Earlier string
	PCIAddress    string
}

// FunctionType is the kind of function of an RDMA device.
type FunctionType string

// The kinds of functions.
const (
	Physical    FunctionType = "physical"    // a PCI physical function
	Virtual     FunctionType = "virtual"     // a PCI virtual function: physfn link, or a VF device id in a guest
	SubFunction FunctionType = "subfunction" // mlx5_core.sf.N, or created by another device
	Software    FunctionType = "software"    // rxe, siw: no device link, and below /sys/devices/virtual
	// FunctionUnknown is that of a device without a visible function.
	FunctionUnknown FunctionType = ""
)

// Device is an RDMA device: /sys/class/infiniband/NAME.
type Device struct {
	Name         string
	Driver       string  // basename of device/driver of the PCI function; rxe or siw for a software device
	NodeType     *uint64 // node_type, enum rdma_node_type
	NodeGUID     string  // node_guid, xxxx:xxxx:xxxx:xxxx
	SystemGUID   string  // sys_image_guid: identifies the card
	HCAType      string  // hca_type, driver attribute
	BoardID      string  // board_id, driver attribute; the PSID on mlx5 and mlx4
	Firmware     string  // fw_ver
	PCIAddress   string  // DDDD:BB:DD.F of the PCI function; for a sub-function that of its parent
	NUMANode     string  // numa_node of the PCI function; empty if -1
	FunctionType FunctionType
	// Path is the path of the PCI function below the root: sys/devices/pci0000:15/…; empty if none.
	Path     string
	Emulated bool // the port above the function is emulated by a hypervisor
	// It manages NVLink switches according to vital product data or the configuration: nothing else of it is read.
	ManagesNVLink bool
	// PhysicalFunction is the target of the link physfn: for a virtual function whose physical function is on this host.
	PhysicalFunction string
	// Registrations is the number of registrations in this run; nil: not reported by the kernel.
	Registrations *uint64
	// VirtualFunctions is the number of virtfn links of the PCI function; nil: no SR-IOV capability.
	VirtualFunctions *uint64
	Ports            []Port
}

// Port is a port of an RDMA device: ports/N.
type Port struct {
	Number        int
	Age           time.Duration // of the state and related values; 0: read in this round
	Unread        bool          // the state could not be read, and the last one is too old
	LinkLayer     string        // link_layer: InfiniBand, Ethernet, Unknown
	EarlierLayer  string        // LinkLayer before, if another port of the board has kept it; empty: the same
	State         *uint64       // state, enum ib_port_state
	PhysicalState *uint64       // phys_state, enum ib_port_phys_state
	WasActive     bool          // State was ACTIVE at an earlier reading
	Role          string        // compute, other, unknown, nvlink_management: pci.Role
	RoleSource    string        // evidence for the role: role.Source
	PeersActive   bool          // expected to be ACTIVE because its peers are: role.Peers
	PinnedActive  bool          // configured as expected ACTIVE
	Idle          string        // why it is not expected to be ACTIVE: IdlePinned, IdleAccepted; empty: no reason
	PinnedSM      bool          // configured as a port with a subnet manager
	LID           *uint64       // lid
	SMLID         *uint64       // sm_lid
	Subnet        string        // prefix of an InfiniBand port's subnet: the first half of gids/0; empty: unknown
	LMC           *uint64       // lid_mask_count
	Capabilities  *uint64       // cap_mask, PortInfo CapabilityMask

	Rate  *float64 // data rate, bits per second; nil: no link, or not reliable
	Lanes *uint64  // lanes in use

	GIDs         map[string]uint64    // number of GID table entries in use by type: ib, roce_v1, roce_v2
	RoCEv2       map[string]GIDFamily // RoCE v2 entries by family: ipv4, ipv6, link_local
	PKeys        *uint64              // number of P_Keys in the table
	PKeyTable    []uint16             // nil if one is unreadable
	PKeysMissing *uint64              // pinned P_Keys missing in the table; nil: none pinned
	// Bits per second: fastest rate that both ends of an InfiniBand link have enabled and the card supports; nil: unknown.
	CommonRate  *float64
	CommonLanes *uint64  // widest that both ends have; nil also if the card reaches its rate with fewer
	Netdev      []Netdev // the port's netdev, or the members of its bond
	Wire        string   // of an InfiniBand port without netdev; empty: unknown
	Expected

	Counters     []wire.Stat     // counters/: PMA attributes in the units of the files
	WideCounters bool            // error counters are 64-bit, unlike the files, and none is saturated
	FEC          *IBFEC          // nil: not queried, or not supported
	Settings     *IBPortSettings // of an InfiniBand port; nil: not queried

	// Transitions of an InfiniBand port between ACTIVE and other states, as of the readings.
	Transitions *Transitions
}

// Reasons of Port.Idle.
const (
	IdlePinned   = "pinned"   // by the site configuration, active: false
	IdleAccepted = "accepted" // rdma_exporter accept
)

// Transitions counts the transitions of a link since it was first seen in this run, without administrative ones.
type Transitions struct {
	Ups, Downs uint64
}

// Netdev is a network interface of a port.
type Netdev struct {
	Name  string
	Index *uint64 // /sys/class/net/NAME/ifindex: changes if the interface is recreated
	Admin *bool   // IFF_UP of /sys/class/net/NAME/flags
	// Joined: an IPoIB interface is operationally up (administratively up, and joined to the broadcast group of its
	// partition). nil: not IPoIB, or unknown from /sys/class/net/NAME/operstate.
	Joined *bool
	// CarrierUps and CarrierDowns count carrier changes since the netdev was created, including administrative ones:
	// /sys/class/net/NAME/carrier_up_count and carrier_down_count, since Linux 4.16.
	CarrierUps, CarrierDowns *uint64
	Transitions              *Transitions // of the carrier of an Ethernet netdev
	// DownEvents counts the times that the physical link went down, as counted by the driver: ethtool LINKSTATE_GET,
	// EXT_DOWN_CNT.
	DownEvents *uint64
	MTU        *uint64 // bytes: /sys/class/net/NAME/mtu
	Wire       string  // identifies the physical port within the host; empty: unknown
	// Why the link is down, according to the driver: the texts of ext_state and ext_substate.
	DownReason, DownDetail string

	// Member of a bond, with its own state and link.
	Member bool
	Up     *bool    // bonding_slave/mii_status of a member
	Rate   *float64 // bits per second, ethtool netlink LINKMODES_GET
	Lanes  *uint64
	Modes
	Expected
}

// Modes are the link modes of a netdev: ethtool netlink LINKMODES_GET. Rates are in bits per second.
type Modes struct {
	CapableRate *float64 // of the fastest supported mode
	// CommonRate is of the fastest mode that both ends have advertised; nil if autonegotiation is off or the link
	// partner's modes are unknown. CommonLanes is also nil if modes of that rate differ in their lanes.
	CommonRate  *float64
	CommonLanes *uint64
}

// Expected is the expected rate and width of a link with the source of the evidence (expect.Source); nil: no
// expectation.
type Expected struct {
	ExpectedRate        *float64 // bits per second
	ExpectedRateSource  string
	ExpectedLanes       *uint64
	ExpectedLanesSource string
}

// GIDFamily is the entries of one address family in a GID table.
type GIDFamily struct {
	Entries uint64
	First   uint64 // lowest index
}

// IBPortSettings is what the subnet manager has set in an InfiniBand port: PortInfo (IBA 14.2.5.6), SLtoVLMappingTable
// (IBA 14.2.5.9).
type IBPortSettings struct {
	MTU     *uint64 // NeighborMTU, bytes
	DataVLs *uint64 // OperationalVLs: number of virtual lanes for data
	// Virtual lane of each service level; 15: discarded. nil: the port does not have the table.
	VLs []uint8
}

// IBFEC is the FEC of an InfiniBand port and its errors: PortInfoExtended (IBA 14.2.5.19), PortExtendedSpeedsCounters
// (IBA 16.1.4.12).
type IBFEC struct {
	Mode   string // none, FC, RS(544,514) …; empty: unknown
	Counts []FECCount
}

// FECCount is a counter of the port, or of a lane. It stops at its highest value.
type FECCount struct {
	// Name: sync_header_errors, unknown_blocks, corrected_symbols, corrected_blocks, uncorrectable_blocks.
	Name  string
	Lane  int // -1: of the port
	Value uint64
}

// HWCounters is hw_counters of devices and ports.
type HWCounters struct {
	Devices []DeviceCounters
}

// DeviceCounters is hw_counters of one device.
type DeviceCounters struct {
	Name   string
	Driver string      // as Device.Driver: the meaning of names depends on it
	Stats  []wire.Stat // hw_counters/ of the device itself
	Ports  []PortCounters
}

// PortCounters is hw_counters of one port.
type PortCounters struct {
	Number     int
	Traffic    bool // counters/ of the port has its traffic
	InfiniBand bool // link layer InfiniBand: no RoCE
	Stats      []wire.Stat
}

// Merge adds the sections and reports of another reading of the same machine.
func (n *Node) Merge(o *Node) {
	n.InfiniBand = cmp.Or(o.InfiniBand, n.InfiniBand)
	n.HWCounters = cmp.Or(o.HWCounters, n.HWCounters)
	n.Ethernet = cmp.Or(o.Ethernet, n.Ethernet)
	n.Modules = cmp.Or(o.Modules, n.Modules)
	n.Health = cmp.Or(o.Health, n.Health)
	n.QoS = cmp.Or(o.QoS, n.QoS)
	n.PCIe = cmp.Or(o.PCIe, n.PCIe)
	n.Sensors = cmp.Or(o.Sensors, n.Sensors)
	n.Optics = cmp.Or(o.Optics, n.Optics)
	n.GDR = cmp.Or(o.GDR, n.GDR)
	n.GPUs = cmp.Or(o.GPUs, n.GPUs)
	n.Neighbours = cmp.Or(o.Neighbours, n.Neighbours)
	n.Setup = cmp.Or(o.Setup, n.Setup)
	n.KernelLog = cmp.Or(o.KernelLog, n.KernelLog)
	n.Peers = cmp.Or(o.Peers, n.Peers)
	n.Reduced = cmp.Or(o.Reduced, n.Reduced)
	n.Issues = append(n.Issues, o.Issues...)
	n.Pending = append(n.Pending, o.Pending...)
	n.Devices = append(n.Devices, o.Devices...)
}
