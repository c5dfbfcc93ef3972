package main

import (
	"slices"
	"strings"
)

// subnet is an InfiniBand fabric as an exporter in fabric mode sweeps it: switches, the links between them and to
// hosts, subnet managers.
func subnet() board {
	return board{
		name: "subnet", title: "InfiniBand subnet", from: "now-3h", refresh: "1m",
		events:  fabricOf.began("critical|warning"),
		text:    "Which switch or link of this InfiniBand fabric is at fault, and where is it congested?",
		choices: []choice{fabricClusters, fabricJobs, oneFabric, switches, books},
		rows: []row{
			{"Faults and alerts", append(subnetCounts(), subnetAlerts(), wrongLinks()), false},
			{"Traffic", append(subnetTraffic(), leafTable(), waitingPorts(), creditLoops()), false},
			{"Switches", append([]panel{switchTable()}, switchLines()...), false},
			{"Links", []panel{linkTable(), linkErrors(), linkStates(), saturatedCounters()}, false},
			{"Bit errors", fabricBER(), false},
			{"Subnet managers and sweeps", subnetSelf(), true},
		},
	}
}

// Label sets of a fabric's series.
const (
	perNode = perHost + ", node_guid"
	perLink = perNode + ", port" // the port of the switch that has the series
	ofLink  = perLink + ", node, neighbour, neighbour_port"
)

const linkName = "{{node}}/{{port}} to {{neighbour}}/{{neighbour_port}}"

// badLink are the counters of a bad link.
var badLink = []string{
	"rdma_fabric_port_symbol_errors_total", "rdma_fabric_port_link_error_recoveries_total",
	"rdma_fabric_port_link_downed_total", "rdma_fabric_port_receive_errors_total",
	"rdma_fabric_port_local_link_integrity_errors_total", "rdma_fabric_port_excessive_buffer_overrun_errors_total",
}

// dropsOfFabric are the counters of packets that a port dropped.
var dropsOfFabric = []string{
	"rdma_fabric_port_transmit_discards_total", "rdma_fabric_port_vl15_dropped_total",
	"rdma_fabric_port_transmit_constraint_errors_total",
	"rdma_fabric_port_receive_constraint_errors_total", "rdma_fabric_port_receive_switch_relay_errors_total",
}

// The chosen links and switches, with their names. A link between switches has one end here.
var (
	chosenLinks = maxBy(ofLink, fabricOf.of("rdma_fabric_link_info", `end="1"`, `node=~"$switch"`)+" or "+fabricOf.of("rdma_fabric_link_info", `end="1"`, `neighbour=~"$switch"`))
	chosenPorts = maxBy(ofLink, fabricOf.of("rdma_fabric_link_info", `node=~"$switch"`)) // of links between chosen switches both ends
	chosen      = maxBy(perNode+", node", fabricOf.of("rdma_fabric_node_info", `node_type="switch"`, `node=~"$switch"`))
)

// What may be wrong with a link, by its ports.
var (
	gone = maxBy(ofLink, fabricOf.of("rdma_fabric_link_missing"))
	// By their own names: the port may have another link.
	chosenGone = maxBy(ofLink, fabricOf.of("rdma_fabric_link_missing", `end!="2"`, `node=~"$switch"`)+" or "+
		fabricOf.of("rdma_fabric_link_missing", `end!="2"`, `neighbour=~"$switch"`))
	apart    = maxBy(perLink, fabricOf.of("rdma_fabric_link_settings_differ")) + " == 1"
	degraded = "(" + maxBy(perLink, fabricOf.of("rdma_fabric_port_rate_bytes_per_second")) + " < 0.99 * " +
		maxBy(perLink, fabricOf.of("rdma_fabric_link_enabled_rate_bytes_per_second")) +
		" or " + maxBy(perLink, fabricOf.of("rdma_fabric_port_width_lanes")) + " < " + maxBy(perLink,
		fabricOf.of("rdma_fabric_link_enabled_width_lanes")) +
		" or " + maxBy(perLink, fabricOf.of("rdma_fabric_port_fdr10")) + " == 0 or " +
		maxBy(perLink, fabricOf.of("rdma_fabric_port_rate_bytes_per_second")) + " < 1.04 * " +
		maxBy(perLink, fabricOf.of("rdma_fabric_link_supported_rate_bytes_per_second")) + " / clamp_min(" +
		maxBy(perLink, fabricOf.of("rdma_fabric_link_supported_width_lanes")) + ", 4) and on (" + perLink + ") " +
		maxBy(perLink, uplinks) + ")"
	uplinks = fabricOf.of("rdma_fabric_link_info") + " and on (" + perHost + ", neighbour_guid) " +
		`label_replace(` + fabricOf.of("rdma_fabric_node_info", `node_type="switch"`) +
		`, "neighbour_guid", "$1", "node_guid", "(.*)")`
)

