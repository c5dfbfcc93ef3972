package main

import (
	"io/fs"
	"slices"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/host"
)

// needs is what the evaluation of an alert requires.
type needs struct {
	collectors  []string
	permissions []string // that an unprivileged process lacks
}

// need sets the needs of the alerts of rule files.
func need(alerts []alert, files fs.FS, names []string) error {
	all, err := alerting.Needs(files, names)
	if err != nil {
		return err
	}
	for _, n := range all {
		i := slices.IndexFunc(alerts, func(a alert) bool { return a.name == n.Name })
		of := needsOf(n.Need.Leaves())
		alerts[i].needs.add(of)
	}
	return nil
}

// add adds the needs of another fault of the alert.
func (n *needs) add(o needs) {
	n.collectors = unique(append(n.collectors, o.collectors...))
	n.permissions = unique(append(n.permissions, o.permissions...))
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

func needsOf(leaves []coverage.Need) (n needs) {
	for _, c := range collector.All(collector.Options{}) {
		for _, d := range c.Descs {
			for _, leaf := range leaves {
				if leaf.Metric != d.Name {
					continue
				}
				n.collectors = append(n.collectors, c.Name)
				if s, ok := host.SourceNamed(leaf.Asks(d)); ok && s.Guarded() {
					n.permissions = append(n.permissions, s.Needs())
				}
			}
		}
	}
	return n
}
