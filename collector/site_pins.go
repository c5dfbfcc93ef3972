package collector

import (
	"slices"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

var (
	portPKeysMissing = beside("rdma_port_pkey_entries", asks(host.SourcePortTables, portDesc("rdma_port_pkeys_missing",
		"P_Keys pinned in --config.file that are missing from the port's table. A pinned key with bit 15 set requires full membership, one without matches either. Absent where none is pinned, and where part of the table cannot be read.",
		"--config.file; ports/N/pkeys")))
	driverAsPinned = of("rdma_device_info", beside("rdma_device_info", asks(host.SourceModules,
		hostDesc("rdma_driver_as_pinned",
			"Whether a loaded driver is out-of-tree and of the version pinned in --config.file. Absent where no version is pinned, and where the driver is not loaded.",
			"--config.file; /sys/module/MODULE/{version,taint}", "module"))))
	driverPinInfo = beside("rdma_device_info", hostDesc("rdma_driver_pin_info",
		"Driver versions pinned in --config.file, as a glob, always 1.", "--config.file", "module", "pin"))
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
func (c *siteConfig) comparePKeys(devices []snapshot.Device) {
	conf := c.current()
	if conf == nil || len(conf.Pins) == 0 {
		return
	}
	for i := range devices {
		for j, s := range c.subjects(&devices[i])[1:] { // the first is the device
			p := &devices[i].Ports[j]
			if pinned := conf.Settings(s).PKeys; len(pinned) > 0 && p.PKeyTable != nil {
				p.PKeysMissing = new(missingPKeys(pinned, p.PKeyTable))
			}
		}
	}
}

// pinnedModule is the module with the version of the out-of-tree stack.
const pinnedModule = "mlx5_core"

// driverPin compares the loaded driver with the present configuration; nil where nothing is pinned or the driver is not
// loaded.
func (c *siteConfig) driverPin(modules []snapshot.Module) *snapshot.DriverPin {
	glob := c.current().OFED(c.hostname)
	i := slices.IndexFunc(modules, func(m snapshot.Module) bool { return m.Name == pinnedModule && m.Loaded })
	if glob == "" || i < 0 {
		return nil
	}
	m := modules[i]
	return &snapshot.DriverPin{Module: m.Name, Pin: glob, Met: m.Flavour != inTree && site.MatchOFED(glob, m.Version)}
}

func emitDriverPin(s Sink, p *snapshot.DriverPin) {
	if p != nil {
		s.Emit(driverAsPinned, boolValue(p.Met), p.Module)
		s.Emit(driverPinInfo, 1, p.Module, p.Pin)
	}
}
