package setup

import (
	"fmt"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
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
		Remedy: "echo {wanted} > /sys/class/infiniband/{device}/tc/{port}/traffic_class",
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
		Wanted: "on lossless ports a priority with PFC",
		Why:    "RDMA packets have a priority that is not lossless: they are dropped under congestion.",
		Remedy: "dcb app replace dev {netdev} dscp-prio {wanted}", Before: firstSwitch,
		Source: "NVIDIA, RoCE configuration: DSCP to priority mapping; dcb-app(8)",
		find:   perLane(findDSCPMap),
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
	priority int // of RDMA; -1: unknown
}

func (l *trafficLane) object() object {
	return object{device: l.Name, port: l.Number, netdev: l.q.Name}
}

// allLanes returns the netdevs of RoCE ports.
func (m *machine) allLanes() (out []*trafficLane) {
	for _, r := range m.roces() {
		for _, q := range r.netdevs {
			l := &trafficLane{roce: r, q: q, chains: m.chains(r, q, m.classes)}
			l.priority = m.rdmaPriority(r, q, l.chains)
			out = append(out, l)
		}
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
	var values []string
	for _, l := range lanes {
		if v := value(l); l.Role == role && v != "" {
			values = append(values, v)
		}
	}
	return majority(values, 2)
}

// portActive is ACTIVE of enum ib_port_state.
const portActive = 4

func findTrust(m *machine, l *trafficLane) (f finding, ok bool) {
	value := func(l *trafficLane) string { return l.q.Trust }
	f = finding{
		object: l.object(), found: l.q.Trust, unknown: "the driver does not report it", basis: hostdata.SetupMachine,
	}
	switch f.want = usualOf(m.lanes, l.Role, value); {
	case l.lossless && f.want != byDSCP:
		f.want, f.basis = byDSCP, hostdata.SetupGuide
	case f.want != "":
		f.evidence = "that of most ports of this role"
	}
	if f.found == "" && !l.lossless {
		return f, false
	}
	f.meets = f.found == f.want
	if l.Driver != "mlx5_core" {
		f.remedy = "dcb apptrust set dev {netdev} order {wanted}"
	}
	return f, true
}

// findDSCPMap checks the DSCP of the class of the port; without one, whether a DSCP leads to a priority with PFC. That
// of a job is the job's setting.
func findDSCPMap(m *machine, l *trafficLane) (f finding, ok bool) {
	enabled := priorities(l.q.PFC)
	if !l.lossless || l.q.Trust != byDSCP || len(enabled) == 0 {
		return f, false
	}
	f = finding{object: l.object(), basis: hostdata.SetupMachine, unknown: "the driver does not report it"}
	f.evidence = "PFC is enabled on " + numbersText(enabled)
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
	return f, true
}
