package main

import (
	"fmt"
	"slices"
	"strings"
)

// GPUs of the fleet by their path to the fabric.
var (
	allGPUs = maxBy(perGPU, hosts.Of("rdma_gdr_gpu_info"))
	// lostDirect are staged although their hardware can do without, or slowed by their job.
	lostDirect = "(" + maxBy(perGPU, hosts.Of("rdma_gdr_gpu_direct")+" == 0 unless on ("+perGPU+", direction) "+
		hosts.Of("rdma_gdr_gpu_possible")+" == 0") + " or " + slowJobs(hosts) + ")"
	// unknownGPUs are those of hosts that are unknown, and those whose path is.
	unknownGPUs = allGPUs + " and on (" + perHost + ") (" + unknownHosts + ") or " + allGPUs +
		" unless on (" + perGPU + ") " + hosts.Of("rdma_gdr_gpu_direct")
	// healthyGPUs have a NIC that is up and at its rate, on a host that is fit, and have not lost GPUDirect.
	healthyGPUs = maxBy(perGPU, maxBy(perGPU+", device", hosts.Of("rdma_gdr_gpu_info", `device!=""`))+
		" unless on ("+perDevice+") ("+shortRates+")") +
		" and on (" + perHost + ") " + fit + " == 1 and on (" + perGPU + ") " + hosts.Of("rdma_gdr_gpu_direct") +
		" unless on (" + perGPU + ") " + hosts.Of("rdma_gdr_gpu_nearest_down_info") +
		" unless on (" + perGPU + ") " + lostDirect
)

// slowJobs are the GPUs whose job stages their data through host memory or sends it over TCP, by rules/node over 5m, or
// now. Jobs pause between exchanges.
func slowJobs(s scope) string {
	return maxBy(perGPU, s.Of("gpu:rdma_gdr:staging")+" or "+s.Of("gpu:rdma_gdr:sockets")+" or "+
		s.Of("rdma_gdr_gpu_transport", `state=~"staging|tcp"`))
}

// jobStages is in place of the reason of a GPU whose path is direct and whose job does not use it.
const jobStages = "job stages"

// byReason returns the best NICs of GPUs with some of their labels, one of them the reason.
func byReason(s scope, labels string) string {
	info := maxBy(perGPU+", "+labels, s.Of("rdma_gdr_gpu_info"))
	return labelled("reason", jobStages, info+" and on ("+perGPU+") "+slowJobs(s)) + " or on (" + perGPU + ") " + info
}

var (
	fit = hosts.Of("instance:rdma_host_fit:state")
	// readHosts are those whose exporter answers and whose ports are read, by rules/node.
	readHosts = "(" + hosts.Of("instance:rdma_host:known") + " unless on (" + perHost + ") " +
		hosts.Of("instance:rdma_host:unread") + ")"
	// unknownHosts may have any fault. A host that is read and neither fit nor not has a fault that is to drain it.
	unknownHosts = hosts.Of("up") + " unless on (" + perHost + ") " + fit + " unless on (" + perHost + ") " +
		readHosts
	unfitHosts = fit + " == 0 or " + readHosts + " unless on (" + perHost + ") " + fit
)

// perWorkload are the labels of a job, beside those of its scrape.
const perWorkload = "scheduler, job_id, namespace, pod"

// waiting are the ports that report transmit wait where it stands for pause: many report it on Ethernet, too.
var waiting = "group by (" + perPort + ") (" + hosts.Rate("rdma_port_transmit_wait_ticks_total") + ") and on (" +
	perPort + ") " + hosts.Of("rdma_port_info", `link_layer="InfiniBand"`)

// fabricNow has the alerts below the first three panels of counts: on a phone they begin on the second screen.
func fabricNow() []panel {
	tiles := fabricCounts()
	return slices.Concat(tiles[:3], []panel{fabricAlerts()}, tiles[3:], []panel{places(), failsNext()})
}

