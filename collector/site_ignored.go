package collector

import (
	"maps"
	"slices"
	"strconv"

	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

var (
	deviceIgnored = beside("rdma_device_info", deviceDesc("rdma_device_ignored",
		"RDMA device ignored by --config.file, always 1: no alert fires for it or for its ports. Absent for others.",
		"--config.file"))
	portIgnored = beside("rdma_port_info", portDesc("rdma_port_ignored",
		"Port ignored by --config.file, always 1: no alert fires for it. Absent for others.", "--config.file"))
)

// ignored evaluates every device that is listed or missing, and its ports. A device that cannot be read at present is
// evaluated by its last reading: stuck reads are to be ignored as well.
func (c *infiniBand) ignored(
	names []string, devices []snapshot.Device, missing []snapshot.MissingDevice,
) []snapshot.PortID {
	conf := c.conf.current()
	if conf == nil || len(conf.Ignore) == 0 {
		clear(c.facts)
		return nil
	}
	for i := range devices {
		c.facts[devices[i].Name] = c.conf.subjects(&devices[i])
	}
	all := slices.Clone(names)
	for _, id := range missing {
		all = append(all, id.Name)
		if c.facts[id.Name] == nil {
			c.facts[id.Name] = c.conf.subjects(&snapshot.Device{Name: id.Name, PCIAddress: id.PCIAddress})
		}
	}
	maps.DeleteFunc(c.facts, func(name string, _ []site.Subject) bool { return !slices.Contains(all, name) })
	slices.Sort(all)
	var out []snapshot.PortID
	for _, name := range slices.Compact(all) {
		subjects := c.facts[name]
		if subjects == nil {
			subjects = c.conf.subjects(&snapshot.Device{Name: name})
		}
		for _, s := range subjects {
			if conf.Ignored(s) {
				out = append(out, snapshot.PortID{Device: name, Number: s.Port})
			}
		}
	}
	return out
}

func emitIgnored(s Sink, ignored []snapshot.PortID) {
	for _, id := range ignored {
		if id.Number == 0 {
			s.Emit(deviceIgnored, 1, id.Device)
		} else {
			s.Emit(portIgnored, 1, id.Device, strconv.Itoa(id.Number))
		}
	}
}
