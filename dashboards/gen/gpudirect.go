package main

// gpudirect has for each GPU whether NICs reach its memory, and what the jobs on it use.
func gpudirect() board {
	return board{
		name: "gpudirect", title: "GPUDirect", from: "now-3h", refresh: "1m",
		events: hosts.began("critical|warning",
			`alertname=~"RDMAGPU.+|RDMAHostMisconfigured"`),
		text:    "Does the data of each GPU go to its NIC directly, and if not, why?",
		choices: []choice{clusters, jobs, allHosts},
		rows: []row{
			{"GPUs and jobs", []panel{gpuCounts(), verdicts(hosts, 11, "-Sends", instance, hca).wide(21), gpuJobs(), portWorkloads(), gpuReasons(), gpuMechanisms(), gpuObstacles(), gpuGIDs(), gpuHidden()}, false},
			{"Use", gpuUse(), false},
			{"With the DCGM exporter", gpuDCGM(), false},
			{"Settings", []panel{gpuSettings(), unlike(), toChange()}, false},
		},
	}
}

// verdicts lists GPUs with their best NIC: first those whose path is unknown, then those that are not direct.
func verdicts(s scope, height uint32, sort string, where, nic column) panel {
	decided, known := minBy(perGPU, s.of("rdma_gdr_gpu_direct")), maxBy(perGPU, s.of("rdma_gdr_gpu_info"))
	staged := slowJobs(s)
	worst := bottom(400, "-2 * "+staged+" ^ 0 or "+decided+" or -1 * "+known)
	info := "(" + byReason(s, "device, distance, mechanism, reason") + ") and on (" + perGPU + ") " + worst
	goes := func(direction string) string {
		is := maxBy(perGPU, s.of("rdma_gdr_gpu_direct", `direction="`+direction+`"`))
		can := maxBy(perGPU, s.of("rdma_gdr_gpu_possible", `direction="`+direction+`"`))
		return "(" + info + ") * on (" + perGPU + ") group_left () (-1 * " + staged + " ^ 0 or 2 + (" + is + " == 0 and " +
			can + " == 0) or " + is + ")"
	}
	return panel{
		title: "GPUs and their best NIC", unit: "none", width: grid, height: height, view: table, sort: sort, rows: "C",
		noValue: "no GPUs, or they are not collected",
		text: "GPUs with their best eligible NIC, at most 400, the worst: NCCL's distance (PIX and PXB share a PCIe switch), the mechanism that NCCL would use, whether data goes directly " +
			"or is staged through host memory, and the reason; docs/gpudirect.md explains the reasons and remedies. By its job: the path is direct, and the job stages its data or sends it over TCP: see Transport of jobs. " +
			"Hardware: it has no direct path, which is no fault. An empty cell is unknown.",
		queries: []query{{expr: goes("transmit")}, {expr: goes("receive")}, {expr: info}},
		columns: []column{
			where, gpu,
			{from: "A", title: "Sends", words: direct, width: 130},
			{from: "B", title: "Receives", words: direct, width: 130},
			{from: "reason", title: "Reason", width: 190},
			nic,
			{from: "distance", title: "Distance", width: 80},
			{from: "mechanism", title: "Mechanism", width: 100},
			uuid, hidden("C"), cluster, job,
		},
	}
}

// gpuCounts is the verdict for all chosen GPUs.
func gpuCounts() panel {
	used := maxBy(perGPU, hosts.of("rdma_gdr_gpu_transport", `state!="unknown"`)) + " or " + slowJobs(hosts)
	p := counts("GPUDirect", "Has a GPU lost GPUDirect, does a job stage, and is it measured?", 3,
		count{
			title: "Lost", text: "GPUs whose data is staged through host memory although their hardware can do without, by their path or by their job.", colour: warning,
			expr: orZero(lostDirect, hosts.of("rdma_gdr_gpu_direct")), of: "count(" + maxBy(perGPU,
				hosts.of("rdma_gdr_gpu_direct")) + ")",
		},
		count{
			title: "Staging", text: "GPUs whose job stages their data or sends it over TCP, of those that jobs hold and whose transport is known.", colour: warning,
			expr: "count(" + slowJobs(hosts) + ") or 0 * count(" + used + ")",
			of:   "(count(" + used + ") or 0 * count(" + allGPUs + "))",
		},
		count{
			title: "Unknown", text: "GPUs whose path is unknown: not measured.", colour: neutral,
			expr: orZero("("+allGPUs+") unless on ("+perGPU+") "+hosts.of("rdma_gdr_gpu_direct"), allGPUs), of: "count(" +
				allGPUs + ")",
		},
	)
	p.height = 11
	return p
}

