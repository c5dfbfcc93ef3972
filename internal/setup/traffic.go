package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/snapshot"
)

// trafficFiles: the traffic class of connections by the RDMA connection manager. The directory of a device exists only after mkdir.
var trafficFiles = []string{"sys/kernel/config/rdma_cm/*/ports/*/default_roce_tos"}

const lossyAlert = "RDMATrafficOnLossyPriority"

var trafficChecks = []Check{
	{
		ID: "job_traffic_class", Domain: Traffic, Name: "traffic class of a job",
		Read:   "/proc/PID/environ and nccl.conf: NCCL_IB_TC (RCCL as well; the default is 0), UCX_IB_TRAFFIC_CLASS",
		Wanted: "on lossless ports one whose DSCP leads to a priority with PFC; elsewhere none in particular",
		Why:    "RDMA packets of the job are dropped under congestion instead of paused, and each drop costs the retransmission of a window.",
		Remedy: "set NCCL_IB_TC={wanted} in the job, or in /etc/nccl.conf",
		Source: "NVIDIA, NCCL: NCCL_IB_TC; UCX: UCX_IB_TRAFFIC_CLASS", Alert: lossyAlert,
		ofJob: true, find: findJobClass,
	},
	{
		ID: "default_traffic_class", Domain: Traffic, Name: "traffic class of a port",
		Read:   "/sys/class/infiniband/DEV/tc/N/traffic_class (MLNX_OFED); /sys/kernel/config/rdma_cm/DEV/ports/N/default_roce_tos, where it exists",
		Wanted: "on lossless ports one whose DSCP leads to a priority with PFC, as on the sibling ports; elsewhere that of the sibling ports",
		Why:    "RDMA packets without the class have a priority that is not lossless: they are dropped under congestion.",
		Remedy: "echo {wanted} > /sys/class/infiniband/{device}/tc/{port}/traffic_class",
		Source: "NVIDIA, RoCE configuration: traffic class", Alert: lossyAlert,
		find: findPortClass,
	},
	{
		ID: "trust_mode", Domain: Traffic, Name: "source of the priority of a packet",
		Read:   "rtnetlink RTM_GETDCB, APP table; /sys/class/net/NETDEV/qos/trust (MLNX_OFED)",
		Wanted: "dscp on lossless ports; elsewhere that of the sibling ports",
		Why:    "With pcp the DSCP is ignored: packets without a VLAN tag have priority 0.",
		Remedy: "mlnx_qos -i {netdev} --trust={wanted}", Source: "NVIDIA, RoCE configuration: trust state",
		find: findTrust,
	},
	{
		ID: "dscp_map", Domain: Traffic, Name: "priority of the DSCP of RDMA",
		Read:   "rtnetlink RTM_GETDCB, APP table, selector 5; without one the default of mlx5, the upper three bits of the DSCP",
		Wanted: "on lossless ports a priority with PFC",
		Why:    "RDMA packets have a priority that is not lossless: they are dropped under congestion.",
		Remedy: "dcb app replace dev {netdev} dscp-prio {wanted}",
		Source: "NVIDIA, RoCE configuration: DSCP to priority mapping; dcb-app(8)",
		find:   findDSCPMap,
	},
	{
		ID: "pfc_on_rdma_priority", Domain: Traffic, Name: "priorities with PFC",
		Read:   "rtnetlink RTM_GETDCB, DCB_CMD_IEEE_GET: pfc_en",
		Wanted: "on lossless ports those of the sibling ports; else the priority of RDMA",
		Why:    "Congestion drops RDMA packets instead of pausing them, or pauses a priority that the switch does not treat as lossless.",
		Remedy: "dcb pfc set dev {netdev} prio-pfc all:off {wanted}:on",
		Source: "NVIDIA, RoCE configuration: PFC; dcb-pfc(8)", Alert: lossyAlert,
		find: findPFC,
	},
	{
		ID: "ecn_on_rdma_priority", Domain: Traffic, Name: "congestion notification on the priority of RDMA",
		Read:   "/sys/class/net/NETDEV/ecn/roce_{np,rp}/enable/P (MLNX_OFED only)",
		Wanted: "on, unless congestion control is pinned as zerotouch_rtt or off",
		Why:    "Senders do not reduce their rate: congestion is limited by PFC alone, and pauses spread through the fabric.",
		Remedy: "echo 1 > /sys/class/net/{netdev}/ecn/roce_np/enable/PRIORITY; echo 1 > /sys/class/net/{netdev}/ecn/roce_rp/enable/PRIORITY",
		Source: "NVIDIA, RoCE configuration: ECN (DCQCN)", Alert: "RDMACongestionNotificationOff",
		find: findNotification,
	},
	{
		ID: "cnp_priority_apart", Domain: Traffic, Name: "priority of congestion notifications",
		Read:   "/sys/class/net/NETDEV/ecn/roce_np/{cnp_dscp,cnp_802p_prio} (MLNX_OFED only)",
		Wanted: "another than that of RDMA",
		Why:    "Congestion notifications wait behind the traffic that they slow down, and are paused with it.",
		Remedy: "echo 48 > /sys/class/net/{netdev}/ecn/roce_np/cnp_dscp; echo 6 > /sys/class/net/{netdev}/ecn/roce_np/cnp_802p_prio",
		Source: "NVIDIA, RoCE configuration: CNP priority",
		find:   findCNP,
	},
	{
		ID: "ets_class_of_rdma", Domain: Traffic, Name: "traffic class (ETS) of the priority of RDMA",
		Read:   "rtnetlink RTM_GETDCB, DCB_CMD_IEEE_GET: prio_tc, tc_tsa, tc_tx_bw",
		Wanted: "on lossless ports a class that priority 0 does not have, with bandwidth",
		Why:    "TCP traffic shares a queue with RDMA: it delays RDMA, and is paused with it.",
		Remedy: "dcb ets set dev {netdev} prio-tc PRIORITY:CLASS", Source: "NVIDIA, RoCE configuration: ETS; dcb-ets(8)",
		find: findETS,
	},
}

