package collector

import (
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

// siteConfig is the site configuration, as it concerns this host.
type siteConfig struct {
	store    *site.Store // nil: none
	hostname string      // empty if unknown
}

// current is the configuration at present; nil: none.
func (c *siteConfig) current() *site.Config { return c.store.Current() }

// settings returns the site configuration of a device or port of this host.
func (c *siteConfig) settings(s site.Subject) site.Settings {
	s.Hostname = c.hostname
	return c.current().Settings(s)
}

// subjects are a device and its ports, as arguments of the site configuration.
func (c *siteConfig) subjects(d *snapshot.Device) []site.Subject {
	device := site.Subject{Hostname: c.hostname, Device: d.Name, BoardID: d.BoardID, PCIAddress: d.PCIAddress}
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
