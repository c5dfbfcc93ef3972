package modules

import (
	"slices"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot/hostdata"
)

var driverAsPinned = metric.Of("rdma_device_info", metric.Beside("rdma_device_info", metric.Asks(source.Modules,
	metric.Host("rdma_driver_as_pinned",
		"Whether a loaded driver is out-of-tree and of the version pinned in --config.file. Absent where no version is pinned, and where the driver is not loaded.",
		"--config.file; /sys/module/MODULE/{version,taint}", "module"))))

var driverPinInfo = metric.Beside("rdma_device_info", metric.Host("rdma_driver_pin_info",
	"Driver versions pinned in --config.file, as a glob, always 1.", "--config.file", "module", "pin"))

// pinnedModule is the module with the version of the out-of-tree stack.
const pinnedModule = "mlx5_core"

// driverPin compares the loaded driver with the present configuration; nil where nothing is pinned or the driver is not
// loaded.
func driverPin(c *shared.SiteConfig, modules []hostdata.Module) *hostdata.DriverPin {
	glob := c.Current().OFED(c.Hostname)
	i := slices.IndexFunc(modules, func(m hostdata.Module) bool { return m.Name == pinnedModule && m.Loaded })
	if glob == "" || i < 0 {
		return nil
	}
	m := modules[i]
	return &hostdata.DriverPin{Module: m.Name, Pin: glob, Met: m.Flavour != inTree && site.MatchOFED(glob, m.Version)}
}

func emitDriverPin(s metric.Sink, p *hostdata.DriverPin) {
	if p != nil {
		s.Emit(driverAsPinned, metric.BoolValue(p.Met), p.Module)
		s.Emit(driverPinInfo, 1, p.Module, p.Pin)
	}
}