func ofChosenLinks(expr string) string { return expr + " and on (" + perLink + ") " + chosenLinks }

// bySwitch names the switches that values are of.
func bySwitch(expr string) string {
	return "(" + expr + ") * on (" + perNode + ") group_left (node) " + chosen
}

// byLink names both ends of the chosen links that values are of, byPort those of chosen ports.
func byLink(expr string) string { return byEnds(expr, chosenLinks) }
func byPort(expr string) string { return byEnds(expr, chosenPorts) }

func byEnds(expr, names string) string {
	return "(" + expr + ") * on (" + perLink + ") group_left (node, neighbour, neighbour_port) " + names
}

// atSwitch names a switch, and aGUID a node.
var (
	atSwitch = column{from: "node", title: "Switch", width: 150, ways: []way{toSwitch(sameJob, "${fabric}", cell)}}
	aGUID    = column{from: "node_guid", title: "Node GUID", width: 180}
)

// swept returns a count while the last sweep is not older than RDMAFabricUnseen allows.
func swept(expr string) string {
	return "(" + expr + ") and on () (time() - max(" + fabricOf.of("rdma_fabric_sweep_timestamp_seconds") +
		") < 600 + 2 * max(" + fabricOf.of("rdma_fabric_sweep_interval_seconds") + "))"
}

func subnetCounts() []panel {
	links := fabricOf.of("rdma_fabric_links")
	unreached := maxBy(perNode, fabricOf.of("rdma_fabric_node_reachable")) + " == 0 and on (" + perNode + ") " +
		maxBy(perNode, fabricOf.of("rdma_fabric_node_info", `node_type="switch"`))
	wrong := counts("Faults of links", "Are links gone, or slower than both ends allow?", 12,
		count{
			title: "Gone", text: "links of the chosen switches that an earlier sweep found and the last one did not; after a planned removal: rdma_exporter accept.",
			expr: swept(orZero(chosenGone, links)), colour: bad, of: "max(" + links + ")",
		},
		count{
			title: "Degraded", text: "links below the rate or width that both ends have enabled, and links between switches at a quarter of what both support.",
			expr: swept(orZero(ofChosenLinks(degraded), links)), colour: warning, of: "max(" + links + ")",
		},
		count{
			title: "Unequal", text: "links one end of which is set lower than the other, while both support more.",
			expr: swept(orZero(ofChosenLinks(apart), links)), colour: notice,
		},
	)
	p := counts("Subnet", "Does the exporter see the whole fabric, and does one subnet manager run it?", 12,
		count{
			title: "Unreachable", text: "switches of earlier sweeps that the last sweep did not reach.",
			expr: swept(orZero(unreached, links)), colour: bad,
		},
		count{
			title: "Unanswered", text: "requests of the last sweep without an answer.",
			expr: swept("sum(" + fabricOf.of("rdma_fabric_unanswered") + ")"), colour: warning,
		},
		count{
			title: "Managers", text: "master subnet managers that answer; one is expected.",
			expr: swept("max(" + fabricOf.of("rdma_fabric_subnet_managers", `state="master"`) + ")"), colour: good,
		},
	)
	p.steps[len(p.steps)-1] = thresholds(neutral, step{0, bad}, step{1, good}, step{2, warning})
	return []panel{wrong, p}
}