// lane is a netdev of a RoCE port, with the ways of its packets.
type lane struct {
	*roce
	q        *snapshot.NetdevQoS
	chains   []chain
	priority int // of RDMA; -1: unknown
}

func (l *lane) object() object {
	return object{device: l.Name, port: l.Number, netdev: l.q.Name}
}

// allLanes are the netdevs of RoCE ports.
func (m *machine) allLanes() (out []*lane) {
	for _, r := range m.roces() {
		for _, q := range r.netdevs {
			l := &lane{roce: r, q: q, chains: m.chains(r, q, m.classes)}
			l.priority = m.rdmaPriority(r, q, l.chains)
			out = append(out, l)
		}
	}
	return out
}

// usual is the value of more than half, at least two, of the lanes of a role; empty: none. value is empty where it is unknown.
func usual(lanes []*lane, role string, value func(*lane) string) string {
	var values []string
	for _, l := range lanes {
		if v := value(l); l.Role == role && v != "" {
			values = append(values, v)
		}
	}
	return majority(values, 2)
}

// losslessClass is a traffic class whose DSCP leads to a priority with PFC: 106, DSCP 26, where it does, otherwise that of the lowest such
// DSCP. Its ECN field is ECT(0), 2. Without a DSCP map it follows the default of mlx5; 0: PFC is enabled on no priority.
func losslessClass(q *snapshot.NetdevQoS, driver string) int {
	for _, dscp := range append([]int{26}, sequence(64)...) {
		if p, ok := priorityOf(q, driver, dscp); ok && hasPFC(q, p) {
			return dscp<<2 | 2
		}
	}
	if list := priorities(q.PFC); len(list) > 0 {
		return (list[0]<<3+2)<<2 | 2
	}
	return 0
}

// guideClass is the traffic class of the guides for lossless RoCE: DSCP 26, ECT(0).
const guideClass = 106

// wantedClass is that of a lossless port: by its own PFC, else by that of another port of its role; without PFC on any, that of the guides.
func wantedClass(lanes []*lane, l *lane) (class string, basis snapshot.SetupBasis) {
	for _, o := range append([]*lane{l}, lanes...) {
		if want := losslessClass(o.q, o.Driver); want != 0 && o.Role == l.Role {
			return strconv.Itoa(want), snapshot.SetupMachine
		}
	}
	if l.q.PFC == nil { // unknown
		return "", snapshot.SetupMachine
	}
	return strconv.Itoa(guideClass), snapshot.SetupGuide
}

