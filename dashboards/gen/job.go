package main

import (
	"fmt"
	"slices"
	"strings"
)

// jobBoard is one job over all its hosts: what is wrong with the parts that it uses, and which port holds it up.
func jobBoard() board {
	return board{
		name: "job", title: "Job", from: "now-3h", refresh: "1m", events: hosts.began("critical|warning"),
		text:    "Does the network slow this job down, and which host or port does?",
		choices: []choice{clusters, jobs, workload, hostsOfJob},
		rows: []row{
			{"Findings", append(jobCounts(), jobFindings()), false},
			{"Ports", []panel{jobPorts(), jobPace(), jobPauses()}, false},
			{"Errors and retries", jobErrors(), false},
			{"GPUs and NCCL", []panel{jobGPUs(), jobSettings()}, false},
		},
	}
}

// workload is a job of the time range, first those with a fault.
var workload = choice{
	name: "workload", label: "Workload", text: "Slurm job, pod, container or service.", one: true, ordered: true,
	regex: `/job_id="(?<value>[^"]+)"|pod="(?<text>[^"]+)"/g`,
	query: `query_result(sort_desc(count by (job_id, pod) (rdma:job_fault{cluster=~"$cluster",job=~"$job"}) or 0 * count by (job_id, pod) (` +
		`last_over_time(rdma_port_job_info{cluster=~"$cluster",job=~"$job"}[$__range]) or ` +
		`last_over_time(rdma_gpu_job_info{cluster=~"$cluster",job=~"$job"}[$__range]))))`,
}

// hostsOfJob are the hosts on which the job has a port. All of them narrow the queries.
var hostsOfJob = choice{
	name: "hosts", label: "Hosts", text: "Scrape targets of the exporters on the hosts of the job.", regex: hostOf,
	query: `label_values(rdma_port_job_info{cluster=~"$cluster",job=~"$job",job_id="$workload"}, instance)`,
}

// Parts that the job used in the time range, the same at each point of a graph.
var (
	usedPorts = "group by (" + perPort + ") (last_over_time(" + hosts.of("rdma_port_job_info", ofJob) +
		"[$__range] @ end()))"
	usedDevices = "group by (" + perDevice + ") (" + usedPorts + ")"
	usedHosts   = "group by (" + perHost + ") (" + usedPorts + ")"
	usedGPUs    = "group by (" + perGPU + ") (last_over_time(" + hosts.of("rdma_gpu_job_info", ofJob) +
		"[$__range] @ end()))"
)

const ofJob = `job_id="$workload"`

func onPorts(expr string) string { return "(" + expr + ") and on (" + perPort + ") " + usedPorts }

// faultsOfJob returns the faults of a severity on the parts of the job: of ports, of devices, of GPUs, of
// hosts.
func faultsOfJob(severity string) (ports, cards, gpus, all string) {
	of := func(labels, used string, more ...string) string {
		return hosts.of("rdma:placed", append(more, `severity=~"`+severity+`"`)...) + " and on (" + labels + ") " + used
	}
	return of(perPort, usedPorts, `port!=""`), of(perDevice, usedDevices, `port=""`, `device!=""`),
		of(perHost+", gpu", usedGPUs, `gpu!=""`), of(perHost, usedHosts, `port=""`, `device=""`, `gpu=""`)
}

// throughput is what a port moves in both directions.
var throughput = onPorts(sumBy(perPort, hosts.rate("rdma_port_transmit_bytes_total")) + " + " +
	sumBy(perPort, hosts.rate("rdma_port_receive_bytes_total")))

// median is the median of the ports of the job, from 1 Gb/s on: below it the job computes, waits or has ended.
var median = "(quantile(0.5, " + throughput + ") > 125e6)"

// shareOfJob is the throughput of a port as a share of the median.
var shareOfJob = "(" + throughput + ") / on () group_left () " + median

