// Package netlink asks the kernel by sockets: RDMA, ethtool, devlink, DCB, events of devices and links, LLDP frames.
package netlink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// RDMA netlink numbers that the library lacks, include/uapi/rdma/rdma_netlink.h.
const (
	rdmaNlGroupNotify = 4

	nldevCmdPortGet   = 5
	nldevCmdResQPGet  = 10
	nldevCmdResCMGet  = 11
	nldevCmdResMRGet  = 13
	nldevCmdResCtxGet = 22
	nldevCmdMonitor   = 28

	nldevAttrResQP       = 19
	nldevAttrResQPEntry  = 20
	nldevAttrResLQPN     = 21
	nldevAttrResRQPN     = 22
	nldevAttrResType     = 26
	nldevAttrResState    = 27
	nldevAttrResPID      = 28
	nldevAttrResKernName = 29
	nldevAttrResCM       = 30
	nldevAttrResCMEntry  = 31
	nldevAttrResDstAddr  = 34
	nldevAttrResMR       = 40
	nldevAttrResMREntry  = 41
	nldevAttrResMRLen    = 45
	nldevAttrResCtx      = 86
	nldevAttrResCtxEntry = 87
	nldevAttrEventType   = 102

	nldevSysAttrMonitorMode = 103
)

// netlinkTimeout limits the wait for a lost reply. A request that blocks in the kernel blocks in its send.
const netlinkTimeout = 5 * time.Second

// RDMAClient queries RDMA netlink. The kernel serves a request inside sendto(2), so each request uses its own socket: a
// device that does not answer blocks one socket, and no other device.
type RDMAClient struct {
	mu      sync.Mutex
	idle    []*nl.NetlinkSocket
	indices map[string]uint32 // device name → RDMA_NLDEV_ATTR_DEV_INDEX, updated when it no longer matches
	Leader  func(tid int) int // the process of a thread; nil: not determined
	// Exchange sends a request and returns the messages of the answer: do.
	Exchange func(cmd, flags int, attrs ...*nl.RtAttr) ([][]byte, error)
}

// NewRDMAClient returns a client that opens its socket at the first request.
func NewRDMAClient() *RDMAClient {
	c := &RDMAClient{indices: map[string]uint32{}}
	c.Exchange = c.do
	return c
}

func (c *RDMAClient) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.idle {
		s.Close()
	}
	c.idle = nil
}

func (c *RDMAClient) Port(_ context.Context, device string, port int) (host.RDMAPort, error) {
	return queryPort(c, nldevCmdPortGet, device, port, "port", parsePort)
}

func (c *RDMAClient) System(context.Context) (s host.RDMASystem, err error) {
	msgs, err := c.Exchange(nl.RDMA_NLDEV_CMD_SYS_GET, 0)
	if err == nil && len(msgs) == 0 {
		err = fmt.Errorf("%w: empty reply", access.ErrMalformed)
	}
	if err != nil {
		return s, &access.Error{Op: "query", Path: "rdma/system", Err: err}
	}
	attributeList{nl.RDMA_NLDEV_SYS_ATTR_NETNS_MODE: &s.NetnsMode}.decode(msgs[0])
	return s, nil
}

func (c *RDMAClient) Stats(_ context.Context, device string, port int, buf []host.Stat) ([]host.Stat, error) {
	parse := func(msg []byte) ([]host.Stat, string, error) { return parseStats(msg, buf[:0]) }
	return queryPort(c, nl.RDMA_NLDEV_CMD_STAT_GET, device, port, "stats", parse)
}

// queryPort sends one request for a port. parse returns the device that the answer names.
func queryPort[T any](
	c *RDMAClient, cmd int, device string, port int, what string, parse func([]byte) (T, string, error),
) (answer T, err error) {
	var got T
	err = c.addressed(cmd, 0, device, func(msgs [][]byte) (name string, err error) {
		if len(msgs) == 0 {
			return "", fmt.Errorf("%w: empty reply", access.ErrMalformed)
		}
		got, name, err = parse(msgs[0])
		return name, err
	}, nl.NewRtAttr(nl.RDMA_NLDEV_ATTR_PORT_INDEX, nl.Uint32Attr(uint32(port))))
	if err != nil {
		return answer, &access.Error{Op: "query", Path: fmt.Sprintf("rdma/%s/%d/%s", device, port, what), Err: err}
	}
	return got, nil
}

