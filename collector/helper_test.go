package collector

import (
	"slices"
)

// collectorOf is one of the collectors of All.
func collectorOf(o Options, name string) *Collector {
	all := All(o)
	return all[slices.IndexFunc(all, func(c *Collector) bool { return c.Name == name })]
}
