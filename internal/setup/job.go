package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
)

// netDir has an entry for each network interface of the host. flags are IFF_* in hexadecimal; bit 0 is IFF_UP.
const netDir = "sys/class/net"

var jobFiles = []string{ncclConf, netDir + "/", netDir + "/*/flags"}

const (
	ncclManual = "NVIDIA, NCCL: environment variables, "
	jobRead    = " in the environment of the job, NCCL_CONF_FILE or ~/.nccl.conf, /etc/nccl.conf"
)

// jobChecks are settings of NCCL. Only those that are set have rows: the defaults of NCCL are as wanted.
var jobChecks = []Check{
	{
		ID: "nccl_socket_ifname", Domain: Job, Name: "interfaces of NCCL for TCP",
		Read:   "NCCL_SOCKET_IFNAME" + jobRead + "; /sys/class/net",
		Wanted: "interfaces that exist and are up; RDMA ports among them have an IP address",
		Why:    "The bootstrap of NCCL uses them: without one the job does not start, or waits for its timeout.",
		Remedy: "export NCCL_SOCKET_IFNAME=INTERFACE # of the job: the management interface", Source: ncclManual + "NCCL_SOCKET_IFNAME",
		find: settingOf("NCCL_SOCKET_IFNAME", (*machine).socketInterfaces),
	},
	{
		ID: "nccl_ib_hca", Domain: Job, Name: "RDMA devices of NCCL",
		Read:   "NCCL_IB_HCA" + jobRead + ": names are prefixes, mlx5 and mlx5_1 also of mlx5_bond_0 and mlx5_10; = before the list makes them exact",
		Wanted: "all ACTIVE compute ports, the nearest of each GPU among them, and no others",
		Why:    "Devices that are left out cost throughput. A device of the management or storage network slows down all rings that it is in.",
		Remedy: "export NCCL_IB_HCA={wanted} # of the job, or in nccl.conf", Source: ncclManual + "NCCL_IB_HCA",
		find: settingOf("NCCL_IB_HCA", (*machine).hcas),
	},
	{
		ID: "nccl_gdr_level", Domain: Job, Name: "distance limit of GPUDirect RDMA",
		Read:   "NCCL_NET_GDR_LEVEL, and its name before NCCL 2.4, NCCL_IB_GDR_LEVEL" + jobRead,
		Wanted: "not set, or the distance between each GPU and its nearest RDMA device",
		Why:    "Between a GPU and a device beyond the limit NCCL copies the data through host memory. The former name has no effect.",
		Remedy: "unset NCCL_NET_GDR_LEVEL NCCL_IB_GDR_LEVEL # of the job, or in nccl.conf", Source: ncclManual + "NCCL_NET_GDR_LEVEL",
		find: findLevel,
	},
	{
		ID: "nccl_ib_disable", Domain: Job, Name: "use of RDMA by NCCL",
		Read:   "NCCL_IB_DISABLE" + jobRead,
		Wanted: "0 on hosts with ACTIVE compute ports",
		Why:    "NCCL uses TCP between nodes.",
		Remedy: "unset NCCL_IB_DISABLE # of the job, or in nccl.conf", Source: ncclManual + "NCCL_IB_DISABLE", Alert: "RDMATransportFallback",
		find: settingOf("NCCL_IB_DISABLE", (*machine).ibDisabled),
	},
	{
		ID: "nccl_gid_index", Domain: Job, Name: "GID index of NCCL",
		Read:   "NCCL_IB_GID_INDEX" + jobRead + "; GID tables of the ports that the job uses",
		Wanted: "not set, or an entry of type RoCE v2",
		Why:    "Packets of RoCE v1 are not routed and have no DSCP: connections fail, or miss the lossless class.",
		Remedy: "unset NCCL_IB_GID_INDEX # of the job, or in nccl.conf: NCCL selects a RoCE v2 entry",
		Source: ncclManual + "NCCL_IB_GID_INDEX",
		Alert:  "RDMAJobGIDMismatch",
		find:   settingOf("NCCL_IB_GID_INDEX", (*machine).gidIndex),
	},
	{
		ID: "nccl_timeout", Domain: Job, Name: "ACK timeout of NCCL",
		Read:   "NCCL_IB_TIMEOUT" + jobRead,
		Wanted: "18 to 22: 4.096 us * 2^18 is 1 s, 2^22 is 17 s. The default is 20 (18 before NCCL 2.23, 14 before 2.14)",
		Why:    "Smaller values end the job at a link flap or at congestion (NCCL status 12), larger ones detect a lost peer late. 0: never.",
		Remedy: "unset NCCL_IB_TIMEOUT # of the job, or in nccl.conf",
		Source: ncclManual + "NCCL_IB_TIMEOUT; InfiniBand specification, Local ACK Timeout",
		find:   settingOf("NCCL_IB_TIMEOUT", within(18, 22)),
	},
	{
		ID: "nccl_retry_cnt", Domain: Job, Name: "transport retries of NCCL",
		Read:   "NCCL_IB_RETRY_CNT" + jobRead,
		Wanted: "7, the default and the maximum",
		Why:    "Fewer retries end the job at a link flap or at congestion (NCCL status 12).",
		Remedy: "unset NCCL_IB_RETRY_CNT # of the job, or in nccl.conf",
		Source: ncclManual + "NCCL_IB_RETRY_CNT; InfiniBand specification, Retry Count (3 bits)",
		find:   settingOf("NCCL_IB_RETRY_CNT", within(7, 7)),
	},
	{
		ID: "nccl_sl", Domain: Job, Name: "service level of NCCL",
		Read:   "NCCL_IB_SL" + jobRead,
		Wanted: "0 to 15; 0 to 7 on RoCE, where it is a priority; on InfiniBand one with a virtual lane in use, where --collector.infiniband.mad shows it",
		Why:    "The field has four bits: another value is cut, and selects a service level of other traffic. Packets without a virtual lane are discarded.",
		Remedy: "unset NCCL_IB_SL # of the job, or in nccl.conf", Source: ncclManual + "NCCL_IB_SL; InfiniBand specification, Service Level",
		find: settingOf("NCCL_IB_SL", (*machine).serviceLevel),
	},
	{
		ID: "nccl_adaptive_routing", Domain: Job, Name: "use of adaptive routing by NCCL",
		Read:   "NCCL_IB_ADAPTIVE_ROUTING" + jobRead,
		Wanted: "1 on InfiniBand, the default there; on RoCE, where the default is 0, it depends on the fabric",
		Why:    "Messages are not sent in the form that adaptive routing needs: flows collide on uplinks.",
		Remedy: "unset NCCL_IB_ADAPTIVE_ROUTING # of the job, or in nccl.conf", Source: ncclManual + "NCCL_IB_ADAPTIVE_ROUTING",
		find: settingOf("NCCL_IB_ADAPTIVE_ROUTING", (*machine).adaptiveRouting),
	},
	{
		ID: "nccl_qps", Domain: Job, Name: "queue pairs of NCCL for each connection",
		Read:   "NCCL_IB_QPS_PER_CONNECTION" + jobRead,
		Wanted: "1 to 16. The default is 1; more spread a connection over the paths of a fabric with ECMP",
		Why:    "Many queue pairs exceed the context cache of the device. NCCL accepts 1 to 128.",
		Remedy: "export NCCL_IB_QPS_PER_CONNECTION=4 # of the job, or in nccl.conf", Source: ncclManual + "NCCL_IB_QPS_PER_CONNECTION",
		find: settingOf("NCCL_IB_QPS_PER_CONNECTION", within(1, 16)),
	},
	{
		ID: "nccl_topo_file", Domain: Job, Name: "topology file of NCCL",
		Read:   "NCCL_TOPO_FILE" + jobRead + ", and the file as the job sees it",
		Wanted: "a file with the GPUs and RDMA devices of this host",
		Why:    "NCCL ignores a missing file. With that of another machine it selects devices by wrong distances.",
		Remedy: "unset NCCL_TOPO_FILE # of the job, or create the file with NCCL_TOPO_DUMP_FILE on this model of host",
		Source: ncclManual + "NCCL_TOPO_FILE",
		find:   settingOf("NCCL_TOPO_FILE", (*machine).topologyFile),
	},
}

