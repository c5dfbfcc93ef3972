// Package live assembles the sources of the machine that the program runs on, or of a tree copied from one.
package live

import (
	"errors"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/kmsg"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/host/nvml"
	"rdma_exporter/internal/host/proc"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/mad"
)

// Live accesses the machine that the program runs on, or a tree of files copied from one.
type Live struct {
	host.Host
	Tree *rooted.Tree
	rdma *netlink.RDMAClient
	eth  *netlink.EthtoolClient
	log  *kmsg.Kmsg
}

// Open opens the trees, and netlink if the sys tree is that of the running kernel: a copied tree has only files.
func Open(p rooted.Paths) (*Live, error) {
	t, err := rooted.Open(p)
	if err != nil {
		return nil, err
	}
	here := netlink.NewNetwork(t)
	here.Copied = !t.IsSysfs()
	l := &Live{Tree: t, eth: &netlink.EthtoolClient{Here: here}, Host: host.Host{
		Files: t, RDMA: NoNetlink(), GPUs: nvml.NoNVML{},
		Processes: proc.NewProcessTable(t, p.JobNames), Launchers: proc.Launchers{Tree: t}, Now: time.Now,
		Turns: access.NewTurns(), RTNL: access.NewRTNL(), Meter: &source.Meter{}, Budget: access.NewBudget(time.Now),
	}}
	l.Ethtool, l.Devlink, l.DCB = l.eth, &netlink.DevlinkClient{Here: here}, netlink.DCBClient{Here: here}
	if p.Helper != "" {
		l.Files, l.Processes = proc.ByHelper(t, p)
	}
	if p.PodResources != "" {
		l.Pods = proc.Kubelet(p.PodResources)
	}
	if !here.Copied {
		l.rdma = netlink.NewRDMAClient()
		l.rdma.Leader = t.Leader
		l.RDMA = l.rdma
		l.Events, l.LLDP = netlink.OpenEvents(here, host.EventBuffer), netlink.LLDPOf(here)
		l.Networkd = proc.NetworkdClient{Files: t}
		l.Subnet = umad.NewSubnet(func(device string, port int, classes ...uint8) (mad.Transport, error) {
			u, _, err := umad.OpenMADIn(t, device, port, classes...)
			return u, err
		})
		l.GPUs = nvml.Open()
		l.Tracer = newTracer(t)
		l.log = kmsg.NewKmsg(t)
		l.KernelLog = l.log
	}
	return l, nil
}

// Forget discards all cached directories and files. A tree that is written in bursts requires it: timestamps of its
// file system may be too coarse to show two changes of a directory.
func (l *Live) Forget() { l.Tree.ForgetAll() }

// Close closes all descriptors that are not in use.
func (l *Live) Close() error {
	if l.rdma != nil {
		l.rdma.Close()
		l.eth.Stats.Close()
		return errors.Join(l.log.Close(), l.Tree.Close())
	}
	return errors.Join(l.Tree.Close())
}

// NoNetlink is RDMA netlink of a kernel without it: all its answers are EPROTONOSUPPORT.
func NoNetlink() host.RDMA {
	c := netlink.NewRDMAClient()
	c.Exchange = func(int, int, ...*nl.RtAttr) ([][]byte, error) { return nil, syscall.EPROTONOSUPPORT }
	return c
}
