package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/snapshot/qp"
)

func rdmaPath(device string, port int, what string) string {
	return fmt.Sprintf("rdma/%s/%d/%s", device, port, what)
}

func holdersPath(device string) string       { return "rdma/" + device + "/holders" }
func ethtoolPath(netdev, what string) string { return "ethtool/" + netdev + "/" + what }
func dcbPath(netdev string) string           { return "dcb/" + netdev + "/ieee" }

func subnetPath(device string, port int, what string) string {
	return fmt.Sprintf("subnet/%s/%d/%s", device, port, what)
}

// agentPath returns the entry of what an agent reports, by its LID and the port.
func agentPath(device string, port int, what string, a *host.Agent) string {
	return subnetPath(device, port, fmt.Sprintf("%s/%d-%d", what, a.LID, a.Port))
}

func managerPath(device string, port int, lid uint16) string {
	return subnetPath(device, port, fmt.Sprintf("manager/%d", lid))
}

// answers is the requests to a machine. They are passed on and recorded, or answered from a recording: an answer is one
// entry, which answer.Encode writes by the form of its type.
type answers struct {
	recorder *Recorder // of the machine
	player   *Player   // if there is no machine
}

// query returns the answer with a name: the recorded one, or that of the machine, which is recorded.
func query[T any](a answers, name string, of func(h *host.Host) (T, error)) (T, error) {
	if a.player != nil {
		return answerOf[T](a.player, name)
	}
	got, err := of(a.recorder.inner)
	a.recorder.answer(name, answer.EncodeAt(got, a.recorder.start(false)), err)
	return got, err
}

// answerOf returns a recorded answer.
func answerOf[T any](p *Player, name string) (got T, err error) {
	b, err := p.Read(name, nil)
	if err != nil {
		return got, err
	}
	return answer.DecodeAt[T](name, b, p.base)
}

// Port is RDMA netlink PORT_GET.
func (a answers) Port(ctx context.Context, device string, port int) (host.RDMAPort, error) {
	return query(a, rdmaPath(device, port, "port"),
		func(h *host.Host) (host.RDMAPort, error) { return h.RDMA.Port(ctx, device, port) })
}

// System is RDMA netlink SYS_GET.
func (a answers) System(ctx context.Context) (host.RDMASystem, error) {
	return query(a, answer.SystemPath, func(h *host.Host) (host.RDMASystem, error) { return h.RDMA.System(ctx) })
}

// Stats is RDMA netlink STAT_GET.
func (a answers) Stats(ctx context.Context, device string, port int, buf []host.Stat) ([]host.Stat, error) {
	return query(a, rdmaPath(device, port, "stats"), func(h *host.Host) ([]host.Stat, error) {
		return h.RDMA.Stats(ctx, device, port, buf)
	})
}

// Holders is RDMA netlink RES_CTX_GET, RES_MR_GET and RES_QP_GET.
func (a answers) Holders(ctx context.Context, device string, qps bool) ([]host.RDMAHolder, error) {
	return query(a, holdersPath(device),
		func(h *host.Host) ([]host.RDMAHolder, error) { return h.RDMA.Holders(ctx, device, qps) })
}

// LinkState is ethtool LINKSTATE_GET.
func (a answers) LinkState(ctx context.Context, netdev string) (host.LinkState, error) {
	return query(a, ethtoolPath(netdev, "linkstate"), func(h *host.Host) (host.LinkState, error) {
		return h.Ethtool.LinkState(ctx, netdev)
	})
}

// LinkModes is ethtool LINKMODES_GET.
func (a answers) LinkModes(ctx context.Context, netdev string) (host.LinkModes, error) {
	m, err := query(a, ethtoolPath(netdev, "linkmodes"), func(h *host.Host) (host.LinkModes, error) {
		return h.Ethtool.LinkModes(ctx, netdev)
	})
	return m.Known(), err
}

// Pause is ethtool PAUSE_GET.
func (a answers) Pause(ctx context.Context, netdev string) (host.Pause, error) {
	return query(a, ethtoolPath(netdev, "pause"),
		func(h *host.Host) (host.Pause, error) { return h.Ethtool.Pause(ctx, netdev) })
}

