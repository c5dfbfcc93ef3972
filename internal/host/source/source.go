// Package source names the kinds of data that are read, with the lock that each takes, what permits it and what it
// costs.
package source

import (
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/host/access"
)

// Lock is what a request blocks while it is inside the kernel.
type Lock string

// The locks, in order of their impact.
const (
	LockNone    Lock = "none"    // nothing
	LockDevice  Lock = "device"  // users of the same device: its command queue, its configuration space
	LockDevlink Lock = "devlink" // a recovery or a reload of the same device, and waits for it
	LockRTNL    Lock = "rtnl"    // every change of network configuration, and waits for it
)

// Source is a kind of data that is read from the kernel.
type Source int

const (
	Other Source = iota
	Identity
	PortState
	PortFiles
	PortTables
	PMA
	HWCounters
	Netdev
	PortNames
	LinkModes
	LinkState
	NetdevStats
	StandardStats
	Pause
	FEC
	DevlinkHealth
	DCB
	RoCEConfig
	PCI
	PCIConfig
	PCILink
	Sensors
	VPD
	ModuleEEPROM
	Modules
	Processes
	Holders
	Bufinfo
	EBPF
	NVML
	LLDP
	Subnet
	Setup
	KernelLog
	Pods
	numSources
)

// sourceInfo describes a source.
type sourceInfo struct {
	name  string
	lock  Lock
	needs string // what permits reading it
}

const (
	needsFiles    = "CAP_DAC_READ_SEARCH, the file's group, or root"
	needsNetAdmin = "CAP_NET_ADMIN"
	// /proc/PID/fd belongs to the owner of the process, and following its links requires ptrace access.
	needsProcesses = "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, or root, in the PID namespace of the processes (hostPID)"
	NeedsNetRaw    = "CAP_NET_RAW"
	NeedsNetworkd  = "access to /run/systemd/netif and /run/systemd/units"
	needsUMAD      = "root, CAP_DAC_OVERRIDE, or the group of /dev/infiniband/umad*"
	needsEBPF      = "CAP_BPF and CAP_PERFMON, in a kernel with BTF"
	needsLog       = "CAP_SYSLOG, where kernel.dmesg_restrict is 1"
	needsKubelet   = "root, and the kubelet's socket (hostPath /var/lib/kubelet/pod-resources)"
	needsGPUs      = "read and write on /dev/nvidia*, CAP_SYS_ADMIN for some figures"
)

// sources has the lock of each source. Drivers that use the kernel's generic Ethernet helper (ib_get_eth_speed,
// drivers/infiniband/core/verbs.c) take rtnl for the state of a port as well: their requests use Host.UnderRTNL.
var sources = [numSources]sourceInfo{
	Other:         {"other", LockNone, needsFiles},
	Identity:      {"identity", LockNone, needsFiles},             // sysfs: cached by the core or the driver
	PortState:     {"port_state", LockDevice, needsNetAdmin},      // RDMA netlink PORT_GET: a query of the port
	PortFiles:     {"port_files", LockDevice, needsFiles},         // ports/N/{state,phys_state,rate,lid,…}: one query each
	PortTables:    {"port_tables", LockDevice, needsFiles},        // gids, gid_attrs, pkeys: a P_Key is a firmware command on mlx5
	PMA:           {"pma", LockDevice, needsFiles},                // ports/N/counters: one MAD each
	HWCounters:    {"hw_counters", LockDevice, needsFiles},        // RDMA netlink STAT_GET, hw_counters
	Netdev:        {"netdev", LockNone, needsFiles},               // flags, type, dev_port, mtu, operstate, iflink, carrier_changes
	PortNames:     {"port_names", LockRTNL, needsFiles},           // phys_port_name and others: trylock and restart (net/core/net-sysfs.c)
	LinkModes:     {"link_modes", LockRTNL, needsNetAdmin},        // ethtool netlink LINKMODES_GET
	LinkState:     {"link_state", LockRTNL, needsNetAdmin},        // ethtool netlink LINKSTATE_GET
	NetdevStats:   {"netdev_stats", LockRTNL, needsNetAdmin},      // ethtool -S: on mlx5 about 40 registers, read by firmware commands
	StandardStats: {"standard_stats", LockRTNL, needsNetAdmin},    // ethtool netlink STATS_GET
	Pause:         {"pause", LockRTNL, needsNetAdmin},             // ethtool netlink PAUSE_GET
	FEC:           {"fec", LockRTNL, needsNetAdmin},               // ethtool netlink FEC_GET: up to 10 registers
	DevlinkHealth: {"devlink_health", LockDevlink, needsNetAdmin}, // devlink HEALTH_REPORTER_GET
	DCB:           {"dcb", LockRTNL, needsNetAdmin},               // rtnetlink RTM_GETDCB
	RoCEConfig:    {"roce_config", LockDevice, needsFiles},        // files of MLNX_OFED: one firmware command each
	PCI:           {"pci", LockNone, needsFiles},                  // vendor, device, class of all functions
	PCIConfig:     {"pci_config", LockDevice, "CAP_SYS_ADMIN"},    // config beyond its first 64 bytes: registers
	Sensors:       {"sensors", LockDevice, needsFiles},            // hwmon: one firmware command each
	PCILink:       {"pci_link", LockDevice, needsFiles},           // current_link_*: registers in configuration space; aer_dev_*: kernel counters
	VPD:           {"vpd", LockDevice, needsFiles},                // vital product data: polled from configuration space, 4 bytes at a time
	ModuleEEPROM:  {"module_eeprom", LockRTNL, needsNetAdmin},     // ethtool netlink MODULE_EEPROM_GET: milliseconds on the module's bus
	Modules:       {"modules", LockNone, needsFiles},              // /sys/module, /dev/infiniband
	Processes:     {"processes", LockNone, needsProcesses},        // /proc/PID/{fd,fdinfo,limits,environ,cgroup,maps,root}
	Holders:       {"holders", LockDevice, needsNetAdmin},         // RDMA netlink RES_CTX_GET, RES_MR_GET: the core's lists of a device
	Bufinfo:       {"bufinfo", LockDevice, "root, and debugfs"},   // debugfs dma_buf/bufinfo: takes the locks of all DMA-BUFs, one after the other
	EBPF:          {"ebpf", LockNone, needsEBPF},                  // eBPF programs at functions of DMA-BUF and the RDMA core: a ring buffer
	NVML:          {"nvml", LockDevice, needsGPUs},                // the library of the NVIDIA driver: ioctls on /dev/nvidia*
	LLDP:          {"lldp", LockNone, NeedsNetRaw},                // files and socket of systemd-networkd; received frames: joining their groups takes rtnl
	Subnet:        {"subnet", LockDevice, needsUMAD},              // subnet management datagrams through umad: both ends of a link
	KernelLog:     {"kernel_log", LockNone, needsLog},             // /dev/kmsg
	Pods:          {"pods", LockNone, needsKubelet},               // the kubelet's PodResources API: List
	Setup:         {"setup", LockNone, needsFiles},                // settings of the kernel and of the system's configuration files
}

