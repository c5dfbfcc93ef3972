// Package snapshot is one typed picture of a node: a section for each collector, as plain data. It knows neither where the
// data comes from nor what becomes of it, and uses the standard library and internal/transceiver, what a module says, only.
//
// A nil pointer or an empty string stands for a value that the machine did not give: absent is not zero.
package snapshot

import (
	"cmp"
	"time"
)

// Node is one reading of a machine. A section is nil until its collector has read it.
type Node struct {
	InfiniBand *InfiniBand
	HWCounters *HWCounters
	Ethernet   *Ethernet
	Modules    *Modules
	Health     *Health
	QoS        *QoS
	PCIe       *PCIe
	Sensors    *Sensors
	Optics     *Optics
	GDR        *GDR
	GPUs       *GPUs
	Neighbours *Neighbours

	// Issues are the items that could not be read, each of which cost its own sample only.
	Issues []Issue
	// Devices says for each RDMA device whether its read returned.
	Devices []DeviceRead
	// Pending are the sources, host.Source by name, that are read in the background and have not been read for the first time.
	Pending []string
}

// Issue is one item that could not be read.
type Issue struct {
	Device string // RDMA device; empty where the item belongs to none
	Source string // host.Source that it is of; empty where it is none
	Needs  string // what would permit to read that source
	Reason string // host.Reason
	Err    error
}

// DeviceRead tells how the read of one device ended.
type DeviceRead struct {
	Device string // empty for a read of all devices at once
	Stuck  bool   // it has not returned from the kernel
	// Quarantined counts items that failed so often that they are left alone.
	Quarantined uint64
}

// InfiniBand is /sys/class/infiniband and what belongs to it.
type InfiniBand struct {
	Devices []Device
	// Missing are devices that ought to be there and are not.
	Missing []MissingDevice
	// Renamed are devices that have changed names among themselves since an earlier boot.
	Renamed []RenamedDevice
	// Ignored are the devices (Number 0) and ports whose faults the site's configuration ignores, missing ones among them.
	Ignored []PortID
	// Ages say of each device that was ever read how old what is known of its state is.
	Ages []DataAge
	Boot Boot
	// Stack is whether the kernel's RDMA stack is loaded; nil on a host without anything that could do RDMA, and where it cannot be told.
	Stack *Stack
}

// Stack is the kernel's RDMA stack on a host that can do RDMA.
type Stack struct {
	State    StackState
	Expected StackExpected // why it is expected to be loaded, where it is not
	// Functions are those on PCI that can do RDMA, at most StackFunctions of them, where none of them has a device.
	Functions []StackFunction
	Settled   time.Duration // since the boot, or since the modules changed; 0: neither is known
	Nodes     []VerbsNode   // of devices; nil where /dev is not the host's
}

// StackFunctions is how many functions without a device are named.
const StackFunctions = 64

// StackState says what of the stack is there.
type StackState string

// The states.
const (
	StackLoaded   StackState = "loaded"
	StackNoDevice StackState = "no_device" // functions that can do RDMA, and no RDMA device
	StackNoVerbs  StackState = "no_uverbs" // RDMA devices, and no ib_uverbs that applications reach them by
)

// StackExpected is the evidence that the stack is meant to be loaded.
type StackExpected string

// The evidence, the strongest first.
const (
	ExpectedConfiguration StackExpected = "configuration" // the site's configuration names devices of this host
	ExpectedInventory     StackExpected = "inventory"     // it had RDMA devices before
	ExpectedCompute       StackExpected = "compute"       // it has a port of role compute
	ExpectedFunction      StackExpected = "rdma_function" // it has a function that is made for RDMA
	ExpectedDevice        StackExpected = "device"        // it has an RDMA device
	ExpectedUnknown       StackExpected = "unknown"       // its Ethernet controllers can do RDMA besides
)

// StackFunction is a PCI function that can do RDMA and has no RDMA device.
type StackFunction struct {
	PCIAddress string
	Kind       string // pci.RDMAKind
	Driver     string // empty: none is bound
}

