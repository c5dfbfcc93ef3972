package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/words"
)

// trafficFiles: the traffic class of connections by the RDMA connection manager. The directory of a device exists only
// after mkdir.
var trafficFiles = []string{"sys/kernel/config/rdma_cm/*/ports/*/default_roce_tos"}

const (
	lossyAlert  = "RDMATrafficOnLossyPriority"
	firstSwitch = "drain the host, and configure the switch port alike: where they differ, packets are dropped or paused"
)

var trafficChecks = []Check{
	{
		ID: "job_traffic_class", Domain: Traffic, Name: "traffic class of a job",
		Read:   "/proc/PID/environ and nccl.conf: NCCL_IB_TC (RCCL as well; the default is 0), UCX_IB_TRAFFIC_CLASS",
		Wanted: "on lossless ports one whose DSCP leads to a priority with PFC; elsewhere none in particular",
		Why:    "RDMA packets of the job are dropped under congestion instead of paused, and each drop costs the retransmission of a window.",
		Remedy: "export NCCL_IB_TC={wanted} # of the job, or in nccl.conf",
		Source: "NVIDIA, NCCL: NCCL_IB_TC; UCX: UCX_IB_TRAFFIC_CLASS", Alert: lossyAlert,
		ofJob: true, find: each(func(m *machine) []jobClass { return m.classes }, findJobClass),
	},
	{
		ID: "default_traffic_class", Domain: Traffic, Name: "traffic class of a port",
		Read:   "/sys/class/infiniband/DEV/tc/N/traffic_class (MLNX_OFED); /sys/kernel/config/rdma_cm/DEV/ports/N/default_roce_tos, where it exists",
		Wanted: "on lossless ports one whose DSCP leads to a priority with PFC, as on the sibling ports; elsewhere that of the sibling ports",
		Why:    "RDMA packets without the class have a priority that is not lossless: they are dropped under congestion.",
		Remedy: classRemedy,
		Source: "NVIDIA, RoCE configuration: traffic class", Alert: lossyAlert,
		find: perLane(findPortClass),
	},
	{
		ID: "trust_mode", Domain: Traffic, Name: "source of the priority of a packet",
		Read:   "rtnetlink RTM_GETDCB, APP table; /sys/class/net/NETDEV/qos/trust (MLNX_OFED)",
		Wanted: "dscp on lossless ports; elsewhere that of the sibling ports",
		Why:    "With pcp the DSCP is ignored: packets without a VLAN tag have priority 0.",
		Remedy: "mlnx_qos -i {netdev} --trust={wanted}", Before: firstSwitch,
		Source: "NVIDIA, RoCE configuration: trust state",
		find:   perLane(findTrust),
	},
	{
		ID: "dscp_map", Domain: Traffic, Name: "priority of the DSCP of RDMA",
		Read:   "rtnetlink RTM_GETDCB, APP table, selector 5; without one the default of mlx5, the upper three bits of the DSCP",
		Wanted: "on lossless ports the wanted priority with PFC",
		Why:    "RDMA packets have a priority that is not lossless: they are dropped under congestion.",
		Remedy: "dcb app replace dev {netdev} dscp-prio {wanted}", Before: firstSwitch,
		Source: "NVIDIA, RoCE configuration: DSCP to priority mapping; dcb-app(8)", Alert: lossyAlert,
		find: perLane(findDSCPMap),
	},
	{
		ID: "pfc_on_rdma_priority", Domain: Traffic, Name: "priorities with PFC",
		Read:   "rtnetlink RTM_GETDCB, DCB_CMD_IEEE_GET: pfc_en",
		Wanted: "on lossless ports those of the sibling ports; else the priority of RDMA",
		Why:    "Congestion drops RDMA packets instead of pausing them, or pauses a priority that the switch does not treat as lossless.",
		Remedy: "dcb pfc set dev {netdev} prio-pfc all:off {wanted}:on", Before: firstSwitch,
		Source: "NVIDIA, RoCE configuration: PFC; dcb-pfc(8)", Alert: lossyAlert,
		find: perLane(findPFC),
	},
	{
		ID: "ecn_on_rdma_priority", Domain: Traffic, Name: "congestion notification on the priority of RDMA",
		Read:   "/sys/class/net/NETDEV/ecn/roce_{np,rp}/enable/P (MLNX_OFED only)",
		Wanted: "on, unless congestion control is pinned as zerotouch_rtt or off",
		Why:    "Senders do not reduce their rate: congestion is limited by PFC alone, and pauses spread through the fabric.",
		Remedy: "echo 1 > /sys/class/net/{netdev}/ecn/roce_np/enable/PRIORITY; echo 1 > /sys/class/net/{netdev}/ecn/roce_rp/enable/PRIORITY",
		Source: "NVIDIA, RoCE configuration: ECN (DCQCN)", Alert: "RDMAPortMisconfigured/congestion_notification",
		find: perLane(findNotification),
	},
	{
		ID: "cnp_priority_apart", Domain: Traffic, Name: "priority of congestion notifications",
		Read:   "/sys/class/net/NETDEV/ecn/roce_np/{cnp_dscp,cnp_802p_prio} (MLNX_OFED only)",
		Wanted: "another than that of RDMA",
		Why:    "Congestion notifications wait behind the traffic that they slow down, and are paused with it.",
		Remedy: "echo 48 > /sys/class/net/{netdev}/ecn/roce_np/cnp_dscp; echo 6 > /sys/class/net/{netdev}/ecn/roce_np/cnp_802p_prio",
		Source: "NVIDIA, RoCE configuration: CNP priority",
		find:   perLane(findCNP),
	},
	{
		ID: "ets_class_of_rdma", Domain: Traffic, Name: "traffic class (ETS) of the priority of RDMA",
		Read:   "rtnetlink RTM_GETDCB, DCB_CMD_IEEE_GET: prio_tc, tc_tsa, tc_tx_bw",
		Wanted: "on lossless ports a class that priority 0 does not have, with bandwidth",
		Why:    "TCP traffic shares a queue with RDMA: it delays RDMA, and is paused with it.",
		Remedy: "dcb ets set dev {netdev} prio-tc PRIORITY:CLASS", Before: firstSwitch,
		Source: "NVIDIA, RoCE configuration: ETS; dcb-ets(8)",
		find:   perLane(findETS),
	},
}