// subnetAlerts lists the fabric's alerts with the names of their switches.
func subnetAlerts() panel {
	p := alertTable([]scope{fabricOf}, severities, []column{atSwitch}, hidden("device"), aGUID,
		hidden("instance"))
	names := maxBy(perNode+", node", fabricOf.of("rdma_fabric_node_info"))
	for i, q := range p.queries { // an alert of the whole fabric has no switch
		unnamed := strings.Replace(q.expr, ", node, node_guid", ", node_guid", 1)
		p.queries[i].expr = unnamed + " * on (" + perNode + ") group_left (node) " + names + " or label_replace(" + unnamed +
			" unless on (" + perNode + ") " + names + `, "node", "$$__all", "", "")`
	}
	p.columns[1].words, p.height = noDevice, 8
	p = p.orNone("no alert on $1 links", swept(fabricOf.of("link:rdma_fabric_port:rate")))
	p.noValue = "unknown: the last sweep is old, or the rules are not loaded"
	return p
}

func subnetTraffic() []panel {
	bits := func(labels, direction string) string {
		return "8 * " + sumBy(labels, fabricOf.rate("rdma_fabric_port_"+direction+"_bytes_total"))
	}
	rate := "8 * " + maxBy(perLink, fabricOf.of("rdma_fabric_port_rate_bytes_per_second"))
	used := atMostAll(byPort(bits(perLink, "transmit") + " / (" + rate + ")"))
	p := graph("Utilisation of links", "What a switch port transmits as a share of its rate; the ten highest. Links near 100% beside idle ones of the same switch: uneven routing.", "percentunit", 12,
		query{highest(10, perLink, used), linkName})
	p.max, p.points, p.ways, p.noValue = share, few, ofSwitch, "no sweep has finished"
	sent := graph("Throughput by switch", "What all ports of a switch transmit; the ten highest.", "bps", 12,
		query{highest(10, perNode, bySwitch(bits(perNode, "transmit"))), "{{node}}"})
	sent.points, sent.ways, sent.noValue = few, ofSwitch, "no sweep has finished"
	return []panel{sent, p}
}

// leafTable compares what leaf switches have to hosts with what they have to other switches.
func leafTable() panel {
	of := func(metric string) string { return bySwitch(maxBy(perNode, fabricOf.of("rdma_fabric_leaf_"+metric))) }
	ratio := maxBy(perNode, fabricOf.of("rdma_fabric_leaf_downlink_bytes_per_second")) + " / (" +
		maxBy(perNode, fabricOf.of("rdma_fabric_leaf_uplink_bytes_per_second")) + " > 0)"
	return panel{
		title: "Leaf switches", unit: "none", width: 14, height: 10, view: table, sort: "Ratio", rows: "B",
		noValue: "no switch has links to hosts and to switches",
		text:    "Data rate of a leaf switch to hosts against that to other switches, links that are up. A ratio above that of its siblings, or missing uplinks: jobs over this switch share less.",
		queries: []query{
			{expr: bySwitch(ratio)},
			{expr: "8 * " + of("downlink_bytes_per_second")},
			{expr: "8 * " + of("uplink_bytes_per_second")},
			{expr: "8 * " + of("uplink_expected_bytes_per_second")},
			{expr: of("uplinks_missing")},
		},
		columns: []column{
			atSwitch,
			{from: "A", title: "Ratio", unit: "none", missing: "no uplink", width: 90},
			{from: "E", title: "Missing", unit: "none", colours: []step{{1, warning}}, width: 85},
			{from: "B", title: "To hosts", unit: "bps", width: 100},
			{from: "C", title: "To switches", unit: "bps", width: 110},
			{from: "D", title: "Expected", unit: "bps", width: 100},
			aGUID, hidden("instance"), cluster, job,
		},
	}
}

// waitingPorts draws the switch ports that wait the longest.
func waitingPorts() panel {
	p := graph("Waiting for credits", "Share of the time in which a switch port had data to send and none was accepted; the ten highest. A port to a host that waits: the host is slow. "+
		"Ports between switches that wait: look behind them.", "percentunit", 10,
		query{highest(10, perLink,
			atMostAll(byPort(maxBy(perLink, fabricOf.of("rdma_fabric_port_transmit_wait_ratio"))))), linkName})
	p.height, p.max, p.points, p.ways, p.noValue = 10, share, few, ofSwitch,
		"the length of a tick is unknown for these switches, or no sweep has finished"
	return p
}