// VerbsNode is the node in /dev/infiniband that applications open for a device.
type VerbsNode struct {
	Device  string
	Name    string // uverbsN
	Present bool
}

// Boot is the present run of the kernel.
type Boot struct {
	Uptime *float64 // seconds: the first number of /proc/uptime
	ID     string   // /proc/sys/kernel/random/boot_id
}

// DataAge is the age of what is known of a device's state. State that is too old to be served has an age as well.
type DataAge struct {
	Device string
	Age    time.Duration // 0: read in this round
}

// PortID names a port, or with Number 0 a device.
type PortID struct {
	Device string
	Number int
}

// MissingDevice is a device that was there, or is pinned, and is not there now.
type MissingDevice struct {
	Name       string // it had, or its PCI address where another device has that name now
	PCIAddress string
	NodeGUID   string
	Reason     string // expect.Reason
	Seen       string // this_boot, earlier_boot, never
}

// RenamedDevice is a device whose PCI function had another name in an earlier boot.
type RenamedDevice struct {
	Name, Earlier string
	PCIAddress    string
}

// FunctionType says what kind of function an RDMA device is on.
type FunctionType string

// The kinds of functions.
const (
	Physical    FunctionType = "physical"    // a PCI physical function
	Virtual     FunctionType = "virtual"     // a PCI virtual function: physfn link, or a VF device id in a guest
	SubFunction FunctionType = "subfunction" // an auxiliary device mlx5_core.sf.N
	Software    FunctionType = "software"    // rxe, siw: no device link, and below /sys/devices/virtual
	// FunctionUnknown is that of a device which shows no function, and nothing says why.
	FunctionUnknown FunctionType = ""
)

// Device is an RDMA device: /sys/class/infiniband/NAME.
type Device struct {
	Name         string
	Driver       string  // basename of device/driver of the PCI function; rxe or siw for a software device
	NodeType     *uint64 // node_type, enum rdma_node_type
	NodeGUID     string  // node_guid, xxxx:xxxx:xxxx:xxxx
	SystemGUID   string  // sys_image_guid: that of the card
	HCAType      string  // hca_type, driver attribute
	BoardID      string  // board_id, driver attribute; the PSID on mlx5 and mlx4
	Firmware     string  // fw_ver
	PCIAddress   string  // DDDD:BB:DD.F of the PCI function, of the parent for a sub-function
	NUMANode     string  // numa_node of the PCI function; empty where it is -1
	FunctionType FunctionType
	// Path is that of the PCI function below the root, as PCIAddress: sys/devices/pci0000:15/…; empty where there is none.
	Path          string
	Emulated      bool // a hypervisor has made the port above the function
	ManagesNVLink bool // vital product data, or the operator, says that it manages NVLink switches: nothing else of it is read
	// PhysicalFunction is the address behind the link physfn: of a virtual function that this host itself serves.
	PhysicalFunction string
	// Registrations counts those that were heard in this run; nil where the kernel does not tell.
	Registrations *uint64
	// VirtualFunctions counts the virtfn links of the PCI function; nil where it has no SR-IOV capability.
	VirtualFunctions *uint64
	Ports            []Port
}

