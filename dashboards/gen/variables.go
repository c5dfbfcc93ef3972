package main

// hostOf shows the host name of a scrape target, which has the port of the exporter, too.
const hostOf = `/^(?<value>(?<text>.+?)(?::\d+)?)$/`

// Choices of hosts. cluster is an external label: where there is none, the list is empty and All stands for hosts
// without it. job has no value for All: up and ALERTS have series of other jobs.
var (
	clusters = choice{
		Name: "cluster", Label: "Cluster", Text: "External label cluster, if there is one.", All: ".*",
		Query: "label_values(rdma_exporter_build_info, cluster)",
	}
	jobs = choice{
		Name: "job", Label: "Scrape job", Text: "Scrape job of the exporters on hosts.",
		Query: `label_values(rdma_exporter_build_info{cluster=~"$cluster"}, job)`,
	}
	allHosts = choice{
		Name: "hosts", Label: "Hosts", Text: "Scrape targets of the exporter.", All: ".*", Regex: hostOf,
		Query: `label_values(rdma_exporter_build_info{cluster=~"$cluster",job=~"$job"}, instance)`,
	}
	oneHost = choice{
		Name: "host", Label: "Host", Text: "Scrape target of the exporter.", One: true, Regex: hostOf,
		Query: `label_values(rdma_exporter_build_info{cluster=~"$cluster",job=~"$job"}, instance)`,
	}
)

// Choices of fabrics. An exporter in fabric mode has no rdma_exporter_build_info. anyFabricJobs includes jobs all of
// whose exporters are down: they match the name that RDMAExporterDown goes by.
var (
	fabricClusters = choice{
		Name: "cluster", Label: "Cluster", Text: "External label cluster, if there is one.", All: ".*",
		Query: "label_values(rdma_fabric_sweep_failed, cluster)",
	}
	fabricJobs = choice{
		Name: "fabric_job", Label: "Scrape job", Text: "Scrape job of the exporters in fabric mode.",
		Query: `label_values(rdma_fabric_sweep_failed{cluster=~"$cluster"}, job)`,
	}
	anyFabricJobs = choice{
		Name: "fabric_job", Label: "Fabric job", Text: "Scrape job of the exporters in fabric mode.",
		Regex: `/job="([^"]+)"/`,
		Query: `query_result(count by (job) (rdma_fabric_sweep_failed{cluster=~"$cluster"} or up{cluster=~"$cluster",job=~".*rdma[-_]exporter.*"} unless on (job) rdma_exporter_build_info{cluster=~"$cluster"}))`,
	}
	oneFabric = choice{
		Name: "fabric", Label: "Fabric", Text: "Exporter in fabric mode, one of those that sweep the subnet.", One: true,
		Regex: hostOf, Query: `label_values(rdma_fabric_sweep_failed{cluster=~"$cluster",job=~"$fabric_job"}, instance)`,
	}
	switches = choice{
		Name: "switch", Label: "Switch", Text: "Switch, by its node description.", All: ".*",
		Query: "label_values(" + fabricOf.Of("rdma_fabric_node_info", `node_type="switch"`) + ", node)",
	}
)

// books is the exporter that runbooks are read from: one that answers, in fabric mode if there is one.
var books = choice{
	Name: "books", Label: "Runbooks", Text: "Exporter that serves the runbooks.", One: true, Hide: true,
	Regex: `/instance="([^"]+)"/`,
	Query: `query_result(topk(1, max by (cluster, job, instance) ((2 * rdma_fabric_sweep_failed ^ 0 or rdma_exporter_build_info) and on (cluster, job, instance) up == 1)))`,
}

// hcas returns the RDMA devices of a scope.
func hcas(s scope) choice {
	return choice{
		Name: "device", Label: "Device", Text: "RDMA device.", All: ".*",
		Query: "label_values(" + s.Of("rdma_device_info") + ", device)",
	}
}
