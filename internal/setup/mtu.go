package setup

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

var mtuFiles = []string{
	"sys/class/infiniband/*/device/net/*/mode",
	"sys/class/infiniband/*/device/net/*/address",
}

const (
	mtuAlert = "RDMAPortMisconfigured/mtu"
	firstMTU = "the switch ports first; drain the host, whose link may go down"
)

var mtuChecks = []Check{
	{
		ID: "rdma_active_mtu", Domain: MTU, Name: "MTU of RDMA",
		Read:   "RoCE: /sys/class/net/NETDEV/mtu, iboe_get_mtu of include/rdma/ib_addr.h. InfiniBand: PortInfo, NeighborMTU, where umad can be opened (--collector.infiniband.mad); unknown elsewhere",
		Wanted: "4096 bytes on ACTIVE ports of 100 Gb/s or more for jobs; RoCE: where netdev_mtu is as wanted, since it follows from it",
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
		Wanted: "that of most siblings, if it is enough; else 9000 bytes on ports of 100 Gb/s or more for jobs; 4200 and more are enough for a RoCE MTU of 4096",
		Why:    "Both ends of a connection use the smaller MTU, below 4200 with more packets for the same data. Where a switch drops larger packets, jobs on this rail hang.",
		Remedy: "ip link set dev {netdev} mtu {wanted}", Before: firstMTU,
		Source: "NVIDIA, RoCE configuration: MTU", Alert: mtuAlert,
		find: each(etherPorts, findNetdevMTU),
	},
	{
		ID: "ipoib_mode", Domain: MTU, Name: "IPoIB mode",
		Read:   "/sys/class/net/NETDEV/{mode,address}: flag 0x80, support of connected mode",
		Wanted: "that of most sibling interfaces, if the driver supports it",
		Why:    "Interfaces in datagram mode have an MTU of at most 4092 bytes: paths between hosts differ in MTU, and packets are dropped or fragmented.",
		Remedy: "echo {wanted} > /sys/class/net/{netdev}/mode",
		Before: "drain the host: connections are dropped",
		Source: "Documentation/infiniband/ipoib.rst of the kernel; RFC 4755, 3.1: flags of the address",
		find:   each(ipoibInterfaces, findIPoIBMode),
	},
	{
		ID: "ipoib_mtu", Domain: MTU, Name: "IPoIB MTU",
		Read:   "/sys/class/net/NETDEV/mtu",
		Wanted: "that of most sibling interfaces in the same mode; at most 4092 bytes without connected mode",
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

// findRoCEMTU has no row where that of the netdev is one: the MTU of RDMA follows from it, and so it does from a value
// of the site configuration.
func findRoCEMTU(m *machine, e ether) (f finding, ok bool) {
	netdev, _ := findNetdevMTU(m, e)
	row, wanted := (&Check{ID: "netdev_mtu"}).row(netdev, m.wants)
	if !e.forJobs() || e.nd.MTU == nil || wanted && row.State != hostdata.SetupOK ||
		wanted && row.Basis == hostdata.SetupSite && m.siteRoCE(e) == "" {
		return f, false
	}
	f = e.finding("")
	mtu, _ := RoCEMTU(*e.nd.MTU)
	f.want, f.found, f.meets = "4096", strconv.FormatUint(mtu, 10), mtu == 4096
	f.evidence = fmt.Sprintf("the netdev has an MTU of %d bytes, %d of them for headers", *e.nd.MTU, roceHeaders)
	f.set = func(want string) string {
		mtu, _ := strconv.Atoi(m.wideMTU(e))
		if n, err := strconv.Atoi(want); err == nil && n < 4096 {
			mtu = n + roceHeaders
		}
		if e.nd.Member {
			return fmt.Sprintf("set the MTU of the bond of {device} to %d", mtu)
		}
		return fmt.Sprintf("ip link set dev {netdev} mtu %d", mtu)
	}
	return f, true
}

// siteRoCE returns the MTU of RDMA in the site configuration; empty: none. The guide for that of the netdev does not
// apply then.
func (m *machine) siteRoCE(e ether) string {
	text, _ := m.siteValue("rdma_active_mtu", e.finding("").object, values.IsNumber)
	return text
}

// isEnough reports whether an MTU of most ports gives a port the MTU of RDMA that is wanted of it.
func (m *machine) isEnough(e ether, mtu string) bool {
	n, _ := strconv.ParseUint(mtu, 10, 64)
	rdma, _ := RoCEMTU(n)
	if site := m.siteRoCE(e); site != "" {
		return site == strconv.FormatUint(rdma, 10)
	}
	return rdma == 4096 || !e.forJobs()
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

// alike returns the MTUs of the ports that are like one: those for jobs, others of the same board.
func (m *machine) alike(e ether) (out []string) {
	for _, o := range m.ethers {
		if o.nd.MTU != nil && o.Role == e.Role && (o.Role == "compute" || o.Role == "other" && o.BoardID == e.BoardID) {
			out = append(out, strconv.FormatUint(*o.nd.MTU, 10))
		}
	}
	return out
}

// isWide reports whether an MTU is enough for an RDMA MTU of 4096.
func isWide(mtu string) bool {
	n, err := strconv.ParseUint(mtu, 10, 64)
	return err == nil && n >= 4096+roceHeaders
}

// wideMTU returns the MTU for a port of which the MTU is too small: that of most ports that are alike, or of one, if
// it is enough.
func (m *machine) wideMTU(e ether) string {
	alike := m.alike(e)
	if usual := values.Majority(alike, 3); isWide(usual) {
		return usual
	}
	if i := slices.IndexFunc(alike, isWide); i >= 0 {
		return alike[i]
	}
	return "9000"
}

// findNetdevMTU compares with the value of more than half, at least three, of the ports that are alike. This is the
// definition of RDMAPortMisconfigured/mtu in rules/node/siblings.rules.yml.
func findNetdevMTU(m *machine, e ether) (f finding, ok bool) {
	f = e.finding("it could not be read")
	if e.nd.MTU != nil {
		f.found = strconv.FormatUint(*e.nd.MTU, 10)
		if mtu, _ := RoCEMTU(*e.nd.MTU); e.forJobs() && mtu < 4096 {
			f.evidence = fmt.Sprintf("it gives an MTU of RDMA of %d bytes", mtu)
		}
	}
	usual := values.Majority(m.alike(e), 3)
	switch {
	case usual != "" && usual != f.found && m.isEnough(e, usual):
		f.want, f.basis, f.contradicts, f.because = usual, hostdata.SetupMachine, true, ofMost
	case e.forJobs() && m.siteRoCE(e) == "":
		if f.want = m.wideMTU(e); isWide(f.found) {
			f.meets, f.want = true, f.found
		}
	case f.found == "":
		return f, false
	}
	return f, true
}

// ipoib is an IPoIB interface that is administratively up.
type ipoib struct {
	object
	role   string
	mode   string // connected, datagram; empty: unknown
	unread string
	mtu    string // empty: unknown
	// datagramOnly: the address is known, and has no flag of connected mode.
	datagramOnly bool
}

// flagRC is IPOIB_FLAGS_RC of drivers/infiniband/ulp/ipoib/ipoib.h: RFC 4755, 3.1.
const flagRC = 0x80

// ipoibMTU is the largest MTU of datagram mode: an InfiniBand MTU of 4096 without the header of IPoIB, and
// connectedMTU that of connected mode (IPOIB_UD_MTU, IPOIB_CM_MTU of drivers/infiniband/ulp/ipoib/ipoib.h).
const (
	datagramMTU  = 4092
	connectedMTU = 65520
)

// enhanced is what brings connected mode to an interface without it.
const enhanced = "not with this driver, which has datagram mode only: ipoib_enhanced=0 of ib_ipoib of MLNX_OFED brings connected mode"

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
			x.mode, _ = m.files.Text(file)
			x.unread = m.files.Unread(file)
			if address, ok := m.files.Text(path.Join(path.Dir(file), "address")); ok {
				flags, err := strconv.ParseUint(strings.Split(address, ":")[0], 16, 8)
				x.datagramOnly = err == nil && flags&flagRC == 0
			}
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
	return values.Majority(out, 2)
}

// wantedMode returns the mode that is wanted of an interface: that of the site configuration, of most interfaces of
// its role, or its own.
func (m *machine) wantedMode(x ipoib) string {
	site, _ := m.siteValue("ipoib_mode", x.object, func(v string) bool { return v == "connected" || v == "datagram" })
	usual := m.others(x, func(o ipoib) string { return o.mode }, func(ipoib) bool { return true })
	return cmp.Or(site, usual, x.mode)
}

// mtuIn returns the MTU of most interfaces of the role of x in a mode; that of connected mode otherwise is its
// largest.
func (m *machine) mtuIn(x ipoib, mode string) string {
	usual := m.others(x, func(o ipoib) string { return o.mtu }, func(o ipoib) bool { return o.mode == mode })
	if usual == "" && mode == "connected" {
		return strconv.Itoa(connectedMTU)
	}
	return usual
}

func findIPoIBMode(m *machine, x ipoib) (f finding, ok bool) {
	f = finding{object: x.object, found: x.mode, unknown: x.unread, basis: hostdata.SetupMachine}
	if f.want = m.others(x, func(o ipoib) string { return o.mode }, func(ipoib) bool { return true }); f.want != "" {
		f.because = ofMostInterfaces
	}
	f.meets = f.found == f.want
	f.set = func(want string) string {
		if want == "connected" && x.datagramOnly {
			return enhanced
		}
		command := "echo " + values.Shell(want) + " > /sys/class/net/{netdev}/mode"
		mtu, _ := m.siteValue("ipoib_mtu", x.object, values.IsNumber)
		if mtu = cmp.Or(mtu, m.mtuIn(x, want)); mtu != "" {
			command += "; ip link set dev {netdev} mtu " + values.Shell(mtu)
		}
		return command
	}
	if x.datagramOnly {
		f.evidence = "the flags of its address have no connected mode"
	}
	return f, f.found != "" || f.unknown != "" // without either the kernel has no connected mode
}

const ofMostInterfaces = "that of most interfaces of this role"

func findIPoIBMTU(m *machine, x ipoib) (f finding, ok bool) {
	f = finding{object: x.object, found: x.mtu, unknown: "it could not be read", basis: hostdata.SetupMachine}
	f.want = m.others(x, func(o ipoib) string { return o.mtu }, func(o ipoib) bool { return o.mode == x.mode })
	if f.want != "" {
		f.because = ofMostInterfaces + " in the same mode"
	}
	f.meets = f.found == f.want
	mode := m.wantedMode(x)
	f.set = func(want string) string {
		command := "ip link set dev {netdev} mtu " + values.Shell(want)
		if n, err := strconv.Atoi(want); err == nil && n > datagramMTU && x.mode == "datagram" {
			return "echo connected > /sys/class/net/{netdev}/mode; " + command
		}
		return command
	}
	f.instead = func(want string) (other, why string) {
		n, err := strconv.Atoi(want)
		mtu, errFound := strconv.Atoi(x.mtu)
		if err != nil || errFound != nil || n <= datagramMTU || mtu > datagramMTU || x.mode == "connected" ||
			mode == "connected" && !x.datagramOnly {
			return "", ""
		}
		return fmt.Sprintf("at most %d", datagramMTU), fmt.Sprintf("an MTU of %d needs connected mode", n)
	}
	return f, f.found != "" || f.want != ""
}
