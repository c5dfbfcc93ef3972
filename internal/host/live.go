package host

import (
	"context"
	"errors"
	"syscall"
	"time"

	"rdma_exporter/internal/mad"
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
		l.rdma, l.eth = newRDMAClient(), &ethtoolClient{}
		l.rdma.leader = t.leader
		here := newNetwork(t)
		l.RDMA, l.Ethtool, l.Devlink, l.DCB = l.rdma, ethtoolHere{here, l.eth}, devlinkHere{here, &devlinkClient{}},
			dcbHere{here, dcbClient{}}
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

// NoNetlink is a kernel without these netlink families.
type NoNetlink struct{}

// Port returns EPROTONOSUPPORT.
func (NoNetlink) Port(context.Context, string, int) (RDMAPort, error) {
	return RDMAPort{}, &Error{"query", "rdma", syscall.EPROTONOSUPPORT}
}

// System returns EPROTONOSUPPORT.
func (NoNetlink) System(context.Context) (RDMASystem, error) {
	return RDMASystem{}, &Error{"query", "rdma", syscall.EPROTONOSUPPORT}
}

// Stats returns EPROTONOSUPPORT.
func (NoNetlink) Stats(context.Context, string, int, []Stat) ([]Stat, error) {
	return nil, &Error{"query", "rdma", syscall.EPROTONOSUPPORT}
}

// Holders returns EPROTONOSUPPORT.
func (NoNetlink) Holders(context.Context, string, bool) ([]RDMAHolder, error) {
	return nil, &Error{"query", "rdma", syscall.EPROTONOSUPPORT}
}

// LinkModes returns EPROTONOSUPPORT.
func (NoNetlink) LinkModes(context.Context, string) (LinkModes, error) {
	return LinkModes{}, &Error{"query", "ethtool", syscall.EPROTONOSUPPORT}
}

// Health returns EPROTONOSUPPORT.
func (NoNetlink) Health(context.Context) ([]HealthReporter, error) {
	return nil, &Error{"query", "devlink", syscall.EPROTONOSUPPORT}
}

// LinkState returns EPROTONOSUPPORT.
func (NoNetlink) LinkState(context.Context, string) (LinkState, error) {
	return LinkState{}, &Error{"query", "ethtool", syscall.EPROTONOSUPPORT}
}

// IEEE returns EPROTONOSUPPORT.
func (NoNetlink) IEEE(context.Context, string) (DCBConfig, error) {
	return DCBConfig{}, &Error{"query", "dcb", syscall.EPROTONOSUPPORT}
}

// Pause returns EPROTONOSUPPORT.
func (NoNetlink) Pause(context.Context, string) (Pause, error) {
	return Pause{}, &Error{"query", "ethtool", syscall.EPROTONOSUPPORT}
}

// FEC returns EPROTONOSUPPORT.
func (NoNetlink) FEC(context.Context, string) (FEC, error) {
	return FEC{}, &Error{"query", "ethtool", syscall.EPROTONOSUPPORT}
}

// NetdevStats returns EPROTONOSUPPORT.
func (NoNetlink) NetdevStats(context.Context, string) ([]Stat, error) {
	return nil, &Error{"query", "ethtool", syscall.EPROTONOSUPPORT}
}

// StandardStats returns EPROTONOSUPPORT.
func (NoNetlink) StandardStats(context.Context, string) ([]Stat, error) {
	return nil, &Error{"query", "ethtool", syscall.EPROTONOSUPPORT}
}