func jobCounts() []panel {
	ports, cards, gpus, all := faultsOfJob("critical|warning")
	watched := func(used string) string {
		return used + " and on (" + perHost + ") " + hosts.evaluated()
	}
	hit := func(labels string, of ...string) string {
		return "group by (" + labels + ") (" + strings.Join(of, " or ") + ")"
	}
	state := onPorts(maxBy(perPort, hosts.of("rdma_port_state_id")))
	expected := hosts.of("rdma_port_expected_rate_bytes_per_second")
	sends := onPorts(maxBy(perPort, hosts.rate("rdma_port_pfc_pause_seconds_total", `direction="transmit"`)))
	percent := func(part, all string) string { return "floor(100 * (" + orZero(part, all) + ") / count(" + all + "))" }
	infiniBand := hosts.of("rdma_port_info", `link_layer="InfiniBand"`)
	panels := []panel{
		counts("With a finding",
			"Which parts of the job have a critical or warning finding? Unknown where the rules are not loaded.", 8,
			count{
				title: "Hosts", text: "with a finding on a part that the job uses, or on the host.",
				expr: orZero(hit(perHost, ports, cards, gpus, all), watched(usedHosts)), colour: warning,
				of: "count(" + usedHosts + ")",
			},
			count{
				title: "Ports", text: "with a finding on the port or its device.", colour: warning,
				expr: orZero(usedPorts+" and on ("+perPort+") ("+ports+") or "+usedPorts+" and on ("+perDevice+") ("+cards+")",
					watched(usedPorts)),
				of: "count(" + usedPorts + ")",
			},
			count{
				title: "GPUs", text: "with a finding.", colour: warning,
				expr: orZero(usedGPUs+" and on ("+perHost+", gpu) ("+gpus+")", watched(usedGPUs)), of: "count(" + usedGPUs + ")",
			},
		),
		counts("Ports of the job", "Does each port of the job have its link?", 8,
			count{
				title: "Down", text: "not ACTIVE.", expr: orZero("("+state+") != 4", state), colour: bad, of: "count(" + state +
					")",
			},
			count{
				title: "Slow", text: "below the expected rate.", colour: warning,
				expr: orZero(onPorts(shortRates), onPorts(expected)), of: "count(" + onPorts(expected) + ")",
			},
			count{
				title: "Pausing",
				text:  "sends pause (PFC) for 10% of the time or more: its host does not drain what it receives. n/a: all ports are InfiniBand.", colour: warning,
				expr: orZero(fmt.Sprintf("(%s) > %v", sends, limitSlowReceiver), sends) + " or -2 * (count(" +
					usedPorts + " and on (" + perPort + ") " + infiniBand + ") == count(" + usedPorts + ")) ^ 0",
			},
		),
		counts("Pace and cover", "In percent; grey: not all.", 8,
			count{
				title: "Slowest port",
				text:  "throughput of the slowest port as a share of the median; down: a port of the job is not ACTIVE; unknown while the median is below 1 Gb/s.",
				expr:  "-2 * count((" + state + ") != 4) ^ 0 or 100 * min(" + shareOfJob + ")",
			},
			count{
				title: "Up", text: "hosts of the job whose exporter answers.", share: true,
				of:   "count(" + usedHosts + ")",
				expr: percent(usedHosts+" and on ("+perHost+") "+hosts.of("up")+" == 1", usedHosts),
			},
			count{
				title: "Pause", text: "ports of the job that measure pause durations (PFC), or on InfiniBand transmit wait.", share: true,
				of: "count(" + usedPorts + ")",
				expr: percent(usedPorts+" and on ("+perPort+") ("+hosts.rate("rdma_port_pfc_pause_seconds_total")+" or "+
					waiting+")", usedPorts),
			},
		),
	}
	panels[2].steps[0] = thresholds(neutral, step{0, warning}, step{70, good})
	panels[1].values = [][]word{{unknown}, {unknown}, {unknown, {"-2", "n/a", "text"}}}
	panels[2].values = [][]word{{unknown, {"-2", "down", bad}}}
	for i := range panels {
		panels[i].height = 3
	}
	return panels
}