func gpuReasons() panel {
	return panel{
		title: "GPUs by reason", unit: "none", width: 12, height: 9, view: table, sort: "GPUs",
		text:    "GPUs of all chosen hosts by reason and distance. A reason on a whole fleet is a setting; one on a few hosts is a host with other settings.",
		noValue: "no GPUs, or they are not collected",
		queries: []query{{expr: countBy("reason, distance, mechanism",
			maxBy(perGPU+", reason, distance, mechanism", hosts.of("rdma_gdr_gpu_info")))}},
		columns: []column{
			{from: "reason", title: "Reason"},
			{from: "distance", title: "Distance"},
			{from: "mechanism", title: "Mechanism"},
			{from: "A", title: "GPUs"},
		},
	}
}

func gpuObstacles() panel {
	return panel{
		title: "Obstacles", unit: "none", width: grid, height: 8, view: table, sort: "GPUs",
		noValue: "none, or no GPUs are collected",
		text: "What keeps GPUs of all chosen hosts from GPUDirect RDMA, all at once: of a GPU with several they are removed in the order of their steps. After: the reason that is left then. " +
			"Possible: of these GPUs, those that can be direct with their hardware.",
		queries: []query{{expr: countBy("step, kind, reason, after", obstacles)}, {expr: countBy("step, kind, reason, after",
			obstacles+" and on ("+perGPU+") "+hosts.of("rdma_gdr_gpu_possible")+" == 1") +
			" or 0 * " + countBy("step, kind, reason, after", obstacles)}},
		columns: []column{
			{from: "step", title: "Step", width: 70},
			{from: "kind", title: "Kind", width: 110},
			{from: "reason", title: "Reason"},
			{from: "after", title: "After"},
			{from: "A", title: "GPUs", width: 70},
			{from: "B", title: "Possible", width: 90},
		},
	}
}

// obstacles are the obstacles of GPUs.
var obstacles = maxBy(perGPU+", step, kind, reason, after", hosts.of("rdma_gdr_gpu_obstacle_info"))

func gpuMechanisms() panel {
	counted := func(value string) query {
		all := maxBy(perDevice+", mechanism", hosts.of("rdma_gdr_mechanism_available"))
		return query{expr: countBy("mechanism", all+" == "+value) + " or 0 * " + countBy("mechanism", all)}
	}
	return panel{
		title: "Mechanisms", unit: "none", width: 12, height: 9, view: table, sort: "Mechanism",
		text:    "How NICs reach GPU memory: peermem counts hosts with the module loaded, dmabuf RDMA devices whose driver, kernel and GPU driver support it.",
		queries: []query{counted("1"), counted("0")},
		columns: []column{
			{from: "mechanism", title: "Mechanism"}, {from: "A", title: "Available"}, {from: "B", title: "Missing"},
		},
	}
}

func gpuGIDs() panel {
	return panel{
		title: "Jobs with a wrong GID", unit: "none", width: 12, height: 8, view: table, sort: "-Host", noValue: "none",
		text:    "Jobs whose NCCL_IB_GID_INDEX names an entry of the GID table that is not RoCE v2 on this port: connections fail, or leave without PFC and ECN.",
		queries: []query{{expr: maxBy(perPort+", gid_index, gid_type, workload", hosts.of("rdma_gdr_job_gid_info"))}},
		columns: []column{
			instance, hca, portOf,
			{from: "gid_index", title: "GID index", width: 90},
			{from: "gid_type", title: "GID type", width: 110},
			{from: "workload", title: "Workload"},
			hidden("A"), cluster, job,
		},
	}
}

