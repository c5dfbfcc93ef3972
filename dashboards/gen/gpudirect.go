package main

// gpudirect has for each GPU whether NICs reach its memory, and what the jobs on it use.
func gpudirect() board {
	return board{
		Name: "gpudirect", Title: "GPUDirect", From: "now-3h", Refresh: "1m",
		Events: hosts.Began("critical|warning",
			`alertname=~"RDMAGPU.+|RDMAHostMisconfigured"`),
		Text:    "Does the data of each GPU go to its NIC directly, and if not, why?",
		Choices: []choice{clusters, jobs, allHosts},
		Rows: []row{
			{Title: "GPUs and jobs", Panels: []panel{gpuCounts(), verdicts(hosts, 11, "-Sends", instance, hca).Wide(21), gpuJobs(), portWorkloads(), gpuReasons(), gpuMechanisms(), gpuObstacles(), gpuGIDs(), gpuHidden()}, Closed: false},
			{Title: "Use", Panels: gpuUse(), Closed: false},
			{Title: "With the DCGM exporter", Panels: gpuDCGM(), Closed: false},
			{Title: "Settings", Panels: []panel{gpuSettings(), unlike(), toChange()}, Closed: false},
		},
	}
}

// verdicts lists GPUs with their best NIC: first those whose path is unknown, then those that are not direct.
func verdicts(s scope, height uint32, sort string, where, nic column) panel {
	decided, known := minBy(perGPU, s.Of("rdma_gdr_gpu_direct")), maxBy(perGPU, s.Of("rdma_gdr_gpu_info"))
	staged := slowJobs(s)
	worst := bottom(400, "-2 * "+staged+" ^ 0 or "+decided+" or -1 * "+known)
	info := "(" + byReason(s, "device, distance, mechanism, reason") + ") and on (" + perGPU + ") " + worst
	path := func(direction string) string {
		is := maxBy(perGPU, s.Of("rdma_gdr_gpu_direct", `direction="`+direction+`"`))
		can := maxBy(perGPU, s.Of("rdma_gdr_gpu_possible", `direction="`+direction+`"`))
		return "(" + info + ") * on (" + perGPU + ") group_left () (-1 * " + staged + " ^ 0 or 2 + (" + is + " == 0 and " +
			can + " == 0) or " + is + ")"
	}
	return panel{
		Title: "GPUs and their best NIC", Unit: "none", Width: grid, Height: height, View: table, Sort: sort, Rows: "C",
		NoValue: "no GPUs, or they are not collected",
		Text: "GPUs with their best eligible NIC, at most 400, the worst: NCCL's distance (PIX and PXB share a PCIe switch), the mechanism that NCCL would use, whether data goes directly " +
			"or is staged through host memory, and the reason; docs/gpudirect.md explains the reasons and remedies. By its job: the path is direct, and the job stages its data or sends it over TCP: see Transport of jobs. " +
			"Hardware: it has no direct path, which is no fault. An empty cell is unknown.",
		Queries: []query{{Expr: path("transmit")}, {Expr: path("receive")}, {Expr: info}},
		Columns: []column{
			where, gpu,
			{From: "A", Title: "Sends", Words: direct, Width: 130},
			{From: "B", Title: "Receives", Words: direct, Width: 130},
			{From: "reason", Title: "Reason", Width: 190},
			nic,
			{From: "distance", Title: "Distance", Width: 80},
			{From: "mechanism", Title: "Mechanism", Width: 100},
			uuid, hidden("C"), cluster, job,
		},
	}
}

// gpuCounts is the verdict for all chosen GPUs.
func gpuCounts() panel {
	used := maxBy(perGPU, hosts.Of("rdma_gdr_gpu_transport", `state!="unknown"`)) + " or " + slowJobs(hosts)
	p := counts("GPUDirect", "Has a GPU lost GPUDirect, does a job stage, and is it measured?", 3,
		count{
			Title: "Lost", Text: "GPUs whose data is staged through host memory although their hardware can do without, by their path or by their job.", Colour: warning,
			Expr: orZero(lostDirect, hosts.Of("rdma_gdr_gpu_direct")), Of: "count(" + maxBy(perGPU,
				hosts.Of("rdma_gdr_gpu_direct")) + ")",
		},
		count{
			Title: "Staging", Text: "GPUs whose job stages their data or sends it over TCP, of those that jobs hold and whose transport is known.", Colour: warning,
			Expr: "count(" + slowJobs(hosts) + ") or 0 * count(" + used + ")",
			Of:   "(count(" + used + ") or 0 * count(" + allGPUs + "))",
		},
		count{
			Title: "Unknown", Text: "GPUs whose path is unknown: not measured.", Colour: neutral,
			Expr: orZero("("+allGPUs+") unless on ("+perGPU+") "+hosts.Of("rdma_gdr_gpu_direct"), allGPUs), Of: "count(" +
				allGPUs + ")",
		},
	)
	p.Height = 11
	return p
}