// verdict is the result for a setting of a job.
type verdict struct {
	want        string // empty: nothing is wanted, no row
	meets       bool
	contradicts bool
	machine     bool   // the wanted value is from this host
	evidence    string // for the wanted value
	unknown     string // why it cannot be evaluated
	remedy      string // instead of that of the check
}

// settingOf finds the jobs that have a setting, and evaluates each.
func settingOf(name string, evaluate func(*machine, job, string) verdict) func(*machine) []finding {
	return func(m *machine) (out []finding) {
		for _, j := range m.jobs {
			value := j.env[name]
			if value == "" || !j.HasNCCL {
				continue
			}
			v := evaluate(m, j, value)
			if v.want == "" {
				continue
			}
			out = append(out, v.finding(j, value))
		}
		return joined(out)
	}
}

func (v verdict) finding(j job, value string) finding {
	f := finding{
		object: object{name: j.name}, found: value, want: v.want, basis: snapshot.SetupGuide,
		meets: v.meets, contradicts: v.contradicts, evidence: v.evidence, unknown: v.unknown, remedy: v.remedy,
	}
	if v.unknown != "" {
		f.found = ""
	}
	if v.machine {
		f.basis = snapshot.SetupMachine
	}
	return f
}

// within accepts the integers of a range.
func within(low, high int64) func(*machine, job, string) verdict {
	want := strconv.FormatInt(low, 10)
	if high > low {
		want += " to " + strconv.FormatInt(high, 10)
	}
	return func(_ *machine, _ job, value string) verdict {
		n, err := strconv.ParseInt(value, 0, 64)
		return verdict{want: want, meets: err == nil && n >= low && n <= high}
	}
}

