package setup

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// addressFiles: the routes and IPv4 neighbours of the network namespace of the host, and the settings of the netdevs
// of RDMA devices (@). The directory of a device in configfs exists only after mkdir.
var addressFiles = []string{
	"sys/kernel/config/rdma_cm/*/ports/*/default_roce_mode",
	"proc/1/net/route",
	"proc/net/route",
	"proc/1/net/arp",
	"proc/net/arp",
	"proc/sys/net/ipv4/conf/all/arp_ignore",
	"proc/sys/net/ipv4/conf/all/arp_announce",
	"proc/sys/net/ipv4/conf/all/rp_filter",
	"proc/sys/net/ipv4/conf/@/arp_ignore",
	"proc/sys/net/ipv4/conf/@/arp_announce",
	"proc/sys/net/ipv4/conf/@/rp_filter",
}

const conflictAlert = "RDMAPortMisconfigured/address"

var addressChecks = []Check{
	{
		ID: "roce_default_gid_type", Domain: Addresses, Name: "RoCE version of the connection manager",
		Read:   "/sys/kernel/config/rdma_cm/DEV/ports/N/default_roce_mode, where it exists; it is not created",
		Wanted: "RoCE v2",
		Why:    "Connections by rdma_cm use RoCE v1, which routers do not forward and which has no DSCP.",
		Remedy: "echo {wanted} > /sys/kernel/config/rdma_cm/{device}/ports/{port}/default_roce_mode",
		Source: "NVIDIA, RoCE: RoCE modes; Documentation/ABI/testing/configfs-rdma_cm of the kernel",
		find:   each((*machine).ports, findGIDType),
	},
	{
		ID: "nccl_default_gid", Domain: Addresses, Name: "GID that NCCL selects without NCCL_IB_GID_INDEX",
		Read:   "/sys/class/infiniband/DEV/ports/N/{gids,gid_attrs/types}",
		Wanted: "RoCE v2 with an IPv4 address, on ACTIVE ports for jobs of hosts with GPUs",
		Why:    "NCCL (2.21 and newer) selects RoCE v2 over IPv4; without such an entry it uses index 0, usually RoCE v1: connections beyond the segment fail.",
		Remedy: "ip address add ADDRESS/LENGTH dev {netdev}",
		Source: "NVIDIA, NCCL: NCCL_IB_GID_INDEX, NCCL_IB_ADDR_FAMILY", Alert: "RDMAPortMisconfigured/roce_v2_gid",
		find: findNCCLGID,
	},
	{
		ID: "arp_of_shared_subnets", Domain: Addresses, Name: "ARP of ports in one subnet",
		Read:   "/proc/net/route; /proc/sys/net/ipv4/conf/{all,NETDEV}/{arp_ignore,arp_announce,rp_filter}: the larger value applies; neighbours: /proc/net/arp",
		Wanted: "arp_ignore 1 or 2, arp_announce 2, rp_filter 0 or 2, where several RDMA ports are in one IPv4 subnet",
		Why:    "Linux answers ARP requests for any of its addresses on any port: peers send to the wrong port, and connections over RDMA fail or share one link.",
		Remedy: "sysctl -w net.ipv4.conf.{netdev}.arp_ignore=1 net.ipv4.conf.{netdev}.arp_announce=2 net.ipv4.conf.{netdev}.rp_filter=2",
		Source: "rdma-core, librdmacm: using multiple interfaces; Documentation/networking/ip-sysctl.rst of the kernel",
		Alert:  conflictAlert,
		find:   findARP,
	},
	{
		ID: "mesh_subnets", Domain: Addresses, Name: "subnets of netdevs that share a physical port",
		Read:   "/proc/net/route; /sys/class/net/NETDEV/{phys_switch_id,phys_port_name}",
		Wanted: "one subnet for each netdev, where two devices share a physical port, as on DGX Spark",
		Why:    "Linux sends to all peers of the subnet over one of the netdevs: one of the two PCIe links carries all TCP traffic, and ARP confuses them.",
		Remedy: "give each of the netdevs an address of a subnet of its own",
		Source: "NVIDIA, DGX Spark: ConnectX-7 networking",
		find:   findMeshSubnets,
	},
}

func findGIDType(m *machine, p physicalPort) (f finding, ok bool) {
	file := fmt.Sprintf("sys/kernel/config/rdma_cm/%s/ports/%d/default_roce_mode", p.Name, p.Number)
	text, ok := m.files.Text(file)
	return finding{
		object: p.object(), found: text, unknown: m.files.Unread(file),
		want: "RoCE v2", meets: text == "RoCE v2", basis: hostdata.SetupGuide,
	}, p.isRoCE() && (ok || m.files.Unread(file) != "")
}

