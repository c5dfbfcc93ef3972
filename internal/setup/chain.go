package setup

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// roce is an Ethernet port that carries RoCE, with its priorities.
type roce struct {
	physicalPort
	traffic  *uint64 // class of all packets of the port: MLNX_OFED; nil: not set
	control  string  // pinned congestion control
	netdevs  []*snapshot.NetdevQoS
	lossless bool
	pinned   bool // as lossless
}

// nodeCA is RDMA_NODE_IB_CA of enum rdma_node_type: iWARP devices are RNICs, and EFA has a link layer of its own.
const nodeCA = 1

// isRoCE reports whether a port carries RoCE.
func (p physicalPort) isRoCE() bool {
	return p.LinkLayer == "Ethernet" && p.NodeType != nil && *p.NodeType == nodeCA
}

// roces returns the RoCE ports whose priorities were read.
func (m *machine) roces() (out []*roce) {
	if m.QoS == nil || m.InfiniBand == nil {
		return nil
	}
	intended := m.intendedLossless()
	for _, p := range m.ports() {
		r := &roce{physicalPort: p, lossless: intended[p.Role]}
		for j := range m.QoS.Netdevs {
			if q := &m.QoS.Netdevs[j]; q.Device == p.Name && q.Port == p.Number {
				r.netdevs = append(r.netdevs, q)
			}
		}
		if !p.isRoCE() || len(r.netdevs) == 0 {
			continue
		}
		same := func(q snapshot.PortQoS) bool { return q.Device == p.Name && q.Port == p.Number }
		if j := slices.IndexFunc(m.QoS.Ports, same); j >= 0 {
			q := &m.QoS.Ports[j]
			r.traffic, r.control, r.pinned = q.TrafficClass, q.PinnedCongestionControl, q.PinnedRoCE == "lossless"
			r.lossless = r.pinned || r.lossless && q.PinnedRoCE != "lossy"
		}
		out = append(out, r)
	}
	return out
}

// intendedLossless returns the roles whose ports are intended to be lossless: PFC is enabled on more than half, at
// least two, of the Ethernet ports of the role. This is the definition of port:rdma_port_roce:lossless in
// rules/node/roce_lossless.rules.yml, pins apart.
func (m *machine) intendedLossless() map[string]bool {
	ports, enabled := map[string]int{}, map[string]int{}
	for d, p := range snapshot.PortsOf(m.InfiniBand.Devices) {
		if p.LinkLayer != "Ethernet" {
			continue
		}
		ports[p.Role]++
		if slices.ContainsFunc(m.QoS.Netdevs, func(q snapshot.NetdevQoS) bool {
			return q.Device == d.Name && q.Port == p.Number && len(priorities(q.PFC)) > 0
		}) {
			enabled[p.Role]++
		}
	}
	out := map[string]bool{}
	for role, n := range ports {
		out[role] = n >= 2 && enabled[role]*2 > n
	}
	return out
}

// priorities returns the priorities with PFC.
func priorities(p *snapshot.PFC) (out []int) {
	for i := range snapshot.Priorities {
		if p != nil && p.Enabled[i] {
			out = append(out, i)
		}
	}
	return out
}

// hasPFC reports whether a priority has PFC.
func hasPFC(q *snapshot.NetdevQoS, priority int) bool {
	return q.PFC != nil && priority >= 0 && q.PFC.Enabled[priority]
}

// byDSCP is trust in the DSCP of a packet.
const byDSCP = "dscp"

// priorityOf returns the priority of a DSCP; ok is false if the driver does not report the mapping, or the DSCP is not
// trusted.
func priorityOf(q *snapshot.NetdevQoS, driver string, dscp int) (priority int, ok bool) {
	if q.Trust != byDSCP {
		return -1, false
	}
	return mapped(q, driver, dscp)
}

// chain is the way of RoCE packets of one origin on a netdev: traffic class, DSCP (its upper six bits), priority by
// trust and DSCP map.
type chain struct {
	*roce
	q        *snapshot.NetdevQoS
	job      *jobClass // nil: the setting of the port
	class    int
	priority int // -1: unknown
}