func fabricCounts() []panel {
	alerts := func(severity string) string {
		return orZero(fleet.Firing(severity)+" or "+fabrics.Firing(severity), hosts.Evaluated())
	}
	ports := maxBy(perPort, hosts.Of("rdma_port_state_id"))
	active := ports + " == 4"
	workloads := func(record string) string { return countBy("cluster, job, "+perWorkload, hosts.Of(record)) }
	known := fleet.Of("kind:rdma_setting:known")
	measured := func(part, all string) string {
		return "floor(100 * (" + orZero(part, all) + ") / count(" + all + "))"
	}
	out := []panel{
		counts("Hosts", "Can hosts take jobs?", 8,
			count{
				Title: "Not fit", Text: "an alert drains the host or is pending to, or its maintenance is announced (instance:rdma_host_fit:state is 0 or absent).",
				Expr: orZero(unfitHosts, readHosts), Colour: warning, Of: "count(" + hosts.Of("up") + ")",
				Ways: []way{toPanel("Alerts")},
			},
			count{
				Title: "To drain", Text: "firing alerts cordon or evict the host (instance:rdma_host_drain:state). `rdma_exporter check --drain` on it lists them.",
				Expr:   orZero(hosts.Of("instance:rdma_host_drain:state")+" > 0", hosts.Of("instance:rdma_host_drain:state")),
				Colour: bad, Ways: []way{toPanel("Alerts")},
			},
			count{
				Title: "Unknown", Text: "the exporter or its reads fail: the hosts that are missing in Measured.",
				Expr: orZero(unknownHosts, hosts.Of("up")), Colour: neutral, Ways: []way{toPanel("Targets that do not answer")},
			},
		),
		counts("Firing alerts", "Does anything fire?", 8,
			count{
				Title: "Critical", Text: "of hosts and fabrics; unknown where the rules are not loaded: RDMAWatchdog, which always fires, is missing then.",
				Expr: alerts("critical"), Colour: bad, Ways: []way{toPanel("Alerts")},
			},
			count{
				Title: "Warning", Text: "as before.",
				Expr: alerts("warning"), Colour: warning, Ways: []way{toPanel("Alerts")},
			},
			count{
				Title: "Info", Text: "no action is urgent.",
				Expr: alerts("info"), Colour: "text", Ways: []way{toPanel("Alerts of severity info")},
			},
		),
		counts("Measured", "What do the other numbers rest on? In percent; grey: not all.", 8,
			count{
				Title: "Hosts", Text: "hosts whose exporter answers and whose ports are read.", Share: true,
				Of:   "count(" + hosts.Of("up") + ")",
				Expr: measured(hosts.Of("up")+" unless ("+unknownHosts+")", hosts.Of("up")),
				Ways: []way{toPanel("Targets that do not answer")},
			},
			count{
				Title: "Pause",
				Text:  "ACTIVE ports with pause durations (PFC), or on InfiniBand with transmit wait.",
				Share: true, Of: "count(" + active + ")",
				Expr: measured(active+" and on ("+perPort+") (group by ("+perPort+") ("+
					hosts.Of("port:rdma_port_pfc_paused:ratio", `direction="receive"`)+") or "+waiting+")", active),
				Ways: []way{toBoard("RoCE congestion", "roce")},
			},
			count{
				Title: "Optics", Text: "ACTIVE ports with a transceiver that reports its temperature, or a copper cable.", Share: true,
				Of: "count(" + active + ")",
				Expr: measured(active+" and on ("+perPort+") ("+
					maxBy(perPort, hosts.Of("port:rdma_transceiver_temperature:celsius"))+
					" or "+maxBy(perPort, hosts.Of("rdma_transceiver_info", `media="passive_copper"`))+")", active),
				Ways: []way{toBoard("Optics", "optics")},
			},
		),
		counts("Ports and GPUDirect", "What does not work as it did or should?", 8,
			count{
				Title: "Lost", Text: "ports that the exporter has seen ACTIVE and that are not ACTIVE now. Ports that were never used do not count.",
				Expr: orZero(lostPorts, ports), Colour: bad, Of: "count(" + ports + ")",
				Ways: []way{toPanel("Ports that were not ACTIVE")},
			},
			count{
				Title: "Slow",
				Text:  "ACTIVE links below their expected rate, whatever the evidence; unknown where no link has an expected rate.",
				Expr:  orZero(shortRates, hosts.Of("rdma_port_expected_rate_bytes_per_second")), Colour: warning,
				Of:   "count(" + maxBy(perPort, hosts.Of("rdma_port_expected_rate_bytes_per_second")) + ")",
				Ways: []way{toPanel("Links below their expected rate")},
			},
			count{
				Title: "GPUDirect lost",
				Text:  "GPUs whose data is staged through host memory, when sending, receiving or both, although their hardware can do without, or whose job stages it or sends it over TCP. GPUs whose path is unknown do not count.",
				Expr:  orZero(lostDirect, hosts.Of("rdma_gdr_gpu_direct")), Colour: warning,
				Ways: []way{toPanel("Hosts that lost GPUDirect"), toBoard("GPUDirect", "gpudirect")},
			},
		),
		counts("GPUs", "How many GPUs reach the fabric as they should?", 8,
			count{
				Title: "Healthy",
				Text:  "on a host that is fit, with a NIC whose port is up and at its expected rate, the nearest one up, and GPUDirect not lost.",
				Expr:  orZero(healthyGPUs, allGPUs), Colour: good, Of: "count(" + allGPUs + ")",
				Ways: []way{toBoard("GPUDirect", "gpudirect")},
			},
			count{
				Title: "Impaired", Text: "not so, of hosts that are read.",
				Expr: orZero(allGPUs+" unless on ("+perGPU+") ("+healthyGPUs+") unless on ("+perGPU+") ("+
					unknownGPUs+")", allGPUs),
				Colour: warning, Ways: []way{toBoard("GPUDirect", "gpudirect")},
			},
			count{
				Title: "Unknown", Text: "the path is unknown, or the host is. GPUs of hosts that do not answer are not counted.",
				Expr: orZero(unknownGPUs, allGPUs), Colour: neutral, Ways: []way{toBoard("GPUDirect", "gpudirect")},
			},
		),
		counts("Jobs and settings", "Are jobs hit, and are hosts set alike?", 8,
			count{
				Title: "Jobs hit", Text: "jobs that use a part with a fault (rdma:job_fault), by rules/central.",
				Expr: orZero(workloads("rdma:job_fault"), workloads("rdma:job_use")), Colour: warning,
				Of:   "count(" + workloads("rdma:job_use") + ")",
				Ways: []way{toPanel("Jobs with a finding")},
			},
			count{
				Title: "Hosts unlike", Text: "hosts with a setting that their peers do not have.",
				Expr: orZero(countBy(perHost, hosts.Of("instance:rdma_setting:differs")), known+" >= 4"), Colour: warning,
				Ways: []way{toPanel("Hosts unlike their peers")},
			},
			count{
				Title: "Rollouts", Text: "settings or versions that change host by host.",
				Expr: orZero(fleet.Of("kind:rdma_setting:rollout"), known), Colour: "text",
				Ways: []way{toPanel("Rollouts")},
			},
		),
	}
	for i := range out {
		out[i].Height = 3
	}
	return out
}

