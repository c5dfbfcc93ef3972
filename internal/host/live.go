package host

import (
	"context"
	"errors"
	"syscall"
	"time"

	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/transceiver"
)

// Live accesses the machine that the program runs on, or a tree of files copied from one.
type Live struct {
	Host
	tree *tree
	rdma *rdmaClient
	eth  *ethtoolClient
	log  *kmsg
}

// OpenLive opens the trees, and netlink if the sys tree is that of the running kernel: a copied tree has only files.
func OpenLive(p Paths) (*Live, error) {
	t, err := openTree(p)
	if err != nil {
		return nil, err
	}
	l := &Live{tree: t, Host: Host{
		Files: t, RDMA: NoNetlink{}, Ethtool: NoNetlink{}, Devlink: NoNetlink{}, DCB: NoNetlink{}, GPUs: NoNVML{},
		Processes: newProcessTable(t, p.JobNames), Launchers: t, Now: time.Now,
		Turns: NewTurns(), RTNL: NewRTNL(), Meter: &Meter{}, Budget: NewBudget(time.Now),
	}}
	if p.Helper != "" {
		helper := helperClient{p.Helper, p.JobNames}
		l.Files, l.Processes = helperFiles{t, helper}, helper
	}
	if p.PodResources != "" {
		l.Pods = kubelet(p.PodResources)
	}
	if t.isSysfs() {
		here := newNetwork(t)
		l.rdma, l.eth = newRDMAClient(), &ethtoolClient{here: here}
		l.rdma.leader = t.leader
		l.RDMA, l.Ethtool, l.Devlink, l.DCB = l.rdma, l.eth, &devlinkClient{here: here}, dcbClient{here}
		l.Events, l.LLDP = newEvents(here, EventBuffer), lldpSocket{here}
		l.Subnet = NewSubnet(func(device string, port int, classes ...uint8) (mad.Transport, error) {
			u, _, err := openMAD(t, device, port, classes...)
			return u, err
		})
		l.GPUs = newNVMLGPUs(newNVML, nvidiactl)
		l.Tracer = newTracer(t)
		l.log = newKmsg(t)
		l.KernelLog = l.log
	}
	return l, nil
}

// Forget discards all cached directories and files. A tree that is written in bursts requires it: timestamps of its
// file system may be too coarse to show two changes of a directory.
func (l *Live) Forget() { l.tree.forgetAll() }

// Close closes all descriptors that are not in use.
func (l *Live) Close() error {
	if l.rdma != nil {
		l.rdma.close()
		l.eth.stats.close()
		return errors.Join(l.log.close(), l.tree.close())
	}
	return errors.Join(l.tree.close())
}

// NoNetlink is a kernel without these netlink families: all its answers are EPROTONOSUPPORT.
type NoNetlink struct{}

func none[T any](family string) (answer T, err error) {
	return answer, &Error{"query", family, syscall.EPROTONOSUPPORT}
}

// Port is not supported.
func (NoNetlink) Port(context.Context, string, int) (RDMAPort, error) { return none[RDMAPort]("rdma") }

// System is not supported.
func (NoNetlink) System(context.Context) (RDMASystem, error) { return none[RDMASystem]("rdma") }

// Stats is not supported.
func (NoNetlink) Stats(context.Context, string, int, []Stat) ([]Stat, error) { return none[[]Stat]("rdma") }

// Holders is not supported.
func (NoNetlink) Holders(context.Context, string, bool) ([]RDMAHolder, error) { return none[[]RDMAHolder]("rdma") }

// LinkModes is not supported.
func (NoNetlink) LinkModes(context.Context, string) (LinkModes, error) { return none[LinkModes]("ethtool") }

// ModuleEEPROM is not supported.
func (NoNetlink) ModuleEEPROM(context.Context, string, transceiver.Ref) ([]byte, error) { return none[[]byte]("ethtool") }

// LinkState is not supported.
func (NoNetlink) LinkState(context.Context, string) (LinkState, error) { return none[LinkState]("ethtool") }

// Pause is not supported.
func (NoNetlink) Pause(context.Context, string) (Pause, error) { return none[Pause]("ethtool") }

// FEC is not supported.
func (NoNetlink) FEC(context.Context, string) (FEC, error) { return none[FEC]("ethtool") }

// NetdevStats is not supported.
func (NoNetlink) NetdevStats(context.Context, string) ([]Stat, error) { return none[[]Stat]("ethtool") }

// StandardStats is not supported.
func (NoNetlink) StandardStats(context.Context, string) ([]Stat, error) { return none[[]Stat]("ethtool") }

// Health is not supported.
func (NoNetlink) Health(context.Context) ([]HealthReporter, error) { return none[[]HealthReporter]("devlink") }

// IEEE is not supported.
func (NoNetlink) IEEE(context.Context, string) (DCBConfig, error) { return none[DCBConfig]("dcb") }
