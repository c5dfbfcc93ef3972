package collector

import (
	"slices"

	"rdma_exporter/collector/shared"
)

// collectorOf is one of the collectors of All.
func collectorOf(o shared.Options, name string) *shared.Collector {
	all := All(o)
	return all[slices.IndexFunc(all, func(c *shared.Collector) bool { return c.Name == name })]
}