func sequence(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// findJobClass has a finding for each job and class. Where MLNX_OFED sets the class of all packets of a port, that of the job is not used.
func findJobClass(m *machine) (out []finding) {
	lanes := m.lanes
	for _, job := range m.classes {
		f := finding{object: object{name: job.name}, found: strconv.Itoa(job.class), meets: true, basis: snapshot.SetupMachine}
		if job.unknown != "" {
			f.found, f.unknown = "", job.unknown
		}
		used, wrong := 0, []string{}
		for _, l := range lanes {
			if l.traffic != nil || !job.devices(l.Name) || !active(l.Port) {
				continue
			}
			used++
			if !l.lossless {
				continue
			}
			if f.want == "" {
				f.want, f.basis = wantedClass(lanes, l)
			}
			c := m.chain(l.roce, l.q, job.class, &job)
			if job.unknown != "" || c.priority < 0 || l.q.PFC == nil || hasPFC(l.q, c.priority) {
				continue
			}
			f.meets = false
			f.contradicts = f.contradicts || job.certain && l.q.Trust == byDSCP
			wrong = append(wrong, c.String())
			if x, ok := l.lossy(&c); ok {
				f.lossy = append(f.lossy, x)
			}
		}
		switch {
		case used == 0:
			continue
		case f.meets && f.found != "" && f.want != "":
			f.want = f.found
		case len(wrong) > 0:
			f.evidence = wrong[0] + more(len(wrong)-1)
			if job.unset {
				f.evidence = job.variable + " is not set; " + f.evidence
			}
		}
		if f.found == "" && f.want == "" {
			continue
		}
		f.remedy = fmt.Sprintf("set %s={wanted} in the job", job.variable)
		if job.variable == "NCCL_IB_TC" {
			f.remedy += ", or in /etc/nccl.conf"
		}
		out = append(out, f)
	}
	return out
}

// portActive is ACTIVE of enum ib_port_state.
const portActive = 4

func more(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; the same on another port"
	}
	return fmt.Sprintf("; the same on %d other ports", n)
}

// findPortClass compares the class that MLNX_OFED sets for all packets of a port. That of the connection manager applies only to its
// connections.
func findPortClass(m *machine) (out []finding) {
	lanes := m.lanes
	value := func(l *lane) string {
		if l.traffic == nil {
			return ""
		}
		return strconv.FormatUint(*l.traffic, 10)
	}
	done := map[string]bool{}
	for _, l := range lanes {
		if key := l.roce.object().String(); done[key] {
			continue
		} else {
			done[key] = true
		}
		file := fmt.Sprintf("sys/kernel/config/rdma_cm/%s/ports/%d/default_roce_tos", l.Name, l.Number)
		tos, exists := m.text(file)
		f := finding{object: l.roce.object(), found: value(l), want: usual(lanes, l.Role, value), basis: snapshot.SetupMachine}
		f.evidence = "that of most ports of this role"
		switch {
		case l.traffic != nil:
		case m.ofed(l.Driver) && (l.lossless || f.want != ""):
			f.found = "not set"
		case exists:
			f.found, f.remedy = tos, "echo {wanted} > /"+file
		default:
			continue
		}
		if !l.lossless {
			f.meets = f.found == f.want
			if f.want == "" {
				f.evidence = ""
			}
			out = append(out, f)
			continue
		}
		if f.want == "" {
			f.evidence = ""
			f.want, _ = wantedClass(lanes, l)
			f.basis = snapshot.SetupGuide
		}
		class, err := strconv.Atoi(f.found)
		c := m.chain(l.roce, l.q, class, nil)
		switch {
		case err != nil: // not set: jobs may set one
			f.meets = len(l.chains) > 0 && !slices.ContainsFunc(l.chains, func(c chain) bool { return !hasPFC(l.q, c.priority) })
		case c.priority < 0 || l.q.PFC == nil:
			f.meets = f.found == f.want
		case hasPFC(l.q, c.priority):
			f.meets = f.found == f.want || f.basis == snapshot.SetupGuide
		default:
			f.contradicts, f.basis, f.evidence = l.traffic != nil && l.q.PFC != nil, snapshot.SetupMachine, c.String()
			f.lossy = lossyOf(lanes, l.roce)
			if f.want == f.found { // as on the siblings: PFC or the map is wrong
				f.want, _ = wantedClass(lanes, l)
			}
		}
		if f.meets && f.want != "" {
			f.want = f.found
		}
		out = append(out, f)
	}
	return out
}

// lossyOf are the lossy chains of the netdevs of a port.
func lossyOf(lanes []*lane, r *roce) (out []snapshot.LossyClass) {
	for _, l := range lanes {
		for i := range l.chains {
			if x, ok := l.lossy(&l.chains[i]); ok && l.roce == r && l.chains[i].job == nil {
				out = append(out, x)
			}
		}
	}
	return out
}

