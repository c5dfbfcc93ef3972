package main

import (
	"fmt"
	"slices"
	"strings"
)

// jobBoard is one job over all its hosts: what is wrong with the parts that it uses, and which port holds it up.
func jobBoard() board {
	return board{
		Name: "job", Title: "Job", From: "now-3h", Refresh: "1m", Events: hosts.Began("critical|warning"),
		Text:    "Does the network slow this job down, and which host or port does?",
		Choices: []choice{clusters, jobs, workload, hostsOfJob},
		Rows: []row{
			{Title: "Findings", Panels: append(jobCounts(), jobFindings()), Closed: false},
			{Title: "Ports", Panels: []panel{jobPorts(), jobPace(), jobPauses()}, Closed: false},
			{Title: "Errors and retries", Panels: jobErrors(), Closed: false},
			{Title: "GPUs and NCCL", Panels: []panel{jobGPUs(), jobSettings()}, Closed: false},
		},
	}
}

// workload is a job of the time range, first those with a fault.
var workload = choice{
	Name: "workload", Label: "Workload", Text: "Slurm job, pod, container or service.", One: true, Ordered: true,
	Regex: `/job_id="(?<value>[^"]+)"|pod="(?<text>[^"]+)"/g`,
	Query: `query_result(sort_desc(count by (job_id, pod) (rdma:job_fault{cluster=~"$cluster",job=~"$job"}) or 0 * count by (job_id, pod) (` +
		`last_over_time(rdma_port_job_info{cluster=~"$cluster",job=~"$job"}[$__range]) or ` +
		`last_over_time(rdma_gpu_job_info{cluster=~"$cluster",job=~"$job"}[$__range]))))`,
}

// hostsOfJob are the hosts on which the job has a port. All of them narrow the queries.
var hostsOfJob = choice{
	Name: "hosts", Label: "Hosts", Text: "Scrape targets of the exporters on the hosts of the job.", Regex: hostOf,
	Query: `label_values(rdma_port_job_info{cluster=~"$cluster",job=~"$job",job_id="$workload"}, instance)`,
}

// Parts that the job used in the time range, the same at each point of a graph.
var (
	usedPorts = "group by (" + perPort + ") (last_over_time(" + hosts.Of("rdma_port_job_info", ofJob) +
		"[$__range] @ end()))"
	usedDevices = "group by (" + perDevice + ") (" + usedPorts + ")"
	usedHosts   = "group by (" + perHost + ") (" + usedPorts + ")"
	usedGPUs    = "group by (" + perGPU + ") (last_over_time(" + hosts.Of("rdma_gpu_job_info", ofJob) +
		"[$__range] @ end()))"
)

const ofJob = `job_id="$workload"`

func onPorts(expr string) string { return "(" + expr + ") and on (" + perPort + ") " + usedPorts }

// faultsOfJob returns the faults of a severity on the parts of the job: of ports, of devices, of GPUs, of
// hosts.
func faultsOfJob(severity string) (ports, cards, gpus, all string) {
	of := func(labels, used string, more ...string) string {
		return hosts.Of("rdma:placed", append(more, `severity=~"`+severity+`"`)...) + " and on (" + labels + ") " + used
	}
	return of(perPort, usedPorts, `port!=""`), of(perDevice, usedDevices, `port=""`, `device!=""`),
		of(perHost+", gpu", usedGPUs, `gpu!=""`), of(perHost, usedHosts, `port=""`, `device=""`, `gpu=""`)
}

// throughput is what a port moves in both directions.
var throughput = onPorts(sumBy(perPort, hosts.Rate("rdma_port_transmit_bytes_total")) + " + " +
	sumBy(perPort, hosts.Rate("rdma_port_receive_bytes_total")))

// median is the median of the ports of the job, from 1 Gb/s on: below it the job computes, waits or has ended.
var median = "(quantile(0.5, " + throughput + ") > 125e6)"

// shareOfJob is the throughput of a port as a share of the median.
var shareOfJob = "(" + throughput + ") / on () group_left () " + median

