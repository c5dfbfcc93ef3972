package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// datasource chooses the Prometheus.
var datasource = dashboard.VariableModel{
	Type: dashboard.VariableTypeDatasource, Name: "datasource", Label: cog.ToPtr("Data source"),
	Query: &dashboard.StringOrMap{String: cog.ToPtr("prometheus")}, Refresh: cog.ToPtr(dashboard.VariableRefreshOnDashboardLoad),
	Hide: cog.ToPtr(dashboard.VariableHideDontHide),
}

// choice is a variable with the values of a label.
type choice struct {
	name, label, text string
	query             string
	one               bool   // one value and not all
	all               string // what all stands for; empty: the values that there are
}

func (c choice) variable() dashboard.VariableModel {
	v := dashboard.VariableModel{
		Type: dashboard.VariableTypeQuery, Name: c.name, Label: &c.label, Description: &c.text, Datasource: &source,
		Definition: &c.query, Query: &dashboard.StringOrMap{Map: map[string]any{"query": c.query, "refId": "StandardVariableQuery"}},
		Refresh: cog.ToPtr(dashboard.VariableRefreshOnTimeRangeChanged), Sort: cog.ToPtr(dashboard.VariableSortNaturalAsc),
		Hide: cog.ToPtr(dashboard.VariableHideDontHide), Multi: cog.ToPtr(!c.one), IncludeAll: cog.ToPtr(!c.one),
	}
	if !c.one {
		all := func(s string) dashboard.StringOrArrayOfString {
			return dashboard.StringOrArrayOfString{ArrayOfString: []string{s}}
		}
		v.Current = &dashboard.VariableOption{Selected: cog.ToPtr(true), Text: all("All"), Value: all("$__all")}
		if c.all != "" {
			v.AllValue = &c.all
		}
	}
	return v
}

// The choices. cluster is an external label: where there is none, the list is empty and all stands for hosts without it. All jobs are
// those of exporters, since up and alerts have others as well.
var (
	clusters = choice{name: "cluster", label: "Cluster", text: "External label cluster, where there is one.", all: ".*", query: "label_values(rdma_exporter_build_info, cluster)"}
	jobs     = choice{name: "job", label: "Job", text: "Scrape job of the exporters.", query: `label_values(rdma_exporter_build_info{cluster=~"$cluster"}, job)`}
	allHosts = choice{name: "instance", label: "Host", text: "Scrape target of the exporter.", all: ".*", query: `label_values(rdma_exporter_build_info{cluster=~"$cluster",job=~"$job"}, instance)`}
	oneHost  = choice{name: "instance", label: "Host", text: "Scrape target of the exporter.", one: true, query: `label_values(rdma_exporter_build_info{cluster=~"$cluster",job=~"$job"}, instance)`}
)

// hcas are the RDMA devices of what is chosen.
func hcas(s scope) choice {
	return choice{name: "device", label: "Device", text: "RDMA device.", all: ".*", query: "label_values(" + s.of("rdma_device_info") + ", device)"}
}

func variables(choices ...choice) []dashboard.VariableModel {
	v := []dashboard.VariableModel{datasource}
	for _, c := range choices {
		v = append(v, c.variable())
	}
	return v
}
