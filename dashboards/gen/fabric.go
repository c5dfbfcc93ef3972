package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
)

// fabricBoard is the whole fleet, up to a thousand hosts: what is wrong and what is measured, then what fails next and
// what differs, in a screen and a half; details are collapsed. No panel has a line for each port.
func fabricBoard() board {
	return board{
		name: "fabric", title: "Fabric overview", from: "now-6h", refresh: "1m", events: hosts.began("critical"),
		text:    "Is anything wrong with the RDMA fabric now, and do jobs move data?",
		choices: []choice{clusters, jobs, allHosts, anyFabricJobs, books},
		rows: []row{
			{"Now", fabricNow(), false},
			{"Jobs, settings, hosts, pause", slices.Concat([]panel{jobsHit(), drift(), fitOverTime()}, fabricPauses()), false},
			{"Info alerts", []panel{infoAlerts()}, true},
			{"Links, GPUs, maintenance, silence", slices.Concat(fabricLinks(), fabricHosts()), true},
			{"Throughput and congestion", slices.Concat(fabricTraffic(), fabricCongestion()), true},
			{"Rollouts, versions", fabricVersions(), true},
		},
	}
}

// fleet selects alerts of hosts, and those of the whole fleet, which have neither a job nor a host.
const fleet scope = `cluster=~"$cluster",job=~"$job|",instance=~"$hosts"`

// few is how many points a line has that is picked from those of all ports. Rates are taken over the time between two
// points: none of it is missed.
const few = 150

// shortRates are the links that run below the rate that is expected of them, by both.
var shortRates = maxBy(perPort, hosts.of("rdma_port_rate_bytes_per_second")) +
	" < 0.99 * " + maxBy(perPort, hosts.of("rdma_port_expected_rate_bytes_per_second")) +
	" and " + maxBy(perPort, hosts.of("rdma_port_state_id")) + " == 4"

// lostPorts were ACTIVE once and are not now.
var lostPorts = "(" + maxBy(perPort, hosts.of("rdma_port_state_id")) + " != 4 and " +
	maxBy(perPort, hosts.of("rdma_port_was_active")) + " == 1)"

func fabricTraffic() []panel {
	bits := func(direction string) string {
		return "8 * sum(" + hosts.rate("rdma_port_"+direction+"_bytes_total") + ")"
	}
	sent := sumBy(perHost, hosts.rate("rdma_port_transmit_bytes_total"))
	moving := sent + " > 0.01 * " + sumBy(perHost, hosts.of("rdma_port_rate_bytes_per_second"))
	busy := countBy(perHost, maxBy(perGPU, hosts.of("rdma_gdr_gpu_transport")))
	traffic := graph("RDMA throughput of all hosts",
		"RDMA traffic of all ports of the chosen hosts. A step down at one moment is a job that ended or hangs.", "bps", 12,
		query{bits("transmit"), "transmit"}, query{bits("receive"), "receive"})
	movers := graph("Hosts that move data", "Hosts that transmit more than 1% of the rate of their ports by RDMA, beside all hosts with RDMA ports and those whose GPUs a process with an RDMA device holds. "+
		"Hosts with a job that move nothing for minutes: the job computes, waits or hangs.", "none", 12,
		query{"count(" + moving + ") or 0 * count(" + sent + ")", "move data"},
		query{"count(" + busy + ")", "GPUs in use"},
		query{"count(" + countBy(perHost, hosts.of("rdma_port_rate_bytes_per_second")) + ")", "all with a link"})
	for _, p := range []*panel{&traffic, &movers} {
		p.height, p.points, p.list = 9, few, true
	}
	return []panel{traffic, movers}
}

