package main

import "github.com/grafana/grafana-foundation-sdk/go/cog"

// fabric shows the whole fleet, up to a thousand hosts: counts, what is worst, and what is not as it ought to be. No panel has a line
// for each port.
func fabric() board {
	return board{
		name: "fabric", title: "RDMA / Fabric overview", from: "now-6h", refresh: "1m", events: hosts.began("critical"),
		text:      "What is wrong with the RDMA fabric now, on all hosts.",
		variables: variables(clusters, jobs, allHosts),
		rows: []row{
			{"What is wrong now", append(fabricCounts(), fabricAlerts)},
			{"Links", fabricLinks()},
			{"Congestion", fabricCongestion()},
			{"Optics and GPUs", fabricHardware()},
			{"Versions", fabricVersions()},
		},
	}
}

// few is how many points a line has that is picked from those of all ports, at each of which Prometheus has to sort them. Rates are
// taken over the time between two points: none of it is missed.
const few = 150

// shortRates are the links that run below the rate that they ought to have, by both.
var shortRates = maxBy(perPort, hosts.of("rdma_port_rate_bytes_per_second")) +
	" < 0.99 * " + maxBy(perPort, hosts.of("rdma_port_expected_rate_bytes_per_second")) +
	" and " + maxBy(perPort, hosts.of("rdma_port_state_id")) + " == 4"

// lostPorts were ACTIVE once and are not.
var lostPorts = "(" + maxBy(perPort, hosts.of("rdma_port_state_id")) + " != 4 and " + maxBy(perPort, hosts.of("rdma_port_was_active")) + " == 1)"

func fabricCounts() []panel {
	alerts := func(severity string) string {
		return orZero(hosts.firing(severity), hosts.of("ALERTS", `alertname="RDMAWatchdog"`))
	}
	count := countOf(3)
	return []panel{
		count("Hosts not fit", "Hosts that an alert drains, or whose maintenance is announced (instance:rdma_host_fit:state is 0). Hosts whose state is unknown do not count.",
			orZero(hosts.of("instance:rdma_host_fit:state")+" == 0", hosts.of("instance:rdma_host_fit:state")), warning),
		count("Hosts to drain", "Hosts that firing alerts cordon or evict (instance:rdma_host_drain:state). `rdma_exporter check --drain` on the host lists the alerts.",
			orZero(hosts.of("instance:rdma_host_drain:state")+" > 0", hosts.of("instance:rdma_host_drain:state")), bad),
		count("Critical alerts", "Critical alerts of the product that are firing. Not known where the rules are not loaded: RDMAWatchdog, which always fires, is not there either.",
			alerts("critical"), bad),
		count("Warnings", "Alerts of severity warning that are firing. Not known where the rules are not loaded.", alerts("warning"), warning),
		count("Exporters down", "Targets of the chosen jobs whose exporter does not answer. Nothing is known of them.",
			orZero(hosts.of("up")+" == 0", hosts.of("up")), bad),
		count("Ports lost", "Ports that the exporter has seen ACTIVE and that are not now. Ports that were never used do not count.",
			orZero(lostPorts, hosts.of("rdma_port_state_id")), bad),
		count("Links degraded", "ACTIVE links that run slower than they ought to, whatever the evidence. Not known where nothing is expected of any link.",
			orZero(shortRates, hosts.of("rdma_port_expected_rate_bytes_per_second")), warning),
		count("No GPUDirect", "GPUs whose data goes through host memory, sending, receiving or both. GPUs of which nobody can tell do not count.",
			orZero(minBy(perGPU, hosts.of("rdma_gdr_gpu_direct"))+" == 0", hosts.of("rdma_gdr_gpu_direct")), warning),
	}
}

var fabricAlerts = alertTable(hosts, 10, instance)

