package host

import (
	"context"
	"errors"
	"syscall"
	"time"

	"rdma_exporter/internal/mad"
)

// Live is the door to the machine that the program runs on, or to a tree of files copied from one.
type Live struct {
	Host
	tree *tree
	rdma *rdmaClient
	eth  *ethtoolClient
}

// OpenLive opens the trees, and netlink where the sys tree is this kernel's own: a copied tree has only its files.
func OpenLive(p Paths) (*Live, error) {
	t, err := openTree(p)
	if err != nil {
		return nil, err
	}
	l := &Live{tree: t, Host: Host{
		Files: t, RDMA: NoNetlink{}, Ethtool: NoNetlink{}, Devlink: NoNetlink{}, DCB: NoNetlink{}, GPUs: NoNVML{}, Processes: newProcessTable(t), Now: time.Now,
		Lanes: NewLanes(), RTNL: NewRTNL(), Meter: &Meter{}, Budget: NewBudget(time.Now),
	}}
	if t.isSysfs() {
		l.rdma, l.eth = newRDMAClient(), &ethtoolClient{}
		l.rdma.leader = t.leader
		here := newNetwork(t)
		l.RDMA, l.Ethtool, l.Devlink, l.DCB = l.rdma, ethtoolHere{here, l.eth}, devlinkHere{here, &devlinkClient{}}, dcbHere{here, dcbClient{}}
		l.Events, l.LLDP = newEvents(here, EventBuffer), lldpSocket{here}
		l.Subnet = NewSubnet(func(device string, port int, classes ...uint8) (mad.Transport, error) {
			u, _, err := openMAD(t, device, port, classes...)
			return u, err
		})
		l.GPUs = newNVMLDoor(newNVML, nvidiactl)
	}
	return l, nil
}

// Forget makes the next reads look at every directory and file afresh. A tree that is written in bursts needs it: a file
// system's clock may be too coarse to tell two changes of a directory apart.
func (l *Live) Forget() { l.tree.forgetAll() }

// Close closes all descriptors that no reader is using.
func (l *Live) Close() error {
	if l.rdma != nil {
		l.rdma.close()
		l.eth.stats.close()
	}
	return errors.Join(l.tree.close())
}

// NoNetlink answers as a kernel without these netlink families.
type NoNetlink struct{}

// Port answers EPROTONOSUPPORT.
func (NoNetlink) Port(context.Context, string, int) (RDMAPort, error) {
	return RDMAPort{}, &Error{"ask", "rdma", syscall.EPROTONOSUPPORT}
}

// System answers EPROTONOSUPPORT.
func (NoNetlink) System(context.Context) (RDMASystem, error) {
	return RDMASystem{}, &Error{"ask", "rdma", syscall.EPROTONOSUPPORT}
}

// Stats answers EPROTONOSUPPORT.
func (NoNetlink) Stats(context.Context, string, int, []Stat) ([]Stat, error) {
	return nil, &Error{"ask", "rdma", syscall.EPROTONOSUPPORT}
}

// Holders answers EPROTONOSUPPORT.
func (NoNetlink) Holders(context.Context, string) ([]RDMAHolder, error) {
	return nil, &Error{"ask", "rdma", syscall.EPROTONOSUPPORT}
}

// LinkModes answers EPROTONOSUPPORT.
func (NoNetlink) LinkModes(context.Context, string) (LinkModes, error) {
	return LinkModes{}, &Error{"ask", "ethtool", syscall.EPROTONOSUPPORT}
}

// Health answers EPROTONOSUPPORT.
func (NoNetlink) Health(context.Context) ([]HealthReporter, error) {
	return nil, &Error{"ask", "devlink", syscall.EPROTONOSUPPORT}
}

// LinkState answers EPROTONOSUPPORT.
func (NoNetlink) LinkState(context.Context, string) (LinkState, error) {
	return LinkState{}, &Error{"ask", "ethtool", syscall.EPROTONOSUPPORT}
}

// IEEE answers EPROTONOSUPPORT.
func (NoNetlink) IEEE(context.Context, string) (DCBConfig, error) {
	return DCBConfig{}, &Error{"ask", "dcb", syscall.EPROTONOSUPPORT}
}

// Pause answers EPROTONOSUPPORT.
func (NoNetlink) Pause(context.Context, string) (Pause, error) {
	return Pause{}, &Error{"ask", "ethtool", syscall.EPROTONOSUPPORT}
}

// FEC answers EPROTONOSUPPORT.
func (NoNetlink) FEC(context.Context, string) (FEC, error) {
	return FEC{}, &Error{"ask", "ethtool", syscall.EPROTONOSUPPORT}
}

// NetdevStats answers EPROTONOSUPPORT.
func (NoNetlink) NetdevStats(context.Context, string) ([]Stat, error) {
	return nil, &Error{"ask", "ethtool", syscall.EPROTONOSUPPORT}
}

// StandardStats answers EPROTONOSUPPORT.
func (NoNetlink) StandardStats(context.Context, string) ([]Stat, error) {
	return nil, &Error{"ask", "ethtool", syscall.EPROTONOSUPPORT}
}