// ofed reports whether the driver of a device is that of MLNX_OFED.
func (m *machine) ofed(driver string) bool {
	return m.Modules != nil && slices.ContainsFunc(m.Modules.Modules, func(x snapshot.Module) bool {
		return x.Name == driver && x.Flavour == "ofed"
	})
}

func findTrust(m *machine) (out []finding) {
	lanes := m.lanes
	value := func(l *lane) string { return l.q.Trust }
	for _, l := range lanes {
		f := finding{object: l.object(), found: l.q.Trust, unknown: "the driver does not report it", basis: snapshot.SetupMachine}
		switch f.want = usual(lanes, l.Role, value); {
		case l.lossless && f.want != byDSCP:
			f.want, f.basis = byDSCP, snapshot.SetupGuide
		case f.want != "":
			f.evidence = "that of most ports of this role"
		}
		if f.found == "" && !l.lossless {
			continue
		}
		f.meets = f.found == f.want
		if l.Driver != "mlx5_core" {
			f.remedy = "dcb apptrust set dev {netdev} order {wanted}"
		}
		out = append(out, f)
	}
	return out
}

// findDSCPMap looks at the DSCP of the class of the port; without one, at whether a DSCP leads to a priority with PFC. That of a job is the
// job's setting.
func findDSCPMap(m *machine) (out []finding) {
	for _, l := range m.lanes {
		enabled := priorities(l.q.PFC)
		if !l.lossless || l.q.Trust != byDSCP || len(enabled) == 0 {
			continue
		}
		f := finding{object: l.object(), basis: snapshot.SetupMachine, unknown: "the driver does not report it"}
		f.evidence = "PFC is enabled on " + numbers(enabled)
		dscp := losslessClass(l.q, l.Driver) >> 2
		if l.traffic != nil && *l.traffic>>2 != 0 { // DSCP 0 is that of all other traffic
			dscp = int(*l.traffic >> 2)
		}
		if p, ok := priorityOf(l.q, l.Driver, dscp); ok {
			f.found, f.meets = fmt.Sprintf("%d:%d", dscp, p), hasPFC(l.q, p)
		}
		f.want = fmt.Sprintf("%d:%d", dscp, enabled[0])
		if f.meets {
			f.want = f.found
		}
		out = append(out, f)
	}
	return out
}

func pfcText(l *lane) string {
	if l.q.PFC == nil {
		return ""
	}
	if list := priorities(l.q.PFC); len(list) > 0 {
		return numbers(list)
	}
	return "none"
}

func findPFC(m *machine) (out []finding) {
	lanes := m.lanes
	for _, l := range lanes {
		f := finding{object: l.object(), found: pfcText(l), unknown: "the driver does not report it", basis: snapshot.SetupMachine}
		f.set = setPFC
		if !l.lossless {
			if f.found != "" {
				out = append(out, f)
			}
			continue
		}
		if f.want = usual(lanes, l.Role, pfcText); f.want != "" && f.want != "none" {
			f.evidence = "that of most ports of this role"
		} else if f.want = f.found; f.found == "none" || f.found == "" { // pinned as lossless
			f.want, f.basis = "3", snapshot.SetupGuide
			if l.priority > 0 {
				f.want, f.basis = strconv.Itoa(l.priority), snapshot.SetupMachine
			}
		}
		f.meets = f.found == f.want
		for i := range l.chains {
			c := &l.chains[i]
			intended := slices.Contains(strings.Split(f.want, ","), strconv.Itoa(c.priority))
			if intended && c.known() && c.q.PFC != nil && !hasPFC(c.q, c.priority) {
				f.contradicts, f.basis, f.evidence = true, snapshot.SetupMachine, c.String()
				if c.job != nil {
					f.evidence = c.job.name + ": " + f.evidence
				}
			}
		}
		out = append(out, f)
	}
	return out
}

func setPFC(want string) string {
	command := "dcb pfc set dev {netdev} prio-pfc all:off"
	if want == "none" {
		return command
	}
	return command + " " + strings.ReplaceAll(want, ",", ":on ") + ":on"
}

