package collector

import (
	"maps"
	"slices"
)

// MetricNames are the driver names of a counter that has a common metric.
type MetricNames struct {
	Metric  string
	Drivers []DriverNames
}

// DriverNames are the names of a counter in one RDMA driver, past ones included.
type DriverNames struct {
	Driver string
	Names  []string
}

// Names lists the driver counters with a common metric, for the documentation.
func Names() []MetricNames {
	var out []MetricNames
	for _, d := range slices.Concat(transportDescs, trafficDescs) {
		m := MetricNames{Metric: d.Name}
		for _, driver := range slices.Sorted(maps.Keys(transportNames)) {
			var names []string
			for name, desc := range transportNames[driver] {
				if desc == d {
					names = append(names, name)
				}
			}
			if slices.Sort(names); len(names) > 0 {
				m.Drivers = append(m.Drivers, DriverNames{driver, names})
			}
		}
		out = append(out, m)
	}
	return out
}
