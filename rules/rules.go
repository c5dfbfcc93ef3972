// Package rules embeds the alerting rules, so that the engine and check evaluate the same files as a central
// Prometheus.
package rules

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"
)

//go:embed node/*.rules.yml central/*.rules.yml compat/*.rules.yml
var files embed.FS

// Node returns the rules that require only one node's own metrics: the files, and their names in the order of
// evaluation.
func Node() (fs.FS, []string, error) { return readSet("node") }

// Central returns the rules that require metrics of many nodes, or of other exporters. They read records of the Node
// rules.
func Central() (fs.FS, []string, error) { return readSet("central") }

// Both returns the Node rules and after them the Central rules, as a central Prometheus evaluates them.
func Both() (fs.FS, []string, error) { return readSet("node", "central") }

// Fabric returns the rules on the metrics of a swept fabric, in the order of evaluation: those of Central that need
// nothing else, with the file that places faults.
func Fabric() (fs.FS, []string, error) {
	return files, []string{
		"central/fabric.rules.yml", "central/fabric_ber.rules.yml", "central/fabric_congestion.rules.yml",
		"node/faults.rules.yml", "central/fabric_alerts.rules.yml",
	}, nil
}

// Compat returns recording rules for existing dashboards: series of this exporter under the names of other exporters.
// No rule here reads them.
func Compat() (fs.FS, []string, error) { return readSet("compat") }

func readSet(folders ...string) (fs.FS, []string, error) {
	var all []string
	for _, folder := range folders {
		names, err := fs.Glob(files, folder+"/*.rules.yml")
		if err != nil {
			return nil, nil, fmt.Errorf("list embedded rules: %w", err)
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b)) })
		all = append(all, names...)
	}
	return files, all, nil
}

// order sorts the rules for expected ports first (most files read them), and last those that read all records:
// symptoms, faults, their alerts, and the verdict.
func order(name string) int {
	if name == "node/link.rules.yml" || name == "central/leaf.rules.yml" {
		return -2
	}
	return slices.Index([]string{
		"node/symptoms.rules.yml", "node/faults.rules.yml", "node/alerts.rules.yml", "node/verdict.rules.yml",
	}, name)
}
