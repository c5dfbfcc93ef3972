package main

import (
	"fmt"
	"slices"
	"strings"
)

// GPUs of the fleet by their path to the fabric.
var (
	allGPUs = maxBy(perGPU, hosts.of("rdma_gdr_gpu_info"))
	// lostDirect are staged although their hardware can do without, or slowed by their job.
	lostDirect = "(" + maxBy(perGPU, hosts.of("rdma_gdr_gpu_direct")+" == 0 unless on ("+perGPU+", direction) "+
		hosts.of("rdma_gdr_gpu_possible")+" == 0") + " or " + slowJobs(hosts) + ")"
	// unknownGPUs are those of hosts that are unknown, and those whose path is.
	unknownGPUs = allGPUs + " and on (" + perHost + ") (" + unknownHosts + ") or " + allGPUs +
		" unless on (" + perGPU + ") " + hosts.of("rdma_gdr_gpu_direct")
	// healthyGPUs have a NIC that is up and at its rate, on a host that is fit, and have not lost GPUDirect.
	healthyGPUs = maxBy(perGPU, maxBy(perGPU+", device", hosts.of("rdma_gdr_gpu_info", `device!=""`))+
		" unless on ("+perDevice+") ("+shortRates+")") +
		" and on (" + perHost + ") " + fit + " == 1 and on (" + perGPU + ") " + hosts.of("rdma_gdr_gpu_direct") +
		" unless on (" + perGPU + ") " + hosts.of("rdma_gdr_gpu_nearest_down_info") +
		" unless on (" + perGPU + ") " + lostDirect
)

// slowJobs are the GPUs whose job stages their data through host memory or sends it over TCP, by rules/node over 5m, or
// now. Jobs pause between exchanges.
func slowJobs(s scope) string {
	return maxBy(perGPU, s.of("gpu:rdma_gdr:staging")+" or "+s.of("gpu:rdma_gdr:sockets")+" or "+
		s.of("rdma_gdr_gpu_transport", `state=~"staging|tcp"`))
}

// jobStages is in place of the reason of a GPU whose path is direct and whose job does not use it.
const jobStages = "job stages"

// byReason returns the best NICs of GPUs with some of their labels, one of them the reason.
func byReason(s scope, labels string) string {
	info := maxBy(perGPU+", "+labels, s.of("rdma_gdr_gpu_info"))
	return labelled("reason", jobStages, info+" and on ("+perGPU+") "+slowJobs(s)) + " or on (" + perGPU + ") " + info
}

var (
	fit = hosts.of("instance:rdma_host_fit:state")
	// readHosts are those whose exporter answers and whose ports are read, by rules/node.
	readHosts = "(" + hosts.of("instance:rdma_host:known") + " unless on (" + perHost + ") " +
		hosts.of("instance:rdma_host:unread") + ")"
	// unknownHosts may have any fault. A host that is read and neither fit nor not has a fault that is to drain it.
	unknownHosts = hosts.of("up") + " unless on (" + perHost + ") " + fit + " unless on (" + perHost + ") " +
		readHosts
	unfitHosts = fit + " == 0 or " + readHosts + " unless on (" + perHost + ") " + fit
)

// perWorkload are the labels of a job, beside those of its scrape.
const perWorkload = "scheduler, job_id, namespace, pod"

// waiting are the ports that report transmit wait where it stands for pause: many report it on Ethernet, too.
var waiting = "group by (" + perPort + ") (" + hosts.rate("rdma_port_transmit_wait_ticks_total") + ") and on (" +
	perPort + ") " + hosts.of("rdma_port_info", `link_layer="InfiniBand"`)

// fabricNow has the alerts below the first three panels of counts: on a phone they begin on the second screen.
func fabricNow() []panel {
	tiles := fabricCounts()
	return slices.Concat(tiles[:3], []panel{fabricAlerts()}, tiles[3:], []panel{places(), failsNext()})
}

