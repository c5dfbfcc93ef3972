package netlink

import (
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
)

const sizeofGenlHeader = 4

// genlHeader is struct genlmsghdr (include/uapi/linux/genetlink.h): command, version, two reserved bytes. nl.Genlmsg
// has only the first two, and Serialize sends what lies behind it in memory: Linux 6.1 and newer refuse newer commands
// whose reserved bytes are not 0 (genl_header_check of net/netlink/genetlink.c).
type genlHeader [sizeofGenlHeader]byte

// Len implements nl.NetlinkRequestData.
func (genlHeader) Len() int { return sizeofGenlHeader }

// Serialize implements nl.NetlinkRequestData.
func (h genlHeader) Serialize() []byte { return h[:] }

// genlFamily caches the number of a generic netlink family. A missing family is looked up again, since its module may
// be loaded later.
type genlFamily struct {
	mu     sync.Mutex
	number uint16
	ops    []netlink.GenlOp
}

func (g *genlFamily) id(name string) (uint16, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.number == 0 {
		f, err := netlink.GenlFamilyGet(name)
		if err != nil {
			return 0, err
		}
		g.number, g.ops = f.ID, f.Ops
	}
	return g.number, nil
}

// has reports whether the kernel supports a command of the family.
func (g *genlFamily) has(name string, command uint32) bool {
	if _, err := g.id(name); err != nil {
		return false
	}
	return slices.ContainsFunc(g.ops, func(o netlink.GenlOp) bool { return o.ID == command })
}
