// Package rules holds the alerting rules, which alone decide what is wrong with a node, in the binary too, so that the engine
// and check judge with the files that a central Prometheus loads.
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

// Node gives the rules that one node's own metrics suffice for: the files, and their names in the order of evaluation.
func Node() (fs.FS, []string, error) { return set("node") }

// Central gives those that need the sight of many nodes, or of other exporters. They read what the rules of Node record.
func Central() (fs.FS, []string, error) { return set("central") }

// Compat gives recording rules that nothing here reads: series of this exporter under the names of others, for who has dashboards of those.
func Compat() (fs.FS, []string, error) { return set("compat") }

func set(folder string) (fs.FS, []string, error) {
	names, err := fs.Glob(files, folder+"/*.rules.yml")
	if err != nil {
		return nil, nil, fmt.Errorf("list embedded rules: %w", err)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(late(a), late(b)), cmp.Compare(a, b)) })
	return files, names, nil
}

// late orders the files that read what others have recorded after them: chains before the alerts of a whole host, the verdict last.
func late(name string) int {
	return slices.Index([]string{"node/chains.rules.yml", "node/whole_host.rules.yml", "node/verdict.rules.yml"}, name)
}
