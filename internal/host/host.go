// Package host is the only access to the monitored machine: its types and interfaces are here, each source is a package
// below, and live assembles them. No package beside these opens a kernel file, a kernel socket or a driver library.
// Recording, replay, rate limits and the confinement to the root are therefore in one place.
//
// Paths are logical, slash separated and without a leading slash: sys/…, proc/…, dev/…, lib/…. Access is read-only.
package host

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/linkmode"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/qp"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/transceiver"
)

// Host is one machine.
type Host struct {
	Files   Files
	RDMA    RDMA
	Ethtool Ethtool
	Devlink Devlink
	DCB     DCB
	GPUs    GPUs
	// Processes finds the processes that use RDMA devices.
	Processes Processes
	// Launchers finds the services that start jobs; nil: not supported.
	Launchers Launchers
	// Pods lists the devices of pods; nil: not enabled.
	Pods Pods
	// Events is nil in a copied tree and in a replay.
	Events Events
	// Tracer is nil in a copied tree.
	Tracer Tracer
	// LLDP is nil where Events is.
	LLDP LLDP
	// Networkd is nil where Events is.
	Networkd Networkd
	// KernelLog is nil in a copied tree.
	KernelLog KernelLog
	// Subnet is nil in a copied tree.
	Subnet Subnet
	// Turns allows one reader at a time per device, and tracks devices that do not answer.
	Turns *access.Turns
	// CPU is how long this process waited for a CPU; nil: not measured.
	CPU *access.CPUWait
	// RTNL serialises all requests that take rtnl.
	RTNL *access.RTNL
	// Meter counts the cost of requests, Budget limits deferrable ones.
	Meter  *source.Meter
	Budget *access.Budget
	// Now is the time of a reading: the wall clock on a live host, the recorded time in a replay.
	Now func() time.Time

	listing *listing
	netdevs *netdevNames
}

// listing is the RDMA devices at one time.
type listing struct {
	once          sync.Once
	names         []string
	registrations []uint64          // of names; 0: unknown
	netdevs       map[string]uint64 // change counts of the netdevs of each
	opened        uint64            // Files.Opened before the devices were identified
	err           error
}

// ForRound returns the same host for collectors that start together: the RDMA devices are listed once for all of them.
func (h *Host) ForRound() *Host {
	if h.netdevs == nil {
		h.netdevs = &netdevNames{devices: map[string]*deviceNetdevs{}}
	}
	round := *h
	round.listing = &listing{}
	return &round
}

// InRound reports whether this is a host of ForRound.
func (h *Host) InRound() bool { return h.listing != nil }

// ClassDir has an entry for each RDMA device.
const ClassDir = "sys/class/infiniband"

// Devices lists the RDMA devices by name, sorted. The list is shared and must not be modified.
func (h *Host) Devices() ([]string, error) {
	l := h.listing
	if l == nil {
		l = &listing{}
	}
	l.once.Do(func() { l.read(h.Files, h.netdevs) })
	return l.names, l.err
}

// read lists the devices. Their netdevs come first, since reading them may open paths; those of new devices come last,
// after which the round is not settled.
func (l *listing) read(f Files, netdevs *netdevNames) {
	var known []string
	if netdevs != nil {
		known = netdevs.known()
		l.netdevs = netdevs.ofDevices(f, known)
	}
	l.opened = f.Opened()
	l.names, l.registrations, l.err = f.Identities(ClassDir)
	switch {
	case netdevs == nil:
	case access.IsAbsent(l.err):
		netdevs.keep(nil)
	case l.err == nil && !slices.Equal(l.names, known):
		l.netdevs = netdevs.ofDevices(f, l.names)
		netdevs.keep(l.names)
	}
}

// Registration distinguishes a device from one that registered later under the same name. Within a round it is as of
// the start of the round. 0: unknown.
func (h *Host) Registration(name string) uint64 {
	if h.listing != nil {
		_, _ = h.Devices()
		if i, there := slices.BinarySearch(h.listing.names, name); there {
			return h.listing.registrations[i]
		}
		return 0
	}
	id, err := h.Files.Identity(ClassDir + "/" + name)
	if err != nil {
		return 0
	}
	return id
}

// NetdevChanges counts how often the netdevs of a device were renamed, recreated or removed, as of the start of the
// round. A change invalidates what collectors have cached by netdev name. 0 outside of rounds.
func (h *Host) NetdevChanges(name string) uint64 {
	if h.listing == nil {
		return 0
	}
	_, _ = h.Devices()
	return h.listing.netdevs[name]
}