// Port is a port of an RDMA device: ports/N.
type Port struct {
	Number        int
	Age           time.Duration // of the state and of what goes with it; 0: read in this round
	Unread        bool          // the state could not be asked for, and what is known of it is too old
	LinkLayer     string        // link_layer: InfiniBand, Ethernet, Unknown
	State         *uint64       // state, enum ib_port_state
	PhysicalState *uint64       // phys_state, enum ib_port_phys_state
	WasActive     bool          // State was ACTIVE at an earlier reading
	Role          string        // compute, other, unknown, nvlink_management: pci.Role
	RoleSource    string        // evidence for the role: role.Source
	PeersActive   bool          // it ought to be ACTIVE because its peers are: role.Peers
	PinnedActive  bool          // the operator says that it has to be ACTIVE
	PinnedSM      bool          // the operator says that a subnet manager is meant to run on it
	LID           *uint64       // lid
	SMLID         *uint64       // sm_lid
	LMC           *uint64       // lid_mask_count
	Capabilities  *uint64       // cap_mask, PortInfo CapabilityMask

	Rate  *float64 // bits per second of data; nil where no link or not told truly
	Lanes *uint64  // lanes in use

	GIDs         map[string]uint64    // number of GID table entries in use by type: ib, roce_v1, roce_v2
	RoCEv2       map[string]GIDFamily // RoCE v2 entries by family: ipv4, ipv6, link_local
	PKeys        *uint64              // number of P_Keys in the table
	PKeyTable    []uint16             // the P_Keys; nil where one cannot be read
	PKeysMissing *uint64              // pinned P_Keys that are not in the table; nil where none is pinned
	CommonRate   *float64             // bits per second: of the fastest that both ends of an InfiniBand link have enabled and the card reaches; nil where it was not asked
	CommonLanes  *uint64              // of the widest that both have; nil also where the card reaches its rate with fewer
	Netdev       []Netdev             // the port's netdev, or the members of its bond
	Wire         string               // of an InfiniBand port without netdev; empty where it cannot be told
	Expected

	Counters     []Stat // counters/: PMA attributes as the files have them, in their units
	WideCounters bool   // those of errors have 64 bits, unlike the files, and none stands at its end

	// Transitions of an InfiniBand port between ACTIVE and other states, as the readings show them.
	Transitions *Transitions
}

// Transitions counts how often a link came and went since it was first seen in this run, administrative changes left out.
type Transitions struct {
	Ups, Downs uint64
}

// Netdev is a network interface of a port.
type Netdev struct {
	Name  string
	Index *uint64 // /sys/class/net/NAME/ifindex: one that is made again has another
	Admin *bool   // IFF_UP of /sys/class/net/NAME/flags
	// Joined says of an IPoIB interface that it is operationally up: set up, and in the broadcast group of its partition. nil: it is none,
	// or /sys/class/net/NAME/operstate tells neither.
	Joined *bool
	// CarrierUps and CarrierDowns count carrier coming and going since the netdev was made, administrative ones included:
	// /sys/class/net/NAME/carrier_up_count and carrier_down_count, since Linux 4.16.
	CarrierUps, CarrierDowns *uint64
	Transitions              *Transitions // of the carrier of an Ethernet netdev
	// DownEvents counts the times that the physical link went down, as the driver says: ethtool LINKSTATE_GET, EXT_DOWN_CNT.
	DownEvents *uint64
	MTU        *uint64 // bytes: /sys/class/net/NAME/mtu
	Wire       string  // names the wire within the host; empty where it cannot be told
	// Why the link is down, as the driver says: the texts of ext_state and ext_substate.
	DownReason, DownDetail string

	// Member says that it is a member of a bond, whose state and link are its own.
	Member bool
	Up     *bool    // bonding_slave/mii_status of a member
	Rate   *float64 // bits per second, ethtool netlink LINKMODES_GET
	Lanes  *uint64
	Modes
	Expected
}

// Modes are what a netdev's link can do: ethtool netlink LINKMODES_GET. Rates are in bits per second.
type Modes struct {
	CapableRate *float64 // of the fastest supported mode
	// CommonRate is of the fastest mode that both ends have advertised, nil where autonegotiation is off or the link partner's
	// modes are not known; CommonLanes also where modes of that rate differ in them.
	CommonRate  *float64
	CommonLanes *uint64
}

// Expected is what a link ought to have, with the source of the evidence (expect.Source); a nil value is not judged.
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

// Stat is one counter as the kernel names it.
type Stat struct {
	Name  string
	Value uint64
}

// HWCounters is hw_counters of devices and ports.
type HWCounters struct {
	Devices []DeviceCounters
}

