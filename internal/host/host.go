// Package host is the only door to the machine that is watched: files below a root, RDMA netlink, ethtool netlink,
// devlink, DCB, the kernel's events, frames of LLDP, management datagrams and NVML, live or replayed. Nothing else in the program opens a kernel file, a socket to the kernel or
// a library of a driver, so that what was read can be recorded, replayed, bounded and kept from escaping its root, in one place.
//
// Paths are logical, slash separated and without a leading slash: sys/…, proc/…, dev/…, lib/…. All reads only read.
package host

import (
	"context"
	"sync"
	"time"

	"rdma_exporter/internal/linkmode"
	"rdma_exporter/internal/snapshot"
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
	// Processes are those that use RDMA devices.
	Processes Processes
	// Events is nil where there is nothing to listen to: a copied tree, a replay.
	Events Events
	// LLDP is nil where Events is.
	LLDP LLDP
	// Subnet is nil where there is nothing to ask: a copied tree.
	Subnet Subnet
	// Lanes keeps one reader at a time on each device, and knows which devices do not answer.
	Lanes *Lanes
	// RTNL is the way of all requests that take rtnl.
	RTNL *RTNL
	// Meter counts what the requests cost, Budget says whether what can wait may be asked for now.
	Meter  *Meter
	Budget *Budget
	// Now is the time of the reading: the wall clock of a live host, the recorded time of a replayed one.
	Now func() time.Time

	listing *listing
	netdevs *netdevNames
}

// listing is the answer to one List, and which devices those names are of.
type listing struct {
	once          sync.Once
	names         []string
	registrations map[string]uint64
	netdevs       map[string]uint64 // changes of the netdevs of each
	err           error
}

// ForRound is the same host for collectors that begin together: the RDMA devices are listed for all of them at once.
func (h *Host) ForRound() *Host {
	if h.netdevs == nil {
		h.netdevs = &netdevNames{devices: map[string]*deviceNetdevs{}}
	}
	round := *h
	round.listing = &listing{}
	return &round
}

// classDir has an entry for each RDMA device.
const classDir = "sys/class/infiniband"

// Devices lists the RDMA devices by name, in order. The list is shared: it must not be changed.
func (h *Host) Devices() ([]string, error) {
	l := h.listing
	if l == nil {
		l = &listing{}
	}
	l.once.Do(func() {
		l.names, l.err = h.Files.List(classDir)
		l.registrations = make(map[string]uint64, len(l.names))
		for _, name := range l.names {
			if id, err := h.Files.Identity(classDir + "/" + name); err == nil {
				l.registrations[name] = id
			}
		}
		if h.netdevs == nil || l.err != nil {
			return
		}
		l.netdevs = make(map[string]uint64, len(l.names))
		for _, name := range l.names {
			l.netdevs[name] = h.netdevs.changes(h.Files, name)
		}
		h.netdevs.keep(l.netdevs)
	})
	return l.names, l.err
}

// Registration tells a device from one that has registered later under the same name: as the round began, in a round. 0: it cannot be
// told.
func (h *Host) Registration(name string) uint64 {
	if h.listing != nil {
		_, _ = h.Devices()
		return h.listing.registrations[name]
	}
	id, err := h.Files.Identity(classDir + "/" + name)
	if err != nil {
		return 0
	}
	return id
}

// NetdevChanges counts, in a round, how often the netdevs of a device were renamed, made again or taken away: what was known by the name
// of one is void then, for all collectors at once. 0 outside of rounds.
func (h *Host) NetdevChanges(name string) uint64 {
	if h.listing == nil {
		return 0
	}
	_, _ = h.Devices()
	return h.listing.netdevs[name]
}

// Replaced says whether a device is not the one any more that it was when the round began: it has gone, or another one has its name.
func (h *Host) Replaced(name string) bool {
	id, err := h.Files.Identity(classDir + "/" + name)
	if err != nil {
		return IsAbsent(err)
	}
	began := h.Registration(name)
	return began != 0 && id != began
}