// Replaced reports whether a device was removed or replaced since the start of the round.
func (h *Host) Replaced(name string) bool {
	id, err := h.Files.Identity(ClassDir + "/" + name)
	if err != nil {
		return access.IsAbsent(err)
	}
	began := h.Registration(name)
	return began != 0 && id != began
}

// Settled reports whether no path of sys was opened since the devices of the round were identified: what was read of
// files since then is of those devices, also if one of them was replaced meanwhile.
func (h *Host) Settled() bool { return h.listing != nil && h.listing.opened == h.Files.Opened() }

// Files reads kernel files. Errors are *Error and have a Reason.
type Files interface {
	// Read appends the content of a file, at most MaxFile bytes, to buf[:0] and returns it.
	Read(path string, buf []byte) ([]byte, error)
	// ReadIn is Read of dir/name without building the path.
	ReadIn(dir, name string, buf []byte) ([]byte, error)
	// ReadEach is ReadIn of many files of one directory, in the order of names; not for proc. It returns buf, which may
	// have grown; content is valid until each returns.
	ReadEach(dir string, names []string, buf []byte, each func(name string, content []byte, err error)) []byte
	// List returns the names in a directory, sorted. If the directory was replaced or its entries changed since the last
	// call, cached descriptors below it are closed. Callers that read files of a directory in each round list it first.
	List(path string) ([]string, error)
	// Same reports whether a directory and its entries are the same, by their inodes, as in the last call, and were
	// listed before that. false if that is not known.
	Same(path string) bool
	// Opened counts the paths of sys that were opened, listed or followed, except by Identities. While it is the same, all
	// content is of descriptors that were open before.
	Opened() uint64
	// Attributes is List for a directory whose entries are constant while it exists, such as sysfs attributes. It is
	// cheaper, and changes are noticed only after half a minute. Callers in each round call Identity of the device first.
	Attributes(path string) ([]string, error)
	// Head returns the first bytes of a file, at most size, and whether they are the whole file. No descriptor is cached.
	Head(path string, size int) (content []byte, whole bool, err error)
	// Lines returns the lines that contain one of words, at most MaxFile bytes of them, of a file of any length:
	// /proc/kallsyms has megabytes.
	Lines(path string, words []string) ([]byte, error)
	// Identity is the inode of a directory: it differs if the directory was replaced. It makes no driver call. If it has
	// changed since the last call, cached files and directories below are discarded.
	Identity(path string) (uint64, error)
	// Identities is List of a directory of links to directories, and Identity of each entry (0: unknown). It makes no
	// system call for entries while all are the same links as in the last call: the kernel makes another one for a device
	// that registers again. In a copied tree a directory that is replaced behind its link is not noticed. The slices are
	// read only.
	Identities(path string) (names []string, ids []uint64, err error)
	// Link returns the target of a symbolic link, unresolved.
	Link(path string) (string, error)
	// Resolve returns path with all links resolved.
	Resolve(path string) (string, error)
	// Readable returns nil if this process could open path for reading. It does not open it.
	Readable(path string) error
	// Mode returns the permission bits of path, and its group; nil: unknown. It does not open it.
	Mode(path string) (mode uint32, group *uint32, err error)
}

// RDMA answers RDMA netlink requests (include/uapi/rdma/rdma_netlink.h, client RDMA_NL_NLDEV).
type RDMA interface {
	// Port is RDMA_NLDEV_CMD_PORT_GET: all its attributes by one query of the port.
	Port(ctx context.Context, device string, port int) (RDMAPort, error)
	// System is RDMA_NLDEV_CMD_SYS_GET: settings of the RDMA subsystem.
	System(ctx context.Context) (RDMASystem, error)
	// Stats is RDMA_NLDEV_CMD_STAT_GET: the port's hw_counters in the kernel's order, appended to buf[:0].
	Stats(ctx context.Context, device string, port int, buf []Stat) ([]Stat, error)
	// Holders is RDMA_NLDEV_CMD_RES_CTX_GET and RDMA_NLDEV_CMD_RES_MR_GET: the processes that use a device, by PID. With
	// qps also RDMA_NLDEV_CMD_RES_QP_GET, which queries the driver for each queue pair: only for drivers that answer from
	// memory.
	Holders(ctx context.Context, device string, qps bool) ([]RDMAHolder, error)
	// QueuePairs is RDMA_NLDEV_CMD_RES_QP_GET: those of a device with a peer (RC, UC, XRC), in RTR, RTS or ERR. The driver
	// is queried for each queue pair of the device: mlx5 sends a firmware command. PIDs are those of Holders.
	QueuePairs(ctx context.Context, device string) ([]qp.QueuePair, error)
	// Connections is RDMA_NLDEV_CMD_RES_CM_ID_GET: the connected IDs of rdma_cm, one for each queue pair. The kernel
	// answers from its own list. PIDs are those of Holders.
	Connections(ctx context.Context, device string) ([]qp.Connection, error)
}