// creditLoops lists the links of suspected credit loops, in the order in which they wait for each other.
func creditLoops() panel {
	return panel{
		title: "Suspected credit loops", unit: "none", width: grid, height: 5, view: table, sort: "-Step",
		noValue: "none, or the length of a tick is unknown for these switches",
		text:    "Links between switches in a cycle, each of which waits for the next, without a slow receiver behind them: routes that depend on each other. Nothing moves until the switches discard.",
		queries: []query{
			{expr: byEnds(maxBy(perLink+", loop, step", fabricOf.of("rdma_fabric_credit_loop_suspect")), chosenPorts)},
		},
		columns: ofLinks(
			column{from: "loop", title: "Loop", width: 60}, column{from: "step", title: "Step", width: 60}),
	}
}

// ofLinks returns the columns of a table of links that has no value.
func ofLinks(more ...column) []column {
	return slices.Concat(linkColumns, more, []column{hidden("A"), aGUID, hidden("instance"), cluster, job})
}

func saturatedCounters() panel {
	return panel{
		title: "Saturated counters", unit: "none", width: grid, height: 5, view: table, sort: "-Switch", noValue: "none",
		text: "Counters of 32 bits or fewer at their maximum, which no longer count until they are cleared: their alerts are not evaluated.",
		queries: []query{
			{expr: byEnds(maxBy(perLink+", counter", fabricOf.of("rdma_fabric_port_counter_saturated")), chosenPorts)},
		},
		columns: ofLinks(column{from: "counter", title: "Counter"}),
	}
}

func switchTable() panel {
	state := maxBy(perLink, fabricOf.of("rdma_fabric_port_state_id"))
	counted := func(expr string) string {
		return bySwitch(countBy(perNode, expr) + " or 0 * " + countBy(perNode, state))
	}
	return panel{
		title: "Ports by switch", unit: "none", width: 24, height: 10, view: table, sort: "Not ACTIVE",
		noValue: "unknown: no sweep has finished",
		text:    "Ports of each switch that have or had a link, with what is wrong. Many degraded links of one switch point to the switch, a single one to its cable. Dropped: discards, VL15, constraint and relay errors.",
		queries: []query{
			{expr: counted(state + " == 4")},
			{expr: counted(state + " != 4")},
			{expr: counted(gone)},
			{expr: counted(degraded)},
			{expr: counted(apart)},
			{expr: bySwitch("round(" + sumBy(perNode, fabricOf.risen(badLink...)) + ")")},
			{expr: bySwitch(maxBy(perNode, fabricOf.of("rdma_fabric_node_reachable")))},
			{expr: bySwitch("round(" + sumBy(perNode, fabricOf.risen(dropsOfFabric...)) + ")")},
		},
		columns: []column{
			atSwitch,
			{from: "B", title: "Not ACTIVE", colours: []step{{1, warning}}, width: 110},
			{from: "C", title: "Links gone", colours: []step{{1, bad}}, width: 95},
			{from: "D", title: "Degraded", colours: []step{{1, warning}}, width: 90},
			{from: "E", title: "Unequal settings", colours: []step{{1, notice}}, width: 165},
			{from: "F", title: "Errors in range", unit: whole, width: 160},
			{from: "H", title: "Dropped in range", unit: whole, width: 165},
			{from: "A", title: "ACTIVE", width: 80},
			{from: "G", title: "Reachable", words: answers, width: 110},
			aGUID,
			hidden("instance"), cluster, job,
		},
	}
}

