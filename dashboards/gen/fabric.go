package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
)

// fabricBoard is the whole fleet, up to a thousand hosts: what is wrong and what is measured, then what fails next and
// what differs, in a screen and a half; details are collapsed. No panel has a line for each port.
func fabricBoard() board {
	return board{
		Name: "fabric", Title: "Fabric overview", From: "now-6h", Refresh: "1m", Events: hosts.Began("critical"),
		Text:    "Is anything wrong with the RDMA fabric now, and do jobs move data?",
		Choices: []choice{clusters, jobs, allHosts, anyFabricJobs, books},
		Rows: []row{
			{Title: "Now", Panels: fabricNow(), Closed: false},
			{Title: "Jobs, settings, hosts, pause", Panels: slices.Concat([]panel{jobsHit(), drift(), fitOverTime()}, fabricPauses()), Closed: false},
			{Title: "Info alerts", Panels: []panel{infoAlerts()}, Closed: true},
			{Title: "Links, GPUs, maintenance, silence", Panels: slices.Concat(fabricLinks(), fabricHosts()), Closed: true},
			{Title: "Throughput and congestion", Panels: slices.Concat(fabricTraffic(), fabricCongestion()), Closed: true},
			{Title: "Rollouts, versions", Panels: fabricVersions(), Closed: true},
		},
	}
}

// fleet selects alerts of hosts, and those of the whole fleet, which have neither a job nor a host.
const fleet scope = `cluster=~"$cluster",job=~"$job|",instance=~"$hosts"`

// few is how many points a line has that is picked from those of all ports. Rates are taken over the time between two
// points: none of it is missed.
const few = 150

// shortRates are the links that run below the rate that is expected of them, by both.
var shortRates = maxBy(perPort, hosts.Of("rdma_port_rate_bytes_per_second")) +
	" < 0.99 * " + maxBy(perPort, hosts.Of("rdma_port_expected_rate_bytes_per_second")) +
	" and " + maxBy(perPort, hosts.Of("rdma_port_state_id")) + " == 4"

// lostPorts were ACTIVE once and are not now.
var lostPorts = "(" + maxBy(perPort, hosts.Of("rdma_port_state_id")) + " != 4 and " +
	maxBy(perPort, hosts.Of("rdma_port_was_active")) + " == 1)"

func fabricTraffic() []panel {
	bits := func(direction string) string {
		return "8 * sum(" + hosts.Rate("rdma_port_"+direction+"_bytes_total") + ")"
	}
	sent := sumBy(perHost, hosts.Rate("rdma_port_transmit_bytes_total"))
	moving := sent + " > 0.01 * " + sumBy(perHost, hosts.Of("rdma_port_rate_bytes_per_second"))
	busy := countBy(perHost, maxBy(perGPU, hosts.Of("rdma_gdr_gpu_transport")))
	traffic := graph("RDMA throughput of all hosts",
		"RDMA traffic of all ports of the chosen hosts. A step down at one moment is a job that ended or hangs.", "bps", 12,
		line(bits("transmit"), "transmit"), line(bits("receive"), "receive"))
	movers := graph("Hosts that move data", "Hosts that transmit more than 1% of the rate of their ports by RDMA, beside all hosts with RDMA ports and those whose GPUs a process with an RDMA device holds. "+
		"Hosts with a job that move nothing for minutes: the job computes, waits or hangs.", "none", 12,
		line("count("+moving+") or 0 * count("+sent+")", "move data"),
		line("count("+busy+")", "GPUs in use"),
		line("count("+countBy(perHost, hosts.Of("rdma_port_rate_bytes_per_second"))+")", "all with a link"))
	for _, p := range []*panel{&traffic, &movers} {
		p.Height, p.Points, p.List = 9, few, true
	}
	return []panel{traffic, movers}
}

