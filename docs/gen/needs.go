package main

import (
	"io/fs"
	"slices"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/coverage"
)

// need sets the collectors of the alerts of rule files.
func need(alerts []alert, files fs.FS, names []string) error {
	all, err := alerting.Needs(files, names)
	if err != nil {
		return err
	}
	for _, n := range all {
		i := slices.IndexFunc(alerts, func(a alert) bool { return a.name == n.Name })
		alerts[i].collectors = unique(append(alerts[i].collectors, collectorsOf(n.Need.Leaves())...))
	}
	return nil
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// collectorsOf returns the collectors of the metrics that an evaluation needs.
func collectorsOf(leaves []coverage.Need) (names []string) {
	for _, c := range collector.All(collector.Options{}) {
		for _, d := range c.Descs {
			if slices.ContainsFunc(leaves, func(leaf coverage.Need) bool { return leaf.Metric == d.Name }) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}