// DeviceCounters is hw_counters of one device.
type DeviceCounters struct {
	Name   string
	Driver string // as Device.Driver: the names mean what the driver says
	Stats  []Stat // hw_counters/ of the device itself
	Ports  []PortCounters
}

// PortCounters is hw_counters of one port.
type PortCounters struct {
	Number     int
	Traffic    bool // counters/ of the port tells its traffic
	InfiniBand bool // the link layer: there is no RoCE here
	Stats      []Stat
}

// Modules is the software below the devices.
type Modules struct {
	Modules   []Module
	DriverPin *DriverPin // nil where nothing is pinned
	Nodes     []NodeClass
}

// Module is a kernel module that RDMA needs.
type Module struct {
	Name    string
	Loaded  bool   // live as a module, or built in
	Known   bool   // Loaded is certain
	BuiltIn bool   // in the kernel image
	Version string // /sys/module/NAME/version: out-of-tree modules have it
	Taint   string // /sys/module/NAME/taint: P proprietary, O out-of-tree, E unsigned
	Flavour string // in-tree, ofed, out-of-tree; empty when not loaded
	Driver  bool   // drives hardware, as opposed to the RDMA core
}

// DriverPin is what the operator says of a loaded driver.
type DriverPin struct {
	Module, Pin string // the glob of versions
	Met         bool
}

// NodeClass is a kind of node in /dev/infiniband.
type NodeClass struct {
	Class    string // uverbs, umad, rdma_cm
	Present  uint64
	Readable uint64 // by this process
}

// Health is the devlink health reporters of RDMA devices.
type Health struct {
	Reporters []HealthReporter
}

// HealthReporter is one reporter of the function that an RDMA device is on: devlink HEALTH_REPORTER_GET.
type HealthReporter struct {
	Device     string  // RDMA device
	Name       string  // DEVLINK_ATTR_HEALTH_REPORTER_NAME: fw, fw_fatal, vnic, …
	State      *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_STATE: 0 healthy, 1 error
	Errors     *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT, errors reported since the driver made the reporter
	Recoveries *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT, recoveries that succeeded
}

// PCIe is where devices and GPUs are in the PCI tree, and how their links run.
type PCIe struct {
	Devices []PCIePath
	GPUs    []GPUPath
}

// PCIePath is the way from a root port to the PCI function of an RDMA device, both included.
type PCIePath struct {
	Device string
	Hops   []PCIeHop
}

// GPUPath is the way from a root port to a GPU, both included.
type GPUPath struct {
	Index string // of NVML, else the place in the order of addresses
	UUID  string // empty where nobody tells
	Hops  []PCIeHop
}

// PCIeHop is a function on the way; 0 stands for a link value that is not told.
type PCIeHop struct {
	Address         string
	Speed, MaxSpeed float64 // transfers per second and lane: current_link_speed, max_link_speed
	Width, MaxWidth uint64  // lanes: current_link_width, max_link_width
	AER             AER
}

// AER counts errors of a function since it was found: TOTAL_ERR_* of aer_dev_correctable, aer_dev_nonfatal and aer_dev_fatal. nil
// where it has no AER, or the firmware keeps it.
type AER struct {
	Correctable, NonFatal, Fatal *uint64
}

// Sensors are the temperature sensors of adapters.
type Sensors struct {
	Devices []DeviceSensors
}

// DeviceSensors are those of one RDMA device's PCI function: hwmon.
type DeviceSensors struct {
	Device  string
	Sensors []Sensor
}

// Sensor is one channel: tempK_label, tempK_input, tempK_crit, in degrees Celsius; nil where it is not told or makes no sense.
type Sensor struct {
	Name            string
	Value, Critical *float64
}

// Merge takes over the sections and reports of another reading of the same machine.
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
	n.Issues = append(n.Issues, o.Issues...)
	n.Pending = append(n.Pending, o.Pending...)
	n.Devices = append(n.Devices, o.Devices...)
}
