package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

func pfcText(l *trafficLane) string {
	if l.q.PFC == nil {
		return ""
	}
	return values.ListOrNone(priorities(l.q.PFC))
}

func findPFC(m *machine, l *trafficLane) (f finding, ok bool) {
	f = finding{
		object: l.object(), found: pfcText(l), unknown: "the driver does not report it", basis: hostdata.SetupMachine,
	}
	f.set = setPFC
	if !l.lossless {
		return f, f.found != ""
	}
	f.want, f.basis, f.because = values.List(l.intent.pfc), l.intent.from, l.intent.because
	if f.meets = f.found == f.want; !f.meets {
		f.set = func(want string) string { return setPFC(want) + l.otherWay() }
	}
	l.contradicting(&f, func(p int) bool { return !hasPFC(l.q, p) })
	return f, true
}

// otherWay returns the command for the opposite, where no sibling has PFC and the class alone says which priority: the
// class for the priority with PFC.
func (l *trafficLane) otherWay() string {
	found := priorities(l.q.PFC)
	if l.intent.because == ofMost || len(found) == 0 || l.traffic == nil || l.intent.from != hostdata.SetupMachine {
		return ""
	}
	for dscp := range 64 {
		if p, ok := mapped(l.q, l.Driver, dscp); ok && hasPFC(l.q, p) {
			return fmt.Sprintf(" # or, if the switch has PFC on %s: "+strings.ReplaceAll(classRemedy, "{wanted}", "%d"),
				values.List(found), dscp<<2|2)
		}
	}
	return ""
}

func setPFC(want string) string {
	command := "dcb pfc set dev {netdev} prio-pfc all:off"
	if want == "none" {
		return command
	}
	return command + " " + strings.ReplaceAll(want, ",", ":on ") + ":on"
}

// findNotification: the in-tree driver of mlx5 has the settings in debugfs only, where each read is a firmware
// command.
func findNotification(m *machine, l *trafficLane) (f finding, ok bool) {
	p := l.priority
	if p < 0 || l.Driver != "mlx5_core" || l.control == "zerotouch_rtt" || l.control == "off" {
		return f, false
	}
	f = finding{
		object: l.object(), want: "on", basis: hostdata.SetupGuide, evidence: fmt.Sprintf("RDMA has priority %d", p),
	}
	switch np, rp := l.q.Notification[p], l.q.Reaction[p]; {
	case !m.ofed(l.Driver):
		f.unknown = "only MLNX_OFED exposes it"
		if !l.lossless {
			return f, false
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
		f.basis, f.contradicts = hostdata.SetupMachine, true
	}
	f.set = func(want string) string {
		value := 0
		if want == "on" {
			value = 1
		}
		const dir = "/sys/class/net/{netdev}/ecn/"
		return fmt.Sprintf("echo %d > %sroce_np/enable/%d; echo %d > %sroce_rp/enable/%d", value, dir, p, value, dir, p)
	}
	return f, true
}

func findCNP(m *machine, l *trafficLane) (f finding, ok bool) {
	if l.priority < 0 || l.q.CNPPriority == nil || l.control == "zerotouch_rtt" || l.control == "off" {
		return f, false
	}
	cnp := int(*l.q.CNPPriority)
	if l.q.CNPDSCP != nil && *l.q.CNPDSCP < 64 {
		if p, ok := priorityOf(l.q, l.Driver, int(*l.q.CNPDSCP)); ok {
			cnp = p
		}
	}
	f = finding{
		object: l.object(), found: strconv.Itoa(cnp), want: fmt.Sprintf("other than %d", l.priority),
		meets: cnp != l.priority,
		basis: hostdata.SetupGuide, evidence: fmt.Sprintf("RDMA has priority %d", l.priority), set: setCNP,
	}
	return f, true
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

func findETS(m *machine, l *trafficLane) (f finding, ok bool) {
	p, classes := l.priority, l.q.Classes
	if !l.lossless || p <= 0 || classes == nil { // priority 0 has the class of TCP
		return f, false
	}
	class := classes.OfPrio[p]
	if class >= snapshot.Priorities {
		return f, false
	}
	f = finding{object: l.object(), found: fmt.Sprintf("class %d", class), basis: hostdata.SetupGuide}
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
	return f, true
}

// freeClass returns the lowest class without a priority; the last class if there is none.
func freeClass(c *snapshot.Classes) int {
	for i := range snapshot.Priorities {
		if !slices.Contains(c.OfPrio[:], uint64(i)) {
			return i
		}
	}
	return snapshot.Priorities - 1
}
