package shared

import (
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

// SiteConfig is the site configuration, as it concerns this host.
type SiteConfig struct {
	Store    *site.Store // nil: none
	Hostname string      // empty if unknown
}

// Current returns the configuration at present; nil: none.
func (c *SiteConfig) Current() *site.Config { return c.Store.Current() }

// Settings returns the site configuration of a device or port of this host.
func (c *SiteConfig) Settings(s site.Subject) site.Settings {
	s.Hostname = c.Hostname
	return c.Current().Settings(s)
}

// Subjects returns a device and its ports, as arguments of the site configuration.
func (c *SiteConfig) Subjects(d *snapshot.Device) []site.Subject {
	device := site.Subject{Hostname: c.Hostname, Device: d.Name, BoardID: d.BoardID, PCIAddress: d.PCIAddress}
	out := []site.Subject{device}
	for i := range d.Ports {
		p := &d.Ports[i]
		port := device
		port.Port, port.LinkLayer = p.Number, p.LinkLayer
		for _, n := range p.Netdev {
			port.Netdevs = append(port.Netdevs, n.Name)
		}
		out = append(out, port)
	}
	return out
}
