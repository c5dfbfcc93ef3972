package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// datasource chooses the Prometheus.
var datasource = dashboard.VariableModel{
	Type: dashboard.VariableTypeDatasource, Name: "datasource", Label: cog.ToPtr("Data source"),
	Query:   &dashboard.StringOrMap{String: cog.ToPtr("prometheus")},
	Refresh: cog.ToPtr(dashboard.VariableRefreshOnDashboardLoad),
	Hide:    cog.ToPtr(dashboard.VariableHideDontHide),
}

// choice is a variable with the values of a label. A name stands for one kind of target on every dashboard, so that
// links can pass it on.
type choice struct {
	name, label, text string
	query             string
	regex             string // of what the query returns; empty: all of it
	one               bool   // one value and not all
	all               string // what all stands for; empty: the values that there are
	ordered           bool   // in the order of the query
	hide              bool   // not shown: it is nothing to choose
}

func (c choice) variable() dashboard.VariableModel {
	v := dashboard.VariableModel{
		Type: dashboard.VariableTypeQuery, Name: c.name, Label: &c.label, Description: &c.text, Datasource: &source,
		Definition: &c.query,
		Query:      &dashboard.StringOrMap{Map: map[string]any{"query": c.query, "refId": "StandardVariableQuery"}},
		Refresh:    cog.ToPtr(dashboard.VariableRefreshOnTimeRangeChanged), Sort: cog.ToPtr(dashboard.VariableSortNaturalAsc),
		Hide: cog.ToPtr(dashboard.VariableHideDontHide), Multi: cog.ToPtr(!c.one), IncludeAll: cog.ToPtr(!c.one),
	}
	if c.ordered {
		v.Sort = cog.ToPtr(dashboard.VariableSortDisabled)
	}
	if c.hide {
		v.Hide = cog.ToPtr(dashboard.VariableHideHideVariable)
	}
	if c.regex != "" {
		v.Regex = &c.regex
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

// hostOf shows the host name of a scrape target, which has the port of the exporter, too.
const hostOf = `/^(?<value>(?<text>.+?)(?::\d+)?)$/`

// Choices of hosts. cluster is an external label: where there is none, the list is empty and All stands for hosts
// without it. job has no value for All: up and ALERTS have series of other jobs.
var (
	clusters = choice{
		name: "cluster", label: "Cluster", text: "External label cluster, if there is one.", all: ".*",
		query: "label_values(rdma_exporter_build_info, cluster)",
	}
	jobs = choice{
		name: "job", label: "Job", text: "Scrape job of the exporters on hosts.",
		query: `label_values(rdma_exporter_build_info{cluster=~"$cluster"}, job)`,
	}
	allHosts = choice{
		name: "hosts", label: "Hosts", text: "Scrape targets of the exporter.", all: ".*", regex: hostOf,
		query: `label_values(rdma_exporter_build_info{cluster=~"$cluster",job=~"$job"}, instance)`,
	}
	oneHost = choice{
		name: "host", label: "Host", text: "Scrape target of the exporter.", one: true, regex: hostOf,
		query: `label_values(rdma_exporter_build_info{cluster=~"$cluster",job=~"$job"}, instance)`,
	}
)

// Choices of fabrics. An exporter in fabric mode has no rdma_exporter_build_info. anyFabricJobs includes jobs all of
// whose exporters are down: they match the name that RDMAExporterDown goes by.
var (
	fabricClusters = choice{
		name: "cluster", label: "Cluster", text: "External label cluster, if there is one.", all: ".*",
		query: "label_values(rdma_fabric_sweep_failed, cluster)",
	}
	fabricJobs = choice{
		name: "fabric_job", label: "Job", text: "Scrape job of the exporters in fabric mode.",
		query: `label_values(rdma_fabric_sweep_failed{cluster=~"$cluster"}, job)`,
	}
	anyFabricJobs = choice{
		name: "fabric_job", label: "Fabric job", text: "Scrape job of the exporters in fabric mode.",
		regex: `/job="([^"]+)"/`,
		query: `query_result(count by (job) (rdma_fabric_sweep_failed{cluster=~"$cluster"} or up{cluster=~"$cluster",job=~".*rdma[-_]exporter.*"} unless on (job) rdma_exporter_build_info{cluster=~"$cluster"}))`,
	}
	oneFabric = choice{
		name: "fabric", label: "Fabric", text: "Exporter in fabric mode, one of those that sweep the subnet.", one: true,
		regex: hostOf, query: `label_values(rdma_fabric_sweep_failed{cluster=~"$cluster",job=~"$fabric_job"}, instance)`,
	}
	switches = choice{
		name: "switch", label: "Switch", text: "Switch, by its node description.", all: ".*",
		query: "label_values(" + fabricOf.of("rdma_fabric_node_info", `node_type="switch"`) + ", node)",
	}
)

// books is the exporter that runbooks are read from: one that answers, in fabric mode if there is one.
var books = choice{
	name: "books", label: "Runbooks", text: "Exporter that serves the runbooks.", one: true, hide: true,
	regex: `/instance="([^"]+)"/`,
	query: `query_result(topk(1, max by (cluster, job, instance) ((2 * rdma_fabric_sweep_failed ^ 0 or rdma_exporter_build_info) and on (cluster, job, instance) up == 1)))`,
}

// hcas returns the RDMA devices of a scope.
func hcas(s scope) choice {
	return choice{
		name: "device", label: "Device", text: "RDMA device.", all: ".*",
		query: "label_values(" + s.of("rdma_device_info") + ", device)",
	}
}

func variables(choices []choice) []dashboard.VariableModel {
	v := []dashboard.VariableModel{datasource}
	for _, c := range choices {
		v = append(v, c.variable())
	}
	return v
}