func fabricCounts() []panel {
	alerts := func(severity string) string {
		return orZero(fleet.firing(severity)+" or "+fabrics.firing(severity), hosts.evaluated())
	}
	ports := maxBy(perPort, hosts.of("rdma_port_state_id"))
	active := ports + " == 4"
	workloads := func(record string) string { return countBy("cluster, job, "+perWorkload, hosts.of(record)) }
	known := fleet.of("kind:rdma_setting:known")
	measured := func(part, all string) string {
		return "floor(100 * (" + orZero(part, all) + ") / count(" + all + "))"
	}
	panels := []panel{
		counts("Hosts", "Can hosts take jobs?", 8,
			count{
				title: "Not fit", text: "an alert drains the host or is pending to, or its maintenance is announced (instance:rdma_host_fit:state is 0 or absent).",
				expr: orZero(unfitHosts, readHosts), colour: warning, of: "count(" + hosts.of("up") + ")",
				ways: []way{toPanel("Alerts")},
			},
			count{
				title: "To drain", text: "firing alerts cordon or evict the host (instance:rdma_host_drain:state). `rdma_exporter check --drain` on it lists them.",
				expr:   orZero(hosts.of("instance:rdma_host_drain:state")+" > 0", hosts.of("instance:rdma_host_drain:state")),
				colour: bad, ways: []way{toPanel("Alerts")},
			},
			count{
				title: "Unknown", text: "the exporter or its reads fail: the hosts that are missing in Measured.",
				expr: orZero(unknownHosts, hosts.of("up")), colour: neutral, ways: []way{toPanel("Targets that do not answer")},
			},
		),
		counts("Firing alerts", "Does anything fire?", 8,
			count{
				title: "Critical", text: "of hosts and fabrics; unknown where the rules are not loaded: RDMAWatchdog, which always fires, is missing then.",
				expr: alerts("critical"), colour: bad, ways: []way{toPanel("Alerts")},
			},
			count{
				title: "Warning", text: "as before.",
				expr: alerts("warning"), colour: warning, ways: []way{toPanel("Alerts")},
			},
			count{
				title: "Info", text: "no action is urgent.",
				expr: alerts("info"), colour: "text", ways: []way{toPanel("Alerts of severity info")},
			},
		),
		counts("Measured", "What do the other numbers rest on? In percent; grey: not all.", 8,
			count{
				title: "Hosts", text: "hosts whose exporter answers and whose ports are read.", share: true,
				of:   "count(" + hosts.of("up") + ")",
				expr: measured(hosts.of("up")+" unless ("+unknownHosts+")", hosts.of("up")),
				ways: []way{toPanel("Targets that do not answer")},
			},
			count{
				title: "Pause",
				text:  "ACTIVE ports with pause durations (PFC), or on InfiniBand with transmit wait.",
				share: true, of: "count(" + active + ")",
				expr: measured(active+" and on ("+perPort+") (group by ("+perPort+") ("+
					hosts.of("port:rdma_port_pfc_paused:ratio", `direction="receive"`)+") or "+waiting+")", active),
				ways: []way{toBoard("RoCE congestion", "roce")},
			},
			count{
				title: "Optics", text: "ACTIVE ports with a transceiver that reports its temperature, or a copper cable.", share: true,
				of: "count(" + active + ")",
				expr: measured(active+" and on ("+perPort+") ("+
					maxBy(perPort, hosts.of("port:rdma_transceiver_temperature:celsius"))+
					" or "+maxBy(perPort, hosts.of("rdma_transceiver_info", `media="passive_copper"`))+")", active),
				ways: []way{toBoard("Optics", "optics")},
			},
		),
		counts("Ports and GPUDirect", "What does not work as it did or should?", 8,
			count{
				title: "Lost", text: "ports that the exporter has seen ACTIVE and that are not ACTIVE now. Ports that were never used do not count.",
				expr: orZero(lostPorts, ports), colour: bad, of: "count(" + ports + ")",
				ways: []way{toPanel("Ports that were not ACTIVE")},
			},
			count{
				title: "Slow",
				text:  "ACTIVE links below their expected rate, whatever the evidence; unknown where no link has an expected rate.",
				expr:  orZero(shortRates, hosts.of("rdma_port_expected_rate_bytes_per_second")), colour: warning,
				of:   "count(" + maxBy(perPort, hosts.of("rdma_port_expected_rate_bytes_per_second")) + ")",
				ways: []way{toPanel("Links below their expected rate")},
			},
			count{
				title: "GPUDirect lost",
				text:  "GPUs whose data is staged through host memory, when sending, receiving or both, although their hardware can do without, or whose job stages it or sends it over TCP. GPUs whose path is unknown do not count.",
				expr:  orZero(lostDirect, hosts.of("rdma_gdr_gpu_direct")), colour: warning,
				ways: []way{toPanel("Hosts that lost GPUDirect"), toBoard("GPUDirect", "gpudirect")},
			},
		),
		counts("GPUs", "How many GPUs reach the fabric as they should?", 8,
			count{
				title: "Healthy",
				text:  "on a host that is fit, with a NIC whose port is up and at its expected rate, the nearest one up, and GPUDirect not lost.",
				expr:  orZero(healthyGPUs, allGPUs), colour: good, of: "count(" + allGPUs + ")",
				ways: []way{toBoard("GPUDirect", "gpudirect")},
			},
			count{
				title: "Impaired", text: "not so, of hosts that are read.",
				expr: orZero(allGPUs+" unless on ("+perGPU+") ("+healthyGPUs+") unless on ("+perGPU+") ("+
					unknownGPUs+")", allGPUs),
				colour: warning, ways: []way{toBoard("GPUDirect", "gpudirect")},
			},
			count{
				title: "Unknown", text: "the path is unknown, or the host is. GPUs of hosts that do not answer are not counted.",
				expr: orZero(unknownGPUs, allGPUs), colour: neutral, ways: []way{toBoard("GPUDirect", "gpudirect")},
			},
		),
		counts("Jobs and settings", "Are jobs hit, and are hosts set alike?", 8,
			count{
				title: "Jobs hit", text: "jobs that use a part with a fault (rdma:job_fault), by rules/central.",
				expr: orZero(workloads("rdma:job_fault"), workloads("rdma:job_use")), colour: warning,
				of:   "count(" + workloads("rdma:job_use") + ")",
				ways: []way{toPanel("Jobs with a finding")},
			},
			count{
				title: "Hosts unlike", text: "hosts with a setting that their peers do not have.",
				expr: orZero(countBy(perHost, hosts.of("instance:rdma_setting:differs")), known+" >= 4"), colour: warning,
				ways: []way{toPanel("Hosts unlike their peers")},
			},
			count{
				title: "Rollouts", text: "settings or versions that change host by host.",
				expr: orZero(fleet.of("kind:rdma_setting:rollout"), known), colour: "text",
				ways: []way{toPanel("Rollouts")},
			},
		),
	}
	for i := range panels {
		panels[i].height = 3
	}
	return panels
}

