package host

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Events tells what the kernel announces. Listening takes no lock and asks nothing of a driver.
type Events interface {
	// Links calls each for every announcement of a network interface (rtnetlink, RTNLGRP_LINK) until ctx ends, which is no
	// error. listening is called once the kernel's announcements arrive.
	//
	// A carrier that comes or goes is announced within a second, several changes at once: only the counts of an event tell
	// how often. Setting an interface up or down is announced at once, before the lock on network configuration is given
	// back, so that an event never shows half of it (net/core/link_watch.c, net/core/dev.c).
	Links(ctx context.Context, listening func(), each func(LinkEvent)) error
	// Devices does the same for RDMA devices (RDMA netlink, RDMA_NL_GROUP_NOTIFY, since Linux 6.12). The error is of reason
	// Unsupported where the kernel announces nothing.
	Devices(ctx context.Context, listening func(), each func(DeviceEvent)) error
	// Overruns counts how often announcements came faster than they were taken, so that some are lost.
	Overruns() uint64
}

// LinkEvent is RTM_NEWLINK or RTM_DELLINK.
type LinkEvent struct {
	Index   uint64
	Name    string // IFLA_IFNAME
	Up      bool   // IFF_UP: administratively up
	Carrier bool   // IFF_LOWER_UP
	// The carrier of the interface since it was made; nil where the kernel does not say, before 4.16.
	CarrierUpCount   *uint64 // IFLA_CARRIER_UP_COUNT
	CarrierDownCount *uint64 // IFLA_CARRIER_DOWN_COUNT
	Deleted          bool
}

// DeviceEventType is enum rdma_nl_notify_event_type of include/uapi/rdma/rdma_netlink.h.
type DeviceEventType uint64

// What may happen to an RDMA device.
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
	Index  uint64 // RDMA_NLDEV_ATTR_DEV_INDEX, another one after each registration
	Device string // RDMA_NLDEV_ATTR_DEV_NAME
	Port   uint64 // RDMA_NLDEV_ATTR_PORT_INDEX, of an event on a netdev
	Netdev string // RDMA_NLDEV_ATTR_NDEV_NAME
}

// EventBuffer holds the announcements that have not been taken yet: some thousand of a few KiB each.
const EventBuffer = 4 << 20

type events struct {
	here     *network
	rdma     *rdmaClient
	buffer   int
	overruns atomic.Uint64
}

// NewEvents listens to this kernel, with so many bytes of buffer in it. files is the machine whose interfaces are meant.
func NewEvents(files Files, buffer int) Events { return newEvents(newNetwork(files), buffer) }

func newEvents(here *network, buffer int) Events {
	return &events{here: here, rdma: newRDMAClient(), buffer: buffer}
}

func (e *events) Overruns() uint64 { return e.overruns.Load() }

func (e *events) Links(ctx context.Context, listening func(), each func(LinkEvent)) error {
	err := e.here.same()
	if err == nil {
		err = e.listen(ctx, unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, listening, func(m *syscall.NetlinkMessage) {
			if ev, ok := parseLinkEvent(m.Header.Type, m.Data); ok {
				each(ev)
			}
		})
	}
	if err != nil {
		return &Error{"listen to", "events of network interfaces", err}
	}
	return nil
}

func (e *events) Devices(ctx context.Context, listening func(), each func(DeviceEvent)) error {
	err := e.monitors()
	if err == nil {
		err = e.listen(ctx, unix.NETLINK_RDMA, rdmaNlGroupNotify, listening, func(m *syscall.NetlinkMessage) {
			if m.Header.Type != rdmaNlNldev<<10|nldevCmdMonitor {
				return
			}
			if ev, ok := parseDeviceEvent(m.Data); ok {
				each(ev)
			}
		})
	}
	if err != nil {
		return &Error{"listen to", "events of RDMA devices", err}
	}
	return nil
}

// monitors asks whether the kernel announces RDMA devices. An older one lets any program listen and says nothing.
func (e *events) monitors() error {
	defer e.rdma.close()
	msgs, err := e.rdma.exchange(nldevCmdSysGet, 0)
	if err != nil {
		return err
	}
	for _, m := range msgs {
		for t, v := range attrs(m) {
			if n, ok := number(v); ok && t == nldevSysAttrMonitorMode && n != 0 {
				return nil
			}
		}
	}
	return syscall.EOPNOTSUPP
}

// ownNetdevs lists the interfaces of this process' network namespace; it takes no lock.
const ownNetdevs = "/proc/self/net/dev"

// netdevsOf are the interfaces that the file own lists, and those that the sys tree shows.
func netdevsOf(files Files, own string) (listed, shown []string, err error) {
	text, err := os.ReadFile(own)
	if err != nil {
		return nil, nil, err
	}
	shown, err = files.List("sys/class/net")
	return parseNetdevs(text), shown, err
}

// parseNetdevs reads the names of /proc/net/dev: after two lines of heading, each line begins with one and a colon.
func parseNetdevs(b []byte) (out []string) {
	for line := range bytes.Lines(b) {
		if name, _, ok := strings.Cut(string(line), ":"); ok {
			out = append(out, strings.TrimSpace(name))
		}
	}
	return out
}

// listen takes the messages of a multicast group until ctx ends.
func (e *events) listen(ctx context.Context, protocol, group int, listening func(), each func(*syscall.NetlinkMessage)) error {
	s, err := nl.Subscribe(protocol) // joining is a call of its own, since one that is refused here leaves a descriptor behind
	if err != nil {
		return err
	}
	defer s.Close()
	if err := unix.SetsockoptInt(s.GetFd(), unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group); err != nil {
		return err
	}
	if s.SetReceiveBufferSize(e.buffer, true) != nil { // beyond the limit of the system: CAP_NET_ADMIN
		if err := s.SetReceiveBufferSize(e.buffer, false); err != nil {
			return err
		}
	}
	defer context.AfterFunc(ctx, s.Close)()
	listening()
	for {
		msgs, from, err := s.Receive()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.ENOBUFS):
			e.overruns.Add(1)
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case from.Pid == nl.PidKernel:
			for i := range msgs {
				each(&msgs[i])
			}
		}
	}
}
