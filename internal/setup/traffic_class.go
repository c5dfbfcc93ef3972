package setup

import (
	"fmt"
	"slices"
	"strconv"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// losslessClass returns a traffic class whose DSCP has a priority with PFC: 106 (DSCP 26) if possible, otherwise the
// class of the lowest such DSCP. Its ECN field is ECT(0), 2. Without a DSCP map the default of mlx5 applies. It returns
// 0 if PFC is enabled on no priority.
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

// wantedClass returns the traffic class wanted of a lossless port: by its own PFC, else by that of another port of its
// role; without PFC on any, the class of the vendors' guides.
func wantedClass(lanes []*trafficLane, l *trafficLane) (class string, basis hostdata.SetupBasis) {
	for _, o := range append([]*trafficLane{l}, lanes...) {
		if want := losslessClass(o.q, o.Driver); want != 0 && o.Role == l.Role {
			return strconv.Itoa(want), hostdata.SetupMachine
		}
	}
	if l.q.PFC == nil { // unknown
		return "", hostdata.SetupMachine
	}
	return strconv.Itoa(guideClass), hostdata.SetupGuide
}

func sequence(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// findJobClass has a finding for each job and class. Where MLNX_OFED sets the class of all packets of a port, that of
// the job is not used.
func findJobClass(m *machine, job jobClass) (f finding, ok bool) {
	f = finding{
		object: object{name: job.name}, found: strconv.Itoa(job.class), meets: true, basis: hostdata.SetupMachine,
	}
	if job.unknown != "" {
		f.found, f.unknown = "", job.unknown
	}
	used, wrong := 0, []string{}
	for _, l := range m.lanes {
		if l.traffic != nil || !job.devices(l.Name) || !active(l.Port) {
			continue
		}
		used++
		if !l.lossless {
			continue
		}
		if f.want == "" {
			f.want, f.basis = wantedClass(m.lanes, l)
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
		return f, false
	case f.meets && f.found != "" && f.want != "":
		f.want = f.found
	case len(wrong) > 0:
		f.evidence = wrong[0] + more(len(wrong)-1)
		if job.unset {
			f.evidence = job.variable + " is not set; " + f.evidence
		}
	}
	f.remedy = fmt.Sprintf("export %s={wanted} # of the job", job.variable)
	if job.variable == "NCCL_IB_TC" {
		f.remedy += ", or in nccl.conf"
	}
	return f, f.found != "" || f.want != ""
}

func more(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; the same on another port"
	}
	return fmt.Sprintf("; the same on %d other ports", n)
}

// findPortClass compares the class that MLNX_OFED sets for all packets of a port. That of the connection manager
// applies only to its connections.
func findPortClass(m *machine, l *trafficLane) (f finding, ok bool) {
	value := func(l *trafficLane) string {
		if l.traffic == nil {
			return ""
		}
		return strconv.FormatUint(*l.traffic, 10)
	}
	file := fmt.Sprintf("sys/kernel/config/rdma_cm/%s/ports/%d/default_roce_tos", l.Name, l.Number)
	tos, exists := m.text(file)
	f = finding{
		object: l.roce.object(), found: value(l), want: usualOf(m.lanes, l.Role, value), basis: hostdata.SetupMachine,
	}
	if f.want != "" {
		f.evidence = "that of most ports of this role"
	}
	switch {
	case l.q != l.netdevs[0]: // the first stands for the port
		return f, false
	case l.traffic != nil:
	case m.ofed(l.Driver) && (l.lossless || f.want != ""):
		f.found = "not set"
	case exists:
		f.found, f.remedy = tos, "echo {wanted} > /"+file
	default:
		return f, false
	}
	if !l.lossless {
		f.meets = f.found == f.want
		return f, true
	}
	if f.want == "" {
		f.want, _ = wantedClass(m.lanes, l)
		f.basis = hostdata.SetupGuide
	}
	class, err := strconv.Atoi(f.found)
	c := m.chain(l.roce, l.q, class, nil)
	switch {
	case err != nil: // not set: jobs may set one
		f.meets = len(l.chains) > 0 && !slices.ContainsFunc(l.chains, func(c chain) bool { return !hasPFC(l.q, c.priority) })
	case c.priority < 0 || l.q.PFC == nil:
		f.meets = f.found == f.want
	case hasPFC(l.q, c.priority):
		f.meets = f.found == f.want || f.basis == hostdata.SetupGuide
	default:
		f.contradicts, f.basis, f.evidence = l.traffic != nil && l.q.PFC != nil, hostdata.SetupMachine, c.String()
		f.lossy = lossyOf(m.lanes, l.roce)
		if f.want == f.found { // as on the siblings: PFC or the map is wrong
			f.want, _ = wantedClass(m.lanes, l)
		}
	}
	if f.meets && f.want != "" {
		f.want = f.found
	}
	return f, true
}

// lossyOf returns the lossy chains of the netdevs of a port.
func lossyOf(lanes []*trafficLane, r *roce) (out []hostdata.LossyClass) {
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
	return m.Modules != nil && slices.ContainsFunc(m.Modules.Modules, func(x hostdata.Module) bool {
		return x.Name == driver && x.Flavour == "ofed"
	})
}