// onFleet are alerts of hosts, and of fabrics.
func onFleet(levels ...word) panel {
	p := alertTable([]scope{fleet, fabrics}, levels, []column{hostByWay}, hidden("device"), byWay...)
	for i := range p.queries { // an alert of several hosts is named by its place
		p.queries[i].expr = labelledBy("host", "where", p.queries[i].expr)
	}
	return p.setWidths(map[string]uint32{"Host": 196, "Meaning": 290, "First": 264, "Where": 130})
}

func fabricAlerts() panel {
	p := onFleet(severities[0], severities[1])
	p.height = 8
	p = p.orNone("no critical or warning alert on $1 hosts", hosts.evaluated())
	p.text = "Critical and warning, firing or pending, one row for each cause. The name links to the runbook, the host to its dashboard and to the exporter's page, which has figures, command and action."
	return p
}

func infoAlerts() panel {
	p := onFleet(severities[2])
	p.title, p.text = "Alerts of severity info", "Alerts of severity info, firing or pending."
	return p.orNone("no alert of severity info on $1 hosts", hosts.evaluated())
}

// places is the worst state of the ports of each leaf and rail.
func places() panel {
	const perPlace = perPort + ", leaf, rack, rail"
	at, placed := maxBy(perPlace, hosts.of("rdma_place_info", `port!=""`)), "rdma:placed"
	rank := func(more string) string {
		return "5 * " + hosts.of(placed, `severity="critical"`, more) +
			" or 4 * " + hosts.of(placed, `severity="warning"`, more) +
			" or 2 * " + hosts.of(placed, `severity="info"`, more)
	}
	states := strings.Join([]string{
		labelled("by", "port", at+" * on ("+perPort+") group_left () "+maxBy(perPort, rank(`port!=""`))),
		labelled("by", "device", at+" * on ("+perDevice+") group_left () "+maxBy(perDevice, rank(`port="",device!=""`))),
		labelled("by", "unread", "3 * ("+at+" unless on ("+perPort+") "+hosts.of("rdma_port_state_id")+")"),
		labelled("by", "gone", "3 * ("+maxBy(perPlace, hosts.of("rdma_place_info", `port!=""`)+" offset $__range")+
			" unless on ("+perHost+") "+hosts.of("up")+" == 1)"),
		at,
	}, " or ")
	named := labelledBy("row", "leaf", labelledBy("row", "rack", labelled("row", "leaf unknown", states)))
	rail := fmt.Sprintf(`label_replace(%s, "rail", "Rail $1", "rail", "(.+)")`, named)
	rail = fmt.Sprintf(`label_replace(%s, "rail", "No rail", "rail", "")`, rail)
	return panel{
		title: "Leaves and rails", unit: "none", width: 12, height: 7, view: matrix, words: worsts,
		noValue: "no port has a known place: no LLDP, no subnet, no rack in the site configuration",
		text: "Worst finding of the ports of a leaf (of a rack where the leaf is unknown) on each rail, before and while its alert fires; leaves with the worst first. " +
			"Unknown: a port cannot be read, or its host answered at the beginning of the time range and does not now.",
		queries: []query{{expr: maxBy("row, rail", rail)}},
		columns: []column{{from: "row", title: "Leaf", unit: "string", width: 150}, {from: "rail", title: "Rail"}},
	}
}

