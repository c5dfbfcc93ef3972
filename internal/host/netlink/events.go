package netlink

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
)

type events struct {
	here     *network
	rdma     *RDMAClient
	buffer   int
	overruns atomic.Uint64
}

// NewEvents listens to this kernel with a receive buffer of that size. files is the tree that shows the host's
// interfaces.
func NewEvents(files host.Files, buffer int) host.Events {
	return OpenEvents(NewNetwork(files), buffer)
}

// OpenEvents returns the events of a network namespace, with a receive buffer of this size in bytes.
func OpenEvents(here *network, buffer int) host.Events {
	return &events{here: here, rdma: NewRDMAClient(), buffer: buffer}
}

func (e *events) Overruns() uint64 { return e.overruns.Load() }

func (e *events) Links(ctx context.Context, listening func(), each func(host.LinkEvent)) error {
	err := e.here.same()
	if err == nil {
		err = e.listen(ctx, unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, listening, func(m *syscall.NetlinkMessage) {
			if ev, ok := parseLinkEvent(m.Header.Type, m.Data); ok {
				each(ev)
			}
		})
	}
	return access.Wrapped("listen for", "events of network interfaces", err)
}

func (e *events) Devices(ctx context.Context, listening func(), each func(host.DeviceEvent)) error {
	err := e.monitors()
	if err == nil {
		err = e.listen(ctx, unix.NETLINK_RDMA, rdmaNlGroupNotify, listening, func(m *syscall.NetlinkMessage) {
			if m.Header.Type != nl.RDMA_NL_NLDEV<<10|nldevCmdMonitor {
				return
			}
			if ev, ok := parseDeviceEvent(m.Data); ok {
				each(ev)
			}
		})
	}
	return access.Wrapped("listen for", "events of RDMA devices", err)
}

// monitors returns an error if the kernel reports no events of RDMA devices. Older kernels accept the subscription and
// stay silent.
func (e *events) monitors() error {
	defer e.rdma.Close()
	msgs, err := e.rdma.Exchange(nl.RDMA_NLDEV_CMD_SYS_GET, 0)
	if err != nil {
		return err
	}
	for _, m := range msgs {
		var mode *uint64
		if (attributeList{nldevSysAttrMonitorMode: &mode}).decode(m); mode != nil && *mode != 0 {
			return nil
		}
	}
	return syscall.EOPNOTSUPP
}

// ownNetdevs lists the interfaces of the process's network namespace. Reading it takes no lock.
const ownNetdevs = "/proc/self/net/dev"

// netdevsOf returns the interfaces listed in the file own, and those shown in the sys tree.
func netdevsOf(files host.Files, own string) (listed, shown []string, err error) {
	text, err := os.ReadFile(own)
	if err != nil {
		return nil, nil, err
	}
	shown, err = files.List("sys/class/net")
	return rooted.ParseNetdevs(text), shown, err
}

// listen receives the messages of a multicast group until ctx ends.
func (e *events) listen(
	ctx context.Context, protocol, group int, listening func(), each func(*syscall.NetlinkMessage),
) error {
	s, err := nl.Subscribe(protocol) // joining is a separate call, since a rejected one leaks a descriptor in the library
	if err != nil {
		return err
	}
	defer s.Close()
	if err := unix.SetsockoptInt(s.GetFd(), unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group); err != nil {
		return err
	}
	if s.SetReceiveBufferSize(e.buffer, true) != nil { // above the system limit: requires CAP_NET_ADMIN
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

// parseLinkEvent parses RTM_NEWLINK and RTM_DELLINK: struct ifinfomsg, then attributes. Families other than AF_UNSPEC
// are bridge ports. Their removal does not remove the interface.
func parseLinkEvent(kind uint16, msg []byte) (e host.LinkEvent, ok bool) {
	if kind != unix.RTM_NEWLINK && kind != unix.RTM_DELLINK || len(msg) < unix.SizeofIfInfomsg ||
		msg[0] != unix.AF_UNSPEC {
		return e, false
	}
	flags := binary.NativeEndian.Uint32(msg[8:])
	e = host.LinkEvent{
		Index: uint64(binary.NativeEndian.Uint32(msg[4:])), Deleted: kind == unix.RTM_DELLINK,
		Up: flags&unix.IFF_UP != 0, Carrier: flags&unix.IFF_LOWER_UP != 0,
	}
	attributeList{
		unix.IFLA_IFNAME:             &e.Name,
		unix.IFLA_CARRIER_UP_COUNT:   &e.CarrierUpCount,
		unix.IFLA_CARRIER_DOWN_COUNT: &e.CarrierDownCount,
	}.decode(msg[unix.SizeofIfInfomsg:])
	return e, e.Name != ""
}

// parseDeviceEvent parses the attributes of RDMA_NLDEV_CMD_MONITOR.
func parseDeviceEvent(msg []byte) (e host.DeviceEvent, ok bool) {
	var kind, index *uint64
	attributeList{
		nldevAttrEventType: &kind, nl.RDMA_NLDEV_ATTR_DEV_INDEX: &index,
		nl.RDMA_NLDEV_ATTR_DEV_NAME: &e.Device,
	}.decode(msg)
	if kind == nil || index == nil {
		return host.DeviceEvent{}, false
	}
	e.Type, e.Index = host.DeviceEventType(*kind), *index
	return e, true
}