// Files reads kernel files. Errors are *Error and have a Reason.
type Files interface {
	// Read appends the content of a file, at most MaxFile bytes, to buf[:0] and returns it.
	Read(path string, buf []byte) ([]byte, error)
	// ReadIn is Read of dir/name, without a path to put together.
	ReadIn(dir, name string, buf []byte) ([]byte, error)
	// ReadEach is ReadIn of many files of one directory, in the order of names; proc is not for it. It returns buf, which
	// may have grown; content is valid until each returns.
	ReadEach(dir string, names []string, buf []byte, each func(name string, content []byte, err error)) []byte
	// List returns the names in a directory, sorted. Descriptors below a directory that is another one than at the
	// last call, or has other entries, are dropped: whoever reads files of a directory in each round lists it first.
	List(path string) ([]string, error)
	// Attributes is List of a directory whose entries do not change while it exists, as those of sysfs attributes: cheaper,
	// and a change is seen after half a minute only. Whoever asks in each round asks for the Identity of the device first.
	Attributes(path string) ([]string, error)
	// Head returns the first bytes of a file, size at most, and whether that is all. It keeps nothing open.
	Head(path string, size int) (content []byte, whole bool, err error)
	// Lines returns those lines of a file of any length that contain one of words, at most MaxFile bytes of them: of /proc/kallsyms,
	// which has megabytes.
	Lines(path string, words []string) ([]byte, error)
	// Identity is a number that tells a directory from another one that has taken its place: its inode. It asks no driver. What was
	// known of files and directories below is dropped when it is another one than at the last call.
	Identity(path string) (uint64, error)
	// Link returns the target of a symbolic link as it is written.
	Link(path string) (string, error)
	// Resolve returns path with every link in it followed.
	Resolve(path string) (string, error)
	// Readable says, without opening it, whether this process could open path for reading.
	Readable(path string) error
}

// RDMA answers RDMA netlink requests (include/uapi/rdma/rdma_netlink.h, client RDMA_NL_NLDEV).
type RDMA interface {
	// Port is RDMA_NLDEV_CMD_PORT_GET: one query of the port for all that it tells.
	Port(ctx context.Context, device string, port int) (RDMAPort, error)
	// System is RDMA_NLDEV_CMD_SYS_GET: how the RDMA subsystem is set up.
	System(ctx context.Context) (RDMASystem, error)
	// Stats is RDMA_NLDEV_CMD_STAT_GET: the port's hw_counters in the kernel's order, appended to buf[:0].
	Stats(ctx context.Context, device string, port int, buf []Stat) ([]Stat, error)
	// Holders is RDMA_NLDEV_CMD_RES_CTX_GET and RDMA_NLDEV_CMD_RES_MR_GET: the processes that use a device, by number.
	Holders(ctx context.Context, device string) ([]RDMAHolder, error)
}

// RDMAPort is what PORT_GET tells; nil means that the kernel did not send the attribute.
type RDMAPort struct {
	State         *uint64 // RDMA_NLDEV_ATTR_PORT_STATE, enum ib_port_state
	PhysicalState *uint64 // RDMA_NLDEV_ATTR_PORT_PHYS_STATE
	LID           *uint64 // RDMA_NLDEV_ATTR_LID, InfiniBand only
	SMLID         *uint64 // RDMA_NLDEV_ATTR_SM_LID, InfiniBand only
	LMC           *uint64 // RDMA_NLDEV_ATTR_LMC, InfiniBand only
	Capabilities  *uint64 // RDMA_NLDEV_ATTR_CAP_FLAGS
	Netdev        string  // RDMA_NLDEV_ATTR_NDEV_NAME, empty if none or in another network namespace
}

// RDMASystem is what SYS_GET tells; nil means that the kernel did not send the attribute.
type RDMASystem struct {
	// NetnsMode is RDMA_NLDEV_SYS_ATTR_NETNS_MODE: 1 devices are shared by all network namespaces, 0 each belongs to one.
	NetnsMode *uint64
}

// Stat is one counter as the kernel names it.
type Stat = snapshot.Stat

// Ethtool answers ethtool requests (include/uapi/linux/ethtool_netlink.h). The kernel takes rtnl for each.
type Ethtool interface {
	// LinkModes is ETHTOOL_MSG_LINKMODES_GET.
	LinkModes(ctx context.Context, netdev string) (LinkModes, error)
	// ModuleEEPROM is ETHTOOL_MSG_MODULE_EEPROM_GET: bytes of the module in the port's cage, fewer where the driver gives no more.
	// It needs CAP_NET_ADMIN, and time: the bytes come over a slow bus while rtnl is held. Of a module that is not there, does not
	// answer or lacks the page, mlx5 says EIO, and EINVAL of one whose identifier the kernel's mlx5 does not know. Each such answer
	// may cost a line in the kernel log.
	ModuleEEPROM(ctx context.Context, netdev string, ref transceiver.Ref) ([]byte, error)
	// LinkState is ETHTOOL_MSG_LINKSTATE_GET.
	LinkState(ctx context.Context, netdev string) (LinkState, error)
	// Pause is ETHTOOL_MSG_PAUSE_GET with statistics.
	Pause(ctx context.Context, netdev string) (Pause, error)
	// FEC is ETHTOOL_MSG_FEC_GET with statistics.
	FEC(ctx context.Context, netdev string) (FEC, error)
	// NetdevStats is the driver's own statistics by name, in its order: ioctls ETHTOOL_GSTRINGS and ETHTOOL_GSTATS. Drivers add
	// and drop names at run time.
	NetdevStats(ctx context.Context, netdev string) ([]Stat, error)
	// StandardStats is ETHTOOL_MSG_STATS_GET, groups eth-phy, eth-mac, eth-ctrl and rmon: what all drivers that answer it name alike.
	StandardStats(ctx context.Context, netdev string) ([]Stat, error)
}