// findNotification: the in-tree driver of mlx5 has the settings in debugfs only, where each read is a firmware command.
func findNotification(m *machine) (out []finding) {
	for _, l := range m.lanes {
		p := l.priority
		if p < 0 || l.Driver != "mlx5_core" || l.control == "zerotouch_rtt" || l.control == "off" {
			continue
		}
		f := finding{object: l.object(), want: "on", basis: snapshot.SetupGuide, evidence: fmt.Sprintf("RDMA has priority %d", p)}
		switch np, rp := l.q.Notification[p], l.q.Reaction[p]; {
		case !m.ofed(l.Driver):
			f.unknown = "only MLNX_OFED exposes it"
			if !l.lossless {
				continue
			}
		case np == nil || rp == nil:
			f.unknown = "the firmware does not report it"
		case *np == 1 && *rp == 1:
			f.found, f.meets = "on", true
		case *np == 1:
			f.found = "reaction point off"
		case *rp == 1:
			f.found = "notification point off"
		default:
			f.found = "off"
		}
		if l.lossless && hasPFC(l.q, p) {
			f.basis, f.contradicts = snapshot.SetupMachine, true
		}
		f.set = func(want string) string {
			value := 0
			if want == "on" {
				value = 1
			}
			const dir = "/sys/class/net/{netdev}/ecn/"
			return fmt.Sprintf("echo %d > %sroce_np/enable/%d; echo %d > %sroce_rp/enable/%d", value, dir, p, value, dir, p)
		}
		out = append(out, f)
	}
	return out
}

func findCNP(m *machine) (out []finding) {
	for _, l := range m.lanes {
		if l.priority < 0 || l.q.CNPPriority == nil || l.control == "zerotouch_rtt" || l.control == "off" {
			continue
		}
		cnp := int(*l.q.CNPPriority)
		if l.q.CNPDSCP != nil && *l.q.CNPDSCP < 64 {
			if p, ok := priorityOf(l.q, l.Driver, int(*l.q.CNPDSCP)); ok {
				cnp = p
			}
		}
		out = append(out, finding{
			object: l.object(), found: strconv.Itoa(cnp), want: fmt.Sprintf("other than %d", l.priority), meets: cnp != l.priority,
			basis: snapshot.SetupGuide, evidence: fmt.Sprintf("RDMA has priority %d", l.priority), set: setCNP,
		})
	}
	return out
}

// setCNP: the default of the device is DSCP 48, priority 6.
func setCNP(want string) string {
	p, err := strconv.Atoi(want)
	if err != nil {
		p = 6
	}
	const dir = "/sys/class/net/{netdev}/ecn/roce_np/"
	return fmt.Sprintf("echo %d > %scnp_dscp; echo %d > %scnp_802p_prio", p<<3, dir, p, dir)
}

// algorithms of traffic classes: IEEE_8021QAZ_TSA_* of include/uapi/linux/dcbnl.h.
var algorithms = map[uint64]string{0: "strict", 1: "cbs", 2: "ets", 255: "vendor"}

func findETS(m *machine) (out []finding) {
	for _, l := range m.lanes {
		p, classes := l.priority, l.q.Classes
		if !l.lossless || p <= 0 || classes == nil { // priority 0 has the class of TCP
			continue
		}
		class := classes.OfPrio[p]
		if class >= snapshot.Priorities {
			continue
		}
		f := finding{object: l.object(), found: fmt.Sprintf("class %d", class), basis: snapshot.SetupGuide}
		f.want = "not the class of priority 0, with bandwidth"
		algorithm := classes.Algorithm[class]
		if text := algorithms[algorithm]; text != "" {
			f.found += ", " + text
		}
		if algorithm == 2 {
			f.found += fmt.Sprintf(" %d%%", classes.Bandwidth[class])
		}
		f.meets = class != classes.OfPrio[0] && (algorithm != 2 || classes.Bandwidth[class] > 0)
		f.evidence = fmt.Sprintf("RDMA has priority %d; priority 0 has class %d", p, classes.OfPrio[0])
		f.set = func(want string) string {
			to := freeClass(classes)
			if _, err := fmt.Sscanf(want, "class %d", &to); err != nil && class != classes.OfPrio[0] {
				return fmt.Sprintf("dcb ets set dev {netdev} tc-bw all:0 %d:50 %d:50", class, classes.OfPrio[0])
			}
			return fmt.Sprintf("dcb ets set dev {netdev} prio-tc %d:%d", p, to)
		}
		out = append(out, f)
	}
	return out
}

// freeClass is the lowest class that no priority has; the last if there is none.
func freeClass(c *snapshot.Classes) int {
	for i := range snapshot.Priorities {
		if !slices.Contains(c.OfPrio[:], uint64(i)) {
			return i
		}
	}
	return snapshot.Priorities - 1
}
