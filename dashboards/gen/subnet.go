package main

import (
	"slices"
	"strings"
)

// subnet is an InfiniBand fabric as an exporter in fabric mode sweeps it: switches, the links between them and to
// hosts, subnet managers.
func subnet() board {
	return board{
		Name: "subnet", Title: "InfiniBand subnet", From: "now-3h", Refresh: "1m",
		Events:  fabricOf.Began("critical|warning"),
		Text:    "Which switch or link of this InfiniBand fabric is at fault, and where is it congested?",
		Choices: []choice{fabricClusters, fabricJobs, oneFabric, switches, books},
		Rows: []row{
			{Title: "Faults and alerts", Panels: append(subnetCounts(), subnetAlerts(), wrongLinks()), Closed: false},
			{Title: "Traffic", Panels: append(subnetTraffic(), leafTable(), waitingPorts(), creditLoops()), Closed: false},
			{Title: "Switches", Panels: append([]panel{switchTable()}, switchLines()...), Closed: false},
			{Title: "Links", Panels: []panel{linkTable(), linkErrors(), linkStates(), saturatedCounters()}, Closed: false},
			{Title: "Bit errors", Panels: fabricBER(), Closed: false},
			{Title: "Subnet managers and sweeps", Panels: subnetSelf(), Closed: true},
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
	chosenLinks = maxBy(ofLink, fabricOf.Of("rdma_fabric_link_info", `end="1"`, `node=~"$switch"`)+" or "+fabricOf.Of("rdma_fabric_link_info", `end="1"`, `neighbour=~"$switch"`))
	chosenPorts = maxBy(ofLink, fabricOf.Of("rdma_fabric_link_info", `node=~"$switch"`)) // of links between chosen switches both ends
	chosen      = maxBy(perNode+", node", fabricOf.Of("rdma_fabric_node_info", `node_type="switch"`, `node=~"$switch"`))
)

// What may be wrong with a link, by its ports.
var (
	gone = maxBy(ofLink, fabricOf.Of("rdma_fabric_link_missing"))
	// By their own names: the port may have another link.
	chosenGone = maxBy(ofLink, fabricOf.Of("rdma_fabric_link_missing", `end!="2"`, `node=~"$switch"`)+" or "+
		fabricOf.Of("rdma_fabric_link_missing", `end!="2"`, `neighbour=~"$switch"`))
	apart    = maxBy(perLink, fabricOf.Of("rdma_fabric_link_settings_differ")) + " == 1"
	degraded = "(" + maxBy(perLink, fabricOf.Of("rdma_fabric_port_rate_bytes_per_second")) + " < 0.99 * " +
		maxBy(perLink, fabricOf.Of("rdma_fabric_link_enabled_rate_bytes_per_second")) +
		" or " + maxBy(perLink, fabricOf.Of("rdma_fabric_port_width_lanes")) + " < " + maxBy(perLink,
		fabricOf.Of("rdma_fabric_link_enabled_width_lanes")) +
		" or " + maxBy(perLink, fabricOf.Of("rdma_fabric_port_fdr10")) + " == 0 or " +
		maxBy(perLink, fabricOf.Of("rdma_fabric_port_rate_bytes_per_second")) + " < 1.04 * " +
		maxBy(perLink, fabricOf.Of("rdma_fabric_link_supported_rate_bytes_per_second")) + " / clamp_min(" +
		maxBy(perLink, fabricOf.Of("rdma_fabric_link_supported_width_lanes")) + ", 4) and on (" + perLink + ") " +
		maxBy(perLink, uplinks) + ")"
	uplinks = fabricOf.Of("rdma_fabric_link_info") + " and on (" + perHost + ", neighbour_guid) " +
		`label_replace(` + fabricOf.Of("rdma_fabric_node_info", `node_type="switch"`) +
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
	atSwitch = column{From: "node", Title: "Switch", Width: 150, Ways: []way{toSwitch(sameJob, "${fabric}", cell)}}
	aGUID    = column{From: "node_guid", Title: "Node GUID", Width: 180}
)

// swept returns a count while the last sweep is not older than RDMAFabricUnseen allows.
func swept(expr string) string {
	return "(" + expr + ") and on () (time() - max(" + fabricOf.Of("rdma_fabric_sweep_timestamp_seconds") +
		") < 600 + 2 * max(" + fabricOf.Of("rdma_fabric_sweep_interval_seconds") + "))"
}

func subnetCounts() []panel {
	links := fabricOf.Of("rdma_fabric_links")
	unreached := maxBy(perNode, fabricOf.Of("rdma_fabric_node_reachable")) + " == 0 and on (" + perNode + ") " +
		maxBy(perNode, fabricOf.Of("rdma_fabric_node_info", `node_type="switch"`))
	wrong := counts("Faults of links", "Are links gone, or slower than both ends allow?", 12,
		count{
			Title: "Gone", Text: "links of the chosen switches that an earlier sweep found and the last one did not; after a planned removal: rdma_exporter accept.",
			Expr: swept(orZero(chosenGone, links)), Colour: bad, Of: "max(" + links + ")",
		},
		count{
			Title: "Degraded", Text: "links below the rate or width that both ends have enabled, and links between switches at a quarter of what both support.",
			Expr: swept(orZero(ofChosenLinks(degraded), links)), Colour: warning, Of: "max(" + links + ")",
		},
		count{
			Title: "Unequal", Text: "links one end of which is set lower than the other, while both support more.",
			Expr: swept(orZero(ofChosenLinks(apart), links)), Colour: notice,
		},
	)
	p := counts("Subnet", "Does the exporter see the whole fabric, and does one subnet manager run it?", 12,
		count{
			Title: "Unreachable", Text: "switches of earlier sweeps that the last sweep did not reach.",
			Expr: swept(orZero(unreached, links)), Colour: bad,
		},
		count{
			Title: "Unanswered", Text: "requests of the last sweep without an answer.",
			Expr: swept("sum(" + fabricOf.Of("rdma_fabric_unanswered") + ")"), Colour: warning,
		},
		count{
			Title: "Managers", Text: "master subnet managers that answer; one is expected.",
			Expr: swept("max(" + fabricOf.Of("rdma_fabric_subnet_managers", `state="master"`) + ")"), Colour: good,
		},
	)
	p.Steps[len(p.Steps)-1] = thresholds(neutral,
		step{From: 0, Colour: bad}, step{From: 1, Colour: good}, step{From: 2, Colour: warning})
	return []panel{wrong, p}
}

// subnetAlerts lists the fabric's alerts with the names of their switches.
func subnetAlerts() panel {
	p := alertTable([]scope{fabricOf}, severities, []column{atSwitch}, hidden("device"), aGUID,
		hidden("instance"))
	names := maxBy(perNode+", node", fabricOf.Of("rdma_fabric_node_info"))
	for i, q := range p.Queries { // an alert of the whole fabric has no switch
		unnamed := strings.Replace(q.Expr, ", node, node_guid", ", node_guid", 1)
		p.Queries[i].Expr = unnamed + " * on (" + perNode + ") group_left (node) " + names + " or label_replace(" + unnamed +
			" unless on (" + perNode + ") " + names + `, "node", "$$__all", "", "")`
	}
	p.Columns[1].Words, p.Height = noDevice, 8
	p = p.OrNone("no alert on $1 links", swept(fabricOf.Of("link:rdma_fabric_port:rate")))
	p.NoValue = "unknown: the last sweep is old, or the rules are not loaded"
	return p
}

func subnetTraffic() []panel {
	bits := func(labels, direction string) string {
		return "8 * " + sumBy(labels, fabricOf.Rate("rdma_fabric_port_"+direction+"_bytes_total"))
	}
	rate := "8 * " + maxBy(perLink, fabricOf.Of("rdma_fabric_port_rate_bytes_per_second"))
	used := atMostAll(byPort(bits(perLink, "transmit") + " / (" + rate + ")"))
	p := graph("Utilisation of links", "What a switch port transmits as a share of its rate; the ten highest. Links near 100% beside idle ones of the same switch: uneven routing.", "percentunit", 12,
		line(highest(10, perLink, used), linkName))
	p.Max, p.Points, p.Ways, p.NoValue = share, few, ofSwitch, "no sweep has finished"
	sent := graph("Throughput by switch", "What all ports of a switch transmit; the ten highest.", "bps", 12,
		line(highest(10, perNode, bySwitch(bits(perNode, "transmit"))), "{{node}}"))
	sent.Points, sent.Ways, sent.NoValue = few, ofSwitch, "no sweep has finished"
	return []panel{sent, p}
}

// leafTable compares what leaf switches have to hosts with what they have to other switches.
func leafTable() panel {
	of := func(metric string) string { return bySwitch(maxBy(perNode, fabricOf.Of("rdma_fabric_leaf_"+metric))) }
	ratio := maxBy(perNode, fabricOf.Of("rdma_fabric_leaf_downlink_bytes_per_second")) + " / (" +
		maxBy(perNode, fabricOf.Of("rdma_fabric_leaf_uplink_bytes_per_second")) + " > 0)"
	return panel{
		Title: "Leaf switches", Unit: "none", Width: 14, Height: 10, View: table, Sort: "Ratio", Rows: "B",
		NoValue: "no switch has links to hosts and to switches",
		Text:    "Data rate of a leaf switch to hosts against that to other switches, links that are up. A ratio above that of its siblings, or missing uplinks: jobs over this switch share less.",
		Queries: []query{
			{Expr: bySwitch(ratio)},
			{Expr: "8 * " + of("downlink_bytes_per_second")},
			{Expr: "8 * " + of("uplink_bytes_per_second")},
			{Expr: "8 * " + of("uplink_expected_bytes_per_second")},
			{Expr: of("uplinks_missing")},
		},
		Columns: []column{
			atSwitch,
			{From: "A", Title: "Ratio", Unit: "none", Missing: "no uplink", Width: 90},
			{From: "E", Title: "Missing", Unit: "none", Colours: []step{{From: 1, Colour: warning}}, Width: 85},
			{From: "B", Title: "To hosts", Unit: "bps", Width: 100},
			{From: "C", Title: "To switches", Unit: "bps", Width: 110},
			{From: "D", Title: "Expected", Unit: "bps", Width: 100},
			aGUID, hidden("instance"), cluster, job,
		},
	}
}

// waitingPorts draws the switch ports that wait the longest.
func waitingPorts() panel {
	p := graph("Waiting for credits", "Share of the time in which a switch port had data to send and none was accepted; the ten highest. A port to a host that waits: the host is slow. "+
		"Ports between switches that wait: look behind them.", "percentunit", 10,
		line(highest(10, perLink,
			atMostAll(byPort(maxBy(perLink, fabricOf.Of("rdma_fabric_port_transmit_wait_ratio"))))), linkName))
	p.Height, p.Max, p.Points, p.Ways, p.NoValue = 10, share, few, ofSwitch,
		"the length of a tick is unknown for these switches, or no sweep has finished"
	return p
}

// creditLoops lists the links of suspected credit loops, in the order in which they wait for each other.
func creditLoops() panel {
	return panel{
		Title: "Suspected credit loops", Unit: "none", Width: grid, Height: 5, View: table, Sort: "-Step",
		NoValue: "none, or the length of a tick is unknown for these switches",
		Text:    "Links between switches in a cycle, each of which waits for the next, without a slow receiver behind them: routes that depend on each other. Nothing moves until the switches discard.",
		Queries: []query{
			{Expr: byEnds(maxBy(perLink+", loop, step", fabricOf.Of("rdma_fabric_credit_loop_suspect")), chosenPorts)},
		},
		Columns: ofLinks(
			column{From: "loop", Title: "Loop", Width: 60}, column{From: "step", Title: "Step", Width: 60}),
	}
}

// ofLinks returns the columns of a table of links that has no value.
func ofLinks(more ...column) []column {
	return slices.Concat(linkColumns, more, []column{hidden("A"), aGUID, hidden("instance"), cluster, job})
}

func saturatedCounters() panel {
	return panel{
		Title: "Saturated counters", Unit: "none", Width: grid, Height: 5, View: table, Sort: "-Switch", NoValue: "none",
		Text: "Counters of 32 bits or fewer at their maximum, which no longer count until they are cleared: their alerts are not evaluated.",
		Queries: []query{
			{Expr: byEnds(maxBy(perLink+", counter", fabricOf.Of("rdma_fabric_port_counter_saturated")), chosenPorts)},
		},
		Columns: ofLinks(column{From: "counter", Title: "Counter"}),
	}
}

func switchTable() panel {
	state := maxBy(perLink, fabricOf.Of("rdma_fabric_port_state_id"))
	counted := func(expr string) string {
		return bySwitch(countBy(perNode, expr) + " or 0 * " + countBy(perNode, state))
	}
	return panel{
		Title: "Ports by switch", Unit: "none", Width: 24, Height: 10, View: table, Sort: "Not ACTIVE",
		NoValue: "unknown: no sweep has finished",
		Text:    "Ports of each switch that have or had a link, with what is wrong. Many degraded links of one switch point to the switch, a single one to its cable. Dropped: discards, VL15, constraint and relay errors.",
		Queries: []query{
			{Expr: counted(state + " == 4")},
			{Expr: counted(state + " != 4")},
			{Expr: counted(gone)},
			{Expr: counted(degraded)},
			{Expr: counted(apart)},
			{Expr: bySwitch("round(" + sumBy(perNode, fabricOf.Risen(badLink...)) + ")")},
			{Expr: bySwitch(maxBy(perNode, fabricOf.Of("rdma_fabric_node_reachable")))},
			{Expr: bySwitch("round(" + sumBy(perNode, fabricOf.Risen(dropsOfFabric...)) + ")")},
		},
		Columns: []column{
			atSwitch,
			{From: "B", Title: "Not ACTIVE", Colours: []step{{From: 1, Colour: warning}}, Width: 110},
			{From: "C", Title: "Links gone", Colours: []step{{From: 1, Colour: bad}}, Width: 95},
			{From: "D", Title: "Degraded", Colours: []step{{From: 1, Colour: warning}}, Width: 90},
			{From: "E", Title: "Unequal settings", Colours: []step{{From: 1, Colour: notice}}, Width: 165},
			{From: "F", Title: "Errors in range", Unit: whole, Width: 160},
			{From: "H", Title: "Dropped in range", Unit: whole, Width: 165},
			{From: "A", Title: "ACTIVE", Width: 80},
			{From: "G", Title: "Reachable", Words: answers, Width: 110},
			aGUID,
			hidden("instance"), cluster, job,
		},
	}
}

func switchLines() []panel {
	waits := sumBy(perNode, fabricOf.Rate("rdma_fabric_port_transmit_wait_ticks_total"))
	by := func(title, text, unit, expr string) panel {
		p := graph(title, text, unit, 12, line(highest(10, perNode, bySwitch(expr)), "{{node}}"))
		p.Points, p.NoValue, p.Ways = few, "none, or no sweep has finished", ofSwitch
		return p
	}
	wait := by("Transmit wait by switch", "Share of each switch in the time that all switches' ports had data to send and no credit; the ten highest. The length of a tick depends on the device, so this is a share and not a time. "+
		"The highest is congested, or next to a port that does not drain what it receives.", "percentunit",
		atMostAll(waits+" / on ("+perHost+") group_left () ("+sumBy(perHost, waits)+" > 0)"))
	wait.Max = share
	return []panel{
		by("Ports not ACTIVE by switch",
			"Ports that have or had a link and are not ACTIVE; the ten switches with the most now.", "none",
			countBy(perNode, maxBy(perLink, fabricOf.Of("rdma_fabric_port_state_id"))+" != 4")),
		by("Degraded links by switch", "Links below the rate or width that both ends have enabled; the ten switches with the most now.", "none", countBy(perNode, degraded)),
		by("Link errors by switch", "Link errors of a switch's ports per second: symbol errors, recoveries, link downed, receive errors, integrity, overruns; the ten highest.", "cps", fabricOf.SumOf(perNode, badLink...)),
		by("Dropped packets by switch", "Packets per second that a switch's ports dropped: discards, VL15, constraint and relay errors; the ten highest. Discards are packets that could not be sent in time: congestion, or a port that hangs.", "pps", fabricOf.SumOf(perNode, dropsOfFabric...)),
		wait,
	}
}

// linkColumns are those of both tables of links.
var linkColumns = []column{
	atSwitch,
	portOf,
	{From: "neighbour", Title: "Neighbour", Width: 170},
	{From: "neighbour_port", Title: "Neighbour port", Width: 150},
}

func wrongLinks() panel {
	at := func(code, expr string) string { return code + " * (" + expr + ") ^ 0" }
	rate := func(metric string) string {
		return byLink("8 * " + maxBy(perLink, fabricOf.Of(metric)) + " and on (" + perLink + ") (" + degraded + " or " +
			apart + ")")
	}
	return panel{
		Title: "Faulty links", Unit: "none", Width: 24, Height: 8, View: table, Sort: "Fault",
		NoValue: "blind: no sweep has finished, or the last one is old",
		Text:    "Links of the chosen switches that are gone, degraded (below what both ends have enabled, or between switches at a quarter of what both support) or set lower at one end, with both ends. A link between switches is one row.",
		Queries: []query{
			{Expr: orNone(at("3", chosenGone)+" or "+byLink(at("2", degraded)+" or "+at("1", apart)), "node",
				"none of $1 links", swept(chosenLinks))},
			{Expr: rate("rdma_fabric_port_rate_bytes_per_second")},
			{Expr: rate("rdma_fabric_link_enabled_rate_bytes_per_second")},
			{Expr: rate("rdma_fabric_link_supported_rate_bytes_per_second")},
		},
		Columns: append(append([]column{{From: "A", Title: "Fault", Words: wrongs, Width: 130}}, linkColumns...),
			column{From: "B", Title: "Rate", Unit: "bps"}, column{From: "C", Title: "Enabled by both ends", Unit: "bps"},
			column{From: "D", Title: "Supported by both ends", Unit: "bps"},
			aGUID, hidden("instance"), cluster, job),
	}
}

func linkTable() panel {
	of := func(metric string) string { return byLink(maxBy(perLink, fabricOf.Of(metric))) }
	rate := func(metric string) string { return byLink("8 * " + maxBy(perLink, fabricOf.Of(metric))) }
	return panel{
		Title: "Links of the chosen switches", Unit: "none", Width: 24, Height: 12, View: table, Sort: "-Rate",
		NoValue: "unknown: no sweep has finished",
		Text:    "All links of the chosen switches with both ends: rate and width, what both ends have enabled and support, and the errors that the named end counted in the time range. Choose a switch: a large fabric has thousands.",
		Queries: []query{
			{Expr: rate("rdma_fabric_port_rate_bytes_per_second")},
			{Expr: of("rdma_fabric_port_width_lanes")},
			{Expr: rate("rdma_fabric_link_enabled_rate_bytes_per_second")},
			{Expr: of("rdma_fabric_link_enabled_width_lanes")},
			{Expr: byLink("round(" + sumBy(perLink, fabricOf.Risen(badLink...)) + ")")},
			{Expr: chosenGone},
			{Expr: rate("rdma_fabric_link_supported_rate_bytes_per_second")},
			{Expr: byLink("round(" + sumBy(perLink, fabricOf.Risen("rdma_fabric_port_transmit_discards_total")) + ")")},
		},
		Columns: append(append([]column{}, linkColumns...),
			column{From: "A", Title: "Rate", Unit: "bps", Width: 85}, column{From: "B", Title: "Lanes", Width: 60},
			column{From: "C", Title: "Enabled", Unit: "bps", Width: 85}, column{From: "D", Title: "Lanes enabled", Width: 118},
			column{From: "G", Title: "Supported", Unit: "bps", Width: 90},
			column{From: "E", Title: "Errors", Unit: whole, Colours: []step{{From: 1, Colour: notice}}, Width: 85},
			column{From: "H", Title: "Discards", Unit: whole, Colours: []step{{From: 1, Colour: notice}}, Width: 85},
			column{From: "F", Title: "Missing", Words: []word{{Value: "1", Text: "gone", Colour: bad}}, Width: 80},
			aGUID, hidden("instance"), cluster, job),
	}
}

func linkErrors() panel {
	p := graph("Errors by link", "Errors that a port counted on its link, per second; the ten highest. They arose on the way in: the cable, or the transceiver at the other end.", "cps", 12,
		line(highest(10, perLink, byPort(fabricOf.SumOf(perLink, badLink...)))+" > 0", linkName))
	p.Height, p.Points, p.NoValue, p.Ways = 10, few, "none, or no sweep has finished", ofSwitch
	return p
}

func linkStates() panel {
	lost := "min_over_time(" + fabricOf.Of("rdma_fabric_port_state_id") + "[$__range] @ end()) != 4"
	return panel{
		Title: "Switch ports that were not ACTIVE", Unit: "none", Width: 12, Height: 10, View: timeline, Words: portStates,
		Ways: ofSwitch, NoValue: "none, or unknown",
		Text: "State over time of ports that were not ACTIVE at some time of the range; at most 50. A gap is unknown.",
		Queries: []query{line(byPort(maxBy(perLink, fabricOf.Of("rdma_fabric_port_state_id"))+" and on ("+perLink+
			") bottomk(50, "+maxBy(perLink, lost)+")"), linkName)},
	}
}

func subnetSelf() []panel {
	node := maxBy(perNode+", node", fabricOf.Of("rdma_fabric_node_info"))
	return []panel{
		{
			Title: "Subnet managers", Unit: "none", Width: 12, Height: 7, View: table, Sort: "State", NoValue: "none answers",
			Text: "Subnet managers that answer. The highest priority becomes master, of equal ones the lowest GUID.",
			Queries: []query{
				{Expr: maxBy(perNode, fabricOf.Of("rdma_fabric_subnet_manager_state_id")) + " * on (" + perNode + ") group_left (node) " + node},
				{Expr: maxBy(perNode, fabricOf.Of("rdma_fabric_subnet_manager_priority")) + " * on (" + perNode + ") group_left (node) " + node},
			},
			Columns: []column{
				{From: "node", Title: "Node"},
				{From: "A", Title: "State", Words: smStates},
				{From: "B", Title: "Priority"},
				aGUID,
				hidden("instance"), cluster, job,
			},
		},
		{
			Title: "Sweeps", Unit: "s", Width: 12, Height: 7, View: lines,
			Text: "Duration of a sweep, age of the last one, and the interval.", NoValue: "unknown",
			Queries: []query{
				line(maxBy(perHost, fabricOf.Of("rdma_fabric_sweep_duration_seconds")), "duration"),
				line("time() - "+maxBy(perHost, fabricOf.Of("rdma_fabric_sweep_timestamp_seconds")), "age"),
				line(maxBy(perHost, fabricOf.Of("rdma_fabric_sweep_interval_seconds")), "interval"),
			},
		},
		graph("Requests",
			"Management datagrams that the exporter sent per second, and those without an answer in time.", "reqps", 12,
			rates(fabricOf, perHost, "", counter{"rdma_fabric_requests_total", "requests"},
				counter{"rdma_fabric_request_timeouts_total", "timeouts"})...),
		graph("Activity of subnet managers",
			"ActCount of each subnet manager per second. A manager that answers and whose count does not rise hangs.", "cps", 12,
			line(sumBy(perNode, fabricOf.Rate("rdma_fabric_subnet_manager_activity_total")), "{{node_guid}}")),
	}
}