func (m *machine) chain(r *roce, q *snapshot.NetdevQoS, class int, job *jobClass) chain {
	c := chain{roce: r, q: q, job: job, class: class, priority: -1}
	if p, ok := priorityOf(q, r.Driver, class>>2); ok {
		c.priority = p
	} else if q.Trust == "pcp" && job != nil { // the priority is the service level
		c.priority = job.level & 7
	}
	return c
}

// known reports whether the priority is certain to be used: a setting says so, not a default.
func (c *chain) known() bool { return c.priority >= 0 && (c.job == nil || c.job.certain) }

func (c *chain) String() string {
	selected := fmt.Sprintf("DSCP %d", c.class>>2)
	if c.q.Trust != byDSCP {
		selected = fmt.Sprintf("service level %d", c.job.level)
	}
	enabled := "none"
	if list := priorities(c.q.PFC); len(list) > 0 {
		enabled = values.List(list)
	}
	return fmt.Sprintf("%s has priority %d on %s; PFC is enabled on %s", selected, c.priority, c.q.Name, enabled)
}

// jobClass is the traffic class of a job.
type jobClass struct {
	name     string // of the job
	variable string // that sets it; NCCL_IB_TC also if it is not set
	class    int
	level    int    // service level
	certain  bool   // set, or the default of a library without another way to set it
	unset    bool   // the default of the library
	unknown  string // why it is not known
	devices  func(device string) bool
}

// allClasses returns the traffic classes of the jobs on this host that may send to others, each once.
func (m *machine) allClasses() (out []jobClass) {
	if m.GDR == nil || m.InfiniBand == nil {
		return nil
	}
	for i := range m.GDR.Processes {
		p := &m.GDR.Processes[i]
		if len(p.Verbs) == 0 || nccl.Env(p.Env).Nodes() == 1 {
			continue
		}
		for _, c := range []*jobClass{m.ncclClass(p), ucxClass(p)} {
			if c == nil {
				continue
			}
			if c.name = p.Job; c.name == "" {
				c.name = p.Command
			}
			c.devices = m.devicesOf(p)
			if !slices.ContainsFunc(out, func(o jobClass) bool {
				return o.name == c.name && o.variable == c.variable && o.class == c.class && o.level == c.level &&
					o.unknown == c.unknown &&
					m.sameDevices(&o, c)
			}) {
				out = append(out, *c)
			}
		}
	}
	return out
}

// ncclClass is NCCL_IB_TC, which RCCL reads as well. The default is 0; since 2.26 the program may set one for a
// communicator (ncclConfig_t.trafficClass), which the variable overrides (ncclIbConnect, src/transport/net_ib).
func (m *machine) ncclClass(p *accel.Process) *jobClass {
	if !p.HasNCCL || p.Plugin {
		return nil
	}
	// With NCCL_IB_DISABLE, which is a setting of its own, the class is that of the next start.
	sockets := cInteger(jobSetting(p, "NCCL_IB_DISABLE"), 0) != 0
	c := &jobClass{variable: "NCCL_IB_TC", class: cInteger(jobSetting(p, "NCCL_IB_TC"), -1)}
	c.level = max(cInteger(jobSetting(p, "NCCL_IB_SL"), 0), 0)
	switch {
	case c.class >= 0:
		c.certain = true
	case p.Conf == nil:
		c.unknown = "settings of the job are not readable"
	default:
		major, minor, ok := ncclVersion(p.NCCL)
		c.class, c.unset, c.certain = 0, true, ok && (major < 2 || major == 2 && minor < 26)
	}
	c.certain = c.certain && !sockets
	return c
}

// ucxClass is UCX_IB_TRAFFIC_CLASS. Its default, auto, is 106 for RoCE v2 (src/uct/ib/base/ib_iface.c); whether the
// process uses UCX is unknown then.
func ucxClass(p *accel.Process) *jobClass {
	text := p.Env["UCX_IB_TRAFFIC_CLASS"]
	class := cInteger(text, -1)
	if text == "auto" {
		class = 106
	}
	if class < 0 {
		return nil
	}
	return &jobClass{
		variable: "UCX_IB_TRAFFIC_CLASS", class: class, level: max(cInteger(p.Env["UCX_IB_SL"], 0), 0), certain: true,
	}
}

// jobSetting returns a setting of NCCL: the environment comes before the files.
func jobSetting(p *accel.Process, name string) string {
	return cmp.Or(p.Env[name], p.Conf[name])
}