// findNCCLGID follows ncclIbGetGidIndex (src/transport/net_ib): the first RoCE v2 entry of the address family, IPv4
// unless NCCL_IB_ADDR_FAMILY says AF_INET6, otherwise index 0. The difference is that of
// RDMAPortMisconfigured/roce_v2_gid if two siblings have a routable entry and this port has none.
func findNCCLGID(m *machine) (out []finding) {
	if m.GDR == nil || len(m.GDR.GPUs) == 0 {
		return nil
	}
	var siblings int
	for _, p := range m.ports() {
		if p.forNCCL() && p.RoCEv2["ipv4"].Entries > 0 {
			siblings++
		}
	}
	for _, p := range m.ports() {
		// The addresses are those of its virtual functions.
		if !p.forNCCL() || p.VirtualFunctions != nil && *p.VirtualFunctions > 0 {
			continue
		}
		f := finding{
			object: p.object(), unknown: "the GID table could not be read",
			want: "roce_v2 ipv4", basis: hostdata.SetupGuide, remedy: addAddress(p.Port),
		}
		ipv4, ipv6 := p.RoCEv2["ipv4"], p.RoCEv2["ipv6"]
		switch {
		case p.RoCEv2 == nil:
		case ipv4.Entries > 0:
			f.found, f.meets = "roce_v2 ipv4", true
		case ipv6.Entries > 0:
			f.found, f.evidence = "index 0", fmt.Sprintf("RoCE v2 over IPv6 is index %d", ipv6.First)
			f.remedy = "export NCCL_IB_ADDR_FAMILY=AF_INET6 # of the jobs, or: " + f.remedy
		default:
			f.found, f.evidence = "index 0", "there is no RoCE v2 entry with an address that can be routed"
		}
		if siblings >= 2 && !f.meets {
			f.basis, f.contradicts = hostdata.SetupMachine, true
		}
		out = append(out, f)
	}
	return out
}

// forNCCL reports whether a port is a RoCE port for jobs, and ACTIVE.
func (p physicalPort) forNCCL() bool { return p.isRoCE() && p.Role == "compute" && active(p.Port) }

func addAddress(p *snapshot.Port) string {
	if len(p.Netdev) == 0 || p.Netdev[0].Member {
		return "give the netdev of {device} an IPv4 address"
	}
	return "ip address add ADDRESS/LENGTH dev " + values.Shell(p.Netdev[0].Name)
}

// place is a netdev of an RDMA port in a subnet.
type place struct {
	object
	subnet   netip.Prefix
	physical string // identifies the physical port; empty: unknown
}