// alertTable lists alerts, the gravest first, with a way to the dashboard of the host unless it is that.
func alertTable(s scope, height uint32, where column) panel {
	rank := "3 * " + s.alerts(`severity="critical"`) + " or 2 * " + s.alerts(`severity="warning"`) + " or " + s.alerts(`severity="info"`)
	since := "1000 * " + s.alerts() + " * ignoring (alertstate) group_left () " + s.of("ALERTS_FOR_STATE")
	return panel{
		title: "Alerts", unit: "none", width: 24, height: height, view: table, sort: "Severity", noValue: "–",
		text: "Alerts of the product that are firing or pending, the gravest first, from the series ALERTS of the Prometheus that judges the rules. " +
			"`rdma_exporter runbook NAME` prints the runbook of an alert. Empty where the rules are not loaded, too: look at the numbers of alerts on the fabric overview.",
		queries: []query{{expr: maxBy(perAlert, rank)}, {expr: maxBy(perAlert, since)}},
		columns: []column{
			{from: "A", title: "Severity", words: severities, width: 90},
			{from: "alertname", title: "Alert", width: 240},
			where, hca, portOf, netdev,
			{from: "priority", title: "Priority", width: 70},
			{from: "direction", title: "Direction"},
			gpu,
			{from: "lane", title: "Lane", width: 60},
			hidden("UUID"),
			{from: "alertstate", title: "State", words: alertStates},
			{from: "B", title: "Since", unit: "dateTimeFromNow"},
			cluster, job,
		},
	}
}

func fabricLinks() []panel {
	lost := "(min_over_time(" + hosts.of("rdma_port_state_id") + "[$__range] @ end()) != 4 and max_over_time(" + hosts.of("rdma_port_was_active") + "[$__range] @ end()) == 1)"
	of := func(expr string) string { return expr + " and on (" + perPort + ") (" + shortRates + ")" }
	info := func(metric string) string { return of(maxBy(perPort+", source", hosts.of(metric))) }
	return []panel{
		{
			title: "Ports that were not ACTIVE", unit: "none", width: 24, height: 9, view: timeline, words: portStates, link: true, noValue: "none",
			text: "State over time of the ports that were in another state than ACTIVE at some time that is shown, and that the exporter has seen ACTIVE; 50 of them at most. " +
				"A gap is a time of which nothing is known: the exporter did not answer, or could not read the port.",
			queries: []query{{maxBy(perPort, hosts.of("rdma_port_state_id")+" and on ("+perPort+") bottomk(50, "+maxBy(perPort, lost)+")"), portName}},
		},
		{
			title: "Slow links and the evidence", unit: "bps", width: 16, height: 9, view: table, sort: "-Rate", noValue: "–",
			text: "ACTIVE links that are slower than they ought to be, with the evidence for what is expected of them. What a device is capable of is evidence " +
				"only where there is no other, and raises no alert. Fewer lanes than expected point at a cable or a module, all lanes at a lower speed at the other end.",
			queries: []query{
				{expr: "8 * (" + shortRates + ")"},
				{expr: "8 * (" + of(maxBy(perPort, hosts.of("rdma_port_expected_rate_bytes_per_second"))) + ")"},
				{expr: info("rdma_port_expected_rate_info")},
				{expr: of(maxBy(perPort, hosts.of("rdma_port_width_lanes")))},
				{expr: of(maxBy(perPort, hosts.of("rdma_port_expected_width_lanes")))},
			},
			columns: []column{
				instance, hca, portOf,
				{from: "A", title: "Rate", unit: "bps"},
				{from: "B", title: "Expected", unit: "bps"},
				{from: "source", title: "Evidence", words: sources},
				{from: "D", title: "Lanes", unit: "none"},
				{from: "E", title: "Lanes expected", unit: "none"},
				hidden("C"), cluster, job,
			},
		},
		{
			title: "Targets that do not answer", unit: "none", width: 8, height: 9, view: table, sort: "Host", noValue: "–",
			text:    "Targets of the chosen jobs whose exporter does not answer now. What other panels show of them is from before.",
			queries: []query{{expr: maxBy(perHost, hosts.of("up")+" == 0")}},
			columns: []column{instance, cluster, job, {from: "A", title: ""}},
		},
	}
}