func gpuReasons() panel {
	return panel{
		Title: "GPUs by reason", Unit: "none", Width: 12, Height: 9, View: table, Sort: "GPUs",
		Text:    "GPUs of all chosen hosts by reason and distance. A reason on a whole fleet is a setting; one on a few hosts is a host with other settings.",
		NoValue: "no GPUs, or they are not collected",
		Queries: []query{{Expr: countBy("reason, distance, mechanism",
			maxBy(perGPU+", reason, distance, mechanism", hosts.Of("rdma_gdr_gpu_info")))}},
		Columns: []column{
			{From: "reason", Title: "Reason"},
			{From: "distance", Title: "Distance"},
			{From: "mechanism", Title: "Mechanism"},
			{From: "A", Title: "GPUs"},
		},
	}
}

func gpuObstacles() panel {
	return panel{
		Title: "Obstacles", Unit: "none", Width: grid, Height: 8, View: table, Sort: "GPUs",
		NoValue: "none, or no GPUs are collected",
		Text: "What keeps GPUs of all chosen hosts from GPUDirect RDMA, all at once: of a GPU with several they are removed in the order of their steps. After: the reason that is left then. " +
			"Possible: of these GPUs, those that can be direct with their hardware.",
		Queries: []query{{Expr: countBy("step, kind, reason, after", obstacles)}, {Expr: countBy("step, kind, reason, after",
			obstacles+" and on ("+perGPU+") "+hosts.Of("rdma_gdr_gpu_possible")+" == 1") +
			" or 0 * " + countBy("step, kind, reason, after", obstacles)}},
		Columns: []column{
			{From: "step", Title: "Step", Width: 70},
			{From: "kind", Title: "Kind", Width: 110},
			{From: "reason", Title: "Reason"},
			{From: "after", Title: "After"},
			{From: "A", Title: "GPUs", Width: 70},
			{From: "B", Title: "Possible", Width: 90},
		},
	}
}

// obstacles are the obstacles of GPUs.
var obstacles = maxBy(perGPU+", step, kind, reason, after", hosts.Of("rdma_gdr_gpu_obstacle_info"))

func gpuMechanisms() panel {
	counted := func(value string) query {
		all := maxBy(perDevice+", mechanism", hosts.Of("rdma_gdr_mechanism_available"))
		return query{Expr: countBy("mechanism", all+" == "+value) + " or 0 * " + countBy("mechanism", all)}
	}
	return panel{
		Title: "Mechanisms", Unit: "none", Width: 12, Height: 9, View: table, Sort: "Mechanism",
		Text:    "How NICs reach GPU memory: peermem counts hosts with the module loaded, dmabuf RDMA devices whose driver, kernel and GPU driver support it.",
		Queries: []query{counted("1"), counted("0")},
		Columns: []column{
			{From: "mechanism", Title: "Mechanism"}, {From: "A", Title: "Available"}, {From: "B", Title: "Missing"},
		},
	}
}

func gpuGIDs() panel {
	return panel{
		Title: "Jobs with a wrong GID", Unit: "none", Width: 12, Height: 8, View: table, Sort: "-Host", NoValue: "none",
		Text:    "Jobs whose NCCL_IB_GID_INDEX names an entry of the GID table that is not RoCE v2 on this port: connections fail, or leave without PFC and ECN.",
		Queries: []query{{Expr: maxBy(perPort+", gid_index, gid_type, workload", hosts.Of("rdma_gdr_job_gid_info"))}},
		Columns: []column{
			instance, hca, portOf,
			{From: "gid_index", Title: "GID index", Width: 90},
			{From: "gid_type", Title: "GID type", Width: 110},
			{From: "workload", Title: "Workload"},
			hidden("A"), cluster, job,
		},
	}
}

