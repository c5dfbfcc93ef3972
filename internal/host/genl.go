package host

import (
	"sync"

	"github.com/vishvananda/netlink"
)

// genlFamily remembers the number that the kernel gave to a generic netlink family. A family that is not there is looked
// for again: its module may come.
type genlFamily struct {
	mu     sync.Mutex
	number uint16
}

func (g *genlFamily) id(name string) (uint16, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.number == 0 {
		f, err := netlink.GenlFamilyGet(name)
		if err != nil {
			return 0, err
		}
		g.number = f.ID
	}
	return g.number, nil
}
