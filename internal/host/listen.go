package host

import (
	"context"
	"errors"
	"syscall"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/kernellog"
)

// Events reports events of the kernel. Listening takes no lock and makes no driver call.
type Events interface {
	// Links calls each for every event of a network interface (rtnetlink, RTNLGRP_LINK) until ctx ends, which is not an
	// error. listening is called once events arrive.
	//
	// Carrier changes are reported within a second, several at once: only the counts in an event give their number.
	// Administrative changes are reported immediately, before rtnl is released, so that an event never shows an
	// intermediate state (net/core/link_watch.c, net/core/dev.c).
	Links(ctx context.Context, listening func(), each func(LinkEvent)) error
	// Devices does the same for RDMA devices (RDMA netlink, RDMA_NL_GROUP_NOTIFY, since Linux 6.12). The error has reason
	// Unsupported if the kernel reports no events.
	Devices(ctx context.Context, listening func(), each func(DeviceEvent)) error
	// Overruns counts overflows of the receive buffer. Each loses events.
	Overruns() uint64
}

// LinkEvent is RTM_NEWLINK or RTM_DELLINK.
type LinkEvent struct {
	Index   uint64
	Name    string // IFLA_IFNAME
	Up      bool   // IFF_UP: administratively up
	Carrier bool   // IFF_LOWER_UP
	// Carrier changes of the interface since its creation; nil on kernels before 4.16.
	CarrierUpCount   *uint64 // IFLA_CARRIER_UP_COUNT
	CarrierDownCount *uint64 // IFLA_CARRIER_DOWN_COUNT
	Deleted          bool
}

// DeviceEventType is enum rdma_nl_notify_event_type of include/uapi/rdma/rdma_netlink.h.
type DeviceEventType uint64

// Events of an RDMA device.
const (
	DeviceRegistered DeviceEventType = iota
	DeviceUnregistered
	NetdevAttached
	NetdevDetached
	DeviceRenamed
	NetdevRenamed
)

// DeviceEvent is RDMA_NLDEV_CMD_MONITOR.
type DeviceEvent struct {
	Type   DeviceEventType
	Index  uint64 // RDMA_NLDEV_ATTR_DEV_INDEX, changes with each registration
	Device string // RDMA_NLDEV_ATTR_DEV_NAME
}

// EventBuffer is the receive buffer for events: some thousand of a few KiB each.
const EventBuffer = 4 << 20

// LLDP receives the LLDP frames of neighbours. It sends nothing.
type LLDP interface {
	// Receive calls each for every LLDP frame received on one of the netdevs until ctx ends, which is not an error.
	// listening is called once frames are received; frame is valid until each returns.
	//
	// Joining adds three addresses to the multicast filter of each NIC. The kernel removes them when the socket is closed,
	// also if the process is killed. It requires CAP_NET_RAW and takes rtnl: it runs through under, with its number of
	// requests.
	Receive(
		ctx context.Context, netdevs []string, under func(n int, f func()) error, listening func(),
		each func(netdev string, frame []byte),
	) error
}

// Networkd queries systemd-networkd, version 256 and later.
type Networkd interface {
	// LLDPNeighbours is the neighbours that networkd has received on a netdev, which has an index: GetLLDPNeighbors of its
	// Varlink interface, as frames in the form of the files of earlier versions (lldp.Save). It takes at most
	// networkdTime. There are none of an interface that networkd does not have: its network namespace may be another one.
	//
	// The socket is open to all users. From systemd 258 on it is a socket unit, and a connection starts a networkd that is
	// stopped, which would configure interfaces. The error is therefore ENOENT unless the service is active. It is also
	// ENOENT without the socket, and EOPNOTSUPP from a networkd without the method.
	LLDPNeighbours(ctx context.Context, netdev string, index uint64) ([]byte, error)
}

// NoNetworkd reports whether the error of a query means that the files of earlier versions apply: networkd does not
// run, or has no such query.
func NoNetworkd(err error) bool { return access.IsAbsent(err) || errors.Is(err, syscall.EOPNOTSUPP) }

// KernelLog reads the kernel log.
type KernelLog interface {
	// KernelLog returns the recognised events since boot, the newest MaxKernelEvents of them.
	KernelLog(context.Context) (KernelLogReading, error)
}

// MaxKernelEvents limits the events that are kept: more than a reading examines, but for the first.
const MaxKernelEvents = 4000

// KernelLogReading is the state of the log.
type KernelLogReading struct {
	// Records that were overwritten before they were read, since the start of the program.
	Lost    uint64
	Dropped uint64 // older events that are not kept, since the start of the program
	// Records not examined, of more than 100 a second, since the start of the program.
	Skipped uint64
	Events  []KernelEvent // in order
}

// KernelEvent is an event with its place in the log.
type KernelEvent struct {
	Seq uint64        // number of the record
	At  time.Duration // since boot, without the time in suspend
	kernellog.Event
	Line string // as printed, for bug reports only; empty in a replay
}