func gpuHidden() panel {
	return panel{
		Title: "Hidden GPUs, nearest NICs down", Unit: "none", Width: 12, Height: 8, View: table, Sort: "-Host",
		NoValue: "none, or no GPUs are collected",
		Text:    "GPUs of the PCI tree that NVML does not list (fallen off the bus, or of another driver), and GPUs whose nearest NIC has no ACTIVE port.",
		Queries: []query{{Expr: `label_replace(` + maxBy(perHost+", pci_bus_id", hosts.Of("rdma_gpu_hidden")) +
			` == 1, "fault", "not in NVML", "", "") or label_replace(` +
			maxBy(perGPU+", device", hosts.Of("rdma_gdr_gpu_nearest_down_info")) + `, "fault", "nearest NIC down", "", "")`}},
		Columns: []column{
			instance, gpu, hidden("UUID"),
			{From: "pci_bus_id", Title: "PCI bus ID"},
			hca,
			{From: "fault", Title: "Fault"},
			hidden("A"), cluster, job,
		},
	}
}

func gpuUse() []panel {
	transport := graph("GPUs by transport of their jobs", "GPUs that processes with RDMA devices hold, by transport: gdr goes to the NIC directly, staging through host memory, "+
		"tcp uses no RDMA, host_only stays within the host.", "none", 12,
		line("sum by (state) ("+maxBy(perGPU+", state", hosts.Of("rdma_gdr_gpu_transport"))+")", "{{state}}"))
	transport.States = []word{
		{Value: "gdr", Text: "", Colour: good},
		{Value: "host_only", Text: "", Colour: "light-blue"},
		{Value: "staging", Text: "", Colour: warning},
		{Value: "tcp", Text: "", Colour: bad},
		{Value: "unknown", Text: "", Colour: neutral},
	}
	return []panel{
		transport,
		graph("Live registrations", "References to the peer memory module, or memory regions that NICs have registered with GPUs, as far as a mechanism exposes them. DMA-BUFs are not counted: 0 does not mean that nothing is direct.", "none", 12,
			line(
				highest(10, perHost+", source", maxBy(perHost+", source", hosts.Of("rdma_gdr_live_registrations"))),
				"{{host}} {{source}}",
			)),
		graph("Registered memory", "Memory that is registered with NICs, the ten largest of host and mechanism: dmabuf and peermem are GPU memory, host is host memory, including queues. By eBPF programs, of processes that started after the exporter; without them peermem only, with MLNX_OFED up to 23.10.", "bytes", 12,
			line(highest(10, perHost+", mechanism", "sum by ("+perHost+", mechanism) ("+maxBy(perHost+
				", device, gpu, UUID, mechanism", hosts.Of("rdma_gdr_registered_bytes"))+")"), "{{host}} {{mechanism}}")),
		graph("Lowest locked memory limit", "Lowest limit of locked memory (RLIMIT_MEMLOCK) among the processes that hold an RDMA device, the ten lowest hosts. Registration fails beyond it.", "bytes", 12,
			line(lowest(10, perHost, maxBy(perHost, hosts.Of("rdma_gdr_locked_memory_limit_bytes"))), hostName)),
	}
}

// transportRank ranks the transport of GPUs that jobs hold: 3 slow, also between two exchanges of a job that stages, 2
// unknown, 1 direct.
func transportRank(s scope) string {
	state := maxBy(perGPU+", state", s.Of("rdma_gdr_gpu_transport"))
	of := func(states string) string {
		return maxBy(perGPU+", state", s.Of("rdma_gdr_gpu_transport", `state=~"`+states+`"`))
	}
	return "3 * (" + state + " and on (" + perGPU + ") " + slowJobs(s) + ") or 2 * " + of("unknown") + " or 1 * " +
		of("gdr|host_only")
}