// trafficLane is a netdev of a RoCE port, with the ways of its packets.
type trafficLane struct {
	*roce
	q        *snapshot.NetdevQoS
	chains   []chain
	intent   intent
	priority int // of RDMA, as it is to be; -1: unknown
}

func (l *trafficLane) object() object {
	return object{device: l.Name, port: l.Number, netdev: l.q.Name}
}

// allLanes returns the netdevs of RoCE ports.
func (m *machine) allLanes() (out []*trafficLane) {
	for _, r := range m.roces() {
		for _, q := range r.netdevs {
			of := *r // a netdev that the site configuration wants to be lossy is lossy alone
			out = append(out, &trafficLane{roce: &of, q: q, chains: m.chains(r, q, m.classes)})
		}
	}
	m.setIntents(out)
	for _, l := range out {
		l.priority = l.rdmaPriority()
	}
	return out
}

// perLane returns a check of each netdev of a RoCE port.
func perLane(find func(*machine, *trafficLane) (finding, bool)) func(*machine) []finding {
	return each(func(m *machine) []*trafficLane { return m.lanes }, find)
}

// usualOf returns the value of more than half, at least two, of the lanes of a role; empty: none. value is empty where
// it is unknown.
func usualOf(lanes []*trafficLane, role string, value func(*trafficLane) string) string {
	var all []string
	for _, l := range lanes {
		if v := value(l); l.Role == role && v != "" {
			all = append(all, v)
		}
	}
	return values.Majority(all, 2)
}

// portActive is ACTIVE of enum ib_port_state.
const portActive = 4