func fabricLinks() []panel {
	lost := "(min_over_time(" + hosts.Of("rdma_port_state_id") + "[$__range] @ end()) != 4 and max_over_time(" +
		hosts.Of("rdma_port_was_active") + "[$__range] @ end()) == 1)"
	of := func(expr string) string { return expr + " and on (" + perPort + ") (" + shortRates + ")" }
	info := func(metric string) string { return of(maxBy(perPort+", source", hosts.Of(metric))) }
	return []panel{
		{
			Title: "Ports that were not ACTIVE", Unit: "none", Width: 24, Height: 9, View: timeline, Words: portStates,
			Ways: ofHost, NoValue: "none, or unknown",
			Text: "State over time of the ports that the exporter has seen ACTIVE and that were in another state at some time of the range; at most 50. " +
				"A gap is unknown: the exporter did not answer, or could not read the port.",
			Queries: []query{line(maxBy(perPort, hosts.Of("rdma_port_state_id")+" and on ("+perPort+") bottomk(50, "+
				maxBy(perPort, lost)+")"), portName)},
		},
		{
			Title: "Links below their expected rate", Unit: "bps", Width: 24, Height: 8, View: table, Sort: "-Rate",
			NoValue: "blind: 0 links have an expected rate",
			Text: "ACTIVE links below their expected rate, with the evidence for it. The capability of the device is evidence " +
				"only where there is no other, and raises no alert. Fewer lanes than expected point at the cable or transceiver, all lanes at a lower speed at the configuration of the other end.",
			Queries: []query{
				{Expr: orNone("8 * ("+shortRates+")", "source", "none of $1 links",
					maxBy(perPort, hosts.Of("rdma_port_expected_rate_bytes_per_second")))},
				{Expr: "8 * (" + of(maxBy(perPort, hosts.Of("rdma_port_expected_rate_bytes_per_second"))) + ")"},
				{Expr: info("rdma_port_expected_rate_info")},
				{Expr: of(maxBy(perPort, hosts.Of("rdma_port_width_lanes")))},
				{Expr: of(maxBy(perPort, hosts.Of("rdma_port_expected_width_lanes")))},
			},
			Columns: []column{
				instance, hca, portOf,
				{From: "A", Title: "Rate", Unit: "bps"},
				{From: "B", Title: "Expected", Unit: "bps"},
				{From: "source", Title: "Evidence", Words: sources},
				{From: "D", Title: "Lanes", Unit: "none"},
				{From: "E", Title: "Lanes expected", Unit: "none"},
				hidden("C"), cluster, job,
			},
		},
	}
}

