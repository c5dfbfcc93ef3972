package host

import (
	"errors"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"

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
	here := newNetwork(t)
	here.copied = !t.isSysfs()
	l := &Live{tree: t, eth: &ethtoolClient{here: here}, Host: Host{
		Files: t, RDMA: NoNetlink(), GPUs: NoNVML{},
		Processes: newProcessTable(t, p.JobNames), Launchers: launchers{t}, Now: time.Now,
		Turns: NewTurns(), RTNL: NewRTNL(), Meter: &Meter{}, Budget: NewBudget(time.Now),
	}}
	l.Ethtool, l.Devlink, l.DCB = l.eth, &devlinkClient{here: here}, dcbClient{here}
	if p.Helper != "" {
		helper := helperClient{p.Helper, p.JobNames}
		l.Files, l.Processes = helperFiles{t, helper}, helper
	}
	if p.PodResources != "" {
		l.Pods = kubelet(p.PodResources)
	}
	if !here.copied {
		l.rdma = newRDMAClient()
		l.rdma.leader = t.leader
		l.RDMA = l.rdma
		l.Events, l.LLDP, l.Networkd = newEvents(here, EventBuffer), lldpSocket{here}, networkdClient{t}
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

// NoNetlink is RDMA netlink of a kernel without it: all its answers are EPROTONOSUPPORT.
func NoNetlink() RDMA {
	c := newRDMAClient()
	c.exchange = func(int, int, ...*nl.RtAttr) ([][]byte, error) { return nil, syscall.EPROTONOSUPPORT }
	return c
}