func gpuHidden() panel {
	return panel{
		title: "Hidden GPUs, nearest NICs down", unit: "none", width: 12, height: 8, view: table, sort: "-Host",
		noValue: "none, or no GPUs are collected",
		text:    "GPUs of the PCI tree that NVML does not list (fallen off the bus, or of another driver), and GPUs whose nearest NIC has no ACTIVE port.",
		queries: []query{{expr: `label_replace(` + maxBy(perHost+", pci_bus_id", hosts.of("rdma_gpu_hidden")) +
			` == 1, "fault", "not in NVML", "", "") or label_replace(` +
			maxBy(perGPU+", device", hosts.of("rdma_gdr_gpu_nearest_down_info")) + `, "fault", "nearest NIC down", "", "")`}},
		columns: []column{
			instance, gpu, hidden("UUID"),
			{from: "pci_bus_id", title: "PCI bus ID"},
			hca,
			{from: "fault", title: "Fault"},
			hidden("A"), cluster, job,
		},
	}
}

func gpuUse() []panel {
	transport := graph("GPUs by transport of their jobs", "GPUs that processes with RDMA devices hold, by transport: gdr goes to the NIC directly, staging through host memory, "+
		"tcp uses no RDMA, host_only stays within the host.", "none", 12,
		query{"sum by (state) (" + maxBy(perGPU+", state", hosts.of("rdma_gdr_gpu_transport")) + ")", "{{state}}"})
	transport.states = []word{
		{"gdr", "", good},
		{"host_only", "", "light-blue"},
		{"staging", "", warning},
		{"tcp", "", bad},
		{"unknown", "", neutral},
	}
	return []panel{
		transport,
		graph("Live registrations", "References to the peer memory module, or memory regions that NICs have registered with GPUs, as far as a mechanism exposes them. DMA-BUFs are not counted: 0 does not mean that nothing is direct.", "none", 12,
			query{
				highest(10, perHost+", source", maxBy(perHost+", source", hosts.of("rdma_gdr_live_registrations"))),
				"{{host}} {{source}}",
			}),
		graph("Registered memory", "Memory that is registered with NICs, the ten largest of host and mechanism: dmabuf and peermem are GPU memory, host is host memory, including queues. By eBPF programs, of processes that started after the exporter; without them peermem only, with MLNX_OFED up to 23.10.", "bytes", 12,
			query{highest(10, perHost+", mechanism", "sum by ("+perHost+", mechanism) ("+maxBy(perHost+
				", device, gpu, UUID, mechanism", hosts.of("rdma_gdr_registered_bytes"))+")"), "{{host}} {{mechanism}}"}),
		graph("Lowest locked memory limit", "Lowest limit of locked memory (RLIMIT_MEMLOCK) among the processes that hold an RDMA device, the ten lowest hosts. Registration fails beyond it.", "bytes", 12,
			query{lowest(10, perHost, maxBy(perHost, hosts.of("rdma_gdr_locked_memory_limit_bytes"))), hostName}),
	}
}

// transportRank ranks the transport of GPUs that jobs hold: 3 slow, also between two exchanges of a job that stages, 2
// unknown, 1 direct.
func transportRank(s scope) string {
	state := maxBy(perGPU+", state", s.of("rdma_gdr_gpu_transport"))
	of := func(states string) string {
		return maxBy(perGPU+", state", s.of("rdma_gdr_gpu_transport", `state=~"`+states+`"`))
	}
	return "3 * (" + state + " and on (" + perGPU + ") " + slowJobs(s) + ") or 2 * " + of("unknown") + " or 1 * " +
		of("gdr|host_only")
}