func jobCounts() []panel {
	ports, cards, gpus, all := faultsOfJob("critical|warning")
	watched := func(used string) string {
		return used + " and on (" + perHost + ") " + hosts.Evaluated()
	}
	hit := func(labels string, of ...string) string {
		return "group by (" + labels + ") (" + strings.Join(of, " or ") + ")"
	}
	state := onPorts(maxBy(perPort, hosts.Of("rdma_port_state_id")))
	expected := hosts.Of("rdma_port_expected_rate_bytes_per_second")
	sends := onPorts(maxBy(perPort, hosts.Rate("rdma_port_pfc_pause_seconds_total", `direction="transmit"`)))
	percent := func(part, all string) string { return "floor(100 * (" + orZero(part, all) + ") / count(" + all + "))" }
	infiniBand := hosts.Of("rdma_port_info", `link_layer="InfiniBand"`)
	out := []panel{
		counts("With a finding",
			"Which parts of the job have a critical or warning finding? Unknown where the rules are not loaded.", 8,
			count{
				Title: "Hosts", Text: "with a finding on a part that the job uses, or on the host.",
				Expr: orZero(hit(perHost, ports, cards, gpus, all), watched(usedHosts)), Colour: warning,
				Of: "count(" + usedHosts + ")",
			},
			count{
				Title: "Ports", Text: "with a finding on the port or its device.", Colour: warning,
				Expr: orZero(usedPorts+" and on ("+perPort+") ("+ports+") or "+usedPorts+" and on ("+perDevice+") ("+cards+")",
					watched(usedPorts)),
				Of: "count(" + usedPorts + ")",
			},
			count{
				Title: "GPUs", Text: "with a finding.", Colour: warning,
				Expr: orZero(usedGPUs+" and on ("+perHost+", gpu) ("+gpus+")", watched(usedGPUs)), Of: "count(" + usedGPUs + ")",
			},
		),
		counts("Ports of the job", "Does each port of the job have its link?", 8,
			count{
				Title: "Down", Text: "not ACTIVE.", Expr: orZero("("+state+") != 4", state), Colour: bad, Of: "count(" + state +
					")",
			},
			count{
				Title: "Slow", Text: "below the expected rate.", Colour: warning,
				Expr: orZero(onPorts(shortRates), onPorts(expected)), Of: "count(" + onPorts(expected) + ")",
			},
			count{
				Title: "Pausing",
				Text:  "sends pause (PFC) for 10% of the time or more: its host does not drain what it receives. n/a: all ports are InfiniBand.", Colour: warning,
				Expr: orZero(fmt.Sprintf("(%s) > %v", sends, limitSlowReceiver), sends) + " or -2 * (count(" +
					usedPorts + " and on (" + perPort + ") " + infiniBand + ") == count(" + usedPorts + ")) ^ 0",
			},
		),
		counts("Pace, and share measured", "In percent; grey: not all.", 8,
			count{
				Title: "Slowest port",
				Text:  "throughput of the slowest port as a share of the median; down: a port of the job is not ACTIVE; unknown while the median is below 1 Gb/s.",
				Expr:  "-2 * count((" + state + ") != 4) ^ 0 or 100 * min(" + shareOfJob + ")",
			},
			count{
				Title: "Hosts up", Text: "hosts of the job whose exporter answers.", Share: true,
				Of:   "count(" + usedHosts + ")",
				Expr: percent(usedHosts+" and on ("+perHost+") "+hosts.Of("up")+" == 1", usedHosts),
			},
			count{
				Title: "Pause", Text: "ports of the job that measure pause durations (PFC), or on InfiniBand transmit wait.", Share: true,
				Of: "count(" + usedPorts + ")",
				Expr: percent(usedPorts+" and on ("+perPort+") ("+hosts.Rate("rdma_port_pfc_pause_seconds_total")+" or "+
					waiting+")", usedPorts),
			},
		),
	}
	out[2].Steps[0] = thresholds(neutral, step{From: 0, Colour: warning}, step{From: 70, Colour: good})
	out[1].Values = [][]word{{unknown}, {unknown}, {unknown, {Value: "-2", Text: "n/a", Colour: "text"}}}
	out[2].Values = [][]word{{unknown, {Value: "-2", Text: "down", Colour: bad}}}
	for i := range out {
		out[i].Height = 3
	}
	return out
}

// jobFindings lists what is wrong with the parts of the job, the most severe first.
func jobFindings() panel {
	labels := perPort + ", gpu, symptom, reason, leaf, rail"
	var ranks []string
	for _, s := range severities[:3] {
		ports, cards, gpus, all := faultsOfJob(s.Text)
		for _, of := range []string{ports, cards, gpus, all} {
			ranks = append(ranks, s.Value+" * ("+of+") ^ 0")
		}
	}
	found := maxBy(labels, strings.Join(ranks, " or "))
	measured := usedPorts + " and on (" + perHost + ") " + hosts.Evaluated()
	return panel{
		Title: "Findings on parts of the job", Unit: "none", Width: grid, Height: 7, View: table, Sort: "Severity",
		NoValue: "unknown: no job is chosen, or rules/node are not loaded",
		Text:    "What is wrong with the ports, devices and GPUs that the job uses, and with its hosts, the most severe first, also before its alert fires.",
		Queries: []query{{Expr: orNone(`label_join(label_join(`+withWay(found, toNodeBy)+
			`, "first", " ", "symptom", "reason"), "symptom", " ", "symptom", "reason")`,
			"symptom", "none on $1 ports", measured)}},
		Columns: []column{
			{From: "A", Title: "Severity", Words: severities, Width: 76},
			hostByWay,
			{From: "symptom", Title: "Finding", Words: symptoms, Width: 320},
			{From: "first", Title: "First", Words: remedies, Width: 300},
			{From: "device", Title: "Device", Width: 80},
			portOf, gpu,
			{From: "leaf", Title: "Leaf", Width: 150},
			{From: "rail", Title: "Rail", Width: 60},
			hidden("reason"), cluster, job, byWay[0], byWay[1],
		},
	}
}