// cInteger returns a number as strtoll reads it in base 0.
func cInteger(text string, otherwise int) int {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 0, 32)
	if err != nil {
		return otherwise
	}
	return int(n)
}

// ncclVersion returns the beginning of a version of NCCL, 2.22.3.
func ncclVersion(text string) (major, minor int, ok bool) {
	_, err := fmt.Sscanf(text, "%d.%d", &major, &minor)
	return major, minor, err == nil
}

// devicesOf reports whether a process may use a device: those for jobs that NCCL would use with its GPUs, else any
// that it would use, else those that the process holds.
func (m *machine) devicesOf(p *accel.Process) func(device string) bool {
	var eligible, compute, held []string
	for _, pair := range m.GDR.Pairs {
		if pair.NIC < 0 || pair.NIC >= len(m.GDR.NICs) || pair.GPU < 0 || pair.GPU >= len(m.GDR.GPUs) {
			continue
		}
		if user := m.GDR.GPUs[pair.GPU].Process; pair.Eligible && user != nil && user.PID == p.PID {
			nic := &m.GDR.NICs[pair.NIC]
			if eligible = append(eligible, nic.Device); nic.Role == "compute" {
				compute = append(compute, nic.Device)
			}
		}
	}
	if len(compute) > 0 {
		eligible = compute
	}
	known := false
	if m.InfiniBand.Stack != nil {
		for _, n := range m.InfiniBand.Stack.Nodes {
			known = true
			if slices.Contains(p.Verbs, n.Name) {
				held = append(held, n.Device)
			}
		}
	}
	return func(device string) bool {
		switch {
		case len(eligible) > 0:
			return slices.Contains(eligible, device)
		case known:
			return slices.Contains(held, device)
		}
		return true
	}
}

// sameDevices reports whether two jobs use the same devices.
func (m *machine) sameDevices(a, b *jobClass) bool {
	return !slices.ContainsFunc(m.devices, func(d *snapshot.Device) bool { return a.devices(d.Name) != b.devices(d.Name) })
}

// chains returns the chains from traffic class to priority of the RoCE packets of a netdev. A class that MLNX_OFED
// sets for all packets of a port overrides the classes of jobs.
func (m *machine) chains(r *roce, q *snapshot.NetdevQoS, jobs []jobClass) (out []chain) {
	if r.traffic != nil {
		return []chain{m.chain(r, q, int(*r.traffic), nil)}
	}
	for i := range jobs {
		if j := &jobs[i]; j.unknown == "" && j.devices(r.Name) {
			out = append(out, m.chain(r, q, j.class, j))
		}
	}
	return out
}

// rdmaPriority returns the priority that RDMA traffic of a netdev has, or on a lossless port should have; -1: unknown.
func (l *trafficLane) rdmaPriority() int {
	used := -1
	for i := range l.chains {
		c := &l.chains[i]
		p := c.priority
		if l.lossless && l.intent.trust == byDSCP {
			p = l.wantedPriority(c.class >> 2)
		}
		if c.known() && (used < 0 || !slices.Contains(l.intent.pfc, used)) {
			used = p
		}
	}
	switch {
	case !l.lossless || slices.Contains(l.intent.pfc, used):
		return used
	case len(l.intent.pfc) == 1:
		return l.intent.pfc[0]
	}
	return -1
}

// lossy returns the lossy class of a chain that certainly ends at a priority without PFC on a lossless ACTIVE port; ok
// is false for other chains.
func (l *trafficLane) lossy(c *chain) (x hostdata.LossyClass, ok bool) {
	if !l.lossless || !active(l.Port) || !c.known() || l.q.Trust != byDSCP || l.q.PFC == nil || hasPFC(l.q, c.priority) {
		return x, false
	}
	x = hostdata.LossyClass{
		Device: l.Name, Port: l.Number, Netdev: l.q.Name, Priority: c.priority, Setting: "traffic_class", Class: c.class,
	}
	if c.job != nil {
		x.Job, x.Setting = c.job.name, c.job.variable
	}
	return x, true
}

// LossyClasses returns the lossy classes of the rows, each once, without classes that the site accepts.
func LossyClasses(rows []hostdata.SetupRow) (out []hostdata.LossyClass) {
	for i := range rows {
		for _, x := range rows[i].Lossy {
			if !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return out
}