// RDMAPort is the answer to PORT_GET; nil: not sent by the kernel.
type RDMAPort struct {
	State         *uint64 // RDMA_NLDEV_ATTR_PORT_STATE, enum ib_port_state
	PhysicalState *uint64 // RDMA_NLDEV_ATTR_PORT_PHYS_STATE
	LID           *uint64 // RDMA_NLDEV_ATTR_LID, InfiniBand only
	SMLID         *uint64 // RDMA_NLDEV_ATTR_SM_LID, InfiniBand only
	LMC           *uint64 // RDMA_NLDEV_ATTR_LMC, InfiniBand only
	Capabilities  *uint64 // RDMA_NLDEV_ATTR_CAP_FLAGS
	// RDMA_NLDEV_ATTR_NDEV_NAME, empty if none or in another network namespace.
	Netdev string
}

// RDMASystem is the answer to SYS_GET; nil: not sent by the kernel.
type RDMASystem struct {
	// NetnsMode is RDMA_NLDEV_SYS_ATTR_NETNS_MODE: 1: devices are shared by all network namespaces; 0: each belongs to
	// one.
	NetnsMode *uint64
}

// Stat is one counter as the kernel names it.
type Stat = wire.Stat

// Ethtool answers ethtool requests (include/uapi/linux/ethtool_netlink.h). The kernel takes rtnl for each.
type Ethtool interface {
	// LinkModes is ETHTOOL_MSG_LINKMODES_GET.
	LinkModes(ctx context.Context, netdev string) (LinkModes, error)
	// ModuleEEPROM is ETHTOOL_MSG_MODULE_EEPROM_GET: bytes of the module in the port's cage, fewer if the driver returns
	// fewer. It requires CAP_NET_ADMIN and is slow: rtnl is held during the transfer over the module's bus. For a missing
	// or unresponsive module or a missing page mlx5 returns EIO, for an unknown module identifier EINVAL. Each of these
	// may write a line to the kernel log.
	ModuleEEPROM(ctx context.Context, netdev string, ref transceiver.Ref) ([]byte, error)
	// LinkState is ETHTOOL_MSG_LINKSTATE_GET.
	LinkState(ctx context.Context, netdev string) (LinkState, error)
	// Pause is ETHTOOL_MSG_PAUSE_GET with statistics.
	Pause(ctx context.Context, netdev string) (Pause, error)
	// FEC is ETHTOOL_MSG_FEC_GET with statistics.
	FEC(ctx context.Context, netdev string) (FEC, error)
	// NetdevStats is the driver's own statistics by name, in its order: ioctls ETHTOOL_GSTRINGS and ETHTOOL_GSTATS.
	// Drivers add and remove names at run time.
	NetdevStats(ctx context.Context, netdev string) ([]Stat, error)
	// StandardStats is ETHTOOL_MSG_STATS_GET, groups eth-phy, eth-mac, eth-ctrl and rmon: statistics with the same names
	// for all drivers.
	StandardStats(ctx context.Context, netdev string) ([]Stat, error)
}

// LinkState is the answer to LINKSTATE_GET; nil: not sent. Drivers report the extended states only while the link is
// down.
type LinkState struct {
	Link *uint64 // ETHTOOL_A_LINKSTATE_LINK, 0 or 1
	// ETHTOOL_A_LINKSTATE_EXT_STATE, enum ethtool_link_ext_state; 0 is a state.
	ExtState    *uint64
	ExtSubstate *uint64 // numbered per state
	// ExtDownCount is ETHTOOL_A_LINKSTATE_EXT_DOWN_CNT: times that the physical link went down, as counted by the driver.
	ExtDownCount *uint64
}

// LinkModes is the answer to LINKMODES_GET; nil: unknown or not sent.
type LinkModes struct {
	Speed   *uint64 // ETHTOOL_A_LINKMODES_SPEED, Mb/s
	Lanes   *uint64 // ETHTOOL_A_LINKMODES_LANES
	Autoneg *uint64 // ETHTOOL_A_LINKMODES_AUTONEG, 0 or 1
	Duplex  *uint64 // ETHTOOL_A_LINKMODES_DUPLEX, 0 half, 1 full
	// ETHTOOL_A_LINKMODES_OURS, and ETHTOOL_A_LINKMODES_PEER if the link partner has advertised modes.
	Advertised linkmode.Set
	Peer       linkmode.Set
	Supported  linkmode.Set
}