// ownInterfaces reports whether a job has network interfaces of its own: those of a pod are not the host's.
func (j job) ownInterfaces() bool { return strings.HasPrefix(j.Job, "kubernetes/") }

func (m *machine) socketInterfaces(j job, value string) verdict {
	v := verdict{want: "interfaces that are up", machine: true}
	names := m.names(netDir)
	switch {
	case j.ownInterfaces():
		v.unknown = "the interfaces of the container are not visible"
	case m.unread(netDir) != "" || len(names) == 0:
		v.unknown = "/sys/class/net of the host is not readable"
	}
	if v.unknown != "" {
		return v
	}
	list, not := strings.CutPrefix(value, "^")
	if not { // NCCL uses what is left
		return verdict{}
	}
	list, exact := strings.CutPrefix(list, "=")
	var problems []string
	for item := range strings.SplitSeq(list, ",") {
		var matching []string
		for _, n := range names {
			if n == item || !exact && item != "" && strings.HasPrefix(n, item) {
				matching = append(matching, n)
			}
		}
		if len(matching) == 0 && item != "" {
			problems = append(problems, "no interface "+item)
		}
		for _, n := range matching {
			if n != item { // a prefix takes the interfaces that are up
				continue
			}
			if flags, ok := m.text(netDir + "/" + n + "/flags"); ok {
				if bits, err := strconv.ParseUint(flags, 0, 32); err == nil && bits&1 == 0 {
					problems = append(problems, n+" is down")
				}
			}
			if p := m.withoutAddress(n); p != "" {
				problems = append(problems, n+" of "+p+" has no IP address")
			}
		}
	}
	v.meets, v.evidence = len(problems) == 0, strings.Join(problems, ", ")
	return v
}

// withoutAddress is the port of an interface without an IP address: its GID table has no entry of one. Empty: it has one,
// or the interface is none of an Ethernet port.
func (m *machine) withoutAddress(netdev string) string {
	for _, d := range m.devices {
		for i := range d.Ports {
			p := &d.Ports[i]
			named := slices.ContainsFunc(p.Netdev, func(n snapshot.Netdev) bool { return n.Name == netdev })
			if !named || p.LinkLayer != "Ethernet" || len(p.RoCEv2) == 0 {
				continue
			}
			if p.RoCEv2["ipv4"].Entries == 0 && p.RoCEv2["ipv6"].Entries == 0 {
				return fmt.Sprintf("%s/%d", d.Name, p.Number)
			}
		}
	}
	return ""
}

// active reports whether a port is ACTIVE, of enum ib_port_state.
func active(p *snapshot.Port) bool { return p.State != nil && *p.State == portActive }

// computeDevices are the names of the devices with an ACTIVE compute port.
func (m *machine) computeDevices() (out []string) {
	for _, d := range m.devices {
		if slices.ContainsFunc(d.Ports, func(p snapshot.Port) bool { return p.Role == "compute" && active(&p) }) {
			out = append(out, d.Name)
		}
	}
	return out
}

