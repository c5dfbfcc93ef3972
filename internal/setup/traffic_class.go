package setup

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot/hostdata"
)

// wantedPortClass returns the traffic class wanted of a lossless port: that of most siblings, if its packets are to
// have a priority with PFC.
func wantedPortClass(lanes []*trafficLane, l *trafficLane) int {
	if class, err := strconv.Atoi(usualOf(lanes, l.Role, portClass)); err == nil && l.carries(class) {
		return class
	}
	return wantedClass(l)
}

// portClass returns the class of all packets of a port; empty: none is set.
func portClass(l *trafficLane) string {
	if l.traffic == nil {
		return ""
	}
	return strconv.FormatUint(*l.traffic, 10)
}

// lacksClass reports whether a port has no class, unlike most of its siblings.
func (m *machine) lacksClass(l *trafficLane) bool {
	return l.traffic == nil && m.ofed(l.Driver) && usualOf(m.lanes, l.Role, portClass) != ""
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
	var lossless []*trafficLane
	for _, l := range m.lanes {
		// A class that the port lacks is the port's setting.
		if l.traffic != nil || !job.devices(l.Name) || !active(l.Port) || m.lacksClass(l) {
			continue
		}
		if used++; l.lossless {
			lossless = append(lossless, l)
		}
	}
	// Ports that want another class than most are not the job's setting.
	class, lossless := commonClass(lossless)
	for _, l := range lossless {
		f.want, f.basis = strconv.Itoa(class), lossless[0].intent.from
		c := m.chain(l.roce, l.q, job.class, &job)
		if job.unknown != "" || l.q.PFC == nil || l.meets(&c) {
			continue
		}
		f.meets = false
		f.contradicts = f.contradicts || job.certain && l.q.Trust == byDSCP && c.priority >= 0 && !hasPFC(l.q, c.priority)
		wrong = append(wrong, l.text(&c))
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
	if len(wrong) > 0 && lossless[0].intent.trust != byDSCP {
		level := map[string]string{"NCCL_IB_TC": "NCCL_IB_SL", "UCX_IB_TRAFFIC_CLASS": "UCX_IB_SL"}[job.variable]
		f.found = fmt.Sprintf("service level %d", job.level)
		f.want = fmt.Sprintf("service level %d", lossless[0].intent.pfc[0])
		f.remedy = fmt.Sprintf("export %s=%d # of the job", level, lossless[0].intent.pfc[0])
	}
	return f, f.found != "" || f.want != ""
}

// meets reports whether packets of a chain are to have a priority with PFC. Where the priority is that of a VLAN tag,
// it is the service level.
func (l *trafficLane) meets(c *chain) bool {
	if l.intent.trust != byDSCP && c.job != nil {
		return slices.Contains(l.intent.pfc, c.job.level&7)
	}
	return l.carries(c.class)
}

// text returns the way of the packets of a chain, as it is to be.
func (l *trafficLane) text(c *chain) string {
	if l.intent.trust != byDSCP || hasPFC(l.q, c.priority) {
		return fmt.Sprintf("%s; PFC is wanted on %s", strings.Split(c.String(), ";")[0], values.List(l.intent.pfc))
	}
	return c.String()
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
	file := fmt.Sprintf("sys/kernel/config/rdma_cm/%s/ports/%d/default_roce_tos", l.Name, l.Number)
	tos, exists := m.files.Text(file)
	f = finding{
		object: l.roce.object(), found: portClass(l), want: usualOf(m.lanes, l.Role, portClass),
		basis: hostdata.SetupMachine,
	}
	usual := f.want
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
		if f.meets = f.found == f.want; f.want != "" {
			f.because = ofMost
		}
		return f, true
	}
	f.want = strconv.Itoa(wantedPortClass(m.lanes, l))
	if f.want == usual {
		f.because = ofMost
	} else if usual == "" {
		f.basis = hostdata.SetupGuide
	}
	class, err := strconv.Atoi(f.found)
	switch c := m.chain(l.roce, l.q, class, nil); {
	case err != nil: // not set: jobs may set one, and their rows report whether it is right
		f.meets = usual == "" && len(l.chains) > 0
		f.contradicts = slices.ContainsFunc(l.chains, func(c chain) bool { _, ok := l.lossy(&c); return ok })
	case l.q.PFC == nil && usual != "":
		f.meets = f.found == f.want
	case l.carries(class):
		// That of most siblings is better, unless it makes no difference.
		f.meets = f.found == f.want || f.because == ""
	default:
		f.contradicts = l.traffic != nil && c.priority >= 0 && l.q.PFC != nil && !hasPFC(l.q, c.priority)
		f.basis, f.evidence, f.because = l.intent.from, l.text(&c), ""
		if class>>2 != 0 && (usual == "" || usual == f.found) {
			remedy, command := cmp.Or(f.remedy, classRemedy), strings.ReplaceAll(mapCommand, "{netdev}", values.Shell(l.q.Name))
			f.set = func(string) string {
				return fmt.Sprintf("%s # or map the DSCP of the class: %s %d:%d", remedy, command, class>>2, l.intent.pfc[0])
			}
		}
	}
	if f.contradicts && !f.meets {
		f.lossy = lossyOf(m.lanes, l.roce, f.found == "not set")
	}
	if f.meets && f.want != "" {
		f.want = f.found
	}
	return f, true
}

const (
	classRemedy = "echo {wanted} > /sys/class/infiniband/{device}/tc/{port}/traffic_class"
	mapCommand  = "dcb app replace dev {netdev} dscp-prio"
)

// lossyOf returns the lossy chains of the netdevs of a port: those of its own class, or those of jobs.
func lossyOf(lanes []*trafficLane, r *roce, ofJobs bool) (out []hostdata.LossyClass) {
	for _, l := range lanes {
		for i := range l.chains {
			x, ok := l.lossy(&l.chains[i])
			if ok && l.Name == r.Name && l.Number == r.Number && (l.chains[i].job != nil) == ofJobs {
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