// jobFindings lists what is wrong with the parts of the job, the most severe first.
func jobFindings() panel {
	labels := perPort + ", gpu, symptom, reason, leaf, rail"
	var ranks []string
	for _, s := range severities[:3] {
		ports, cards, gpus, all := faultsOfJob(s.text)
		for _, of := range []string{ports, cards, gpus, all} {
			ranks = append(ranks, s.value+" * ("+of+") ^ 0")
		}
	}
	found := maxBy(labels, strings.Join(ranks, " or "))
	measured := usedPorts + " and on (" + perHost + ") " + hosts.evaluated()
	return panel{
		title: "Findings on parts of the job", unit: "none", width: grid, height: 7, view: table, sort: "Severity",
		noValue: "unknown: no job is chosen, or rules/node are not loaded",
		text:    "What is wrong with the ports, devices and GPUs that the job uses, and with its hosts, the most severe first, also before its alert fires.",
		queries: []query{{expr: orNone(`label_join(label_join(`+withWay(found, toNodeBy)+
			`, "first", " ", "symptom", "reason"), "symptom", " ", "symptom", "reason")`,
			"symptom", "none on $1 ports", measured)}},
		columns: []column{
			{from: "A", title: "Severity", words: severities, width: 76},
			hostByWay,
			{from: "symptom", title: "Finding", words: symptoms, width: 320},
			{from: "first", title: "First", words: remedies, width: 300},
			{from: "device", title: "Device", width: 80},
			portOf, gpu,
			{from: "leaf", title: "Leaf", width: 150},
			{from: "rail", title: "Rail", width: 60},
			hidden("reason"), cluster, job, byWay[0], byWay[1],
		},
	}
}

