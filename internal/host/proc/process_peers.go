package proc

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/accel"
)

const (
	// maxTCP limits the TCP sockets of a network namespace whose list is read: a line takes two microseconds.
	maxTCP = 16384
	// maxTCPLists limits the network namespaces whose lists are read in a scan.
	maxTCPLists = 4
	// established is TCP_ESTABLISHED (include/net/tcp_states.h).
	established = 1
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
	inodes, whole := socketsOf(p.Tree, pid)
	if list == nil || !whole {
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
	all, err := fs.NetTCP()
	if err != nil {
		return nil
	}
	if six, err := fs.NetTCP6(); err == nil { // absent without IPv6
		all = append(all, procfs.NetTCP(six)...)
	}
	from, to := assignedPorts(p.Tree)
	own := map[netip.Addr]bool{}
	for _, s := range all {
		own[addressOf(s.LocalAddr)] = true
	}
	out := map[uint64]connection{}
	for _, s := range all {
		c := connection{addressOf(s.LocalAddr), addressOf(s.RemAddr)}
		assigned := min(s.LocalPort, s.RemPort) >= from && max(s.LocalPort, s.RemPort) <= to
		if s.St == established && assigned && !own[c.remote] && !c.remote.IsLoopback() {
			out[s.Inode] = c
		}
	}
	return out
}

func addressOf(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
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
	r, rel := t.At("proc/" + pid + "/fd")
	fd, err := r.Open(rel, unix.O_DIRECTORY)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	names, whole, err := rooted.SomeNames(fd, maxOpenFiles)
	if err != nil {
		return nil, false
	}
	buf := make([]byte, 64)
	for _, name := range names {
		n, err := unix.Readlinkat(fd, name, buf)
		if err != nil {
			continue
		}
		if text, ok := strings.CutPrefix(string(buf[:n]), "socket:["); ok {
			if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64); err == nil {
				inodes = append(inodes, inode)
			}
		}
	}
	return inodes, whole
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