// Devlink answers devlink requests (include/uapi/linux/devlink.h). The kernel takes the lock of each device in turn. A
// recovery of the device holds that lock.
type Devlink interface {
	// Health is DEVLINK_CMD_HEALTH_REPORTER_GET for all devices in this network namespace. It makes no firmware call. An
	// error may come with the reporters that could be parsed.
	Health(ctx context.Context) ([]HealthReporter, error)
}

// HealthReporter is the answer to HEALTH_REPORTER_GET; nil: not sent by the kernel.
type HealthReporter struct {
	Bus        string  // DEVLINK_ATTR_BUS_NAME: pci, auxiliary
	Device     string  // DEVLINK_ATTR_DEV_NAME: DDDD:BB:DD.F on pci, mlx5_core.sf.N on auxiliary
	Port       *uint64 // DEVLINK_ATTR_PORT_INDEX, only of a reporter of a devlink port
	Name       string  // DEVLINK_ATTR_HEALTH_REPORTER_NAME
	State      *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_STATE: 0 healthy, 1 error
	Errors     *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT
	Recoveries *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT
}

// DCB answers requests on data center bridging (include/uapi/linux/dcbnl.h). The kernel takes rtnl for each.
type DCB interface {
	// IEEE is DCB_CMD_IEEE_GET: the driver may issue one firmware command per priority. Drivers without DCB, virtual
	// functions and IPoIB netdevs return EOPNOTSUPP.
	IEEE(ctx context.Context, netdev string) (dcb.Config, error)
}

// GPUs reads GPUs by NVML, the library of the NVIDIA driver. A call delays other users of the same GPU. A GPU that has
// fallen off the bus may block all.
type GPUs interface {
	// ReadGPUs reads all GPUs; full includes figures that are unrelated to NVLink, PCIe and errors. The errors in the
	// second result are failures of one GPU or one figure. The error is ENOENT without an NVIDIA driver, EBUSY while NVML
	// is released.
	ReadGPUs(ctx context.Context, full bool) (accel.NVML, []error, error)
	// WatchGPUs counts XID errors for ReadGPUs until ctx ends.
	WatchGPUs(ctx context.Context) error
	// ReleaseGPUs releases all handles of the driver for a time, so that a GPU can be reset and the driver unloaded; 0
	// ends the release. by names who requested it. A time that is too long is an ErrReleaseTooLong, and changes nothing.
	ReleaseGPUs(ctx context.Context, d time.Duration, by string) error
	// GPUsReleased is the current release; nil: none.
	GPUsReleased() *accel.GPURelease
}

// MaxFile limits the size of one file: sysfs attributes are one page, AER and DCB texts a few.
const MaxFile = 1 << 20

// Answers to PAUSE_GET and FEC_GET.
type (
	Pause  = wire.Pause
	FEC    = wire.FEC
	FECBin = wire.FECBin
)

// Known removes values that the kernel marks as unknown: SPEED_UNKNOWN and DUPLEX_UNKNOWN (all ones), speed 0 and lanes
// 0.
func (m LinkModes) Known() LinkModes {
	if m.Speed != nil && (*m.Speed == math.MaxUint32 || *m.Speed == 0) {
		m.Speed = nil
	}
	if m.Duplex != nil && *m.Duplex == math.MaxUint8 {
		m.Duplex = nil
	}
	if m.Lanes != nil && *m.Lanes == 0 {
		m.Lanes = nil
	}
	return m
}

// MeasureCPU sets the measurement that tells a stuck read from a late one. It is called before the first read.
func (h *Host) MeasureCPU(c *access.CPUWait) {
	h.CPU, h.Turns.CPU, h.RTNL.Turns.CPU = c, c, c
	if n, ok := h.GPUs.(interface{ MeasureCPU(c *access.CPUWait) }); ok {
		n.MeasureCPU(c)
	}
}

// UnderRTNL makes n requests of a source that take rtnl, for a device or none; see RTNL.Do. After an error the results
// of f must not be read, because f may still be running.
func (h *Host) UnderRTNL(ctx context.Context, s source.Source, device string, n int, f func()) error {
	return h.RTNL.Do(ctx, func() {
		h.Meter.Begin(s, source.LockRTNL, n)
		start := time.Now()
		defer func() {
			took := time.Since(start)
			h.Meter.Spend(s, source.LockRTNL, took)
			h.Budget.Spend(device, took)
		}()
		f()
	})
}