// onFleet are alerts of hosts, and of fabrics.
func onFleet(levels ...word) panel {
	p := alertTable([]scope{fleet, fabrics}, levels, []column{hostByWay}, hidden("device"), byWay...)
	for i := range p.Queries { // an alert of several hosts is named by its place
		p.Queries[i].Expr = labelledBy("host", "where", p.Queries[i].Expr)
	}
	return p.SetWidths(map[string]uint32{"Host": 196, "Meaning": 290, "First": 264, "Where": 130})
}

func fabricAlerts() panel {
	p := onFleet(severities[0], severities[1])
	p.Height = 8
	p = p.OrNone("no critical or warning alert on $1 hosts", hosts.Evaluated())
	p.Text = "Critical and warning, firing or pending, one row for each cause. The name links to the runbook, the host to its dashboard and to the exporter's page, which has figures, command and action."
	return p
}

func infoAlerts() panel {
	p := onFleet(severities[2])
	p.Title, p.Text = "Alerts of severity info", "Alerts of severity info, firing or pending."
	return p.OrNone("no alert of severity info on $1 hosts", hosts.Evaluated())
}

// places is the worst state of the ports of each leaf and rail.
func places() panel {
	const perPlace = perPort + ", leaf, rack, rail"
	at, placed := maxBy(perPlace, hosts.Of("rdma_place_info", `port!=""`)), "rdma:placed"
	rank := func(more string) string {
		return "5 * " + hosts.Of(placed, `severity="critical"`, more) +
			" or 4 * " + hosts.Of(placed, `severity="warning"`, more) +
			" or 2 * " + hosts.Of(placed, `severity="info"`, more)
	}
	states := strings.Join([]string{
		labelled("by", "port", at+" * on ("+perPort+") group_left () "+maxBy(perPort, rank(`port!=""`))),
		labelled("by", "device", at+" * on ("+perDevice+") group_left () "+maxBy(perDevice, rank(`port="",device!=""`))),
		labelled("by", "unread", "3 * ("+at+" unless on ("+perPort+") "+hosts.Of("rdma_port_state_id")+")"),
		labelled("by", "gone", "3 * ("+maxBy(perPlace, hosts.Of("rdma_place_info", `port!=""`)+" offset $__range")+
			" unless on ("+perHost+") "+hosts.Of("up")+" == 1)"),
		at,
	}, " or ")
	named := labelledBy("row", "leaf", labelledBy("row", "rack", labelled("row", "leaf unknown", states)))
	rail := fmt.Sprintf(`label_replace(%s, "rail", "Rail $1", "rail", "(.+)")`, named)
	rail = fmt.Sprintf(`label_replace(%s, "rail", "No rail", "rail", "")`, rail)
	return panel{
		Title: "Leaves and rails", Unit: "none", Width: 12, Height: 7, View: matrix, Words: worsts,
		NoValue: "no port has a known place: no LLDP, no subnet, no rack in the site configuration",
		Text: "Worst finding of the ports of a leaf (of a rack where the leaf is unknown) on each rail, before and while its alert fires; leaves with the worst first. " +
			"Unknown: a port cannot be read, or its host answered at the beginning of the time range and does not now.",
		Queries: []query{{Expr: maxBy("row, rail", rail)}},
		Columns: []column{{From: "row", Title: "Leaf", Unit: "string", Width: 150}, {From: "rail", Title: "Rail"}},
	}
}

