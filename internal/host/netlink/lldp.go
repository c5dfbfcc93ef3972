package netlink

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// lldpGroups are the destination addresses of LLDP, IEEE 802.1AB-2016 table 7-1: nearest bridge, nearest non-TPMR
// bridge, nearest customer bridge.
var lldpGroups = [][6]byte{
	{0x01, 0x80, 0xc2, 0, 0, 0x0e}, {0x01, 0x80, 0xc2, 0, 0, 0x03}, {0x01, 0x80, 0xc2, 0, 0, 0x00},
}

// lldpFilter accepts LLDP frames to those addresses, untruncated. The kernel has removed a VLAN tag before
// (net/core/dev.c, skb_vlan_untag).
var lldpFilter = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 12}, // EtherType
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.ETH_P_LLDP, Jf: 7},
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the first four bytes of the destination
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x0180c200, Jf: 5},
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 4}, // the last two
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x000e, Jt: 2},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x0003, Jt: 1},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x0000, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: lldpFrame},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
}

const (
	lldpFrame  = 9216    // the longest Ethernet frame
	lldpBuffer = 1 << 18 // some hundred queued frames
)

type lldpSocket struct{ *network }

// LLDPOf returns the LLDP frames of a network namespace.
func LLDPOf(here *network) host.LLDP { return lldpSocket{here} }

// NewLLDP receives frames in this network namespace. files is the tree that shows the host's interfaces.
func NewLLDP(files host.Files) host.LLDP { return lldpSocket{NewNetwork(files)} }

func (l lldpSocket) Receive(
	ctx context.Context, netdevs []string, under func(int, func()) error, listening func(), each func(string, []byte),
) error {
	err := l.same()
	if err == nil {
		err = l.listen(ctx, netdevs, under, listening, each)
	}
	return access.Wrapped("listen for", "LLDP frames", err)
}

func (l lldpSocket) listen(
	ctx context.Context, netdevs []string, under func(int, func()) error, listening func(), each func(string, []byte),
) error {
	// Protocol 0 receives nothing: no frame arrives before the filter is set.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "LLDP")
	defer func() { go func() { _ = f.Close() }() }() // it takes rtnl, and waits for a join in progress
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(lldpFilter)), Filter: &lldpFilter[0]}); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, lldpBuffer); err != nil {
		return err
	}
	// A bond takes over the frames of its members. With this option the socket receives the member's index
	// (drivers/net/bonding, bond_handle_frame).
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_ORIGDEV, 1); err != nil {
		return err
	}
	names := l.indexes(netdevs)
	var joined error
	if err := under(len(names)*len(lldpGroups), func() {
		err := conn.Control(func(fd uintptr) { joined = join(int(fd), names) })
		joined = errors.Join(joined, err)
	}); err != nil {
		return err // joined may still be written to
	}
	if joined != nil {
		return joined
	}
	// On all interfaces.
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_LLDP)}); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
	listening()
	return receive(ctx, conn.Read, func(from *unix.SockaddrLinklayer, frame []byte) {
		if name := names[from.Ifindex]; name != "" && from.Pkttype != unix.PACKET_OUTGOING {
			each(name, frame)
		}
	})
}

// receive reads frames until ctx ends.
func receive(
	ctx context.Context, read func(func(fd uintptr) bool) error, each func(*unix.SockaddrLinklayer, []byte),
) error {
	buf := make([]byte, lldpFrame)
	for {
		var n int
		var from unix.Sockaddr
		var err error
		waited := read(func(fd uintptr) bool {
			n, from, err = unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
			return err != unix.EAGAIN
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case waited != nil:
			return waited
		case err == unix.EINTR, err == unix.ENETDOWN: // an interface was set down
		case err != nil:
			return err
		default:
			if ll, ok := from.(*unix.SockaddrLinklayer); ok {
				each(ll, buf[:n])
			}
		}
	}
}

// indexes maps interface indexes to names of netdevs. Removed netdevs are left out.
func (l lldpSocket) indexes(netdevs []string) map[int]string {
	names := map[int]string{}
	for _, name := range netdevs {
		b, err := l.files.Read("sys/class/net/"+name+"/ifindex", nil)
		if err != nil {
			continue
		}
		if index, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 31); err == nil {
			names[int(index)] = name
		}
	}
	return names
}

// join joins the groups on each interface that still exists.
func join(fd int, names map[int]string) error {
	for index := range names {
		for _, group := range lldpGroups {
			m := &unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_MULTICAST, Alen: uint16(len(group))}
			copy(m.Address[:], group[:])
			if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, m); err != nil &&
				err != unix.ENODEV {
				return err
			}
		}
	}
	return nil
}

// networkOrder returns a 16-bit number in network byte order.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
