package infiniband

import (
	"maps"
	"slices"
	"strconv"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

var deviceIgnored = metric.Beside("rdma_device_info", metric.Device("rdma_device_ignored",
	"RDMA device ignored by --config.file, always 1: no alert fires for it or for its ports. Absent for others.",
	"--config.file"))

var portIgnored = metric.Beside("rdma_port_info", metric.Port("rdma_port_ignored",
	"Port ignored by --config.file, always 1: no alert fires for it. Absent for others.", "--config.file"))

// ignored evaluates every device that is listed or missing, and its ports. A device that cannot be read at present is
// evaluated by its last reading: stuck reads are to be ignored as well.
func (c *infiniBand) ignored(
	names []string, devices []snapshot.Device, missing []snapshot.MissingDevice,
) []snapshot.PortID {
	conf := c.conf.Current()
	if conf == nil || len(conf.Ignore) == 0 {
		clear(c.facts)
		return nil
	}
	for i := range devices {
		c.facts[devices[i].Name] = c.conf.Subjects(&devices[i])
	}
	all := slices.Clone(names)
	for _, id := range missing {
		all = append(all, id.Name)
		if c.facts[id.Name] == nil {
			c.facts[id.Name] = c.conf.Subjects(&snapshot.Device{Name: id.Name, PCIAddress: id.PCIAddress})
		}
	}
	maps.DeleteFunc(c.facts, func(name string, _ []site.Subject) bool { return !slices.Contains(all, name) })
	slices.Sort(all)
	var out []snapshot.PortID
	for _, name := range slices.Compact(all) {
		subjects := c.facts[name]
		if subjects == nil {
			subjects = c.conf.Subjects(&snapshot.Device{Name: name})
		}
		for _, s := range subjects {
			if conf.Ignored(s) {
				out = append(out, snapshot.PortID{Device: name, Number: s.Port})
			}
		}
	}
	return out
}

func emitIgnored(s metric.Sink, ignored []snapshot.PortID) {
	for _, id := range ignored {
		if id.Number == 0 {
			s.Emit(deviceIgnored, 1, id.Device)
		} else {
			s.Emit(portIgnored, 1, id.Device, strconv.Itoa(id.Number))
		}
	}
}

var portPKeysMissing = metric.Beside(
	"rdma_port_pkey_entries",
	metric.Asks(source.PortTables, metric.Port(
		"rdma_port_pkeys_missing",
		"P_Keys pinned in --config.file that are missing from the port's table. A pinned key with bit 15 set requires full membership, one without matches either. Absent where none is pinned, and where part of the table cannot be read.",
		"--config.file; ports/N/pkeys",
	)),
)

// fullMember is the membership bit of a P_Key, IBA 10.9.2.
const fullMember = 1 << 15

// missingPKeys counts the pinned P_Keys that are missing from a table.
func missingPKeys(pinned, table []uint16) (n uint64) {
	for _, pin := range pinned {
		if !slices.ContainsFunc(table, func(key uint16) bool {
			return key == pin || pin&fullMember == 0 && key == pin|fullMember
		}) {
			n++
		}
	}
	return n
}

// comparePKeys compares the tables of all ports with the present configuration.
func comparePKeys(c *shared.SiteConfig, devices []snapshot.Device) {
	conf := c.Current()
	if conf == nil || len(conf.Pins) == 0 {
		return
	}
	for i := range devices {
		for j, s := range c.Subjects(&devices[i])[1:] { // the first is the device
			p := &devices[i].Ports[j]
			if pinned := conf.Settings(s).PKeys; len(pinned) > 0 && p.PKeyTable != nil {
				p.PKeysMissing = new(missingPKeys(pinned, p.PKeyTable))
			}
		}
	}
}