func findTrust(m *machine, l *trafficLane) (f finding, ok bool) {
	usual := usualOf(m.lanes, l.Role, func(l *trafficLane) string { return l.q.Trust })
	f = finding{
		object: l.object(), found: l.q.Trust, unknown: "the driver does not report it", basis: hostdata.SetupMachine,
		want: usual,
	}
	switch {
	case l.lossless && usual != byDSCP:
		f.want, f.basis = byDSCP, hostdata.SetupGuide
	case usual != "":
		f.because = ofMost
	}
	if f.found == "" && !l.lossless {
		return f, false
	}
	f.meets = f.found == f.want
	// Without a trust setting the kernel's drivers trust the DSCP while there is an entry for one
	// (mlx5e_dcbnl_ieee_setapp, drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c).
	if !m.ofed(l.Driver) {
		f.set = func(want string) string {
			if want != byDSCP {
				return "dcb app flush dev {netdev} dscp-prio"
			}
			dscp, to := guideDSCP, guidePriority
			if l.lossless {
				dscp = l.dscps(m.lanes)[0]
				to = l.wantedPriority(dscp)
			}
			return fmt.Sprintf("%s %d:%d", mapCommand, dscp, to)
		}
	}
	return f, true
}

// dscps returns the DSCPs that packets of a lossless lane are to have: of the site configuration, the port or the
// jobs.
func (l *trafficLane) dscps(lanes []*trafficLane) (out []int) {
	out = slices.Collect(maps.Keys(l.intent.site))
	for _, d := range l.intent.pinned {
		if d != 0 && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	if slices.Sort(out); len(out) > 0 {
		return out
	}
	if l.traffic != nil && *l.traffic>>2 != 0 && l.carries(int(*l.traffic)) {
		return []int{int(*l.traffic >> 2)}
	}
	out = []int{wantedPortClass(lanes, l) >> 2}
	for i := range l.chains { // those of jobs only where the map is wrong: a job that starts changes no setting
		c := &l.chains[i]
		d := c.class >> 2
		p, known := mapped(l.q, l.Driver, d)
		if d != 0 && c.job != nil && c.job.certain && l.carries(c.class) && !slices.Contains(out, d) &&
			known && p != l.wantedPriority(d) {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return out
}

// findDSCPMap checks the DSCPs that packets of the port are to have. A class with another DSCP is the setting of the
// port or the job.
func findDSCPMap(m *machine, l *trafficLane) (f finding, ok bool) {
	if !l.lossless || l.intent.trust != byDSCP {
		return f, false
	}
	f = finding{object: l.object(), basis: l.intent.from, unknown: "the driver does not report it"}
	f.evidence = "PFC is wanted on " + values.List(l.intent.pfc)
	var found, want []string
	known := l.q.Trust != ""
	for _, d := range l.dscps(m.lanes) {
		p, ok := mapped(l.q, l.Driver, d)
		known = known && ok
		found = append(found, fmt.Sprintf("%d:%d", d, p))
		want = append(want, fmt.Sprintf("%d:%d", d, l.wantedPriority(d)))
	}
	if f.want = strings.Join(want, " "); known {
		f.found = strings.Join(found, " ")
	}
	f.meets = f.found == f.want
	f.set = func(want string) string {
		return mapCommand + " " + strings.Join(words.Map(strings.Fields(want), values.Shell), " ")
	}
	l.contradicting(&f, func(p int) bool { return !f.meets && hasPFC(l.q, p) })
	return f, true
}

// contradicting completes the finding of a setting with the chains that it makes lossy: those whose class is as
// wanted, and of whose wanted priority the setting is not.
func (l *trafficLane) contradicting(f *finding, wrong func(priority int) bool) {
	for i := range l.chains {
		c := &l.chains[i]
		if !c.known() || l.q.PFC == nil || l.q.Trust != byDSCP || hasPFC(l.q, c.priority) || !l.meets(c) ||
			!wrong(l.wantedPriority(c.class>>2)) {
			continue
		}
		if x, ok := l.lossy(c); ok {
			f.lossy = append(f.lossy, x)
		}
		if !f.contradicts {
			f.contradicts, f.basis, f.evidence = true, hostdata.SetupMachine, c.String()
			if c.job != nil {
				f.evidence = c.job.name + ": " + f.evidence
			}
		}
	}
}