func fabricLinks() []panel {
	lost := "(min_over_time(" + hosts.of("rdma_port_state_id") + "[$__range] @ end()) != 4 and max_over_time(" +
		hosts.of("rdma_port_was_active") + "[$__range] @ end()) == 1)"
	of := func(expr string) string { return expr + " and on (" + perPort + ") (" + shortRates + ")" }
	info := func(metric string) string { return of(maxBy(perPort+", source", hosts.of(metric))) }
	return []panel{
		{
			title: "Ports that were not ACTIVE", unit: "none", width: 24, height: 9, view: timeline, words: portStates,
			ways: ofHost, noValue: "none, or unknown",
			text: "State over time of the ports that the exporter has seen ACTIVE and that were in another state at some time of the range; at most 50. " +
				"A gap is unknown: the exporter did not answer, or could not read the port.",
			queries: []query{{maxBy(perPort, hosts.of("rdma_port_state_id")+" and on ("+perPort+") bottomk(50, "+
				maxBy(perPort, lost)+")"), portName}},
		},
		{
			title: "Links below their expected rate", unit: "bps", width: 24, height: 8, view: table, sort: "-Rate",
			noValue: "blind: 0 links have an expected rate",
			text: "ACTIVE links below their expected rate, with the evidence for it. The capability of the device is evidence " +
				"only where there is no other, and raises no alert. Fewer lanes than expected point at the cable or transceiver, all lanes at a lower speed at the configuration of the other end.",
			queries: []query{
				{expr: orNone("8 * ("+shortRates+")", "source", "none of $1 links",
					maxBy(perPort, hosts.of("rdma_port_expected_rate_bytes_per_second")))},
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
	}
}

func fabricPauses() []panel {
	paused := func(title, text, direction string, limits ...step) panel {
		of := maxBy(perHost, hosts.rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`))
		p := graph(title, text, "percentunit", 8, query{above("0.001", 10, perHost, atMostAll(of)), hostName},
			noneAbove(atMostAll(of), "0.001", nonePaused))
		p.height, p.max, p.ways, p.points, p.noValue = 7, share, ofHost, few,
			"blind: 0 hosts measure pause"
		p.colours = thresholds("transparent", limits...)
		return p
	}
	return []panel{
		paused("Hosts that send pause frames", "Share of the time in which the worst port and priority of a host paused its switch (PFC transmitted), the ten highest. "+
			"A host that stands out is the source: it does not drain what it receives, and its pauses spread. The lines are the limits of RDMASlowReceiver and RDMAPFCStormSource.", "transmit",
			step{limitSlowReceiver, warning}, step{limitStormSource, bad}),
		paused("Hosts that receive pause frames", "Share of the time in which the switch paused the worst port and priority of a host (PFC received), the ten highest. "+
			"Many hosts at the same time are victims of a source elsewhere. The line is the limit of RDMAPFCStormVictim.",
			"receive", step{limitPaused, warning}),
	}
}

func fabricCongestion() []panel {
	ppm := func(title, text string, limit float64, expr string) panel {
		p := graph(title, text, "ppm", 12,
			query{highest(10, perHost, perMillion(perHost, expr, hosts.rate("rdma_port_transmit_packets_total"))), hostName})
		p.ways, p.points, p.colours = ofHost, few, thresholds("transparent", step{limit, warning})
		return p
	}
	return []panel{
		ppm("Congestion notifications", "CNPs that a host's RDMA ports received and handled, for each million packets that they sent; the ten highest. The line is one per 100 packets. "+
			"Hosts that send fewer than 1000 packets a second are left out.", limitCongestion,
			sumBy(perHost, hosts.rate("rdma_port_cnp_handled_total"))),
		ppm("Retransmissions", "Events that made a host's RDMA ports retransmit (sequence and implied NAKs, ACK timeouts, adaptive retransmissions), for each million packets sent; the ten highest. "+
			"The line is the limit of RDMARetransmissions for a port.", limitRetransmissions,
			hosts.sumOf(perHost, retransmissions...)),
	}
}

func fabricHosts() []panel {
	indirect := top(200, countBy(perHost+", reason",
		"("+byReason(hosts, "reason")+") and on ("+perGPU+") "+lostDirect))
	all := indirect + " * 0 + on (" + perHost + ") group_left () " +
		countBy(perHost, maxBy(perGPU, hosts.of("rdma_gdr_gpu_info")))
	down := "(" + hosts.of("up") + " or " + fabrics.of("up") + ") == 0"
	return []panel{
		{
			title: "Hosts that lost GPUDirect", unit: "none", width: 9, height: 9, view: table, sort: "GPUs",
			noValue: "blind: 0 GPUs are collected",
			text: "Hosts with GPUs whose data is staged through host memory although their hardware can do without, by reason; docs/gpudirect.md explains the reasons and remedies. " + jobStages +
				": the path is direct, and the job does not use it. GPUs without a direct path by hardware are left out.",
			queries: []query{
				{expr: orNone(indirect, "reason", "none of $1 GPUs", maxBy(perGPU, hosts.of("rdma_gdr_gpu_direct")))},
				{expr: all},
			},
			columns: []column{
				instance,
				{from: "reason", title: "Reason", width: 190},
				{from: "A", title: "GPUs", width: 60},
				{from: "B", title: "of", width: 45},
				cluster, job,
			},
		},
		{
			title: "Targets that do not answer", unit: "none", width: 7, height: 9, view: table, sort: "-Host", noValue: "none",
			text:    "Targets of the chosen jobs, hosts and fabrics, whose exporter does not answer now. What other panels show of them is from before.",
			queries: []query{{expr: maxBy(perHost, down)}},
			columns: []column{instance, cluster, job, hidden("A")},
		},
		{
			title: "Announced maintenance", unit: "none", width: 8, height: 9, view: table, sort: "-Ends", noValue: "none",
			text: "Hosts whose maintenance is announced (`rdma_exporter maintenance start`) and its end. Alertmanager inhibits their alerts if it has the shipped configuration.",
			queries: []query{{expr: "1000 * (" + maxBy(perHost, hosts.of("rdma_host_maintenance_end_timestamp_seconds")) +
				" and on (" + perHost + ") " + hosts.of("rdma_host_maintenance") + " == 1)"}},
			columns: []column{instance, {from: "A", title: "Ends", unit: "dateTimeFromNow"}, cluster, job},
		},
	}
}

func fabricVersions() []panel {
	versions := func(title, text, labels, expr string, columns ...column) panel {
		return panel{
			title: title, text: text, unit: "none", width: 8, height: 9, view: table, sort: "-Number",
			queries: []query{{expr: countBy(labels, expr)}},
			columns: append(columns, column{from: "A", title: "Number", width: 80}),
		}
	}
	return []panel{
		rollouts(),
		versions("Exporters", "Exporters by version.", "version, revision",
			maxBy(perHost+", version, revision", hosts.of("rdma_exporter_build_info")),
			column{from: "version", title: "Version"}, column{from: "revision", title: "Revision"}),
		versions("Drivers", "Hosts by the drivers of their RDMA devices and by modules that are not part of the kernel.",
			"module, flavour, version",
			maxBy(perHost+", module, flavour, version", hosts.of("rdma_driver_info")),
			column{from: "module", title: "Module", width: 125}, column{from: "flavour", title: "Flavour", width: 80},
			column{from: "version", title: "Version"}),
		versions("Firmware",
			"RDMA devices, physical functions only, by board and firmware. The rarest come first: a board with several firmware versions has drifted.",
			"hca_type, board_id, firmware_version",
			maxBy(perDevice+", hca_type, board_id, firmware_version", hosts.of("rdma_device_info", `function_type="physical"`)),
			column{from: "hca_type", title: "Type", width: 80}, column{from: "board_id", title: "Board"},
			column{from: "firmware_version", title: "Firmware", width: 125}),
	}
}

// share is the end of an axis of shares.
var share = cog.ToPtr(1.0)