// FEC is ethtool FEC_GET.
func (a answers) FEC(ctx context.Context, netdev string) (host.FEC, error) {
	return query(a, ethtoolPath(netdev, "fec"), func(h *host.Host) (host.FEC, error) { return h.Ethtool.FEC(ctx, netdev) })
}

// NetdevStats is ethtool GSTATS.
func (a answers) NetdevStats(ctx context.Context, netdev string) ([]host.Stat, error) {
	return query(a, ethtoolPath(netdev, "stats"),
		func(h *host.Host) ([]host.Stat, error) { return h.Ethtool.NetdevStats(ctx, netdev) })
}

// StandardStats is ethtool STATS_GET.
func (a answers) StandardStats(ctx context.Context, netdev string) ([]host.Stat, error) {
	return query(a, ethtoolPath(netdev, "standard"), func(h *host.Host) ([]host.Stat, error) {
		return h.Ethtool.StandardStats(ctx, netdev)
	})
}

// Health is devlink HEALTH_REPORTER_GET. Of an error with an answer, the answer is recorded.
func (a answers) Health(ctx context.Context) ([]host.HealthReporter, error) {
	var partly error
	reporters, err := query(a, answer.HealthPath, func(h *host.Host) (all []host.HealthReporter, err error) {
		if all, err = h.Devlink.Health(ctx); len(all) > 0 {
			partly, err = err, nil
		}
		return all, err
	})
	return reporters, cmp.Or(err, partly)
}

// IEEE is DCB IEEE_GET.
func (a answers) IEEE(ctx context.Context, netdev string) (dcb.Config, error) {
	c, err := query(a, dcbPath(netdev), func(h *host.Host) (dcb.Config, error) { return h.DCB.IEEE(ctx, netdev) })
	dcb.SortApps(c.Apps)
	return c, err
}

// Ends returns both ends of a link. In a replay it counts the datagrams: one for the local port, three for the far end,
// one more for a switch.
func (a answers) Ends(ctx context.Context, device string, port int) (host.IBLink, error) {
	l, err := query(a, subnetPath(device, port, "link"), func(h *host.Host) (host.IBLink, error) {
		return h.Subnet.Ends(ctx, device, port)
	})
	switch {
	case err != nil, a.player == nil:
	case l.FarType == nil:
		l.Requests = 1
	case *l.FarType == uint64(mad.Switch):
		l.Requests = 5
	default:
		l.Requests = 4
	}
	return l, err
}

// Counters returns the counters of a performance management agent.
func (a answers) Counters(ctx context.Context, device string, port int, of *host.Agent) (host.IBCounters, error) {
	return query(a, agentPath(device, port, "agent", of), func(h *host.Host) (host.IBCounters, error) {
		return h.Subnet.Counters(ctx, device, port, of)
	})
}

// PortFEC returns the FEC of an InfiniBand port.
func (a answers) PortFEC(ctx context.Context, device string, port int, of *host.Agent) (host.IBFEC, error) {
	return query(a, agentPath(device, port, "fec", of), func(h *host.Host) (host.IBFEC, error) {
		return h.Subnet.PortFEC(ctx, device, port, of)
	})
}

// PortSettings returns the settings of the subnet manager for a port.
func (a answers) PortSettings(ctx context.Context, device string, port int) (host.IBPortSettings, error) {
	return query(a, subnetPath(device, port, "settings"), func(h *host.Host) (host.IBPortSettings, error) {
		return h.Subnet.PortSettings(ctx, device, port)
	})
}

// Manager returns a subnet manager's answer.
func (a answers) Manager(ctx context.Context, device string, port int, lid uint16) (host.IBManager, error) {
	return query(a, managerPath(device, port, lid), func(h *host.Host) (host.IBManager, error) {
		return h.Subnet.Manager(ctx, device, port, lid)
	})
}

// Pods returns the kubelet's answer; none in a round of a replay without it.
func (a answers) Pods(ctx context.Context) ([]accel.Pod, error) {
	pods, err := query(a, answer.PodsPath, func(h *host.Host) ([]accel.Pod, error) { return h.Pods.Pods(ctx) })
	if a.player != nil && access.IsAbsent(err) {
		return nil, nil
	}
	return pods, err
}