func switchLines() []panel {
	waits := sumBy(perNode, fabricOf.rate("rdma_fabric_port_transmit_wait_ticks_total"))
	by := func(title, text, unit, expr string) panel {
		p := graph(title, text, unit, 12, query{highest(10, perNode, bySwitch(expr)), "{{node}}"})
		p.points, p.noValue, p.ways = few, "none, or no sweep has finished", ofSwitch
		return p
	}
	wait := by("Transmit wait by switch", "Share of each switch in the time that all switches' ports had data to send and no credit; the ten highest. The length of a tick depends on the device, so this is a share and not a time. "+
		"The highest is congested, or next to a port that does not drain what it receives.", "percentunit",
		atMostAll(waits+" / on ("+perHost+") group_left () ("+sumBy(perHost, waits)+" > 0)"))
	wait.max = share
	return []panel{
		by("Ports not ACTIVE by switch",
			"Ports that have or had a link and are not ACTIVE; the ten switches with the most now.", "none",
			countBy(perNode, maxBy(perLink, fabricOf.of("rdma_fabric_port_state_id"))+" != 4")),
		by("Degraded links by switch", "Links below the rate or width that both ends have enabled; the ten switches with the most now.", "none", countBy(perNode, degraded)),
		by("Link errors by switch", "Link errors of a switch's ports per second: symbol errors, recoveries, link downed, receive errors, integrity, overruns; the ten highest.", "cps", fabricOf.sumOf(perNode, badLink...)),
		by("Dropped packets by switch", "Packets per second that a switch's ports dropped: discards, VL15, constraint and relay errors; the ten highest. Discards are packets that could not be sent in time: congestion, or a port that hangs.", "pps", fabricOf.sumOf(perNode, dropsOfFabric...)),
		wait,
	}
}

// linkColumns are those of both tables of links.
var linkColumns = []column{
	atSwitch,
	portOf,
	{from: "neighbour", title: "Neighbour", width: 170},
	{from: "neighbour_port", title: "Neighbour port", width: 150},
}

func wrongLinks() panel {
	at := func(code, expr string) string { return code + " * (" + expr + ") ^ 0" }
	rate := func(metric string) string {
		return byLink("8 * " + maxBy(perLink, fabricOf.of(metric)) + " and on (" + perLink + ") (" + degraded + " or " +
			apart + ")")
	}
	return panel{
		title: "Faulty links", unit: "none", width: 24, height: 8, view: table, sort: "Fault",
		noValue: "blind: no sweep has finished, or the last one is old",
		text:    "Links of the chosen switches that are gone, degraded (below what both ends have enabled, or between switches at a quarter of what both support) or set lower at one end, with both ends. A link between switches is one row.",
		queries: []query{
			{expr: orNone(at("3", chosenGone)+" or "+byLink(at("2", degraded)+" or "+at("1", apart)), "node",
				"none of $1 links", swept(chosenLinks))},
			{expr: rate("rdma_fabric_port_rate_bytes_per_second")},
			{expr: rate("rdma_fabric_link_enabled_rate_bytes_per_second")},
			{expr: rate("rdma_fabric_link_supported_rate_bytes_per_second")},
		},
		columns: append(append([]column{{from: "A", title: "Fault", words: wrongs, width: 130}}, linkColumns...),
			column{from: "B", title: "Rate", unit: "bps"}, column{from: "C", title: "Enabled by both ends", unit: "bps"},
			column{from: "D", title: "Supported by both ends", unit: "bps"},
			aGUID, hidden("instance"), cluster, job),
	}
}

func linkTable() panel {
	of := func(metric string) string { return byLink(maxBy(perLink, fabricOf.of(metric))) }
	rate := func(metric string) string { return byLink("8 * " + maxBy(perLink, fabricOf.of(metric))) }
	return panel{
		title: "Links of the chosen switches", unit: "none", width: 24, height: 12, view: table, sort: "-Rate",
		noValue: "unknown: no sweep has finished",
		text:    "All links of the chosen switches with both ends: rate and width, what both ends have enabled and support, and the errors that the named end counted in the time range. Choose a switch: a large fabric has thousands.",
		queries: []query{
			{expr: rate("rdma_fabric_port_rate_bytes_per_second")},
			{expr: of("rdma_fabric_port_width_lanes")},
			{expr: rate("rdma_fabric_link_enabled_rate_bytes_per_second")},
			{expr: of("rdma_fabric_link_enabled_width_lanes")},
			{expr: byLink("round(" + sumBy(perLink, fabricOf.risen(badLink...)) + ")")},
			{expr: chosenGone},
			{expr: rate("rdma_fabric_link_supported_rate_bytes_per_second")},
			{expr: byLink("round(" + sumBy(perLink, fabricOf.risen("rdma_fabric_port_transmit_discards_total")) + ")")},
		},
		columns: append(append([]column{}, linkColumns...),
			column{from: "A", title: "Rate", unit: "bps", width: 85}, column{from: "B", title: "Lanes", width: 60},
			column{from: "C", title: "Enabled", unit: "bps", width: 85}, column{from: "D", title: "Lanes enabled", width: 118},
			column{from: "G", title: "Supported", unit: "bps", width: 90},
			column{from: "E", title: "Errors", unit: whole, colours: []step{{1, notice}}, width: 85},
			column{from: "H", title: "Discards", unit: whole, colours: []step{{1, notice}}, width: 85},
			column{from: "F", title: "Missing", words: []word{{"1", "gone", bad}}, width: 80},
			aGUID, hidden("instance"), cluster, job),
	}
}