func fabricCongestion() []panel {
	paused := func(direction string) []query {
		return []query{{top(30, maxBy(perHost, hosts.rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`))) + " > 0.01", hostName}}
	}
	return []panel{
		{
			title: "Hosts that pause their switch", unit: "percentunit", width: 12, height: 10, view: rows, queries: paused("transmit"), noValue: "none above 1 %",
			text: "Share of the time in which the worst port and priority of a host paused its switch (PFC sent), of the 30 worst hosts at each moment, from 1 % on. " +
				"A host that stands out here is a source: it does not take what it is sent, and its pauses spread.",
		},
		{
			title: "Hosts that their switch pauses", unit: "percentunit", width: 12, height: 10, view: rows, queries: paused("receive"), noValue: "none above 1 %",
			text: "Share of the time in which the worst port and priority of a host was paused by its switch (PFC received), of the 30 worst hosts at each moment, from 1 % on. " +
				"Many at once are victims of something elsewhere.",
		},
		{
			title: "Congestion notifications", unit: "ppm", width: 12, height: 9, view: lines, link: true, points: few,
			text: "CNPs that a host's RDMA ports were told to slow down by, for each million packets that they sent; the ten most. RDMACongestion looks at a port from 1 %, 10000 per million, on. " +
				"Hosts that send fewer than 1000 packets a second are left out.",
			queries: []query{{top(10, perMillion(perHost, sumBy(perHost, hosts.rate("rdma_port_cnp_handled_total")), hosts.rate("rdma_port_transmit_packets_total"))), hostName}},
		},
		{
			title: "Retransmissions", unit: "ppm", width: 12, height: 9, view: lines, link: true, points: few,
			text: "Events that made a host's RDMA ports send again (sequence and implied NAKs, time-outs, adaptive retransmissions), for each million packets sent; the ten most. " +
				"RDMARetransmissions looks at a port from 100 per million on.",
			queries: []query{{top(10, perMillion(perHost, hosts.sumOf(perHost, retransmissions...), hosts.rate("rdma_port_transmit_packets_total"))), hostName}},
		},
	}
}

func fabricHardware() []panel {
	indirect := top(200, countBy(perHost+", reason", maxBy(perGPU+", reason", hosts.of("rdma_gdr_gpu_info", `reason!~"direct.*"`))))
	all := indirect + " * 0 + on (" + perHost + ") group_left () " + countBy(perHost, maxBy(perGPU, hosts.of("rdma_gdr_gpu_info")))
	return []panel{
		nearestAlarm(hosts, 12, 10, instance),
		{
			title: "Hosts with GPUs that are not direct", unit: "none", width: 12, height: 10, view: table, sort: "GPUs", noValue: "–",
			text: "Hosts with GPUs whose data does not go to a NIC directly, or of which that cannot be told, by reason; docs/gpudirect.md has the reasons in words and what to do. " +
				"Hosts that are direct throughout are not listed.",
			queries: []query{{expr: indirect}, {expr: all}},
			columns: []column{instance, {from: "reason", title: "Reason", width: 240}, {from: "A", title: "GPUs"}, {from: "B", title: "of"}, cluster, job},
		},
	}
}

func fabricVersions() []panel {
	versions := func(title, text, labels, expr string, columns ...column) panel {
		return panel{
			title: title, text: text, unit: "none", width: 8, height: 9, view: table, sort: "-Number", queries: []query{{expr: countBy(labels, expr)}},
			columns: append(columns, column{from: "A", title: "Number", width: 80}),
		}
	}
	return []panel{
		versions("Exporters", "Exporters by version.", "version, revision",
			maxBy(perHost+", version, revision", hosts.of("rdma_exporter_build_info")),
			column{from: "version", title: "Version"}, column{from: "revision", title: "Revision"}),
		versions("Drivers", "Hosts by drivers and modules that are not the kernel's own, and by the drivers of their RDMA devices.", "module, flavour, version",
			maxBy(perHost+", module, flavour, version", hosts.of("rdma_driver_info")),
			column{from: "module", title: "Module"}, column{from: "flavour", title: "Flavour"}, column{from: "version", title: "Version"}),
		versions("Firmware", "RDMA devices, functions of the hardware and not virtual ones, by board and firmware. The rarest come first: a board with more than one firmware is a drift.",
			"hca_type, board_id, firmware_version",
			maxBy(perDevice+", hca_type, board_id, firmware_version", hosts.of("rdma_device_info", `function_type="physical"`)),
			column{from: "hca_type", title: "Type"}, column{from: "board_id", title: "Board"}, column{from: "firmware_version", title: "Firmware"}),
	}
}

// share is the end of an axis of shares.
var share = cog.ToPtr(1.0)