// Launchers returns the services that start jobs. Captures of earlier versions have none.
func (a answers) Launchers(ctx context.Context, names []string) ([]hostdata.Launcher, bool, error) {
	l, err := query(a, answer.LaunchersPath, func(h *host.Host) (answer.LauncherSearch, error) {
		found, whole, err := h.Launchers.Launchers(ctx, names)
		return answer.LauncherSearch{Found: found, Cut: !whole}, err
	})
	if a.player != nil && err == nil && l.Found == nil {
		l.Found = []hostdata.Launcher{}
	}
	return l.Found, err == nil && !l.Cut, err
}

// QueuePairs returns the connected queue pairs of a device. Captures of earlier versions have none.
func (a answers) QueuePairs(ctx context.Context, device string) ([]qp.QueuePair, error) {
	return query(a, answer.QueuePairsOf(device),
		func(h *host.Host) ([]qp.QueuePair, error) { return h.RDMA.QueuePairs(ctx, device) })
}

// Connections returns the connected IDs of rdma_cm. Captures of earlier versions have none.
func (a answers) Connections(ctx context.Context, device string) ([]qp.Connection, error) {
	return query(a, answer.ConnectionsOf(device),
		func(h *host.Host) ([]qp.Connection, error) { return h.RDMA.Connections(ctx, device) })
}

// KernelLog returns the events of the kernel log, with their lines as they were printed only if that is wanted.
func (a answers) KernelLog(ctx context.Context) (host.KernelLogReading, error) {
	reading, err := query(a, answer.KernelLogPath, func(h *host.Host) (host.KernelLogReading, error) {
		reading, err := h.KernelLog.KernelLog(ctx)
		if !a.recorder.WholeKernelLog {
			reading.Events = withoutLines(reading.Events)
		}
		return reading, err
	})
	reading.Events = reading.Events[max(0, len(reading.Events)-host.MaxKernelEvents):]
	return reading, err
}

func withoutLines(events []host.KernelEvent) []host.KernelEvent {
	events = slices.Clone(events)
	for i := range events {
		events[i].Line = ""
	}
	return events
}

// Traced returns the observation of the eBPF programs. Times are recorded as ages at the first reading. Without an
// entry nothing was observed.
func (a answers) Traced(ctx context.Context) (accel.Trace, error) {
	t, err := query(a, answer.TracePath, func(h *host.Host) (accel.Trace, error) {
		t, err := h.Tracer.Traced(ctx)
		a.recorder.start(true)
		return t, err
	})
	if a.player != nil && access.IsAbsent(err) {
		err = host.ErrNotTracing
	}
	return t, err
}

// recordedPairs limits the events of queue pairs in one reading of a capture.
const recordedPairs = 1024

// Pairs returns the observation of queue pairs, as Traced. A capture has the latest events of each reading.
func (a answers) Pairs(ctx context.Context, after uint64) (qp.Pairs, error) {
	if a.player != nil {
		p, err := query(a, answer.PairsPath, func(*host.Host) (qp.Pairs, error) { return qp.Pairs{}, nil })
		if access.IsAbsent(err) {
			err = host.ErrNotTracing
		}
		p.Events = slices.DeleteFunc(p.Events, func(e qp.PairEvent) bool { return e.Seq <= after })
		return p, err
	}
	var all qp.Pairs
	_, err := query(a, answer.PairsPath, func(h *host.Host) (qp.Pairs, error) {
		var err error
		all, err = h.Tracer.Pairs(ctx, after)
		a.recorder.start(true)
		recorded := all
		recorded.Events = all.Events[max(0, len(all.Events)-recordedPairs):]
		return recorded, err
	})
	return all, err
}

// MayTrace reports whether the recorded machine allows tracing. A replay has no kernel.
func (a answers) MayTrace() bool { return a.player == nil && a.recorder.inner.Tracer.MayTrace() }

// Trace only ends with ctx, and in a replay at once.
func (a answers) Trace(ctx context.Context) error {
	if a.player != nil {
		return nil
	}
	return a.recorder.inner.Tracer.Trace(ctx)
}