// failsNext ranks what wears out.
func failsNext() panel {
	aged := func(kind string) string {
		return maxBy(perPort, hosts.Of("port:rdma_optics_drift:info", `kind="`+kind+`"`))
	}
	var values, ranks []string
	for _, c := range []struct{ why, value, rank string }{
		{
			"°C to temperature alarm", minBy(perPort, hosts.Of("port:rdma_transceiver_temperature:limit")+" - "+
				hosts.Of("port:rdma_transceiver_temperature:working")) + " < 10", "1 - (%s) / 10",
		},
		{"dB less light than when new", aged("receive_power"), "(%s) / 3"},
		{"dB to low light alarm", aged("alarm_margin"), "1 - (%s) / 3"},
		{"% more laser bias than new", aged("bias"), "(%s) / 50"},
		{"% of BER limit", "100 * " + maxBy(perPort, ofEnd(hosts, rawBER)+" / "+ofEnd(hosts, rawBERLimit)+" > 0.1"), "log10(%s) / 2"},
		{"times its usual BER", maxBy(perPort, hosts.Of("port:rdma_link_raw_ber:baseline_factor")) + " >= 10", "log10(%s) / 2"},
	} {
		values = append(values, labelled("why", c.why, c.value))
		ranks = append(ranks, labelled("why", c.why, fmt.Sprintf(c.rank, c.value)))
	}
	dark := darkLane(hosts)
	values, ranks = append(values, dark), append(ranks, "2 * ("+dark+") ^ 0")
	worst := top(20, strings.Join(ranks, " or "))
	read := "group by (" + perPort + ") (" + hosts.Of("port:rdma_transceiver_temperature:celsius") + ") or group by (" +
		perPort + ") (" + hosts.Of(rawBER) + ")"
	return panel{
		Title: "Fails next", Unit: "none", Width: 12, Height: 7, View: table, Sort: "Of limit",
		NoValue: "blind: 0 ports measure optics or bit errors",
		Text: "Ports and modules that wear out, the 20 worst. Of limit: 200% is a dark lane, 100% the temperature alarm, 3 dB less light or 50% more laser bias than when new, the limit of the raw BER, or 100 times the usual BER. " +
			"Temperature begins 10 °C below its alarm, BER a decade below its limit. 0% is a row that says how many ports measure one of these.",
		Queries: []query{
			{Expr: orNone(worst, "why", "none near a limit, of $1 ports", read)},
			{Expr: "round(" + strings.Join(values, " or ") + ", 0.1) and on (" + perPort + ", why) " + worst},
		},
		Columns: []column{
			instance, hca, portOf,
			{From: "B", Title: "Value", Unit: "none", Width: 70},
			{From: "why", Title: "Why", Width: 203},
			{From: "A", Title: "Of limit", Unit: "percentunit", Colours: []step{{From: 0, Colour: "transparent"}, {From: 1, Colour: warning}}, Width: 90},
			cluster, job,
		},
	}
}