// jobPorts compares the ports of the job, those with a finding first.
func jobPorts() panel {
	ports, cards := []string{}, []string{}
	for _, s := range severities[:3] {
		p, c, _, _ := faultsOfJob(s.text)
		ports, cards = append(ports, s.value+" * ("+p+") ^ 0"), append(cards, s.value+" * ("+c+") ^ 0")
	}
	onCard := usedPorts + " * on (" + perDevice + ") group_left () " + maxBy(perDevice, strings.Join(cards, " or "))
	rank := maxBy(perPort, labelled("by", "port", maxBy(perPort, strings.Join(ports, " or ")))+" or "+labelled("by",
		"device", onCard)+
		" or 0 * "+usedPorts)
	worst := top(400, rank)
	state := "(" + onPorts(maxBy(perPort, hosts.of("rdma_port_state_id"))) + ")"
	of := func(expr string) string { return maxBy(perPort, expr) + " and on (" + perPort + ") " + worst }
	paused := func(direction string) string {
		return of(atMostAll(hosts.rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`)))
	}
	return panel{
		title: "Ports, those with a finding first", unit: "none", width: grid, height: 9, view: table, sort: "Finding",
		noValue: "unknown: the job has no port in this time range, or processes are not read",
		text: "Ports of the job, at most 400: the worst finding, throughput as a share of the median of the job (unknown while that is below 1 Gb/s), time paused now, errors and retries in the time range. " +
			"Sending pause: this host does not drain what it receives. Receiving: another one does not.",
		queries: []query{
			{expr: worst},
			{expr: of(hosts.of("rdma_port_state_id"))},
			{expr: "(-1 * (" + state + " != 4) ^ 0 or " + shareOfJob + ") and on (" + perPort + ") " + worst},
			{expr: "8 * (" + of(hosts.of("rdma_port_rate_bytes_per_second")) + ")"},
			{expr: "8 * (" + of(hosts.of("rdma_port_expected_rate_bytes_per_second")) + ")"},
			{expr: paused("transmit")},
			{expr: paused("receive")},
			{expr: "round(" + sumBy(perPort, hosts.risen(metricsOf(jobErrorCounters)...)) + ") and on (" + perPort + ") " +
				worst},
			{expr: "round(" + sumBy(perPort, hosts.risen(retransmissions...)) + ") and on (" + perPort + ") " + worst},
		},
		columns: []column{
			{from: "A", title: "Finding", words: findings, width: 80},
			instance, hca, portOf,
			{from: "B", title: "State", words: portStates, width: 105},
			{
				from: "C", title: "Of median", unit: "percentunit", colours: []step{{0, warning}, {0.7, "transparent"}},
				width: 100, words: []word{{"-1", "down", bad}},
			},
			{from: "D", title: "Rate", unit: "bps", width: 85, missing: "no link"},
			{from: "E", title: "Expected", unit: "bps", width: 90},
			{from: "F", title: "Sends pause", unit: "percentunit", colours: []step{
				{limitSlowReceiver, warning},
				{limitStormSource, bad},
			}, width: 110},
			{from: "G", title: "Receives pause", unit: "percentunit", colours: []step{{limitPaused, warning}}, width: 150},
			{from: "H", title: "Errors", unit: whole, width: 80},
			{from: "I", title: "Retries", unit: whole, width: 90},
			cluster, job,
		},
	}
}

// findings are the severities of the worst finding of a part.
var findings = append(slices.Clone(severities[:3]), word{"0", "none", good})

// jobErrorCounters are what breaks connections, or data on the way.
var jobErrorCounters = slices.Concat(linkCounters, netdevCounters, requestCounters)

func metricsOf(all []counter) (out []string) {
	for _, c := range all {
		out = append(out, c.metric)
	}
	return out
}

// jobPace draws the slowest ports against the median.
func jobPace() panel {
	p := graph("Slowest ports against the median",
		"Throughput of the ports of the job in both directions: the five slowest over the time range, and the median. One far below the others holds up each collective; "+
			"all at zero: the job computes, waits or has ended.", "bps", 12,
		query{"8 * (" + lowest(5, perPort, throughput) + ")", portName},
		query{"8 * quantile(0.5, " + throughput + ")", "median"}).or("unknown: the job has no port in this time range")
	p.ways, p.states = ofHost, []word{{"median", "", good}}
	return p
}

// jobPauses draws the pauses of the ports of the job.
func jobPauses() panel {
	of := func(direction string) string {
		return onPorts(atMostAll(maxBy(perPort, hosts.rate("rdma_port_pfc_pause_seconds_total",
			`direction="`+direction+`"`))))
	}
	p := graph("Time paused",
		"Share of the time in which a port of the job was paused (PFC), the five highest of each direction above 0.1%. Sending: this host does not drain what it receives. Receiving: another one does not. "+
			"The lines are the limits of RDMASlowReceiver and RDMAPFCStormSource (sending).", "percentunit", 12,
		query{above("0.001", 5, perPort, of("transmit")), "sends " + portName},
		query{above("0.001", 5, perPort, of("receive")), "receives " + portName},
		noneAbove(onPorts(maxBy(perPort, hosts.rate("rdma_port_pfc_pause_seconds_total"))), "0.001",
			"none of {{of}} ports above 0.1%")).
		or("blind: 0 ports of the job measure pause (PFC)")
	p.max, p.ways, p.colours = share, ofHost, thresholds("transparent", step{limitSlowReceiver, warning},
		step{limitStormSource, bad})
	return p
}

// noneAbove is a line at 0 where something was measured and nothing exceeds least over the range. The legend has the
// number of series as of.
func noneAbove(expr, least, legend string) query {
	return query{
		fmt.Sprintf(`clamp_max(0 * count_values("of", count(%s)), 0) unless on () ((%s) > %s)`, expr, overRange(expr),
			least), legend,
	}
}

func jobErrors() []panel {
	rising := func(title, text string, all ...counter) panel {
		var parts []string
		for _, c := range all {
			parts = append(parts, labelled("counter", c.text, sumBy(perPort, hosts.increase(c.metric))))
		}
		found := onPorts(strings.Join(parts, " or "))
		p := graph(title, text, whole, 8,
			query{"(" + found + ") > 0", "{{counter}} " + portName}, noneAbove(found, "0", "none, {{of}} counters read")).
			or("blind: 0 ports of the job expose these counters")
		p.ways, p.points = ofHost, few
		return p
	}
	retried := onPorts(perMillion(perPort, hosts.sumOf(perPort, retransmissions...),
		hosts.rate("rdma_port_transmit_packets_total")))
	retries := graph("Retries",
		"Events that made a port of the job retransmit, for each million packets sent; the ten highest. The line is the limit of RDMARetransmissions.", "ppm", 8,
		query{highest(10, perPort, retried), portName}).
		or("0 ports of the job send 1000 packets/s, or none counts retransmissions")
	retries.ways, retries.points, retries.colours = ofHost, few, thresholds("transparent", step{
		limitRetransmissions,
		warning,
	})
	return []panel{
		rising("Link errors",
			"Errors that a port of the job counted between two points of the graph: cable, transceiver or the other end.",
			slices.Concat(linkCounters, netdevCounters)...),
		rising("Failed requests",
			"Requests that a queue pair gave up or refused between two points of the graph. Each breaks a connection, and most often the job.",
			requestCounters...),
		retries,
	}
}

// jobGPUs lists the GPUs of the job, those whose data does not go to a NIC directly first.
func jobGPUs() panel {
	about := "command, nccl_version, reason"
	known := "(" + transportRank(hosts) + ") * on (" + perGPU + ") group_left (" + about + ") " + maxBy(perGPU+", "+about,
		hosts.of("rdma_gdr_gpu_transport_info"))
	return panel{
		title: "GPUs of the job", unit: "none", width: 14, height: 9, view: table, sort: "Transport",
		noValue: "no GPU of the job is known: it has none, or processes are not read",
		text:    "GPUs of the job, at most 400: the transport of their data to other hosts and why. Staging and TCP slow the job down; unknown is not well.",
		queries: []query{{expr: top(400, "("+known+") and on ("+perGPU+") "+usedGPUs)}},
		columns: []column{
			{from: "A", title: "Transport", words: transports, width: 90},
			instance, gpu, hidden("UUID"),
			{from: "state", title: "State", width: 90},
			{from: "reason", title: "Reason", width: 170},
			{from: "nccl_version", title: "NCCL", width: 80},
			{from: "command", title: "Command", width: 100},
			cluster, job,
		},
	}
}

// jobSettings counts the hosts of the job by settings of NCCL that differ from what is wanted, and by versions.
func jobSettings() panel {
	wanted := "count by (setting, value) (" + maxBy(perHost+", setting, value", hosts.of("rdma_job_setting_info",
		`workload=~".+/$workload"`)) + ")"
	version := "count by (value) (" + maxBy(perHost+", value", `label_replace(`+hosts.of("rdma_gdr_gpu_transport_info",
		`workload=~".+/$workload"`, `nccl_version!=""`)+
		`, "value", "$1", "nccl_version", "(.*)")`) + ")"
	return panel{
		title: "NCCL settings and versions", unit: "none", width: 10, height: 9, view: table, sort: "-Hosts",
		noValue: "unknown: the environment of the job is not read",
		text: "Settings of NCCL in the job that differ from what is wanted of them, and the versions of NCCL, by the number of hosts that have them, the rarest first. " +
			"A setting or version on some hosts only is a fault of the launch.",
		queries: []query{{expr: wanted + " or " + labelled("setting", "NCCL version", version)}},
		columns: []column{
			{from: "setting", title: "Setting", width: 200},
			{from: "value", title: "Value", width: 180},
			{from: "A", title: "Hosts", width: 70},
		},
	}
}
