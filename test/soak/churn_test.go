//go:build soak

package soak

import (
	"os"
	"path/filepath"
	"testing"

	"rdma_exporter/test/machine"
)

// cycle is the number of steps until a node is complete again.
const cycle = 20

// node is a recorded machine with changes: traffic, links going down, devices and netdevs removed and added.
type node struct {
	dir      string
	step     int
	traffic  *machine.Traffic
	device   *place // removed and added, alternately with new inodes and with its own
	netdev   *place // removed and added
	state    string // of the port of a third device
	physical string
}

func newNode(t *testing.T, archive string) *node {
	t.Helper()
	n := &node{dir: t.TempDir()}
	must(t, machine.Unpack(archive, n.dir))
	var err error
	n.traffic, err = machine.NewTraffic(n.dir)
	must(t, err)
	devices, err := filepath.Glob(filepath.Join(n.dir, "sys/class/infiniband/*"))
	must(t, err)
	netdevs, err := filepath.Glob(filepath.Join(devices[1], "device/net/*"))
	must(t, err)
	n.device = &place{link: devices[0], aside: filepath.Join(n.dir, "aside/device")}
	n.netdev = &place{
		link: filepath.Join(n.dir, "sys/class/net", filepath.Base(netdevs[0])), aside: filepath.Join(n.dir, "aside/netdev"),
	}
	n.state, n.physical = filepath.Join(devices[2], "ports/1/state"), filepath.Join(devices[2], "ports/1/phys_state")
	must(t, os.Mkdir(filepath.Join(n.dir, "aside"), 0o755))
	return n
}

// live advances the node by a step. It is complete at the start and at the end of a cycle.
func (n *node) live(t *testing.T) {
	t.Helper()
	must(t, n.traffic.Flow())
	switch n.step % cycle {
	case 2:
		n.device.goes(t)
	case 6:
		n.device.comes(t, n.step/cycle%2 == 0)
	case 8:
		n.netdev.goes(t)
	case 10:
		n.netdev.comes(t, n.step/cycle%2 == 0)
	case 12:
		must(t, machine.Overwrite(n.state, "1: DOWN"))
		must(t, machine.Overwrite(n.physical, "2: Polling"))
	case 15:
		must(t, machine.Overwrite(n.state, "4: ACTIVE"))
		must(t, machine.Overwrite(n.physical, "5: LinkUp"))
	}
	n.step++
}

// place is a device or a netdev: a directory below that of its PCI function, and the link of its class.
type place struct {
	link   string
	target string // target of the link, and the directory, while it is removed
	dir    string
	aside  string
}

func (p *place) goes(t *testing.T) {
	t.Helper()
	var err error
	p.target, err = os.Readlink(p.link)
	must(t, err)
	p.dir, err = filepath.EvalSymlinks(p.link)
	must(t, err)
	must(t, os.Remove(p.link))
	must(t, os.Rename(p.dir, p.aside))
}

// comes adds it unchanged, or with new files as drivers do.
func (p *place) comes(t *testing.T, again bool) {
	t.Helper()
	if again {
		staged := p.aside + ".new"
		must(t, os.CopyFS(staged, os.DirFS(p.aside)))
		must(t, os.RemoveAll(p.aside))
		must(t, os.Rename(staged, p.aside))
	}
	must(t, os.Rename(p.aside, p.dir))
	must(t, os.Symlink(p.target, p.link))
}
