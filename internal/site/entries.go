package site

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/snapshot/qp"
	"rdma_exporter/internal/words"
)

// entries checks the keys of each entry together.
func (p *Problems) entries(root *yaml.Node, c *Config) {
	each(root, "pins", c.Pins, p.pin)
	each(root, "ignore", c.Ignore, func(n *yaml.Node, i *Ignore) {
		p.needMatch(n, &i.Match, "ignore")
		if i.Match.GPU != nil {
			p.only(n, &i.Match, "gpu: cannot be combined with %s, only with hostname and pci_address: use separate entries",
				"gpu", "hostname", "pci_address")
		}
	})
	each(root, "cabling", c.Cabling, func(n *yaml.Node, c *Cable) {
		p.needMatch(n, &c.Match, "cabling")
		p.when(c.System == "", n, "cabling: system missing: add the name of the switch, and port_id")
		p.when(c.Match.GPU != nil, n, "gpu: not supported in cabling: match the NIC by device")
	})
	each(root, "setup", c.Setup, p.setup)
	each(root, "switches", c.Switches, func(n *yaml.Node, s *Switch) {
		p.when(s.Switch == nil, n, "switches: switch missing: add the node description or the GUID of the switch, or a glob")
		p.when(s.Uplinks == 0, n, "switches: uplinks missing: add the number of its links to other switches")
	})
	p.racks(root, c)
	p.peers(root, c)
}

// each checks the entries of a list, with their nodes.
func each[T any](root *yaml.Node, key string, entries []T, check func(*yaml.Node, *T)) {
	for i := range entries {
		check(valueOf(root, key).Content[i], &entries[i])
	}
}

// when adds a problem if a condition holds.
func (p *Problems) when(wrong bool, n *yaml.Node, reason string) {
	if wrong {
		p.fail(n, "%s", reason)
	}
}

func (p *Problems) pin(n *yaml.Node, pin *Pin) {
	if pin.PKeys == nil && valueOf(n, "pkeys") != nil {
		pin.PKeys = []uint16{} // an empty key is an empty list
	}
	p.needMatch(n, &pin.Match, "pin")
	p.when(len(n.Content) == 2 && len(pin.Match.given()) > 0, n,
		"pin: no expectation: add rate, active or another key besides match")
	p.when(pin.Match.GPU != nil, n, "gpu: not supported in pins, only in ignore")
	given := pin.Match.given()
	p.when(pin.OFED != "" && len(given) > 0 && !slices.Equal(given, []string{"hostname"}), n,
		"ofed: applies to the host: use a separate pin whose match has only hostname")
	if pin.Present != nil && *pin.Present {
		p.named(n, &pin.Match)
	}
}

func (p *Problems) setup(n *yaml.Node, s *Setup) {
	p.needMatch(n, &s.Match, "setup")
	p.when(len(s.Want) == 0,
		n, "setup: want missing: add a setting and its value, such as max_read_request: 4096 (docs/setup.md)")
	p.when(s.Match.GPU != nil, n, "gpu: not supported in setup, only in ignore")
	known := words.Map(setup.Checks, func(c setup.Check) string { return c.ID })
	slices.Sort(known)
	if want := valueOf(n, "want"); want != nil {
		for i := 0; i+1 < len(want.Content); i += 2 {
			if key := want.Content[i]; !slices.Contains(known, key.Value) {
				p.fail(key, "want: unknown key %q, known keys: %s", clip(key.Value), strings.Join(known, ", "))
			}
		}
	}
}

// racks checks that each entry has hosts and a rack, and that no host name is given two racks.
func (p *Problems) racks(root *yaml.Node, c *Config) {
	type named struct {
		rack string
		line int
	}
	known := map[string]named{} // by glob of hostname
	each(root, "racks", c.Racks, func(n *yaml.Node, r *Rack) {
		if p.only(n, &r.Match, "%s: not supported in racks: match the host by hostname", "hostname") {
			p.when(r.Match.Hostname == nil, n, "racks: match is empty: add hostname, with the hosts of the rack")
		}
		p.when(r.Rack == "", n, "racks: rack missing: add the name of the rack")
		for _, host := range r.Match.Hostname {
			if first, ok := known[host]; ok && first.rack != r.Rack {
				p.fail(n, "racks: hostname %q has rack %q in line %d: remove it from one of the two entries", clip(host),
					clip(first.rack), first.line)
				return
			}
			known[host] = named{r.Rack, n.Line}
		}
	})
}

// peers checks that each entry has an address and a name, and that no address is given two names. It sorts them.
func (p *Problems) peers(root *yaml.Node, c *Config) {
	type named struct {
		name string
		line int
	}
	known := map[string]named{} // by address
	each(root, "peers", c.Peers, func(n *yaml.Node, one *Peer) {
		p.when(one.Address == "", n, "peers: address missing: add the IP address, the GID or lid:N of the peer")
		p.when(one.Name == "", n, "peers: name missing: add the host and the device of the peer")
		one.Address = qp.ShortAddress(one.Address)
		if first, ok := known[one.Address]; ok && one.Address != "" && first.name != one.Name {
			p.fail(n, "peers: address %q has name %q in line %d: remove one of the two entries", one.Address,
				clip(first.name), first.line)
			return
		}
		known[one.Address] = named{one.Name, n.Line}
	})
	slices.SortFunc(c.Peers, func(a, b Peer) int { return strings.Compare(a.Address, b.Address) })
}

func (p *Problems) needMatch(n *yaml.Node, m *Match, what string) {
	p.when(len(m.given()) == 0, n, what+`: match is empty: to match every port, set device: "*"`)
}

// named rejects a match that does not name a device.
func (p *Problems) named(n *yaml.Node, m *Match) {
	if !p.only(n, m, "present: cannot be combined with %s, which a missing device does not have: match device or pci_address (and hostname)",
		"device", "hostname", "pci_address") {
		return
	}
	if slices.ContainsFunc(slices.Concat(m.Device, m.PCIAddress), isGlob) || len(m.Device)+len(m.PCIAddress) == 0 {
		p.fail(n, "present: match must name the device: set device or pci_address without a glob")
	} else if len(m.Device) > 0 && len(m.PCIAddress) > 0 && len(m.Device)+len(m.PCIAddress) > 2 {
		p.fail(n, "present: device and pci_address together must name one device: use a pin for each device")
	}
}

// only rejects a match with a key that is not allowed, and reports whether it has none.
func (p *Problems) only(n *yaml.Node, m *Match, format string, allowed ...string) bool {
	for _, key := range m.given() {
		if !slices.Contains(allowed, key) {
			p.fail(n, format, key)
			return false
		}
	}
	return true
}