// places returns the IPv4 subnets that netdevs of RDMA ports are connected to: routes without a gateway in the main
// table.
func (m *machine) places() (out []place) {
	text, ok := m.files.Text("proc/1/net/route")
	if !ok {
		text, _ = m.files.Text("proc/net/route")
	}
	for line := range strings.Lines(text) {
		netdev, subnet, ok := values.Connected(strings.Fields(line))
		if !ok {
			continue
		}
		for _, p := range m.ports() {
			for _, nd := range p.Netdev {
				p := place{object{device: p.Name, port: p.Number, netdev: netdev}, subnet, nd.Wire}
				if nd.Name == netdev && !nd.Member && !slices.Contains(out, p) {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// shared returns the subnets that several netdevs are in, in order.
func shared(places []place) (subnets []netip.Prefix, in map[netip.Prefix][]place) {
	in = map[netip.Prefix][]place{}
	for _, p := range places {
		if !slices.ContainsFunc(in[p.subnet], func(o place) bool { return o.netdev == p.netdev }) {
			in[p.subnet] = append(in[p.subnet], p)
		}
		if len(in[p.subnet]) == 2 && !slices.Contains(subnets, p.subnet) {
			subnets = append(subnets, p.subnet)
		}
	}
	return subnets, in
}

// resolved returns the IPv4 neighbours of netdevs, as netdev → address → MAC address, from lines of /proc/net/arp:
// address, hardware type, flags, MAC address, mask, netdev (arp_format_neigh_entry, net/ipv4/arp.c). Entries that an
// operator has set prove nothing.
func (m *machine) resolved() map[string]map[string]string {
	const complete, permanent = 2, 4 // ATF_*, include/uapi/linux/if_arp.h
	text, ok := m.files.Text("proc/1/net/arp")
	if !ok {
		text, _ = m.files.Text("proc/net/arp")
	}
	out := map[string]map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 6 {
			continue
		}
		flags, err := strconv.ParseUint(f[2], 0, 32)
		if err != nil || flags&(complete|permanent) != complete {
			continue
		}
		if out[f[5]] == nil {
			out[f[5]] = map[string]string{}
		}
		out[f[5]][f[0]] = f[3]
	}
	return out
}

// conflicts returns the neighbours with one MAC address on a netdev and another one on another netdev of its subnet:
// several of their ports answer for the address.
func conflicts(known map[string]map[string]string, netdev string, in []place) (out []string) {
	for address, mac := range known[netdev] {
		if slices.ContainsFunc(in, func(o place) bool {
			other := known[o.netdev][address]
			return other != "" && other != mac
		}) {
			out = append(out, address)
		}
	}
	slices.Sort(out)
	return out
}

func moreAddresses(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", as has another address"
	}
	return fmt.Sprintf(", as have %d other addresses", n)
}

func findARP(m *machine) (out []finding) {
	known := m.resolved()
	subnets, in := shared(m.places())
	for _, subnet := range subnets {
		for _, p := range in[subnet] {
			f := finding{object: p.object, basis: hostdata.SetupGuide}
			f.evidence = fmt.Sprintf("%d RDMA netdevs are in %s", len(in[subnet]), subnet)
			ignore, announce := m.ipv4(p.netdev, "arp_ignore", &f), m.ipv4(p.netdev, "arp_announce", &f)
			filter := m.ipv4(p.netdev, "rp_filter", &f)
			f.want = "arp_ignore=1 arp_announce=2 rp_filter=2"
			if f.unknown == "" {
				f.found = fmt.Sprintf("arp_ignore=%d arp_announce=%d rp_filter=%d", ignore, announce, filter)
				f.meets = (ignore == 1 || ignore == 2) && announce == 2 && filter != 1
				if ignore == 0 || announce < 2 {
					f.conflicts = conflicts(known, p.netdev, in[subnet])
				}
			}
			if len(f.conflicts) > 0 {
				f.basis, f.contradicts = hostdata.SetupMachine, true
				f.evidence += fmt.Sprintf("; %s has several MAC addresses on them", f.conflicts[0]) +
					moreAddresses(len(f.conflicts)-1)
			}
			if f.meets {
				f.want = f.found
			}
			// A dot in a name is written as a slash.
			name := values.Shell(strings.ReplaceAll(p.netdev, ".", "/"))
			f.set = func(want string) string {
				var command strings.Builder
				command.WriteString("sysctl -w")
				for pair := range strings.FieldsSeq(want) {
					command.WriteString(" net.ipv4.conf." + name + "." + pair)
				}
				return command.String()
			}
			out = append(out, f)
		}
	}
	return out
}

// ipv4 returns a setting of a netdev: the larger of its own value and that of conf/all
// (Documentation/networking/ip-sysctl.rst). If it is unknown, the reason is added to f.
func (m *machine) ipv4(netdev, name string, f *finding) (value int) {
	for _, of := range []string{"all", netdev} {
		file := "proc/sys/net/ipv4/conf/" + of + "/" + name
		text, ok := m.files.Text(file)
		n, err := strconv.Atoi(text)
		if !ok || err != nil {
			f.unknown = cmp.Or(m.files.Unread(file), "/"+file+" is missing")
			return 0
		}
		value = max(value, n)
	}
	return value
}

// findMeshSubnets has a finding for each netdev of a physical port that several devices share.
func findMeshSubnets(m *machine) (out []finding) {
	places := m.places()
	for _, p := range places {
		twin, same := "", ""
		for _, o := range places {
			if o.physical != "" && o.physical == p.physical && o.device != p.device {
				twin = o.netdev
				if o.subnet == p.subnet {
					same = o.netdev
				}
			}
		}
		if twin == "" {
			continue
		}
		f := finding{object: p.object, found: "own", want: "own", meets: true, basis: hostdata.SetupGuide}
		if same != "" {
			f.found, f.meets = "shared", false
			a, b := min(p.netdev, same), max(p.netdev, same)
			f.evidence = fmt.Sprintf("%s and %s have one physical port, and are both in %s", a, b, p.subnet)
		}
		out = append(out, f)
	}
	return out
}

// Conflicts returns the neighbours with several MAC addresses in the rows of netdevs in one subnet; ok is false
// without such netdevs, or where their settings are unknown.
func Conflicts(rows []hostdata.SetupRow) (addresses []string, ok bool) {
	for i := range rows {
		r := &rows[i]
		if r.Setting == "arp_of_shared_subnets" && r.State != hostdata.SetupUnknown {
			ok = true
			addresses = append(addresses, r.Conflicts...)
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), ok
}
