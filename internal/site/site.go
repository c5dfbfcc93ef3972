// Package site parses the site configuration (--config.file): expectations of devices and ports, ignored ones, cabling,
// racks, names of peers. It does no I/O.
package site

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Config is a configuration file, immutable. The nil Config is empty.
type Config struct {
	Pins     []Pin    `yaml:"pins"`
	Ignore   []Ignore `yaml:"ignore"`
	Cabling  []Cable  `yaml:"cabling"`
	Setup    []Setup  `yaml:"setup"`
	Switches []Switch `yaml:"switches"`
	Racks    []Rack   `yaml:"racks"`
	Peers    []Peer   `yaml:"peers"` // sorted by Address
}

// Rate is in bits per second. The file has it with its unit.
type Rate float64

// Pin is the expected state of the devices or ports that it matches. Keys that are not set are nil or empty.
type Pin struct {
	Match             Match    `yaml:"match"`
	Rate              *Rate    `yaml:"rate"`
	Lanes             *uint64  `yaml:"lanes"`
	Role              string   `yaml:"role"`
	RoCE              string   `yaml:"roce"`
	CongestionControl string   `yaml:"congestion_control"`
	OFED              string   `yaml:"ofed"` // glob of versions
	Active            *bool    `yaml:"active"`
	Present           *bool    `yaml:"present"`
	SubnetManager     *bool    `yaml:"subnet_manager"`
	PKeys             []uint16 `yaml:"pkeys"` // nil: not set; empty: cancels an earlier pin
}

// Ignore is devices, ports or GPUs whose faults raise no alert.
type Ignore struct {
	Match Match `yaml:"match"`
}

// Cable is the far end of the cable of the ports that it matches.
type Cable struct {
	Match  Match  `yaml:"match"`
	System string `yaml:"system"`
	PortID string `yaml:"port_id"` // empty: not set
}

// Setup is what is wanted of settings (setup.Checks by id) of the devices, ports or hosts that it matches.
type Setup struct {
	Match Match             `yaml:"match"`
	Want  map[string]string `yaml:"want"` // globs of values, several separated by |; setup.Any
}

// Switch is the expected state of the InfiniBand switches that it matches by node description or GUID.
type Switch struct {
	Switch  Globs  `yaml:"switch"`
	Uplinks uint64 `yaml:"uplinks"` // links to other switches
}

// Rack is the rack of the hosts that it matches, by host name only.
type Rack struct {
	Match Match  `yaml:"match"`
	Rack  string `yaml:"rack"`
}

// Peer is the name of an address that queue pairs connect to.
type Peer struct {
	Address string `yaml:"address"` // as qp.ShortAddress returns it
	Name    string `yaml:"name"`
}

// Subject is a port, or with Port 0 a device. Empty facts are unknown, and match no key.
type Subject struct {
	Hostname, Device, BoardID, PCIAddress, LinkLayer string

	Netdevs []string // the port's netdev, or the members of its bond
	Port    int
}

// GPU identifies a GPU.
type GPU struct {
	Hostname, Index, UUID, PCIAddress string
}

// Settings are the merged keys of all matching pins.
type Settings struct {
	Rate              *float64 // bits per second
	Lanes             *uint64
	Role              string // compute, other, nvlink_management
	RoCE              string // lossless, lossy, auto
	CongestionControl string // dcqcn, zerotouch_rtt, off
	OFED              string // glob of versions
	Active            bool
	Idle              bool // active: false: not expected to be ACTIVE
	SubnetManager     bool
	PKeys             []uint16 // of the file: not to be changed
}

// Settings of a device or port: pins from first to last, later ones override the keys that they set.
func (c *Config) Settings(s Subject) Settings {
	var out Settings
	if c == nil {
		return out
	}
	for i := range c.Pins {
		if p := &c.Pins[i]; p.Match.matches(&s) {
			p.apply(&out)
		}
	}
	return out
}

func (p *Pin) apply(to *Settings) {
	override(&to.Rate, (*float64)(p.Rate), p.Rate != nil)
	override(&to.Lanes, p.Lanes, p.Lanes != nil)
	override(&to.Role, p.Role, p.Role != "")
	override(&to.RoCE, p.RoCE, p.RoCE != "")
	override(&to.CongestionControl, p.CongestionControl, p.CongestionControl != "")
	override(&to.OFED, p.OFED, p.OFED != "")
	override(&to.PKeys, p.PKeys, p.PKeys != nil)
	if p.Active != nil {
		to.Active, to.Idle = *p.Active, !*p.Active
	}
	if p.SubnetManager != nil {
		to.SubnetManager = *p.SubnetManager
	}
}

func override[T any](to *T, v T, set bool) {
	if set {
		*to = v
	}
}

// Ignored reports whether a device or port is ignored: its faults raise no alert. An entry that matches a device
// without its ports ignores all its ports.
func (c *Config) Ignored(s Subject) bool {
	return c != nil && slices.ContainsFunc(c.Ignore, func(i Ignore) bool { return i.Match.matches(&s) })
}

// IgnoredGPU reports whether a GPU is ignored, which requires an entry with gpu in its match.
func (c *Config) IgnoredGPU(g GPU) bool {
	return c != nil && slices.ContainsFunc(c.Ignore, func(i Ignore) bool {
		m := &i.Match
		return m.GPU != nil && (m.GPU.allow(g.Index, exactly) || m.GPU.allow(g.UUID, exactly)) &&
			m.Hostname.allow(g.Hostname, exactly) && m.PCIAddress.allow(g.PCIAddress, strings.ToLower)
	})
}