// gpuJobs lists the GPUs that jobs hold: first those whose data does not go to a NIC directly.
func gpuJobs() panel {
	about := "workload, command, nccl_version, reason"
	rank := top(400, transportRank(hosts))
	return panel{
		title: "Transport of jobs", unit: "none", width: 24, height: 10, view: table, sort: "Transport",
		noValue: "no process holds a GPU and an RDMA device",
		text: "GPUs that jobs hold, at most 400: the transport of their data to other hosts now and why, with the workload as its scheduler names it. docs/gpudirect.md has the conditions. " +
			"Staging and TCP slow the job down; unknown is not well: most often DMA-BUFs are in use, whose attachments the kernel does not expose cheaply.",
		queries: []query{{expr: "(" + rank + ") * on (" + perGPU + ") group_left (" + about + ") " + maxBy(perGPU+", "+about,
			hosts.of("rdma_gdr_gpu_transport_info"))}},
		columns: []column{
			{from: "A", title: "Transport", words: transports, width: 90},
			instance, gpu, hidden("UUID"),
			{from: "workload", title: "Workload"},
			{from: "state", title: "State", width: 90},
			{from: "reason", title: "Reason"},
			{from: "command", title: "Command"},
			{from: "nccl_version", title: "NCCL", width: 80},
			cluster, job,
		},
	}
}

// portWorkloads lists the ports that workloads use: first those that are not ACTIVE.
func portWorkloads() panel {
	of := perPort + ", " + perWorkload
	state := maxBy(perPort, hosts.of("rdma_port_state_id"))
	worst := bottom(400, state+" and on ("+perPort+") "+maxBy(perPort, hosts.of("rdma_port_job_info")))
	return panel{
		title: "Workloads of ports", unit: "none", width: 24, height: 10, view: table, sort: "-State",
		noValue: "no process has memory registered with an RDMA device, or processes are not read",
		text: "Slurm jobs, pods, containers and services with memory registered with the device of a port, at most 400 ports, those that are not ACTIVE first. " +
			"Namespace and pod by the kubelet, where --collector.gdr.pod-resources is set.",
		queries: []query{
			{expr: maxBy(of, hosts.of("rdma_port_job_info")) + " * on (" + perPort + ") group_left () " + worst},
		},
		columns: []column{
			{from: "A", title: "State", words: portStates, width: 110},
			instance, hca, portOf,
			{from: "scheduler", title: "Scheduler", width: 110},
			{from: "job_id", title: "Job or UID", width: 285, ways: []way{toJob(jobCell, cell)}},
			{from: "namespace", title: "Namespace"},
			{from: "pod", title: "Pod"},
			cluster, job,
		},
	}
}

// podPorts joins the nearest ports of each GPU with its pod, from the DCGM exporter or AMD's, and podsBehind counts
// from the pod.
func podPorts() []panel {
	near := perPort + ", gpu, UUID"
	return []panel{
		{
			title: "Ports, GPUs and pods", unit: "none", width: 14, height: 10, view: table, sort: "-State",
			noValue: "none, or no exporter with pods of GPUs is scraped",
			text:    "Nearest ports of each GPU with the pod that the GPU is allocated to, at most 400. The pairs do not change when a port goes down.",
			queries: []query{
				{expr: top(400, maxBy(near+", namespace, pod", hosts.of("port:rdma_gpu_pod:ratio"))) + " * 100"},
				{expr: maxBy(near+", namespace, pod", hosts.of("port:rdma_gpu_pod:ratio")) + " * 0 + on (" + perPort + ") group_left () " + maxBy(perPort, hosts.of("rdma_port_state_id"))},
			},
			columns: []column{
				{from: "B", title: "State", words: portStates, width: 90},
				instance, hca, portOf, gpu,
				{from: "namespace", title: "Namespace", width: 106},
				{from: "pod", title: "Pod"},
				{from: "A", title: "GPU busy", unit: "percent", width: 90},
				uuid, cluster, job,
			},
		},
		{
			title: "Pods by ports down", unit: "none", width: 10, height: 10, view: table, sort: "Ports down",
			noValue: "none, or no exporter with pods of GPUs is scraped",
			text:    "Pods by the nearest ports of their GPUs that are not ACTIVE, of all hosts that this Prometheus scrapes.",
			queries: []query{{expr: top(100, "sum by (namespace, pod) (gpu_pod:rdma_nearest_port_down:count)")}},
			columns: []column{
				{from: "namespace", title: "Namespace"}, {from: "pod", title: "Pod"}, {from: "A", title: "Ports down", width: 110},
			},
		},
	}
}

