package main

// gpudirect shows for each GPU whether NICs reach its memory, and what the jobs on it use.
func gpudirect() board {
	return board{
		name: "gpudirect", title: "RDMA / GPUDirect", from: "now-3h", refresh: "1m", events: hosts.began("critical|warning", `alertname=~"RDMAGPU.+|RDMANUMAMisplaced|RDMANICMisplaced|RDMATransportFallback|RDMAACSRedirect|RDMAIOMMUTranslating"`),
		text:      "Whether data of each GPU goes to its NIC directly, why not, and what jobs use.",
		variables: variables(clusters, jobs, allHosts),
		rows: []row{
			{"Verdicts", []panel{verdicts(hosts, 24, 12, instance), gpuReasons(), gpuMechanisms()}},
			{"Use", append(gpuUse(), gpuJobs())},
			{"Beside DCGM", gpuDCGM()},
			{"Settings of the PCI tree", []panel{gpuSettings()}},
		},
	}
}

// verdicts lists GPUs with their best NIC: first those that nobody can tell of, then those that are not direct.
func verdicts(s scope, width, height uint32, where column) panel {
	judged, known := minBy(perGPU, s.of("rdma_gdr_gpu_direct")), maxBy(perGPU, s.of("rdma_gdr_gpu_info"))
	worst := bottom(400, judged+" or -1 * "+known)
	info := maxBy(perGPU+", device, distance, mechanism, reason", s.of("rdma_gdr_gpu_info")) + " and on (" + perGPU + ") " + worst
	goes := func(direction string) string {
		return "(" + info + ") * on (" + perGPU + ") group_left () " + maxBy(perGPU, s.of("rdma_gdr_gpu_direct", `direction="`+direction+`"`))
	}
	return panel{
		title: "GPUs and their best NIC", unit: "none", width: width, height: height, view: table, sort: "-Sends",
		text: "GPUs with their best eligible NIC, the 400 that are worst off: how far it is in NCCL's words (PIX and PXB share a PCIe switch), by which mechanism NCCL would use it, whether data goes directly " +
			"or through host memory, and the reason; docs/gpudirect.md has the reasons in words and what to do. An empty verdict is one that cannot be told.",
		queries: []query{{expr: goes("transmit")}, {expr: goes("receive")}, {expr: info}},
		columns: []column{
			where, gpu, uuid,
			{from: "device", title: "Best NIC"},
			{from: "distance", title: "Distance"},
			{from: "mechanism", title: "Mechanism"},
			{from: "A", title: "Sends", words: direct},
			{from: "B", title: "Receives", words: direct},
			{from: "reason", title: "Reason"},
			hidden("C"), cluster, job,
		},
	}
}

func gpuReasons() panel {
	return panel{
		title: "GPUs by reason", unit: "none", width: 12, height: 9, view: table, sort: "GPUs",
		text:    "GPUs of all chosen hosts by reason and distance. One reason on a whole fleet is a setting; one on a few hosts is a host that is set up otherwise.",
		queries: []query{{expr: countBy("reason, distance, mechanism", maxBy(perGPU+", reason, distance, mechanism", hosts.of("rdma_gdr_gpu_info")))}},
		columns: []column{{from: "reason", title: "Reason"}, {from: "distance", title: "Distance"}, {from: "mechanism", title: "Mechanism"}, {from: "A", title: "GPUs"}},
	}
}

func gpuMechanisms() panel {
	counted := func(value string) query {
		return query{expr: countBy("mechanism", maxBy(perDevice+", mechanism", hosts.of("rdma_gdr_mechanism_available"))+" == "+value)}
	}
	return panel{
		title: "Mechanisms", unit: "none", width: 12, height: 9, view: table, sort: "Mechanism",
		text:    "By which way NICs get at the memory of GPUs: peermem counts hosts with the module loaded, dmabuf RDMA devices whose driver, kernel and GPU driver can.",
		queries: []query{counted("1"), counted("0")},
		columns: []column{{from: "mechanism", title: "Mechanism"}, {from: "A", title: "There"}, {from: "B", title: "Not there"}},
	}
}

