package neighbours

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/lldp"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

// farEnd is the far end of a link according to one source.
type farEnd struct {
	snapshot.End
	systems, ports []string // all its names
	forwards       bool     // a switch
	sender         string   // MAC address; empty without a frame
	at             time.Time
}

// portLink is one link of an RDMA port: that of its netdev, or of a member of its bond.
type portLink struct {
	device, netdev string
	port           int
	subject        site.Subject
	saved, asked   []farEnd
}

// neighbourSource returns the candidates for the far end of a link, the most likely first; none where it has no data.
type neighbourSource struct {
	label string
	ends  func(portLink) []farEnd
}

// sources lists the sources, best first. Frames just received are newer than those of networkd, which are read each
// minute. Both receive the same frames, but networkd by default ignores those of systems that do not forward packets.
// The configuration is only the expected state.
func (c *neighbours) sources(own ownNames, now time.Time) []neighbourSource {
	return []neighbourSource{
		{sourceLLDP, func(l portLink) []farEnd { return own.others(c.lldp.of(l.netdev, now)) }},
		{sourceLLDP, func(l portLink) []farEnd { return own.others(l.saved) }},
		{sourceSubnet, func(l portLink) []farEnd { return l.asked }},
		{sourceCabling, func(l portLink) []farEnd { return cabled(c.conf.Current().Cable(l.subject)) }},
	}
}

// section queries the sources for each link.
func (c *neighbours) section(readings []neighbourReading, now time.Time) *snapshot.Neighbours {
	sources := c.sources(c.own(readings), now)
	out := &snapshot.Neighbours{}
	for i := range readings {
		for _, l := range c.links(&readings[i]) {
			out.Ports = append(out.Ports, farEndOf(l, sources))
		}
		out.Subnets = append(out.Subnets, readings[i].subnets()...)
	}
	return out
}

// links lists the links of a device.
func (c *neighbours) links(r *neighbourReading) (out []portLink) {
	for i, s := range c.conf.Subjects(&r.device)[1:] { // the first is the device
		l := portLink{device: r.device.Name, port: s.Port, subject: s}
		if end := r.ends[s.Port].end; end != nil {
			l.asked = []farEnd{*end}
		}
		for _, nd := range r.device.Ports[i].Netdev {
			l.netdev, l.saved = nd.Name, r.links[nd.Name].saved
			l.subject.Netdevs = []string{nd.Name}
			out = append(out, l)
		}
		if l.netdev == "" {
			out = append(out, l)
		}
	}
	return out
}

// farEndOf uses the first source with data, and compares the announced end with the cabling.
func farEndOf(l portLink, sources []neighbourSource) snapshot.PortNeighbour {
	p := snapshot.PortNeighbour{Device: l.device, Port: l.port, Netdev: l.netdev}
	var announced, cable *farEnd
	for _, s := range sources {
		ends := s.ends(l)
		if len(ends) == 0 {
			continue
		}
		if p.Source == "" {
			p.End, p.Source = ends[0].End, s.label
		}
		switch {
		case s.label == sourceCabling:
			cable, p.Cabled = &ends[0], &ends[0].End
		case announced == nil:
			announced = &ends[0]
			if s.label == sourceLLDP {
				p.Announced = new(uint64(len(ends)))
			}
		}
	}
	if announced != nil && cable != nil {
		p.Miscabled = new(!announced.is(cable))
	}
	return p
}

// announcedEnd returns the far end announced in a frame.
func announcedEnd(n *lldp.Neighbour, at time.Time) farEnd {
	return farEnd{
		End:     snapshot.End{System: n.System(), Port: n.Port()},
		systems: []string{n.SystemName, n.ChassisID}, ports: []string{n.PortID, n.PortDescription},
		forwards: n.Forwards(), sender: n.Source, at: at,
	}
}

// cabled returns the far end in the configuration.
func cabled(c *site.Cable) []farEnd {
	if c == nil {
		return nil
	}
	return []farEnd{{End: snapshot.End{System: c.System, Port: c.PortID}}}
}

// is reports whether the end matches the one in the configuration, which may omit the port.
func (e *farEnd) is(cable *farEnd) bool {
	return slices.ContainsFunc(e.systems, func(s string) bool { return sameSystem(s, cable.System) }) &&
		(cable.Port == "" || slices.ContainsFunc(e.ports, func(s string) bool { return strings.EqualFold(s, cable.Port) }))
}

// sameSystem reports whether two host names are the same; one of them may lack its domain.
func sameSystem(a, b string) bool {
	hostA, domainA, _ := strings.Cut(a, ".")
	hostB, domainB, _ := strings.Cut(b, ".")
	return a != "" && strings.EqualFold(hostA, hostB) &&
		(domainA == "" || domainB == "" || strings.EqualFold(domainA, domainB))
}

// byLikelihood sorts switches first, then by the most recent frame.
func byLikelihood(a, b farEnd) int {
	switch {
	case a.forwards != b.forwards && a.forwards:
		return -1
	case a.forwards != b.forwards:
		return 1
	}
	return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.System, b.System), cmp.Compare(a.End.Port, b.End.Port))
}

// ownNames are the names of this host in frames.
type ownNames struct {
	hostname  string
	addresses map[string]bool
}

func (c *neighbours) own(readings []neighbourReading) ownNames {
	own := ownNames{c.conf.Hostname, map[string]bool{}}
	for i := range readings {
		for _, l := range readings[i].links {
			if l.address != "" {
				own.addresses[l.address] = true
			}
		}
	}
	return own
}

// others removes announcements of the host itself (a daemon, or an agent in NIC firmware), which it receives where two
// of its ports are connected.
func (o ownNames) others(ends []farEnd) (out []farEnd) {
	for i := range ends {
		e := &ends[i]
		if o.addresses[e.sender] ||
			slices.ContainsFunc(e.systems, func(s string) bool { return o.addresses[s] || sameSystem(s, o.hostname) }) {
			continue
		}
		out = append(out, *e)
	}
	return out
}
