package setup

import (
	"fmt"
	"path"
	"slices"
	"strconv"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

var mtuFiles = []string{"sys/class/infiniband/*/device/net/*/mode"}

const (
	mtuAlert = "RDMAPortMisconfigured/mtu"
	firstMTU = "the switch ports first; drain the host, whose link may go down"
)

var mtuChecks = []Check{
	{
		ID: "rdma_active_mtu", Domain: MTU, Name: "MTU of RDMA",
		Read:   "RoCE: /sys/class/net/NETDEV/mtu, iboe_get_mtu of include/rdma/ib_addr.h. InfiniBand: PortInfo, NeighborMTU, where umad can be opened (--collector.infiniband.mad); unknown elsewhere",
		Wanted: "4096 bytes on ACTIVE ports of 100 Gb/s or more for jobs",
		Why:    "RDMA sends more packets for the same data: the packet rate of the device limits throughput.",
		Remedy: "ip link set dev {netdev} mtu 9000", Before: firstMTU,
		Source: "NVIDIA, RoCE configuration: MTU; InfiniBand specification, PortInfo",
		find: func(m *machine) []finding {
			return append(each(etherPorts, findRoCEMTU)(m), each(infiniBandPorts, findInfiniBandMTU)(m)...)
		},
	},
	{
		ID: "netdev_mtu", Domain: MTU, Name: "MTU of the netdev of a RoCE port",
		Read:   "/sys/class/net/NETDEV/mtu",
		Wanted: "that of most siblings; else 9000 bytes on ports of 100 Gb/s or more for jobs; 4200 and more are enough for a RoCE MTU of 4096",
		Why:    "Both ends of a connection use the smaller MTU, and where a switch drops larger packets, jobs on this rail hang.",
		Remedy: "ip link set dev {netdev} mtu {wanted}", Before: firstMTU,
		Source: "NVIDIA, RoCE configuration: MTU", Alert: mtuAlert,
		find: each(etherPorts, findNetdevMTU),
	},
	{
		ID: "ipoib_mode", Domain: MTU, Name: "IPoIB mode",
		Read:   "/sys/class/net/NETDEV/mode",
		Wanted: "that of most sibling interfaces",
		Why:    "Interfaces in datagram mode have an MTU of at most 4092 bytes: paths between hosts differ in MTU, and packets are dropped or fragmented.",
		Remedy: "echo {wanted} > /sys/class/net/{netdev}/mode", Source: "Documentation/infiniband/ipoib.rst of the kernel",
		find: each(ipoibInterfaces, findIPoIBMode),
	},
	{
		ID: "ipoib_mtu", Domain: MTU, Name: "IPoIB MTU",
		Read:   "/sys/class/net/NETDEV/mtu",
		Wanted: "that of most sibling interfaces in the same mode",
		Why:    "Paths between hosts differ in MTU: packets are dropped or fragmented.",
		Remedy: "ip link set dev {netdev} mtu {wanted}", Source: "Documentation/infiniband/ipoib.rst of the kernel",
		find: each(ipoibInterfaces, findIPoIBMTU),
	},
}

// roceHeaders is the header size that the RDMA core subtracts from a netdev's MTU for any packet: GRH 40, UDP 8, BTH
// 12, XRC 4, AtomicETH 28, ICRC 4 (iboe_get_mtu of include/rdma/ib_addr.h, include/rdma/ib_pack.h).
const roceHeaders = 40 + 8 + 12 + 4 + 28 + 4

// RoCEMTU returns the largest MTU of enum ib_mtu that fits into the MTU of a netdev; false if even 256 does not fit.
func RoCEMTU(netdev uint64) (bytes uint64, ok bool) {
	for _, mtu := range []uint64{4096, 2048, 1024, 512, 256} {
		if netdev >= mtu+roceHeaders {
			return mtu, true
		}
	}
	return 0, false
}

// ether is an ACTIVE RoCE port with its netdev. The members of a bond have its MTU: the first stands for them.
type ether struct {
	physicalPort
	nd *snapshot.Netdev
}

func (e ether) finding(unknown string) finding {
	f := finding{object: e.object(), unknown: unknown, basis: hostdata.SetupGuide}
	if f.netdev = e.nd.Name; e.nd.Member {
		f.netdev, f.remedy = "", "set the MTU of the bond of {device} to {wanted}"
	}
	return f
}

// forJobs reports whether the guide applies: a port of 100 Gb/s or more for jobs.
func (e ether) forJobs() bool { return e.Role == "compute" && e.Rate != nil && *e.Rate >= 100e9 }

func (m *machine) allEthers() (out []ether) {
	for _, p := range m.ports() {
		if p.isRoCE() && active(p.Port) && len(p.Netdev) > 0 {
			out = append(out, ether{p, &p.Netdev[0]})
		}
	}
	return out
}

func findRoCEMTU(_ *machine, e ether) (f finding, ok bool) {
	f = e.finding("the MTU of the netdev could not be read")
	f.want = "4096"
	if e.nd.MTU != nil {
		mtu, _ := RoCEMTU(*e.nd.MTU)
		f.found, f.meets = strconv.FormatUint(mtu, 10), mtu == 4096
		f.evidence = fmt.Sprintf("the netdev has an MTU of %d bytes, %d of them for headers", *e.nd.MTU, roceHeaders)
	}
	f.set = func(want string) string {
		mtu := 9000
		if n, err := strconv.Atoi(want); err == nil && n < 4096 {
			mtu = n + roceHeaders
		}
		if e.nd.Member {
			return fmt.Sprintf("set the MTU of the bond of {device} to %d", mtu)
		}
		return fmt.Sprintf("ip link set dev {netdev} mtu %d", mtu)
	}
	return f, e.forJobs()
}

// onlyByMAD is why a setting of the subnet manager is unknown.
const onlyByMAD = "only subnet management reports it: umad cannot be opened, or --collector.infiniband.mad is off"

// allInfiniBands returns the ACTIVE InfiniBand ports for jobs.
func (m *machine) allInfiniBands() []physicalPort {
	return slices.DeleteFunc(m.ports(), func(p physicalPort) bool {
		return p.LinkLayer != "InfiniBand" || p.Role != "compute" || !active(p.Port)
	})
}

// findInfiniBandMTU: the subnet manager sets the smaller of the MTUs that both ends of the link support, unless it is
// configured otherwise.
func findInfiniBandMTU(_ *machine, p physicalPort) (f finding, ok bool) {
	f = finding{object: p.object(), unknown: onlyByMAD, basis: hostdata.SetupGuide, want: "4096"}
	f.remedy = "raise the MTU of the switch port and of the partition in the subnet manager (opensm: mtu=5 in partitions.conf)"
	if s := p.Settings; s != nil && s.MTU != nil {
		f.found, f.meets = strconv.FormatUint(*s.MTU, 10), *s.MTU == 4096
	}
	return f, fast(p.Device)
}

// findNetdevMTU compares with the value of more than half, at least three, of the ports that are alike: those for jobs,
// others of the same board. This is the definition of RDMAPortMisconfigured/mtu in rules/node/siblings.rules.yml.
func findNetdevMTU(m *machine, e ether) (f finding, ok bool) {
	f = e.finding("it could not be read")
	if e.nd.MTU != nil {
		f.found = strconv.FormatUint(*e.nd.MTU, 10)
	}
	var alike []string
	for _, o := range m.ethers {
		if o.nd.MTU != nil && o.Role == e.Role && (o.Role == "compute" || o.Role == "other" && o.BoardID == e.BoardID) {
			alike = append(alike, strconv.FormatUint(*o.nd.MTU, 10))
		}
	}
	usual := majority(alike, 3)
	switch {
	case usual != "" && usual != f.found:
		f.want, f.basis, f.contradicts, f.evidence = usual, hostdata.SetupMachine, true, "that of most ports of this role"
	case e.forJobs():
		f.want = "9000"
		if e.nd.MTU != nil && *e.nd.MTU >= 4096+roceHeaders {
			f.meets, f.want = true, f.found
		}
	case f.found == "":
		return f, false
	}
	return f, true
}

// majority returns the value of more than half, at least some number, of a list; empty: none.
func majority(list []string, least int) string {
	for _, v := range list {
		n := 0
		for _, o := range list {
			if o == v {
				n++
			}
		}
		if n >= least && n*2 > len(list) {
			return v
		}
	}
	return ""
}

// ipoib is an IPoIB interface that is administratively up.
type ipoib struct {
	object
	role   string
	mode   string // connected, datagram; empty: unknown
	unread string
	mtu    string // empty: unknown
}

// allIPoIBs returns the IPoIB interfaces, including those of partitions (NAME.8001).
func (m *machine) allIPoIBs() (out []ipoib) {
	for _, p := range m.ports() {
		for j := range p.Netdev {
			nd := &p.Netdev[j]
			if p.LinkLayer != "InfiniBand" || nd.Admin == nil || !*nd.Admin {
				continue
			}
			x := ipoib{object: object{device: p.Name, port: p.Number, netdev: nd.Name}, role: p.Role}
			file := path.Join("sys/class/infiniband", p.Name, "device/net", nd.Name, "mode")
			x.mode, _ = m.text(file)
			x.unread = m.unread(file)
			if nd.MTU != nil {
				x.mtu = strconv.FormatUint(*nd.MTU, 10)
			}
			out = append(out, x)
		}
	}
	return out
}

// others returns the value of most interfaces of the same role that are like x; empty: none.
func (m *machine) others(x ipoib, value func(ipoib) string, like func(ipoib) bool) string {
	var out []string
	for _, o := range m.ipoibs {
		if o.role == x.role && like(o) && value(o) != "" {
			out = append(out, value(o))
		}
	}
	return majority(out, 2)
}

func findIPoIBMode(m *machine, x ipoib) (f finding, ok bool) {
	f = finding{
		object: x.object, found: x.mode, unknown: x.unread, basis: hostdata.SetupMachine,
		evidence: "that of most interfaces of this role",
	}
	f.want = m.others(x, func(o ipoib) string { return o.mode }, func(ipoib) bool { return true })
	f.meets = f.found == f.want
	if x.mode == "datagram" && f.want == "connected" {
		f.remedy = "echo connected > /sys/class/net/{netdev}/mode; ip link set dev {netdev} mtu 65520"
	}
	return f, f.found != "" || f.unknown != "" // without either the kernel has no connected mode
}

func findIPoIBMTU(m *machine, x ipoib) (f finding, ok bool) {
	f = finding{
		object: x.object, found: x.mtu, unknown: "it could not be read", basis: hostdata.SetupMachine,
		evidence: "that of most interfaces of this role in the same mode",
	}
	f.want = m.others(x, func(o ipoib) string { return o.mtu }, func(o ipoib) bool { return o.mode == x.mode })
	f.meets = f.found == f.want
	return f, f.found != "" || f.want != ""
}