// addressed makes a request for a device. The kernel addresses devices by an index that changes when a device registers
// again. Therefore the name in the reply is compared, and on a mismatch the index is looked up once more.
func (c *RDMAClient) addressed(
	cmd, flags int, device string, parse func([][]byte) (string, error), attrs ...*nl.RtAttr,
) error {
	for fresh := false; ; fresh = true {
		index, err := c.index(device, fresh)
		if err != nil {
			return err
		}
		msgs, err := c.Exchange(cmd, flags,
			append([]*nl.RtAttr{nl.NewRtAttr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, nl.Uint32Attr(index))}, attrs...)...)
		var name string
		if err == nil {
			name, err = parse(msgs)
		}
		if err == nil && name == device {
			return nil
		}
		if fresh {
			return cmp.Or(err, error(syscall.ENODEV))
		}
	}
}

func (c *RDMAClient) index(device string, fresh bool) (uint32, error) {
	c.mu.Lock()
	i, ok := c.indices[device]
	c.mu.Unlock()
	if ok && !fresh {
		return i, nil
	}
	msgs, err := c.Exchange(nl.RDMA_NLDEV_CMD_GET, unix.NLM_F_DUMP)
	if err != nil {
		return 0, err
	}
	indices := map[string]uint32{}
	for _, m := range msgs {
		if name, index, err := parseDevice(m); err == nil {
			indices[name] = index
		}
	}
	c.mu.Lock()
	c.indices = indices
	c.mu.Unlock()
	if i, ok = indices[device]; !ok {
		return 0, syscall.ENODEV
	}
	return i, nil
}

func (c *RDMAClient) do(cmd, flags int, attrs ...*nl.RtAttr) ([][]byte, error) {
	s, err := c.socket()
	if err != nil {
		return nil, err
	}
	req := nl.NewNetlinkRequest(nl.RDMA_NL_NLDEV<<10|cmd, flags)
	for _, a := range attrs {
		req.AddData(a)
	}
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_RDMA: {Socket: s}}
	msgs, err := repeatDump(func() ([][]byte, error) { return req.Execute(unix.NETLINK_RDMA, 0) })
	if err != nil && !isKernelAnswer(err) {
		s.Close() // a late reply must not be taken for that of the next request
		return nil, err
	}
	c.mu.Lock()
	c.idle = append(c.idle, s)
	c.mu.Unlock()
	return msgs, err
}

// dumpTries limits the attempts to read a list that changes during each dump.
const dumpTries = 4

// repeatDump repeats a dump until it is consistent: a list that changed during the dump (NLM_F_DUMP_INTR) may lack
// entries or contain duplicates.
func repeatDump(get func() ([][]byte, error)) (msgs [][]byte, err error) {
	for range dumpTries {
		if msgs, err = get(); !errors.Is(err, nl.ErrDumpInterrupted) {
			return msgs, err
		}
	}
	return nil, err
}

// isKernelAnswer reports whether an error is the kernel's reply, not a failure of the socket.
func isKernelAnswer(err error) bool {
	return slices.Contains(
		[]access.Reason{access.Invalid, access.Gone, access.Permission, access.Unsupported},
		access.ReasonOf(err),
	)
}

func (c *RDMAClient) socket() (*nl.NetlinkSocket, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		s := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return s, nil
	}
	c.mu.Unlock()
	s, err := nl.Subscribe(unix.NETLINK_RDMA) // no groups: a plain request socket
	if err != nil {
		return nil, err
	}
	tv := unix.NsecToTimeval(int64(netlinkTimeout))
	if err := s.SetReceiveTimeout(&tv); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