// failsNext ranks what wears out.
func failsNext() panel {
	aged := func(kind string) string {
		return maxBy(perPort, hosts.of("port:rdma_optics_drift:info", `kind="`+kind+`"`))
	}
	var values, ranks []string
	for _, c := range []struct{ why, value, rank string }{
		{
			"°C to temperature alarm", minBy(perPort, hosts.of("port:rdma_transceiver_temperature:limit")+" - "+
				hosts.of("port:rdma_transceiver_temperature:working")) + " < 10", "1 - (%s) / 10",
		},
		{"dB less light than when new", aged("receive_power"), "(%s) / 3"},
		{"dB to low light alarm", aged("alarm_margin"), "1 - (%s) / 3"},
		{"% more laser bias than new", aged("bias"), "(%s) / 50"},
		{"% of BER limit", "100 * " + maxBy(perPort, ofEnd(hosts, rawBER)+" / "+ofEnd(hosts, rawBERLimit)+" > 0.1"), "log10(%s) / 2"},
		{"times its usual BER", maxBy(perPort, hosts.of("port:rdma_link_raw_ber:baseline_factor")) + " >= 10", "log10(%s) / 2"},
	} {
		values = append(values, labelled("why", c.why, c.value))
		ranks = append(ranks, labelled("why", c.why, fmt.Sprintf(c.rank, c.value)))
	}
	dark := darkLane(hosts)
	values, ranks = append(values, dark), append(ranks, "2 * ("+dark+") ^ 0")
	worst := top(20, strings.Join(ranks, " or "))
	read := "group by (" + perPort + ") (" + hosts.of("port:rdma_transceiver_temperature:celsius") + ") or group by (" +
		perPort + ") (" + hosts.of(rawBER) + ")"
	return panel{
		title: "Fails next", unit: "none", width: 12, height: 7, view: table, sort: "Of limit",
		noValue: "blind: 0 ports measure optics or bit errors",
		text: "Ports and modules that wear out, the 20 worst. Of limit: 200% is a dark lane, 100% the temperature alarm, 3 dB less light or 50% more laser bias than when new, the limit of the raw BER, or 100 times the usual BER. " +
			"Temperature begins 10 °C below its alarm, BER a decade below its limit. 0% is a row that says how many ports measure one of these.",
		queries: []query{
			{expr: orNone(worst, "why", "none near a limit, of $1 ports", read)},
			{expr: "round(" + strings.Join(values, " or ") + ", 0.1) and on (" + perPort + ", why) " + worst},
		},
		columns: []column{
			instance, hca, portOf,
			{from: "B", title: "Value", unit: "none", width: 70},
			{from: "why", title: "Why", width: 203},
			{from: "A", title: "Of limit", unit: "percentunit", colours: []step{{0, "transparent"}, {1, warning}}, width: 90},
			cluster, job,
		},
	}
}

