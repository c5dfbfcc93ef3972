package main

import (
	"slices"
	"strings"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/rules"
)

// permissionTable lists the sources that an ordinary user cannot read: the permission required, the metrics from them,
// and the alerts not evaluated without it.
func permissionTable() (string, error) {
	files, names, err := rules.Node()
	if err != nil {
		return "", err
	}
	needs, err := alerting.Needs(files, names)
	if err != nil {
		return "", err
	}
	var d document
	var rows [][]string
	for _, guardedSource := range guarded() {
		var metrics, alerts []string
		for _, desc := range asking(guardedSource) {
			metrics = append(metrics, labelled(desc))
			for _, n := range needs {
				for _, leaf := range n.Need.Leaves() {
					if leaf.Metric == desc.Name && leaf.Asks(desc) == guardedSource.Name() {
						alerts = append(alerts, section(n.Name))
					}
				}
			}
		}
		slices.Sort(alerts)
		rows = append(rows,
			[]string{code(guardedSource.Name()), plain(guardedSource.Needs()), orNone(metrics), orNone(slices.Compact(alerts))})
	}
	d.table([]string{"source", "permission", "metrics", "alerts not evaluated without it"}, rows)
	return d.String(), nil
}

func guarded() (out []source.Source) {
	for _, s := range source.All() {
		if s.Guarded() {
			out = append(out, s)
		}
	}
	return out
}

// asking lists the metrics of a source.
func asking(s source.Source) (out []*exposition.Desc) {
	for _, c := range collector.All(collector.Options{}) {
		for _, d := range c.Descs {
			if d.Asks == s.Name() && !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// labelled returns a metric, or its labels that come from the source.
func labelled(d *exposition.Desc) string {
	if len(d.AskedLabels) == 0 {
		return code(d.Name)
	}
	return code(d.Name) + " (labels " + codes(d.AskedLabels) + ")"
}

func orNone(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}
