package app

import (
	"maps"
	"sync"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

// partMetrics are the metrics of virtual functions and subfunctions beside their physical function: those that the rules read. They are
// determined once, on a host with such functions: parsing the rules takes longer than a round.
func (c *config) partMetrics() func() map[string]bool {
	if c.functions == functionsAll {
		return nil
	}
	return sync.OnceValue(func() map[string]bool {
		read, err := MetricsOfRules(c.ruleFiles)
		if err != nil { // reported where the rules are loaded
			return nil
		}
		return read
	})
}

// MetricsOfRules are the metrics that the built-in rules and those in more files read, of a node and of a central Prometheus.
func MetricsOfRules(globs []string) (map[string]bool, error) {
	node, names, err := readRules(globs, "")
	if err != nil {
		return nil, err
	}
	read, err := alerting.Reads(node, names, "rdma_")
	if err != nil {
		return nil, err
	}
	central, names, err := rules.Central()
	if err != nil {
		return nil, err
	}
	of, err := alerting.Reads(central, names, "rdma_")
	maps.Copy(read, of)
	return read, err
}
