// Package rulefiles reads the rule files that are evaluated: the built-in ones, and those of the operator.
package rulefiles

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/tune"
	"rdma_exporter/rules"
)

// Files are the built-in rule files and those of --alerting.rule-files, as read.
type Files struct {
	fs.FS                   // built in
	Names []string          // in the order of evaluation
	Texts map[string][]byte // of --alerting.rule-files, by path
	books RunbookURL        // of the alerts
	// readable are the metrics that the rules may read.
	readable []coverage.Metric
}

// ReadFile is called by the engine.
func (r *Files) ReadFile(name string) ([]byte, error) {
	if text, ok := r.Texts[name]; ok {
		return r.books.InRules(text), nil
	}
	text, err := fs.ReadFile(r.FS, name)
	return r.books.InRules(text), err
}

// maxRuleFile limits a rule file.
const maxRuleFile = 4 << 20

// Read returns all rule files: the thresholds of the site, the built-in ones, each replaced by a file of the same base
// name if there is one, then the additional ones. Their alerts link to runbooks at books.
func Read(globs []string, books RunbookURL) (*Files, error) {
	return readSet(rules.Node, globs, books, Readable())
}

// ReadFabric is Read of the rules of a swept fabric.
func ReadFabric(globs []string, books RunbookURL) (*Files, error) {
	return readSet(rules.Fabric, globs, books, fabricMetrics())
}

func readSet(
	builtIn func() (fs.FS, []string, error), globs []string, books RunbookURL, readable []coverage.Metric,
) (*Files, error) {
	fsys, names, err := builtIn()
	if err != nil {
		return nil, err
	}
	r := &Files{FS: fsys, Names: names, Texts: map[string][]byte{}, books: books, readable: readable}
	for _, glob := range globs {
		found, err := filepath.Glob(glob)
		if err != nil {
			return nil, fmt.Errorf("--alerting.rule-files=%s: %w", glob, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("--alerting.rule-files=%s: no file matches", glob)
		}
		for _, name := range found {
			if _, again := r.Texts[name]; again {
				continue
			}
			if r.Texts[name], err = command.ReadSmall(name, maxRuleFile); err != nil {
				return nil, fmt.Errorf("--alerting.rule-files=%s: %s: %w", glob, name, err)
			}
			at := slices.IndexFunc(r.Names, func(n string) bool { return path.Base(n) == filepath.Base(name) })
			switch {
			case at < 0 && filepath.Base(name) == tune.ThresholdsFile: // before the rules that read them
				r.Names = slices.Insert(r.Names, 0, name)
			case at < 0:
				r.Names = append(r.Names, name)
			case r.Texts[r.Names[at]] != nil:
				return nil, fmt.Errorf("--alerting.rule-files: %s and %s have the same base name", r.Names[at], name)
			default:
				r.Names[at] = name
			}
		}
	}
	return r, nil
}

// Own returns the metrics that the rules read.
func (r *Files) Own() (map[string]bool, error) { return alerting.Reads(r, r.Names, "rdma_") }

// Metrics returns the metrics that these rules and the rules of a central Prometheus read.
func (r *Files) Metrics() (map[string]bool, error) {
	read, err := r.Own()
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

// Detector finds the alerts of the rules that cannot be evaluated.
func (r *Files) Detector() (*coverage.Detector, error) {
	alerts, err := alerting.Needs(r, r.Names)
	if err != nil {
		return nil, err
	}
	return coverage.New(alerts, r.readable), nil
}

// Readable returns the metrics that rules may read.
func Readable() []coverage.Metric {
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

// FabricCollector is the name of the sweep where the collectors of a host have theirs.
const FabricCollector = "fabric"

// fabricMetrics returns the metrics that the rules of a swept fabric may read.
func fabricMetrics() (out []coverage.Metric) {
	for _, d := range fabric.Descs() {
		out = append(out, coverage.Metric{Desc: d, Collectors: []string{FabricCollector}})
	}
	return out
}
