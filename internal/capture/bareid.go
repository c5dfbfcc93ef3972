package capture

import (
	"path"
	"strings"
)

// isBareID reports whether a file holds an address or a GUID as digits without colons: netdev_phys_item_id of include/linux/netdevice.h.
func isBareID(name string) bool {
	base := path.Base(name)
	return base == "phys_switch_id" || base == "phys_port_id"
}

// bareID is the digits; empty if the driver uses another kind of id.
type bareID string

func bareIDOf(content string) bareID {
	d := strings.TrimSpace(content)
	if len(d) < 12 || len(d)%2 != 0 || strings.Trim(d, "0123456789abcdef") != "" {
		return ""
	}
	return bareID(d)
}

// reversed is the id in reverse byte order: mlx5 prints a GUID in memory order.
func (b bareID) reversed() bareID {
	var out strings.Builder
	for i := len(b); i > 0; i -= 2 {
		out.WriteString(string(b[i-2 : i]))
	}
	return bareID(out.String())
}

// tail is the digits that are replaced; empty if there are none.
func (b bareID) tail() string {
	if b == "" || strings.Trim(string(b[len(b)-6:len(b)-1]), "0") == "" {
		return ""
	}
	return string(b[len(b)-6 : len(b)-1])
}

// collectBare adds the tails of bare ids that do not occur elsewhere.
func collectBare(a *Archive, low map[string]bool) {
	for _, r := range a.Rounds {
		for _, e := range r.Entries {
			if e.Kind != File || !isBareID(e.Path) {
				continue
			}
			id := bareIDOf(string(e.Data))
			if id.tail() != "" && !low[id.reversed().tail()] {
				low[id.tail()] = true
			}
		}
	}
}

// bare replaces the tail, in the byte order in which it occurs elsewhere on the machine.
func (p *pseudonyms) bare(content string) string {
	id := bareIDOf(content)
	if to, ok := p.low[id.reversed().tail()]; ok {
		return string(id.reversed().withTail(to).reversed()) + "\n"
	}
	if to, ok := p.low[id.tail()]; ok {
		return string(id.withTail(to)) + "\n"
	}
	return content
}

func (b bareID) withTail(to string) bareID {
	return b[:len(b)-6] + bareID(to) + b[len(b)-1:]
}
