// Package collector lists the collectors of metrics. A collector is one domain, a package below: its Descs, its Read
// (fills a section of snapshot.Node from the host) and its Emit (turns that section into samples). To add one, copy an
// existing one and add it to All.
package collector

import (
	"rdma_exporter/collector/ethernet"
	"rdma_exporter/collector/gpu"
	"rdma_exporter/collector/gpudirect"
	"rdma_exporter/collector/health"
	"rdma_exporter/collector/hwcounters"
	"rdma_exporter/collector/infiniband"
	"rdma_exporter/collector/kernellog"
	"rdma_exporter/collector/modules"
	"rdma_exporter/collector/neighbours"
	"rdma_exporter/collector/pcie"
	"rdma_exporter/collector/peers"
	"rdma_exporter/collector/qos"
	"rdma_exporter/collector/sensors"
	"rdma_exporter/collector/setup"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/transceivers"
)

// All returns new collectors, in the order in which they appear everywhere.
func All(o shared.Options) []*shared.Collector {
	with := shared.NewState(o)
	return []*shared.Collector{
		infiniband.New(with),
		hwcounters.New(with),
		ethernet.New(with),
		modules.New(with),
		health.New(with),
		qos.New(with),
		pcie.New(with),
		sensors.New(with),
		transceivers.New(with),
		neighbours.New(with),
		gpu.New(with),
		gpudirect.New(with),
		setup.New(with),
		kernellog.New(with),
		peers.New(with),
	}
}