// gpuDCGM joins the DCGM exporter's series by UUID.
func gpuDCGM() []panel {
	busy := maxBy("UUID", `DCGM_FI_DEV_GPU_UTIL{UUID!=""}`)
	named := func(expr string) string {
		return maxBy(perGPU, hosts.of("rdma_gdr_gpu_info")) + " * on (UUID) group_left () " + expr
	}
	indirect := "(" + named(busy) + ") and on (UUID) (" + minBy("UUID", hosts.of("rdma_gdr_gpu_direct")) + " == 0)"
	work := graph("Utilisation without GPUDirect",
		"Utilisation of GPUs whose data is staged through host memory, the ten busiest.", "percent", 12,
		query{highest(10, perGPU, indirect), gpuName})
	all := graph("Utilisation of GPUs", "Utilisation of the GPUs of all chosen hosts: median and highest.", "percent", 12,
		query{"quantile by (job) (0.5, " + named(busy) + ")", "median"},
		query{"max by (job) (" + named(busy) + ")", "highest"})
	work.ways, work.points, all.points = ofHost, few, few
	work.noValue, all.noValue = "none, or no DCGM exporter is scraped", "no DCGM exporter is scraped"
	return append([]panel{work, all}, podPorts()...)
}

// unlike lists the settings of hosts that the others of their kind do not have.
func unlike() panel {
	differs := maxBy(perHost+", setting, role, value, usual", hosts.of("instance:rdma_setting:differs"))
	return panel{
		title: "Hosts unlike their peers", unit: "none", width: 24, height: 9, view: table, sort: "Setting",
		noValue: "unknown: fewer than four hosts of a kind, or rules/central are not loaded",
		text:    "Settings, firmware and software of hosts that at least 80 % of the other hosts of their kind do not have (instance:rdma_setting:differs). `rdma_exporter compare` shows two hosts side by side.",
		queries: []query{
			{expr: orNone(differs, "setting", "none of $1 settings", fleet.of("kind:rdma_setting:known")+" >= 4")},
		},
		columns: []column{
			instance,
			{from: "setting", title: "Setting"},
			{from: "value", title: "Value", width: 122},
			{from: "usual", title: "Peers", width: 122},
			{from: "role", title: "Of", width: 100},
			cluster, job, hidden("A"),
		},
	}
}

// toChange counts hosts by the settings that differ.
func toChange() panel {
	return panel{
		title: "Settings to change", unit: "none", width: 12, height: 9, view: table, sort: "Hosts",
		noValue: "none, or settings are not read",
		text:    "Settings that differ from what is wanted of them, with the number of hosts. The dashboard of a node lists those of a host, and `rdma_exporter check --setup` prints the command that sets each.",
		queries: []query{
			{expr: countBy("domain, setting, value", maxBy(perHost+", domain, setting, value", hosts.of("rdma_setup_info")))},
		},
		columns: []column{
			{from: "setting", title: "Setting"},
			{from: "value", title: "Found"},
			{from: "domain", title: "Domain"},
			{from: "A", title: "Hosts"},
		},
	}
}

func gpuSettings() panel {
	labels := "max_payload, max_read_request, relaxed_ordering, acs_redirect, iommu, virtual"
	return panel{
		title: "PCIe settings of RDMA devices", unit: "none", width: 24, height: 9, view: table, sort: "Devices",
		text: "RDMA devices by their settings in the PCI tree. ACS redirection routes traffic between GPU and NIC through the root complex, and a translating IOMMU slows it down. " +
			"All NICs of a fleet are in one row; an empty cell is unknown.",
		queries: []query{{expr: countBy(labels, maxBy(perDevice+", "+labels, hosts.of("rdma_device_pcie_settings_info")))}},
		columns: []column{
			{from: "max_payload", title: "Payload", unit: "none"},
			{from: "max_read_request", title: "Read request"},
			{from: "relaxed_ordering", title: "Relaxed ordering"},
			{from: "acs_redirect", title: "ACS redirect"},
			{from: "iommu", title: "IOMMU"},
			{from: "virtual", title: "Virtual machine"},
			{from: "A", title: "Devices"},
		},
	}
}
