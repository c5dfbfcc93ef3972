package proc

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/accel"
)

const (
	// maxTCP limits the TCP sockets of a network namespace whose list is read, of 150 bytes each.
	maxTCP = host.MaxFile / 150
	// maxTCPLists limits the network namespaces whose lists are read in a scan.
	maxTCPLists = 4
	// tcpTitle is in the first line of the list.
	tcpTitle = "local_address"
	// established is TCP_ESTABLISHED (include/net/tcp_states.h).
	established = "01"
)

// connection is a TCP connection to another host between two ports that the kernel has assigned: libraries for
// collectives listen on such, services do not.
type connection struct{ local, remote netip.Addr }

// peers sets the other hosts that a process with a communication library and without an RDMA device is connected to,
// and the interfaces that the connections use: the library's sockets, or those by which it sets up its transport.
func (p *processTable) peers(out *accel.Process) {
	if len(out.Libraries) == 0 || len(out.Verbs) > 0 {
		return
	}
	pid := strconv.Itoa(out.PID)
	of := networkOf(p.Tree, pid)
	list, read := p.connections[of]
	if !read && len(p.connections) < maxTCPLists {
		list = p.connectionsIn(pid)
		p.connections[of] = list
	}
	if list == nil {
		return
	}
	inodes, whole := socketsOf(p.Tree, pid)
	if !whole {
		return
	}
	hosts, over := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, inode := range inodes {
		if c, ok := list[inode]; ok {
			hosts[c.remote], over[c.local] = true, true
		}
	}
	out.Peers = new(uint64(len(hosts)))
	if of == p.hostNetwork {
		out.PeersOver = possibleNames(strings.Join(netdevsOf(p.Tree, pid, over), " "))
	}
}

// connectionsIn returns the connections in the network namespace of a process by the inodes of their sockets; nil:
// they cannot be read, or are too many.
func (p *processTable) connectionsIn(pid string) map[uint64]connection {
	fs, err := procfs.NewFS(p.Tree.Proc.Name() + "/" + pid)
	if err != nil {
		return nil
	}
	stat, err := fs.NetSockstat()
	if err != nil {
		return nil
	}
	for _, s := range stat.Protocols {
		if waiting := s.TW; s.Protocol == "TCP" && (waiting == nil || s.InUse+*waiting > maxTCP) {
			return nil
		}
	}
	from, to := assignedPorts(p.Tree)
	assigned := func(end netip.AddrPort) bool { return uint64(end.Port()) >= from && uint64(end.Port()) <= to }
	var all []tcpSocket
	for _, name := range []string{"tcp", "tcp6"} {
		text, err := p.Tree.Lines("proc/"+pid+"/net/"+name, []string{tcpTitle, " " + established + " "})
		if name == "tcp6" && access.IsAbsent(err) { // without IPv6
			continue
		}
		if err != nil || !strings.Contains(string(text), tcpTitle) {
			return nil
		}
		for line := range strings.Lines(string(text)) {
			if s, ok := parseTCP(line); ok {
				all = append(all, s)
			}
		}
	}
	own := map[netip.Addr]bool{}
	for _, s := range all {
		own[s.local.Addr()] = true
	}
	out := map[uint64]connection{}
	for _, s := range all {
		to := s.remote.Addr()
		if assigned(s.local) && assigned(s.remote) && !own[to] && !to.IsLoopback() {
			out[s.inode] = connection{s.local.Addr(), to}
		}
	}
	return out
}

// tcpSocket is a line of /proc/net/tcp or tcp6 of an established connection.
type tcpSocket struct {
	local, remote netip.AddrPort
	inode         uint64
}

// parseTCP parses a line: number, addresses, state, queues, timer, retransmissions, user, timeout and inode
// (get_tcp4_sock, net/ipv4/tcp_ipv4.c; get_tcp6_sock). ok is false for one of another state or form.
func parseTCP(line string) (s tcpSocket, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 || f[3] != established {
		return s, false
	}
	var err error
	s.inode, err = strconv.ParseUint(f[9], 10, 64)
	local, ok1 := parseEnd(f[1])
	remote, ok2 := parseEnd(f[2])
	s.local, s.remote = local, remote
	return s, err == nil && ok1 && ok2
}

// parseEnd parses an address and a port: 0B00000A:A001, in words of the host's byte order. Mapped addresses are those
// of IPv4.
func parseEnd(text string) (end netip.AddrPort, ok bool) {
	address, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(address)
	n, bad := strconv.ParseUint(port, 16, 16)
	if err != nil || bad != nil || len(b)%4 != 0 {
		return end, false
	}
	for word := range slices.Chunk(b, 4) {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), ok
}

// assignedPorts returns the ports that the kernel assigns (ip_local_port_range), or its default.
func assignedPorts(t *rooted.Tree) (from, to uint64) {
	b, err := t.Read("proc/sys/net/ipv4/ip_local_port_range", nil)
	if _, bad := fmt.Sscan(string(b), &from, &to); err != nil || bad != nil {
		return 32768, 60999
	}
	return from, to
}

// socketsOf returns the inodes of the sockets that a process has open; whole is false if not all files were read.
func socketsOf(t *rooted.Tree, pid string) (inodes []uint64, whole bool) {
	whole, err := eachFile(t, pid, func(_ string, link []byte) {
		if text, ok := strings.CutPrefix(string(link), "socket:["); ok {
			if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64); err == nil {
				inodes = append(inodes, inode)
			}
		}
	})
	return inodes, whole && err == nil
}

// netdevsOf returns the interfaces with these addresses: of IPv4 by the routes to their own networks
// (/proc/PID/net/route), of IPv6 by if_inet6. Sorted.
func netdevsOf(t *rooted.Tree, pid string, addresses map[netip.Addr]bool) (names []string) {
	add := func(name string, has func(netip.Addr) bool) {
		for a := range addresses {
			if has(a) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	routes, _ := t.Read("proc/"+pid+"/net/route", nil)
	for line := range strings.Lines(string(routes)) {
		f := strings.Fields(line) // Iface Destination Gateway Flags RefCnt Use Metric Mask …
		if len(f) < 8 || f[2] != "00000000" || f[7] == "00000000" {
			continue
		}
		to, err1 := strconv.ParseUint(f[1], 16, 32)
		mask, err2 := strconv.ParseUint(f[7], 16, 32)
		if err1 == nil && err2 == nil {
			add(f[0], func(a netip.Addr) bool {
				b := a.As16()
				return a.Is4() && uint64(binary.NativeEndian.Uint32(b[12:]))&mask == to
			})
		}
	}
	own, _ := t.Read("proc/"+pid+"/net/if_inet6", nil)
	for line := range strings.Lines(string(own)) {
		f := strings.Fields(line) // address, index, prefix, scope, flags, name
		if len(f) == 6 {
			add(f[5], func(a netip.Addr) bool { return a.Is6() && fmt.Sprintf("%x", a.As16()) == f[0] })
		}
	}
	slices.Sort(names)
	return names
}