func (m *machine) hcas(j job, _ string) verdict {
	compute := m.computeDevices()
	if m.InfiniBand == nil || len(m.InfiniBand.Devices) == 0 {
		return verdict{}
	}
	items, excluded, exact := j.env.HCAs()
	v := verdict{want: "=" + strings.Join(compute, ","), machine: true}
	var problems, others []string
	for _, item := range items {
		name, number, _ := strings.Cut(item, ":")
		any, up := false, false
		for i := range m.InfiniBand.Devices {
			d := &m.InfiniBand.Devices[i]
			if d.Name != name && (exact || !strings.HasPrefix(d.Name, name)) {
				continue
			}
			for k := range d.Ports {
				if p := &d.Ports[k]; number == "" || number == strconv.Itoa(p.Number) {
					any, up = true, up || active(p)
				}
			}
		}
		switch {
		case excluded:
		case !any:
			problems = append(problems, "no device "+item)
		case !up:
			problems = append(problems, item+" has no ACTIVE port")
		}
	}
	used := 0
	for i := range m.InfiniBand.Devices {
		d := &m.InfiniBand.Devices[i]
		for k := range d.Ports {
			p := &d.Ports[k]
			if !j.env.AllowsPort(d.Name, p.Number) {
				continue
			}
			used++
			if p.Role == "other" && active(p) && len(compute) > 0 {
				others = append(others, d.Name)
			}
		}
	}
	// Certain only where the list names no port at all: with one that is down the job waits, or was started before.
	v.contradicts = used == 0 && len(items) > 0
	if len(others) > 0 {
		problems = append(problems, strings.Join(slices.Compact(others), ", ")+" not of the compute network")
	}
	if left := m.leftOut(j); left != "" && used > 0 {
		problems = append(problems, left)
	}
	v.meets, v.evidence = len(problems) == 0, strings.Join(problems, "; ")
	if len(compute) == 0 {
		v.want, v.remedy = "an existing device", "unset NCCL_IB_HCA # of the job, or in nccl.conf"
	}
	return v
}

// near is a GPU of a job, with its nearest devices of ACTIVE compute ports.
type near struct {
	gpu     string
	level   string // distance
	devices []string
}

// nearest are those of the GPUs of a process.
func (m *machine) nearest(j job) (out []near) {
	compute := m.computeDevices()
	for g := range m.GDR.GPUs {
		if p := m.GDR.GPUs[g].Process; p == nil || p.PID != j.PID {
			continue
		}
		one := near{gpu: m.GDR.GPUs[g].Index}
		for _, p := range m.GDR.Pairs {
			if p.GPU != g || p.NIC < 0 || p.NIC >= len(m.GDR.NICs) || p.Distance == "" || !slices.Contains(compute, m.GDR.NICs[p.NIC].Device) {
				continue
			}
			device := m.GDR.NICs[p.NIC].Device
			switch distance := gdr.Level(pci.Distance(p.Distance)) - gdr.Level(pci.Distance(one.level)); {
			case one.level == "" || distance < 0:
				one.level, one.devices = p.Distance, []string{device}
			case distance == 0:
				one.devices = append(one.devices, device)
			}
		}
		if len(one.devices) > 0 {
			out = append(out, one)
		}
	}
	return out
}

// leftOut are the GPUs of a job none of whose nearest devices it may use.
func (m *machine) leftOut(j job) string {
	var out []string
	for _, n := range m.nearest(j) {
		if !slices.ContainsFunc(n.devices, func(d string) bool { return m.allowed(j, d) }) {
			out = append(out, fmt.Sprintf("GPU %s without its nearest device %s", n.gpu, strings.Join(n.devices, " or ")))
		}
	}
	return strings.Join(out, "; ")
}

func (m *machine) allowed(j job, device string) bool {
	return slices.ContainsFunc(m.devices, func(d *snapshot.Device) bool {
		return d.Name == device && slices.ContainsFunc(d.Ports, func(p snapshot.Port) bool { return j.env.AllowsPort(d.Name, p.Number) })
	})
}

func findLevel(m *machine) (out []finding) {
	const now, former = "NCCL_NET_GDR_LEVEL", "NCCL_IB_GDR_LEVEL"
	for _, j := range m.jobs {
		if !j.HasNCCL {
			continue
		}
		value := j.env[now]
		if value == "" {
			if old := j.env[former]; old != "" {
				out = append(out, verdict{want: "not set", evidence: former + " has no effect since NCCL 2.4"}.finding(j, former+"="+old))
			}
			continue
		}
		v := verdict{want: "not set", meets: true, machine: true}
		limit, ok := j.env.GDRLevel()
		if !ok {
			v.meets, v.evidence = false, "no distance of NCCL: the setting has no effect"
		}
		for _, n := range m.nearest(j) {
			// By default NCCL uses GPUDirect RDMA below a PCIe switch, and not across a host bridge.
			if level := gdr.Level(pci.Distance(n.level)); ok && level > limit && level <= gdr.Level(pci.PXB) {
				v.meets, v.want, v.evidence = false, n.level, fmt.Sprintf("GPU %s and %s are at %s", n.gpu, strings.Join(n.devices, ", "), n.level)
				break
			}
		}
		out = append(out, v.finding(j, value))
	}
	return joined(out)
}