// Name returns the value of the metric label.
func (s Source) Name() string { return sources[s].name }

// Lock returns the lock that the source takes with every driver.
func (s Source) Lock() Lock { return sources[s].lock }

// All lists all sources.
func All() (out []Source) {
	for s := range numSources {
		out = append(out, s)
	}
	return out
}

// Named finds a source by its name.
func Named(name string) (Source, bool) {
	for s := range numSources {
		if s.Name() == name {
			return s, true
		}
	}
	return Other, false
}

// Guarded reports whether an unprivileged process may not read the source.
func (s Source) Guarded() bool {
	switch s {
	case VPD, PCIConfig, ModuleEEPROM, Processes, KernelLog, Pods:
		return true
	}
	return false
}

// Needs returns the permission required to read the source.
func (s Source) Needs() string { return sources[s].needs }

// NeedsAfter returns the permission required to read the source after this error.
func (s Source) NeedsAfter(err error) string {
	switch {
	case errors.Is(err, access.ErrOtherNetwork):
		return access.HostNetwork
	case errors.Is(err, access.ErrNoHelper):
		return access.RunningHelper
	case s == LLDP && ofNetworkd(err):
		return NeedsNetworkd
	}
	return s.Needs()
}

// ofNetworkd reports whether an error is of a file or the socket of systemd-networkd.
func ofNetworkd(err error) bool {
	var e *access.Error
	return errors.As(err, &e) && strings.HasPrefix(e.Path, "run/systemd/netif/")
}

// Meter counts requests to the kernel and their wall time. A nil meter counts nothing.
type Meter struct {
	own, rtnl [numSources]cost
}

type cost struct {
	requests atomic.Uint64
	nanos    atomic.Int64
}

// Cost is the number and time of the requests of one source.
type Cost struct {
	Source   Source
	Lock     Lock
	Requests uint64        // started
	Took     time.Duration // wall time of those that have returned
}

func (m *Meter) of(s Source, l Lock) *cost {
	if l == LockRTNL {
		return &m.rtnl[s]
	}
	return &m.own[s]
}

// Begin counts requests that are about to be made.
func (m *Meter) Begin(s Source, l Lock, n int) {
	if m != nil {
		m.of(s, l).requests.Add(uint64(n))
	}
}

// Spend adds the time of requests that have returned.
func (m *Meter) Spend(s Source, l Lock, took time.Duration) {
	if m != nil {
		m.of(s, l).nanos.Add(int64(took))
	}
}

// Costs lists the sources with requests.
func (m *Meter) Costs() (out []Cost) {
	if m == nil {
		return nil
	}
	out = make([]Cost, 0, numSources)
	for s := range numSources {
		own := s.Lock()
		out = m.of(s, own).list(out, s, own)
		if own != LockRTNL {
			out = m.rtnl[s].list(out, s, LockRTNL)
		}
	}
	return out
}

func (c *cost) list(out []Cost, s Source, l Lock) []Cost {
	n := c.requests.Load()
	if n == 0 {
		return out
	}
	return append(out, Cost{s, l, n, time.Duration(c.nanos.Load())})
}