// darkLane names each lane without light of ports that are ACTIVE, by why, with its power.
func darkLane(s scope) string {
	dark := fmt.Sprintf("%s <= %d and on (%s) %s == 4", maxBy(perPort+", direction, lane",
		s.Of("lane:rdma_transceiver_power:judged")), limitLaneDark, perPort, maxBy(perPort, s.Of("rdma_port_state_id")))
	return maxBy(perPort+", why", `label_replace(label_join(`+dark+
		`, "why", " lane ", "direction", "lane"), "why", "dBm, $1 is dark", "why", "(.*)")`)
}

// jobsHit lists jobs that use a part with a fault.
func jobsHit() panel {
	const part = perPort + ", gpu"
	fault := hosts.Of("rdma:job_fault")
	named := func(labels, expr string) string {
		joined := `label_join(` + expr + `, "workload", " ", "scheduler", "job_id")`
		return maxBy("cluster, job, job_id, workload"+labels, labelledBy("workload", "pod", joined))
	}
	worst := "topk by (" + part + ") (1, 3 * " + hosts.Of("rdma:job_symptom", `severity="critical"`) + " ^ 0 or 2 * " +
		hosts.Of("rdma:job_symptom", `severity="warning"`) + " ^ 0)"
	return panel{
		Title: "Jobs with a finding", Unit: "none", Width: 12, Height: 5, View: table, Sort: "Severity",
		NoValue: "unknown: no job is known, or rules/central are not loaded",
		Text:    "Jobs that use a part with a fault which can slow them down: their hosts with such a part, the worst finding and its host, and the throughput of the slowest port of the job as a share of the median.",
		Queries: []query{
			{Expr: orNone(named(", instance, symptom", "topk by (cluster, job, "+perWorkload+") (1, "+fault+" ^ 0 * on ("+part+") group_left (symptom) "+worst+")"),
				"symptom", "none on $1 jobs", countBy("cluster, job, "+perWorkload, hosts.Of("rdma:job_use")))},
			{Expr: named("", countBy("cluster, job, "+perWorkload, countBy(perHost+", "+perWorkload, fault)))},
			{Expr: named("", minBy("cluster, job, "+perWorkload, hosts.Of("port:rdma_port_job_share:ratio")+
				" and on (cluster, job, "+perWorkload+") "+fault))},
		},
		Columns: []column{
			{From: "workload", Title: "Workload", Width: 105, Ways: []way{toJob(jobCell, "${__data.fields.ID}")}},
			instance,
			{From: "symptom", Title: "Worst finding", Words: symptoms, Width: 142},
			{From: "A", Title: "Severity", Words: severities, Width: 76},
			{From: "B", Title: "Hosts", Width: 58},
			{From: "C", Title: "Slowest port", Unit: "percentunit", Width: 112},
			cluster, job,
			{From: "job_id", Title: "ID", Width: 90},
		},
	}
}

func drift() panel {
	p := unlike()
	p.Width, p.Height = 12, 5
	return p
}

// fitOverTime counts hosts by whether they can take jobs.
func fitOverTime() panel {
	drained := hosts.Of("instance:rdma_host_drain:state")
	p := graph("Hosts over time", "Hosts that can take jobs, and those that cannot, as above. The axis is logarithmic above 1.", "none", 8,
		line(orZero(fit+" == 1", fit), "fit"),
		line(orZero(unfitHosts, readHosts), "not fit"),
		line(orZero(drained+" > 0", drained), "to drain"),
		line(orZero(unknownHosts, hosts.Of("up")), "unknown"))
	p.Height, p.Points, p.Whole, p.List, p.Tints = 7, few, true, true, []string{good, warning, bad, neutral}
	p.NoValue = "unknown: the rules are not loaded"
	return p
}

// rollouts lists settings and versions that change host by host.
func rollouts() panel {
	return panel{
		Title: "Rollouts", Unit: "none", Width: grid, Height: 6, View: table, Sort: "Hosts",
		NoValue: "none, or no setting is known; by rules/central",
		Text:    "Settings, firmware and software that hosts of one kind change one after the other, and how many have, for at most 72h.",
		Queries: []query{{Expr: maxBy("cluster, job, setting, role, before, value", fleet.Of("kind:rdma_setting:rollout"))}},
		Columns: []column{
			{From: "setting", Title: "Setting"},
			{From: "before", Title: "From"},
			{From: "value", Title: "To"},
			{From: "A", Title: "Hosts", Unit: "percentunit", Width: 80},
			{From: "role", Title: "Of"},
			cluster, job,
		},
	}
}