func (m *machine) ibDisabled(j job, _ string) verdict {
	if len(m.computeDevices()) == 0 {
		return verdict{}
	}
	v := verdict{want: "0", machine: true, meets: j.env.Integer("NCCL_IB_DISABLE", 0) == 0}
	if j.env.Nodes() < 2 {
		v.evidence = "the job runs on one node, or on an unknown number"
		return v
	}
	// In an NVLink domain of several hosts the data may take NVLink.
	inDomain := slices.ContainsFunc(m.GDR.GPUs, func(g snapshot.GDRGPU) bool {
		return g.Transport != nil && (g.Transport.Reason == string(gdr.InDomain) || g.Transport.Reason == string(gdr.DomainUnknown))
	})
	v.contradicts, v.evidence = !inDomain, "the job spans several nodes, and this host has ACTIVE compute ports"
	return v
}

func (m *machine) gidIndex(j job, value string) verdict {
	if j.env.Integer("NCCL_IB_GID_INDEX", -1) < 0 {
		return verdict{want: "-1", meets: true}
	}
	v := verdict{}
	for i := range m.GDR.JobGIDs {
		g := &m.GDR.JobGIDs[i]
		if g.Process == nil || g.Process.Job != j.Job || g.Process.Job == "" && g.Process.PID != j.PID {
			continue
		}
		if v.want == "" {
			v = verdict{want: "RoCE v2 entry", meets: true, machine: true}
		}
		if g.Mismatch() && v.meets {
			kind := "empty"
			if g.Type == "roce_v1" {
				kind = "RoCE v1"
			}
			v.meets, v.contradicts, v.evidence = false, true, fmt.Sprintf("entry %s of %s/%d is %s", value, g.Device, g.Port, kind)
			if first, ok := m.firstV2(g.Device, g.Port); ok {
				v.want = strconv.FormatUint(first, 10)
			}
		}
	}
	return v
}

// firstV2 is the lowest index of an IPv4 entry of RoCE v2.
func (m *machine) firstV2(device string, port int) (index uint64, ok bool) {
	for _, d := range m.devices {
		for i := range d.Ports {
			if f := d.Ports[i].RoCEv2["ipv4"]; d.Name == device && d.Ports[i].Number == port && f.Entries > 0 {
				return f.First, true
			}
		}
	}
	return 0, false
}

// layer reports whether an ACTIVE compute port has a link layer.
func (m *machine) layer(name string) bool {
	return slices.ContainsFunc(m.devices, func(d *snapshot.Device) bool {
		return slices.ContainsFunc(d.Ports, func(p snapshot.Port) bool { return p.LinkLayer == name && p.Role == "compute" && active(&p) })
	})
}

func (m *machine) serviceLevel(j job, value string) verdict {
	high := int64(15)
	if m.layer("Ethernet") {
		high = 7
	}
	v := within(0, high)(m, j, value)
	level := j.env.Integer("NCCL_IB_SL", 0)
	for _, x := range m.infinibands() {
		if s := x.p.Settings; v.meets && s != nil && j.env.AllowsPort(x.d.Name, x.p.Number) {
			if lane, ok := laneOf(s, int(level)); !ok {
				v = verdict{want: "a service level with a virtual lane in use", machine: true}
				v.evidence = fmt.Sprintf("%s/%d discards packets of service level %d: virtual lane %d", x.d.Name, x.p.Number, level, lane)
			}
		}
	}
	return v
}

func (m *machine) adaptiveRouting(j job, _ string) verdict {
	if !m.layer("InfiniBand") {
		return verdict{}
	}
	return verdict{want: "1", meets: j.env.Integer("NCCL_IB_ADAPTIVE_ROUTING", 1) != 0}
}

func (m *machine) topologyFile(j job, value string) verdict {
	v := verdict{want: "a topology of this host", machine: true}
	if j.Conf == nil {
		v.unknown = "the files of the job are not readable"
		return v
	}
	if j.Topology == "" {
		v.evidence = value + " does not exist as the job sees it"
		return v
	}
	t, err := gdr.ParseTopology(strings.NewReader(j.Topology))
	if err != nil {
		v.evidence = value + " is not a topology file of NCCL"
		return v
	}
	var missing []string
	for _, g := range m.GDR.GPUs {
		if g.PCIAddress != "" && !t.Has(g.PCIAddress) {
			missing = append(missing, "GPU "+g.Index+" ("+g.PCIAddress+")")
		}
	}
	for _, n := range m.GDR.NICs {
		if n.Role == "compute" && n.PCIAddress != "" && !t.Has(n.PCIAddress) {
			missing = append(missing, n.Device+" ("+n.PCIAddress+")")
		}
	}
	if v.meets = len(missing) == 0; !v.meets {
		v.evidence = "not in the file: " + strings.Join(missing, ", ")
	}
	return v
}