// jobPorts compares the ports of the job, those with a finding first.
func jobPorts() panel {
	ports, cards := []string{}, []string{}
	for _, s := range severities[:3] {
		p, c, _, _ := faultsOfJob(s.Text)
		ports, cards = append(ports, s.Value+" * ("+p+") ^ 0"), append(cards, s.Value+" * ("+c+") ^ 0")
	}
	onCard := usedPorts + " * on (" + perDevice + ") group_left () " + maxBy(perDevice, strings.Join(cards, " or "))
	rank := maxBy(perPort, labelled("by", "port", maxBy(perPort, strings.Join(ports, " or ")))+" or "+labelled("by",
		"device", onCard)+
		" or 0 * "+usedPorts)
	worst := top(400, rank)
	state := "(" + onPorts(maxBy(perPort, hosts.Of("rdma_port_state_id"))) + ")"
	of := func(expr string) string { return maxBy(perPort, expr) + " and on (" + perPort + ") " + worst }
	paused := func(direction string) string {
		return of(atMostAll(hosts.Rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`)))
	}
	return panel{
		Title: "Ports, those with a finding first", Unit: "none", Width: grid, Height: 9, View: table, Sort: "Finding",
		NoValue: "unknown: the job has no port in this time range, or processes are not read",
		Text: "Ports of the job, at most 400: the worst finding, throughput as a share of the median of the job (unknown while that is below 1 Gb/s), time paused now, errors and retries in the time range. " +
			"Sending pause: this host does not drain what it receives. Receiving: another one does not.",
		Queries: []query{
			{Expr: worst},
			{Expr: of(hosts.Of("rdma_port_state_id"))},
			{Expr: "(-1 * (" + state + " != 4) ^ 0 or " + shareOfJob + ") and on (" + perPort + ") " + worst},
			{Expr: "8 * (" + of(hosts.Of("rdma_port_rate_bytes_per_second")) + ")"},
			{Expr: "8 * (" + of(hosts.Of("rdma_port_expected_rate_bytes_per_second")) + ")"},
			{Expr: paused("transmit")},
			{Expr: paused("receive")},
			{Expr: "round(" + sumBy(perPort, hosts.Risen(metricsOf(jobErrorCounters)...)) + ") and on (" + perPort + ") " +
				worst},
			{Expr: "round(" + sumBy(perPort, hosts.Risen(retransmissions...)) + ") and on (" + perPort + ") " + worst},
		},
		Columns: []column{
			{From: "A", Title: "Finding", Words: findings, Width: 80},
			instance, hca, portOf,
			{From: "B", Title: "State", Words: portStates, Width: 105},
			{
				From: "C", Title: "Of median", Unit: "percentunit",
				Colours: []step{{From: 0, Colour: warning}, {From: 0.7, Colour: "transparent"}},
				Width:   100, Words: []word{{Value: "-1", Text: "down", Colour: bad}},
			},
			{From: "D", Title: "Rate", Unit: "bps", Width: 85, Missing: "no link"},
			{From: "E", Title: "Expected", Unit: "bps", Width: 90},
			{From: "F", Title: "Sends pause", Unit: "percentunit", Colours: []step{
				{From: limitSlowReceiver, Colour: warning},
				{From: limitStormSource, Colour: bad},
			}, Width: 110},
			{From: "G", Title: "Receives pause", Unit: "percentunit", Colours: []step{{From: limitPaused, Colour: warning}}, Width: 150},
			{From: "H", Title: "Errors", Unit: whole, Width: 80},
			{From: "I", Title: "Retries", Unit: whole, Width: 90},
			cluster, job,
		},
	}
}

// findings are the severities of the worst finding of a part.
var findings = append(slices.Clone(severities[:3]), word{Value: "0", Text: "none", Colour: good})

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
		line("8 * ("+lowest(5, perPort, throughput)+")", portName),
		line("8 * quantile(0.5, "+throughput+")", "median")).Or("unknown: the job has no port in this time range")
	p.Ways, p.States = ofHost, []word{{Value: "median", Text: "", Colour: good}}
	return p
}

// jobPauses draws the pauses of the ports of the job.
func jobPauses() panel {
	of := func(direction string) string {
		return onPorts(atMostAll(maxBy(perPort, hosts.Rate("rdma_port_pfc_pause_seconds_total",
			`direction="`+direction+`"`))))
	}
	p := graph("Time paused",
		"Share of the time in which a port of the job was paused (PFC), the five highest of each direction above 0.1%. Sending: this host does not drain what it receives. Receiving: another one does not. "+
			"The lines are the limits of RDMASlowReceiver and RDMAPFCStormSource (sending).", "percentunit", 12,
		line(above("0.001", 5, perPort, of("transmit")), "sends "+portName),
		line(above("0.001", 5, perPort, of("receive")), "receives "+portName),
		noneAbove(onPorts(maxBy(perPort, hosts.Rate("rdma_port_pfc_pause_seconds_total"))), "0.001",
			"none of {{of}} ports above 0.1%")).
		Or("blind: 0 ports of the job measure pause (PFC)")
	p.Max, p.Ways, p.Colours = share, ofHost, thresholds("transparent", step{From: limitSlowReceiver, Colour: warning},
		step{From: limitStormSource, Colour: bad})
	return p
}

// noneAbove is a line at 0 where something was measured and nothing exceeds least over the range. The legend has the
// number of series as of.
func noneAbove(expr, least, legend string) query {
	return line(
		fmt.Sprintf(`clamp_max(0 * count_values("of", count(%s)), 0) unless on () ((%s) > %s)`, expr, overRange(expr),
			least), legend,
	)
}

func jobErrors() []panel {
	rising := func(title, text string, all ...counter) panel {
		var parts []string
		for _, c := range all {
			parts = append(parts, labelled("counter", c.text, sumBy(perPort, hosts.Increase(c.metric))))
		}
		found := onPorts(strings.Join(parts, " or "))
		p := graph(title, text, whole, 8,
			line("("+found+") > 0", "{{counter}} "+portName), noneAbove(found, "0", "none, {{of}} counters read")).
			Or("blind: 0 ports of the job expose these counters")
		p.Ways, p.Points = ofHost, few
		return p
	}
	retried := onPorts(perMillion(perPort, hosts.SumOf(perPort, retransmissions...),
		hosts.Rate("rdma_port_transmit_packets_total")))
	retries := graph("Retries",
		"Events that made a port of the job retransmit, for each million packets sent; the ten highest. The line is the limit of RDMARetransmissions.", "ppm", 8,
		line(highest(10, perPort, retried), portName)).
		Or("0 ports of the job send 1000 packets/s, or none counts retransmissions")
	retries.Ways, retries.Points, retries.Colours = ofHost, few, thresholds("transparent", step{
		From:   limitRetransmissions,
		Colour: warning,
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
		hosts.Of("rdma_gdr_gpu_transport_info"))
	return panel{
		Title: "GPUs of the job", Unit: "none", Width: 14, Height: 9, View: table, Sort: "Transport",
		NoValue: "no GPU of the job is known: it has none, or processes are not read",
		Text:    "GPUs of the job, at most 400: the transport of their data to other hosts and why. Staging and TCP slow the job down; unknown is not well.",
		Queries: []query{{Expr: top(400, "("+known+") and on ("+perGPU+") "+usedGPUs)}},
		Columns: []column{
			{From: "A", Title: "Transport", Words: transports, Width: 90},
			instance, gpu, hidden("UUID"),
			{From: "state", Title: "State", Width: 90},
			{From: "reason", Title: "Reason", Width: 170},
			{From: "nccl_version", Title: "NCCL", Width: 80},
			{From: "command", Title: "Command", Width: 100},
			cluster, job,
		},
	}
}

// jobSettings counts the hosts of the job by settings of NCCL that differ from what is wanted, and by versions.
func jobSettings() panel {
	wanted := "count by (setting, value) (" + maxBy(perHost+", setting, value", hosts.Of("rdma_job_setting_info",
		`workload=~".+/$workload"`)) + ")"
	version := "count by (value) (" + maxBy(perHost+", value", `label_replace(`+hosts.Of("rdma_gdr_gpu_transport_info",
		`workload=~".+/$workload"`, `nccl_version!=""`)+
		`, "value", "$1", "nccl_version", "(.*)")`) + ")"
	return panel{
		Title: "NCCL settings and versions", Unit: "none", Width: 10, Height: 9, View: table, Sort: "-Hosts",
		NoValue: "unknown: the environment of the job is not read",
		Text: "Settings of NCCL in the job that differ from what is wanted of them, and the versions of NCCL, by the number of hosts that have them, the rarest first. " +
			"A setting or version on some hosts only is a fault of the launch.",
		Queries: []query{{Expr: wanted + " or " + labelled("setting", "NCCL version", version)}},
		Columns: []column{
			{From: "setting", Title: "Setting", Width: 200},
			{From: "value", Title: "Value", Width: 180},
			{From: "A", Title: "Hosts", Width: 70},
		},
	}
}