func fabricPauses() []panel {
	paused := func(title, text, direction string, limits ...step) panel {
		of := maxBy(perHost, hosts.Rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`))
		p := graph(title, text, "percentunit", 8, line(above("0.001", 10, perHost, atMostAll(of)), hostName),
			noneAbove(atMostAll(of), "0.001", nonePaused))
		p.Height, p.Max, p.Ways, p.Points, p.NoValue = 7, share, ofHost, few,
			"blind: 0 hosts measure pause"
		p.Colours = thresholds("transparent", limits...)
		return p
	}
	return []panel{
		paused("Hosts that send pause frames", "Share of the time in which the worst port and priority of a host paused its switch (PFC transmitted), the ten highest. "+
			"A host that stands out is the source: it does not drain what it receives, and its pauses spread. The lines are the limits of RDMASlowReceiver and RDMAPFCStormSource.", "transmit",
			step{From: limitSlowReceiver, Colour: warning}, step{From: limitStormSource, Colour: bad}),
		paused("Hosts that receive pause frames", "Share of the time in which the switch paused the worst port and priority of a host (PFC received), the ten highest. "+
			"Many hosts at the same time are victims of a source elsewhere. The line is the limit of RDMAPFCStormVictim.",
			"receive", step{From: limitPaused, Colour: warning}),
	}
}

func fabricCongestion() []panel {
	ppm := func(title, text string, limit float64, expr string) panel {
		p := graph(title, text, "ppm", 12,
			line(highest(10, perHost, perMillion(perHost, expr, hosts.Rate("rdma_port_transmit_packets_total"))), hostName))
		p.Ways, p.Points, p.Colours = ofHost, few, thresholds("transparent", step{From: limit, Colour: warning})
		return p
	}
	return []panel{
		ppm("Congestion notifications", "CNPs that a host's RDMA ports received and handled, for each million packets that they sent; the ten highest. The line is one per 100 packets. "+
			"Hosts that send fewer than 1000 packets a second are left out.", limitCongestion,
			sumBy(perHost, hosts.Rate("rdma_port_cnp_handled_total"))),
		ppm("Retransmissions", "Events that made a host's RDMA ports retransmit (sequence and implied NAKs, ACK timeouts, adaptive retransmissions), for each million packets sent; the ten highest. "+
			"The line is the limit of RDMARetransmissions for a port.", limitRetransmissions,
			hosts.SumOf(perHost, retransmissions...)),
	}
}

func fabricHosts() []panel {
	indirect := top(200, countBy(perHost+", reason",
		"("+byReason(hosts, "reason")+") and on ("+perGPU+") "+lostDirect))
	all := indirect + " * 0 + on (" + perHost + ") group_left () " +
		countBy(perHost, maxBy(perGPU, hosts.Of("rdma_gdr_gpu_info")))
	down := "(" + hosts.Of("up") + " or " + fabrics.Of("up") + ") == 0"
	return []panel{
		{
			Title: "Hosts that lost GPUDirect", Unit: "none", Width: 9, Height: 9, View: table, Sort: "GPUs",
			NoValue: "blind: 0 GPUs are collected",
			Text: "Hosts with GPUs whose data is staged through host memory although their hardware can do without, by reason; docs/gpudirect.md explains the reasons and remedies. " + jobStages +
				": the path is direct, and the job does not use it. GPUs without a direct path by hardware are left out.",
			Queries: []query{
				{Expr: orNone(indirect, "reason", "none of $1 GPUs", maxBy(perGPU, hosts.Of("rdma_gdr_gpu_direct")))},
				{Expr: all},
			},
			Columns: []column{
				instance,
				{From: "reason", Title: "Reason", Width: 190},
				{From: "A", Title: "GPUs", Width: 60},
				{From: "B", Title: "of", Width: 45},
				cluster, job,
			},
		},
		{
			Title: "Targets that do not answer", Unit: "none", Width: 7, Height: 9, View: table, Sort: "-Host", NoValue: "none",
			Text:    "Targets of the chosen jobs, hosts and fabrics, whose exporter does not answer now. What other panels show of them is from before.",
			Queries: []query{{Expr: maxBy(perHost, down)}},
			Columns: []column{instance, cluster, job, hidden("A")},
		},
		{
			Title: "Announced maintenance", Unit: "none", Width: 8, Height: 9, View: table, Sort: "-Ends", NoValue: "none",
			Text: "Hosts whose maintenance is announced (`rdma_exporter maintenance start`) and its end. Alertmanager inhibits their alerts if it has the shipped configuration.",
			Queries: []query{{Expr: "1000 * (" + maxBy(perHost, hosts.Of("rdma_host_maintenance_end_timestamp_seconds")) +
				" and on (" + perHost + ") " + hosts.Of("rdma_host_maintenance") + " == 1)"}},
			Columns: []column{instance, {From: "A", Title: "Ends", Unit: "dateTimeFromNow"}, cluster, job},
		},
	}
}

func fabricVersions() []panel {
	versions := func(title, text, labels, expr string, columns ...column) panel {
		return panel{
			Title: title, Text: text, Unit: "none", Width: 8, Height: 9, View: table, Sort: "-Number",
			Queries: []query{{Expr: countBy(labels, expr)}},
			Columns: append(columns, column{From: "A", Title: "Number", Width: 80}),
		}
	}
	return []panel{
		rollouts(),
		versions("Exporters", "Exporters by version.", "version, revision",
			maxBy(perHost+", version, revision", hosts.Of("rdma_exporter_build_info")),
			column{From: "version", Title: "Version"}, column{From: "revision", Title: "Revision"}),
		versions("Drivers", "Hosts by the drivers of their RDMA devices and by modules that are not part of the kernel.",
			"module, flavour, version",
			maxBy(perHost+", module, flavour, version", hosts.Of("rdma_driver_info")),
			column{From: "module", Title: "Module", Width: 125}, column{From: "flavour", Title: "Flavour", Width: 80},
			column{From: "version", Title: "Version"}),
		versions("Firmware",
			"RDMA devices, physical functions only, by board and firmware. The rarest come first: a board with several firmware versions has drifted.",
			"hca_type, board_id, firmware_version",
			maxBy(perDevice+", hca_type, board_id, firmware_version", hosts.Of("rdma_device_info", `function_type="physical"`)),
			column{From: "hca_type", Title: "Type", Width: 80}, column{From: "board_id", Title: "Board"},
			column{From: "firmware_version", Title: "Firmware", Width: 125}),
	}
}

// share is the end of an axis of shares.
var share = cog.ToPtr(1.0)