// darkLane names each lane without light of ports that are ACTIVE, by why, with its power.
func darkLane(s scope) string {
	dark := fmt.Sprintf("%s <= %d and on (%s) %s == 4", maxBy(perPort+", direction, lane",
		s.of("lane:rdma_transceiver_power:judged")), limitLaneDark, perPort, maxBy(perPort, s.of("rdma_port_state_id")))
	return maxBy(perPort+", why", `label_replace(label_join(`+dark+
		`, "why", " lane ", "direction", "lane"), "why", "dBm, $1 is dark", "why", "(.*)")`)
}

// jobsHit lists jobs that use a part with a fault.
func jobsHit() panel {
	const part = perPort + ", gpu"
	fault := hosts.of("rdma:job_fault")
	named := func(labels, expr string) string {
		joined := `label_join(` + expr + `, "workload", " ", "scheduler", "job_id")`
		return maxBy("cluster, job, job_id, workload"+labels, labelledBy("workload", "pod", joined))
	}
	worst := "topk by (" + part + ") (1, 3 * " + hosts.of("rdma:job_symptom", `severity="critical"`) + " ^ 0 or 2 * " +
		hosts.of("rdma:job_symptom", `severity="warning"`) + " ^ 0)"
	return panel{
		title: "Jobs with a finding", unit: "none", width: 12, height: 5, view: table, sort: "Severity",
		noValue: "unknown: no job is known, or rules/central are not loaded",
		text:    "Jobs that use a part with a fault which can slow them down: their hosts with such a part, the worst finding and its host, and the throughput of the slowest port of the job as a share of the median.",
		queries: []query{
			{expr: orNone(named(", instance, symptom", "topk by (cluster, job, "+perWorkload+") (1, "+fault+" ^ 0 * on ("+part+") group_left (symptom) "+worst+")"),
				"symptom", "none on $1 jobs", countBy("cluster, job, "+perWorkload, hosts.of("rdma:job_use")))},
			{expr: named("", countBy("cluster, job, "+perWorkload, countBy(perHost+", "+perWorkload, fault)))},
			{expr: named("", minBy("cluster, job, "+perWorkload, hosts.of("port:rdma_port_job_share:ratio")+
				" and on (cluster, job, "+perWorkload+") "+fault))},
		},
		columns: []column{
			{from: "workload", title: "Workload", width: 105, ways: []way{toJob(jobCell, "${__data.fields.ID}")}},
			instance,
			{from: "symptom", title: "Worst finding", words: symptoms, width: 142},
			{from: "A", title: "Severity", words: severities, width: 76},
			{from: "B", title: "Hosts", width: 58},
			{from: "C", title: "Slowest port", unit: "percentunit", width: 112},
			cluster, job,
			{from: "job_id", title: "ID", width: 90},
		},
	}
}

func drift() panel {
	p := unlike()
	p.width, p.height = 12, 5
	return p
}

// fitOverTime counts hosts by whether they can take jobs.
func fitOverTime() panel {
	drained := hosts.of("instance:rdma_host_drain:state")
	p := graph("Hosts over time", "Hosts that can take jobs, and those that cannot, as above. The axis is logarithmic above 1.", "none", 8,
		query{orZero(fit+" == 1", fit), "fit"},
		query{orZero(unfitHosts, readHosts), "not fit"},
		query{orZero(drained+" > 0", drained), "to drain"},
		query{orZero(unknownHosts, hosts.of("up")), "unknown"})
	p.height, p.points, p.whole, p.list, p.tints = 7, few, true, true, []string{good, warning, bad, neutral}
	p.noValue = "unknown: the rules are not loaded"
	return p
}

// rollouts lists settings and versions that change host by host.
func rollouts() panel {
	return panel{
		title: "Rollouts", unit: "none", width: grid, height: 6, view: table, sort: "Hosts",
		noValue: "none, or no setting is known; by rules/central",
		text:    "Settings, firmware and software that hosts of one kind change one after the other, and how many have, for at most 72h.",
		queries: []query{{expr: maxBy("cluster, job, setting, role, before, value", fleet.of("kind:rdma_setting:rollout"))}},
		columns: []column{
			{from: "setting", title: "Setting"},
			{from: "before", title: "From"},
			{from: "value", title: "To"},
			{from: "A", title: "Hosts", unit: "percentunit", width: 80},
			{from: "role", title: "Of"},
			cluster, job,
		},
	}
}
