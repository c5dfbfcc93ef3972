package app

import (
	"io/fs"
	"sync"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/rules"
)

// detector finds the alerts in rule files that cannot be evaluated on a host.
func detector(fsys fs.FS, names []string) (*coverage.Detector, error) {
	alerts, err := alerting.Needs(fsys, names)
	if err != nil {
		return nil, err
	}
	return coverage.New(alerts, readable()), nil
}

// embeddedDetector is that of the built-in rules, made once: parsing them takes longer than a round.
var embeddedDetector = sync.OnceValues(func() (*coverage.Detector, error) {
	fsys, names, err := rules.Node()
	if err != nil {
		return nil, err
	}
	return detector(fsys, names)
})

// readable are the metrics that rules may read.
func readable() []coverage.Metric {
	var out []coverage.Metric
	add := func(descs []*exposition.Desc, collectors ...string) {
		for _, d := range descs {
			out = append(out, coverage.Metric{Desc: d, Collectors: collectors})
		}
	}
	add(rounds.Descs)
	for _, c := range collector.All(collector.Options{}) {
		add(c.Descs, c.Name)
	}
	return out
}