// gpuJobs lists the GPUs that jobs hold: first those whose data does not go to a NIC directly.
func gpuJobs() panel {
	about := "workload, command, nccl_version, reason"
	rank := top(400, transportRank(hosts))
	return panel{
		Title: "Transport of jobs", Unit: "none", Width: 24, Height: 10, View: table, Sort: "Transport",
		NoValue: "no process holds a GPU and an RDMA device",
		Text: "GPUs that jobs hold, at most 400: the transport of their data to other hosts now and why, with the workload as its scheduler names it. docs/gpudirect.md has the conditions. " +
			"Staging and TCP slow the job down; unknown is not well: most often DMA-BUFs are in use, whose attachments the kernel does not expose cheaply.",
		Queries: []query{{Expr: "(" + rank + ") * on (" + perGPU + ") group_left (" + about + ") " + maxBy(perGPU+", "+about,
			hosts.Of("rdma_gdr_gpu_transport_info"))}},
		Columns: []column{
			{From: "A", Title: "Transport", Words: transports, Width: 90},
			instance, gpu, hidden("UUID"),
			{From: "workload", Title: "Workload"},
			{From: "state", Title: "State", Width: 90},
			{From: "reason", Title: "Reason"},
			{From: "command", Title: "Command"},
			{From: "nccl_version", Title: "NCCL", Width: 80},
			cluster, job,
		},
	}
}

// portWorkloads lists the ports that workloads use: first those that are not ACTIVE.
func portWorkloads() panel {
	of := perPort + ", " + perWorkload
	state := maxBy(perPort, hosts.Of("rdma_port_state_id"))
	worst := bottom(400, state+" and on ("+perPort+") "+maxBy(perPort, hosts.Of("rdma_port_job_info")))
	return panel{
		Title: "Workloads of ports", Unit: "none", Width: 24, Height: 10, View: table, Sort: "-State",
		NoValue: "no process has memory registered with an RDMA device, or processes are not read",
		Text: "Slurm jobs, pods, containers and services with memory registered with the device of a port, at most 400 ports, those that are not ACTIVE first. " +
			"Namespace and pod by the kubelet, where --collector.gdr.pod-resources is set.",
		Queries: []query{
			{Expr: maxBy(of, hosts.Of("rdma_port_job_info")) + " * on (" + perPort + ") group_left () " + worst},
		},
		Columns: []column{
			{From: "A", Title: "State", Words: portStates, Width: 110},
			instance, hca, portOf,
			{From: "scheduler", Title: "Scheduler", Width: 110},
			{From: "job_id", Title: "Job or UID", Width: 285, Ways: []way{toJob(jobCell, cell)}},
			{From: "namespace", Title: "Namespace"},
			{From: "pod", Title: "Pod"},
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
			Title: "Ports, GPUs and pods", Unit: "none", Width: 14, Height: 10, View: table, Sort: "-State",
			NoValue: "none, or no exporter with pods of GPUs is scraped",
			Text:    "Nearest ports of each GPU with the pod that the GPU is allocated to, at most 400. The pairs do not change when a port goes down.",
			Queries: []query{
				{Expr: top(400, maxBy(near+", namespace, pod", hosts.Of("port:rdma_gpu_pod:ratio"))) + " * 100"},
				{Expr: maxBy(near+", namespace, pod", hosts.Of("port:rdma_gpu_pod:ratio")) + " * 0 + on (" + perPort + ") group_left () " + maxBy(perPort, hosts.Of("rdma_port_state_id"))},
			},
			Columns: []column{
				{From: "B", Title: "State", Words: portStates, Width: 90},
				instance, hca, portOf, gpu,
				{From: "namespace", Title: "Namespace", Width: 106},
				{From: "pod", Title: "Pod"},
				{From: "A", Title: "GPU busy", Unit: "percent", Width: 90},
				uuid, cluster, job,
			},
		},
		{
			Title: "Pods by ports down", Unit: "none", Width: 10, Height: 10, View: table, Sort: "Ports down",
			NoValue: "none, or no exporter with pods of GPUs is scraped",
			Text:    "Pods by the nearest ports of their GPUs that are not ACTIVE, of all hosts that this Prometheus scrapes.",
			Queries: []query{{Expr: top(100, "sum by (namespace, pod) (gpu_pod:rdma_nearest_port_down:count)")}},
			Columns: []column{
				{From: "namespace", Title: "Namespace"}, {From: "pod", Title: "Pod"}, {From: "A", Title: "Ports down", Width: 110},
			},
		},
	}
}