// LinkState is what LINKSTATE_GET tells; nil means not sent. A driver tells the states while the link is down only.
type LinkState struct {
	Link        *uint64 // ETHTOOL_A_LINKSTATE_LINK, 0 or 1
	ExtState    *uint64 // ETHTOOL_A_LINKSTATE_EXT_STATE, enum ethtool_link_ext_state; 0 is a state
	ExtSubstate *uint64 // ETHTOOL_A_LINKSTATE_EXT_SUBSTATE, numbered for each state
	// ExtDownCount is ETHTOOL_A_LINKSTATE_EXT_DOWN_CNT: times that the physical link went down, as the driver counts them.
	ExtDownCount *uint64
}

// LinkModes is what LINKMODES_GET tells; nil means unknown or not sent.
type LinkModes struct {
	Speed   *uint64 // ETHTOOL_A_LINKMODES_SPEED, Mb/s
	Lanes   *uint64 // ETHTOOL_A_LINKMODES_LANES
	Autoneg *uint64 // ETHTOOL_A_LINKMODES_AUTONEG, 0 or 1
	Duplex  *uint64 // ETHTOOL_A_LINKMODES_DUPLEX, 0 half, 1 full
	// ETHTOOL_A_LINKMODES_OURS, and ETHTOOL_A_LINKMODES_PEER, which is sent where the link partner has advertised modes.
	Supported, Advertised, Peer linkmode.Set
}

// Devlink answers devlink requests (include/uapi/linux/devlink.h). The kernel takes the lock of each device in turn, which a
// recovery of that device holds.
type Devlink interface {
	// Health is DEVLINK_CMD_HEALTH_REPORTER_GET of all devices in this network namespace: it reports and asks no firmware. An
	// error may come with the reporters that could be understood.
	Health(ctx context.Context) ([]HealthReporter, error)
}

// HealthReporter is what HEALTH_REPORTER_GET tells; nil means that the kernel did not send the attribute.
type HealthReporter struct {
	Bus        string  // DEVLINK_ATTR_BUS_NAME: pci, auxiliary
	Device     string  // DEVLINK_ATTR_DEV_NAME: DDDD:BB:DD.F on pci, mlx5_core.sf.N on auxiliary
	Port       *uint64 // DEVLINK_ATTR_PORT_INDEX, of a reporter of a devlink port only
	Name       string  // DEVLINK_ATTR_HEALTH_REPORTER_NAME
	State      *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_STATE: 0 healthy, 1 error
	Errors     *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT
	Recoveries *uint64 // DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT
}

// DCB answers requests on data center bridging (include/uapi/linux/dcbnl.h). The kernel takes rtnl for each.
type DCB interface {
	// IEEE is DCB_CMD_IEEE_GET: the driver may ask firmware a command for each priority. Drivers without DCB, and the netdevs of
	// virtual functions and of IPoIB, answer EOPNOTSUPP.
	IEEE(ctx context.Context, netdev string) (DCBConfig, error)
}

// GPUs answers what NVML, the library of the NVIDIA driver, tells. Asking holds up other users of the same GPU; a GPU that has
// fallen off its bus may hold up all.
type GPUs interface {
	// ReadGPUs reads all GPUs; full says whether figures are wanted that are not of the fabric. The errors in the second result
	// cost a GPU, or one figure of it. Without an NVIDIA driver the error is ENOENT, while NVML is released EBUSY.
	ReadGPUs(ctx context.Context, full bool) (snapshot.NVML, []error, error)
	// WatchGPUs counts XID errors for ReadGPUs until ctx ends.
	WatchGPUs(ctx context.Context) error
	// ReleaseGPUs lets go of every handle on the driver for a time, so that a GPU can be reset and the driver unloaded; 0 ends it.
	ReleaseGPUs(ctx context.Context, d time.Duration) error
	// GPUsReleased is for how long yet.
	GPUsReleased() time.Duration
}

// MaxFile bounds what is read of one file: sysfs attributes are a page, AER and DCB texts a few.
const MaxFile = 1 << 20