func gpuUse() []panel {
	return []panel{
		graph("GPUs by what their jobs use", "GPUs that processes with RDMA devices hold, by the transport that their data takes: gdr goes to the NIC directly, staging through host memory, "+
			"tcp does not use RDMA at all, host_only stays within the host.", "none", 12,
			query{"sum by (state) (" + maxBy(perGPU+", state", hosts.of("rdma_gdr_gpu_transport")) + ")", "{{state}}"}),
		graph("Live registrations", "References to the peer memory module, or memory regions that NICs have registered with GPUs, as far as a mechanism tells. DMA-BUFs do not show here: 0 does not mean that nothing is direct.", "none", 12,
			query{top(10, maxBy(perHost+", source", hosts.of("rdma_gdr_live_registrations"))), "{{instance}} {{source}}"}),
		graph("Memory registered", "GPU memory that NICs have registered, by client of MLNX_OFED up to 23.10; others do not tell.", "bytes", 12,
			query{top(10, maxBy(perHost+", client", hosts.of("rdma_gdr_registered_bytes"))), "{{instance}} {{client}}"}),
		graph("Least locked memory that processes may have", "Lowest limit of locked memory among the processes that hold an RDMA device, the ten lowest. Registration fails beyond it.", "bytes", 12,
			query{bottom(10, maxBy(perHost, hosts.of("rdma_gdr_locked_memory_limit_bytes"))), hostName}),
	}
}

// gpuJobs lists the GPUs that jobs hold: first those whose data does not go to a NIC directly.
func gpuJobs() panel {
	about := "workload, command, nccl_version, reason"
	staging := func(rank, state string) string {
		return rank + " * " + maxBy(perGPU+", state", hosts.of("rdma_gdr_gpu_transport", `state=~"`+state+`"`))
	}
	rank := top(400, staging("3", "staging|tcp")+" or "+staging("2", "unknown")+" or "+staging("1", "gdr|host_only"))
	return panel{
		title: "Jobs and what they use", unit: "none", width: 24, height: 10, view: table, sort: "Judgement", noValue: "–",
		text: "GPUs that jobs hold, 400 at most: how their data goes to other hosts now and why, with the workload as its scheduler names it. docs/gpudirect.md has the conditions. " +
			"Through host memory and over TCP a job is slower than its GPUs can; unknown is not fine, most often DMA-BUFs are in use, of which the kernel tells little.",
		queries: []query{{expr: "(" + rank + ") * on (" + perGPU + ") group_left (" + about + ") " + maxBy(perGPU+", "+about, hosts.of("rdma_gdr_gpu_transport_info"))}},
		columns: []column{
			{from: "A", title: "Judgement", words: []word{{"3", "slow way", warning}, {"2", "not known", neutral}, {"1", "well", good}}, width: 100},
			{from: "state", title: "Transport"},
			instance, gpu, hidden("UUID"),
			{from: "workload", title: "Workload"},
			{from: "command", title: "Command"},
			{from: "nccl_version", title: "NCCL"},
			{from: "reason", title: "Reason"},
			cluster, job,
		},
	}
}

// gpuDCGM joins the DCGM exporter's series by UUID. Without that exporter the panels are empty.
func gpuDCGM() []panel {
	busy := maxBy("UUID", "DCGM_FI_DEV_GPU_UTIL")
	named := func(expr string) string {
		return maxBy(perGPU, hosts.of("rdma_gdr_gpu_info")) + " * on (UUID) group_left () " + expr
	}
	indirect := "(" + named(busy) + ") and on (UUID) (" + minBy("UUID", hosts.of("rdma_gdr_gpu_direct")) + " == 0)"
	optional := " From the DCGM exporter; empty without it."
	work := graph("Work of GPUs that are not direct", "Share of the time in which a GPU worked whose data goes through host memory, the ten busiest: somebody waits for it."+optional, "percent", 12,
		query{top(10, indirect), gpuName})
	all := graph("Work of GPUs", "Share of the time in which a GPU worked, of all chosen hosts: median and most."+optional, "percent", 12,
		query{"quantile by (job) (0.5, " + named(busy) + ")", "median"}, query{"max by (job) (" + named(busy) + ")", "most"})
	work.link, work.points, all.points = true, few, few
	return []panel{work, all}
}

func gpuSettings() panel {
	labels := "max_payload, max_read_request, relaxed_ordering, acs_redirect, iommu, virtual"
	return panel{
		title: "PCIe settings of RDMA devices", unit: "none", width: 24, height: 9, view: table, sort: "Devices",
		text: "RDMA devices by their settings in the PCI tree. ACS that redirects sends what GPU and NIC exchange up to the processor, and an IOMMU that translates slows it down. " +
			"All NICs of a fleet ought to be in one row; what is empty cannot be read.",
		queries: []query{{expr: countBy(labels, maxBy(perDevice+", "+labels, hosts.of("rdma_device_pcie_settings_info")))}},
		columns: []column{
			{from: "max_payload", title: "Payload", unit: "none"},
			{from: "max_read_request", title: "Read request"},
			{from: "relaxed_ordering", title: "Relaxed ordering"},
			{from: "acs_redirect", title: "ACS redirects"},
			{from: "iommu", title: "IOMMU"},
			{from: "virtual", title: "Virtual machine"},
			{from: "A", title: "Devices"},
		},
	}
}