// Cable returns the far end of the cable of a port, or of the netdev of the subject, from the last matching entry; nil
// if there is none.
func (c *Config) Cable(s Subject) *Cable {
	if c == nil {
		return nil
	}
	for i := len(c.Cabling) - 1; i >= 0; i-- {
		if c.Cabling[i].Match.matches(&s) {
			return &c.Cabling[i]
		}
	}
	return nil
}

// Want returns the wanted value of a setting of a device, a port or, with an empty Device, a host, from the last
// matching entry; empty if there is none.
func (c *Config) Want(setting string, s Subject) string {
	if c == nil {
		return ""
	}
	for i := len(c.Setup) - 1; i >= 0; i-- {
		if want := c.Setup[i].Want[setting]; want != "" && c.Setup[i].Match.matches(&s) {
			return want
		}
	}
	return ""
}

// Uplinks returns the expected number of links of an InfiniBand switch to other switches: from the last matching entry;
// 0 if there is none. names are its node description and its GUID.
func (c *Config) Uplinks(names ...string) int {
	if c == nil {
		return 0
	}
	for i := len(c.Switches) - 1; i >= 0; i-- {
		if s := &c.Switches[i]; slices.ContainsFunc(names, func(name string) bool {
			return s.Switch.allow(name, strings.ToLower)
		}) {
			return int(s.Uplinks)
		}
	}
	return 0
}

// Rack returns the rack of a host, from the last matching entry; empty if there is none.
func (c *Config) Rack(hostname string) string {
	if c == nil {
		return ""
	}
	for i := len(c.Racks) - 1; i >= 0; i-- {
		if c.Racks[i].Match.Hostname.allow(hostname, exactly) {
			return c.Racks[i].Rack
		}
	}
	return ""
}

// Peer returns the name of an address, as qp.ShortAddress returns it; empty if there is none.
func (c *Config) Peer(address string) string {
	if c == nil {
		return ""
	}
	i, found := slices.BinarySearchFunc(c.Peers, address, func(p Peer, address string) int {
		return strings.Compare(p.Address, address)
	})
	if !found {
		return ""
	}
	return c.Peers[i].Name
}

// Systems returns the names of the systems at the far end of cables, unique and sorted.
func (c *Config) Systems() (out []string) {
	if c == nil {
		return nil
	}
	for i := range c.Cabling {
		out = append(out, c.Cabling[i].System)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Required returns the devices that must be present on a host, as named in the file: by Device, PCIAddress or both.
func (c *Config) Required(hostname string) []Subject {
	if c == nil {
		return nil
	}
	var out []Subject
	for i := range c.Pins {
		p := &c.Pins[i]
		if p.Present == nil || !p.Match.Hostname.allow(hostname, exactly) {
			continue
		}
		if !*p.Present {
			out = slices.DeleteFunc(out, func(s Subject) bool { return p.Match.matches(&s) })
			continue
		}
		for _, s := range p.Match.devices(hostname) {
			if !slices.ContainsFunc(out, func(o Subject) bool { return o.Device == s.Device && o.PCIAddress == s.PCIAddress }) {
				out = append(out, s)
			}
		}
	}
	return out
}

// devices returns the devices named by a match without globs.
func (m *Match) devices(hostname string) []Subject {
	if len(m.Device) > 0 && len(m.PCIAddress) > 0 { // then one of each, as ensured by the parser
		return []Subject{
			{Hostname: hostname, Device: unquote(m.Device[0]), PCIAddress: strings.ToLower(unquote(m.PCIAddress[0]))},
		}
	}
	var out []Subject
	for _, d := range m.Device {
		out = append(out, Subject{Hostname: hostname, Device: unquote(d)})
	}
	for _, a := range m.PCIAddress {
		out = append(out, Subject{Hostname: hostname, PCIAddress: strings.ToLower(unquote(a))})
	}
	return out
}

// OFED returns the glob for the version of the out-of-tree stack of a host; empty: no expectation.
func (c *Config) OFED(hostname string) string { return c.Settings(Subject{Hostname: hostname}).OFED }

// MatchOFED reports whether a version matches a glob of OFED.
func MatchOFED(glob, version string) bool { return Globs{glob}.allow(version, exactly) }

// matches reports whether a device or port has all keys that are set.
func (m *Match) matches(s *Subject) bool {
	if s.Port == 0 && (m.Port != nil || m.Netdev != nil || m.LinkLayer != nil) {
		return false
	}
	return m.GPU == nil && m.Hostname.allow(s.Hostname, exactly) &&
		m.Device.allow(s.Device, exactly) &&
		m.BoardID.allow(s.BoardID, exactly) &&
		m.PCIAddress.allow(s.PCIAddress, strings.ToLower) &&
		m.LinkLayer.allow(s.LinkLayer, strings.ToLower) &&
		(m.Port == nil || m.Port.allow(strconv.Itoa(s.Port), exactly)) &&
		(m.Netdev == nil || slices.ContainsFunc(s.Netdevs, func(n string) bool { return m.Netdev.allow(n, exactly) }))
}

// Store holds the Config in force. The nil Store and a new one have none.
type Store struct {
	current atomic.Pointer[Config]
}

// Current returns the Config in force, nil if there is none.
func (s *Store) Current() *Config {
	if s == nil {
		return nil
	}
	return s.current.Load()
}

// Replace puts another Config in force.
func (s *Store) Replace(c *Config) { s.current.Store(c) }