// gpuDCGM joins the DCGM exporter's series by UUID.
func gpuDCGM() []panel {
	busy := maxBy("UUID", `DCGM_FI_DEV_GPU_UTIL{UUID!=""}`)
	named := func(expr string) string {
		return maxBy(perGPU, hosts.Of("rdma_gdr_gpu_info")) + " * on (UUID) group_left () " + expr
	}
	indirect := "(" + named(busy) + ") and on (UUID) (" + minBy("UUID", hosts.Of("rdma_gdr_gpu_direct")) + " == 0)"
	work := graph("Utilisation without GPUDirect",
		"Utilisation of GPUs whose data is staged through host memory, the ten busiest.", "percent", 12,
		line(highest(10, perGPU, indirect), gpuName))
	all := graph("Utilisation of GPUs", "Utilisation of the GPUs of all chosen hosts: median and highest.", "percent", 12,
		line("quantile by (job) (0.5, "+named(busy)+")", "median"),
		line("max by (job) ("+named(busy)+")", "highest"))
	work.Ways, work.Points, all.Points = ofHost, few, few
	work.NoValue, all.NoValue = "none, or no DCGM exporter is scraped", "no DCGM exporter is scraped"
	return append([]panel{work, all}, podPorts()...)
}

// unlike lists the settings of hosts that the others of their kind do not have.
func unlike() panel {
	differs := maxBy(perHost+", setting, role, value, usual", hosts.Of("instance:rdma_setting:differs"))
	return panel{
		Title: "Hosts unlike their peers", Unit: "none", Width: 24, Height: 9, View: table, Sort: "Setting",
		NoValue: "unknown: fewer than four hosts of a kind, or rules/central are not loaded",
		Text:    "Settings, firmware and software of hosts that at least 80 % of the other hosts of their kind do not have (instance:rdma_setting:differs). `rdma_exporter compare` shows two hosts side by side.",
		Queries: []query{
			{Expr: orNone(differs, "setting", "none of $1 settings", fleet.Of("kind:rdma_setting:known")+" >= 4")},
		},
		Columns: []column{
			instance,
			{From: "setting", Title: "Setting"},
			{From: "value", Title: "Value", Width: 122},
			{From: "usual", Title: "Peers", Width: 122},
			{From: "role", Title: "Of", Width: 100},
			cluster, job, hidden("A"),
		},
	}
}

// toChange counts hosts by the settings that differ.
func toChange() panel {
	return panel{
		Title: "Settings to change", Unit: "none", Width: 12, Height: 9, View: table, Sort: "Hosts",
		NoValue: "none, or settings are not read",
		Text:    "Settings that differ from what is wanted of them, with the number of hosts. The dashboard of a node lists those of a host, and `rdma_exporter check --setup` prints the command that sets each.",
		Queries: []query{
			{Expr: countBy("domain, setting, value", maxBy(perHost+", domain, setting, value", hosts.Of("rdma_setup_info")))},
		},
		Columns: []column{
			{From: "setting", Title: "Setting"},
			{From: "value", Title: "Found"},
			{From: "domain", Title: "Domain"},
			{From: "A", Title: "Hosts"},
		},
	}
}

func gpuSettings() panel {
	labels := "max_payload, max_read_request, relaxed_ordering, acs_redirect, iommu, virtual"
	return panel{
		Title: "PCIe settings of RDMA devices", Unit: "none", Width: 24, Height: 9, View: table, Sort: "Devices",
		Text: "RDMA devices by their settings in the PCI tree. ACS redirection routes traffic between GPU and NIC through the root complex, and a translating IOMMU slows it down. " +
			"All NICs of a fleet are in one row; an empty cell is unknown.",
		Queries: []query{{Expr: countBy(labels, maxBy(perDevice+", "+labels, hosts.Of("rdma_device_pcie_settings_info")))}},
		Columns: []column{
			{From: "max_payload", Title: "Payload", Unit: "none"},
			{From: "max_read_request", Title: "Read request"},
			{From: "relaxed_ordering", Title: "Relaxed ordering"},
			{From: "acs_redirect", Title: "ACS redirect"},
			{From: "iommu", Title: "IOMMU"},
			{From: "virtual", Title: "Virtual machine"},
			{From: "A", Title: "Devices"},
		},
	}
}