func linkErrors() panel {
	p := graph("Errors by link", "Errors that a port counted on its link, per second; the ten highest. They arose on the way in: the cable, or the transceiver at the other end.", "cps", 12,
		query{highest(10, perLink, byPort(fabricOf.sumOf(perLink, badLink...))) + " > 0", linkName})
	p.height, p.points, p.noValue, p.ways = 10, few, "none, or no sweep has finished", ofSwitch
	return p
}

func linkStates() panel {
	lost := "min_over_time(" + fabricOf.of("rdma_fabric_port_state_id") + "[$__range] @ end()) != 4"
	return panel{
		title: "Switch ports that were not ACTIVE", unit: "none", width: 12, height: 10, view: timeline, words: portStates,
		ways: ofSwitch, noValue: "none, or unknown",
		text: "State over time of ports that were not ACTIVE at some time of the range; at most 50. A gap is unknown.",
		queries: []query{{byPort(maxBy(perLink, fabricOf.of("rdma_fabric_port_state_id")) + " and on (" + perLink +
			") bottomk(50, " + maxBy(perLink, lost) + ")"), linkName}},
	}
}

func subnetSelf() []panel {
	node := maxBy(perNode+", node", fabricOf.of("rdma_fabric_node_info"))
	return []panel{
		{
			title: "Subnet managers", unit: "none", width: 12, height: 7, view: table, sort: "State", noValue: "none answers",
			text: "Subnet managers that answer. The highest priority becomes master, of equal ones the lowest GUID.",
			queries: []query{
				{expr: maxBy(perNode, fabricOf.of("rdma_fabric_subnet_manager_state_id")) + " * on (" + perNode + ") group_left (node) " + node},
				{expr: maxBy(perNode, fabricOf.of("rdma_fabric_subnet_manager_priority")) + " * on (" + perNode + ") group_left (node) " + node},
			},
			columns: []column{
				{from: "node", title: "Node"},
				{from: "A", title: "State", words: smStates},
				{from: "B", title: "Priority"},
				aGUID,
				hidden("instance"), cluster, job,
			},
		},
		{
			title: "Sweeps", unit: "s", width: 12, height: 7, view: lines,
			text: "Duration of a sweep, age of the last one, and the interval.", noValue: "unknown",
			queries: []query{
				{maxBy(perHost, fabricOf.of("rdma_fabric_sweep_duration_seconds")), "duration"},
				{"time() - " + maxBy(perHost, fabricOf.of("rdma_fabric_sweep_timestamp_seconds")), "age"},
				{maxBy(perHost, fabricOf.of("rdma_fabric_sweep_interval_seconds")), "interval"},
			},
		},
		graph("Requests",
			"Management datagrams that the exporter sent per second, and those without an answer in time.", "reqps", 12,
			rates(fabricOf, perHost, "", counter{"rdma_fabric_requests_total", "requests"},
				counter{"rdma_fabric_request_timeouts_total", "timeouts"})...),
		graph("Activity of subnet managers",
			"ActCount of each subnet manager per second. A manager that answers and whose count does not rise hangs.", "cps", 12,
			query{sumBy(perNode, fabricOf.rate("rdma_fabric_subnet_manager_activity_total")), "{{node_guid}}"}),
	}
}
