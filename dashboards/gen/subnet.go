package main

// subnet shows an InfiniBand fabric as an exporter in fabric mode sees it: switches, the links between them and to hosts, subnet managers.
func subnet() board {
	return board{
		name: "subnet", title: "RDMA / InfiniBand subnet", from: "now-3h", refresh: "1m", events: host.began("critical|warning"),
		text:      "A whole InfiniBand fabric, as rdma_exporter fabric sees it.",
		variables: variables(fabricClusters, fabricJobs, oneFabric, switches),
		rows: []row{
			{"What is wrong now", append(subnetCounts(), subnetAlerts())},
			{"Switches", append([]panel{switchTable()}, switchLines()...)},
			{"Links", []panel{wrongLinks(), linkTable(), linkErrors(), linkStates()}},
			{"Subnet managers and sweeps", subnetSelf()},
		},
	}
}

// Label sets of a fabric's series.
const (
	perNode = perHost + ", node_guid"
	perLink = perNode + ", port" // the port of a switch that it is told at
	ofLink  = perLink + ", node, neighbour, neighbour_port"
)

const linkName = "{{node}}/{{port}} to {{neighbour}}/{{neighbour_port}}"

// The choices. An exporter in fabric mode tells no rdma_exporter_build_info.
var (
	fabricClusters = choice{name: "cluster", label: "Cluster", text: "External label cluster, where there is one.", all: ".*", query: "label_values(rdma_fabric_sweep_failed, cluster)"}
	fabricJobs     = choice{name: "job", label: "Job", text: "Scrape job of the exporters in fabric mode.", query: `label_values(rdma_fabric_sweep_failed{cluster=~"$cluster"}, job)`}
	oneFabric      = choice{name: "instance", label: "Fabric", text: "Exporter in fabric mode, one of those that look at the fabric.", one: true, query: `label_values(rdma_fabric_sweep_failed{cluster=~"$cluster",job=~"$job"}, instance)`}
	switches       = choice{name: "switch", label: "Switch", text: "Switch, by its node description.", all: ".*", query: "label_values(" + host.of("rdma_fabric_node_info", `node_type="switch"`) + ", node)"}
)

// badLink are the counters that say that a link is bad.
var badLink = []string{
	"rdma_fabric_port_symbol_errors_total", "rdma_fabric_port_link_error_recoveries_total", "rdma_fabric_port_link_downed_total",
	"rdma_fabric_port_receive_errors_total", "rdma_fabric_port_local_link_integrity_errors_total", "rdma_fabric_port_excessive_buffer_overrun_errors_total",
}

// Links and switches that are chosen, with their names. Of a link between switches one end is told.
var (
	chosenLinks = maxBy(ofLink, host.of("rdma_fabric_link_info", `end="1"`, `node=~"$switch"`)+" or "+host.of("rdma_fabric_link_info", `end="1"`, `neighbour=~"$switch"`))
	chosenPorts = maxBy(ofLink, host.of("rdma_fabric_link_info", `node=~"$switch"`)) // of links between chosen switches both ends
	chosen      = maxBy(perNode+", node", host.of("rdma_fabric_node_info", `node_type="switch"`, `node=~"$switch"`))
)

// What may be wrong with a link, by its ports.
var (
	gone     = maxBy(perLink, host.of("rdma_fabric_link_missing")) + " == 1"
	apart    = maxBy(perLink, host.of("rdma_fabric_link_settings_differ")) + " == 1"
	degraded = "(" + maxBy(perLink, host.of("rdma_fabric_port_rate_bytes_per_second")) + " < 0.99 * " + maxBy(perLink, host.of("rdma_fabric_link_enabled_rate_bytes_per_second")) +
		" or " + maxBy(perLink, host.of("rdma_fabric_port_width_lanes")) + " < " + maxBy(perLink, host.of("rdma_fabric_link_enabled_width_lanes")) +
		" or " + maxBy(perLink, host.of("rdma_fabric_port_fdr10")) + " == 0)"
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

func subnetCounts() []panel {
	count := countOf(4)
	links := host.of("rdma_fabric_links")
	unreached := maxBy(perNode, host.of("rdma_fabric_node_reachable")) + " == 0 and on (" + perNode + ") " + maxBy(perNode, host.of("rdma_fabric_node_info", `node_type="switch"`))
	managers := count("Master subnet managers", "Master subnet managers that answer: one.", "max("+host.of("rdma_fabric_subnet_managers", `state="master"`)+")", good)
	managers.colours = thresholds(neutral, step{0, bad}, step{1, good}, step{2, warning})
	return []panel{
		count("Links gone", "Links that were there and are not, of the chosen switches, as the last sweep has found. One that was taken away is forgotten by rdma_exporter accept.",
			orZero(ofChosenLinks(gone), links), bad),
		count("Links degraded", "Links that are slower or narrower than both ends have enabled.", orZero(ofChosenLinks(degraded), links), warning),
		count("Links set apart", "Links one end of which is set lower than the other, while both could do more.", orZero(ofChosenLinks(apart), links), notice),
		count("Switches not reached", "Switches that are remembered and that the last sweep has not reached.", orZero(unreached, links), bad),
		count("Without an answer", "What the last sweep has asked for without an answer.", "sum("+host.of("rdma_fabric_unanswered")+")", warning),
		managers,
	}
}

// subnetAlerts lists the fabric's alerts with the names of their switches.
func subnetAlerts() panel {
	labels := perNode + ", port, alertname, alertstate"
	rank := "3 * " + host.alerts(`severity="critical"`) + " or 2 * " + host.alerts(`severity="warning"`) + " or " + host.alerts(`severity="info"`)
	names := maxBy(perNode+", node", host.of("rdma_fabric_node_info"))
	all := maxBy(labels, rank)
	return panel{
		title: "Alerts", unit: "none", width: 24, height: 8, view: table, sort: "Severity", noValue: "–",
		text: "Alerts on this fabric that are firing or pending, the gravest first, from the series ALERTS of the Prometheus that judges rules/central. `rdma_exporter runbook NAME` prints the runbook of an alert. " +
			"Empty where the rules are not loaded, too.",
		queries: []query{{expr: all + " * on (" + perNode + ") group_left (node) " + names + " or " + all + " unless on (" + perNode + ") " + names}},
		columns: []column{
			{from: "A", title: "Severity", words: severities, width: 90},
			{from: "alertname", title: "Alert", width: 280},
			{from: "node", title: "Switch"},
			{from: "port", title: "Port", width: 60},
			{from: "alertstate", title: "State", words: alertStates},
			{from: "node_guid", title: "GUID"},
			hidden("instance"), cluster, job,
		},
	}
}

func switchTable() panel {
	state := maxBy(perLink, host.of("rdma_fabric_port_state_id"))
	counted := func(expr string) string {
		return bySwitch(countBy(perNode, expr) + " or 0 * " + countBy(perNode, state))
	}
	return panel{
		title: "Ports by switch", unit: "none", width: 24, height: 10, view: table, sort: "Not ACTIVE", noValue: "–",
		text: "Ports of each switch that have a link or had one, and what is wrong with them. Many degraded links of one switch point to it, a single one to its cable.",
		queries: []query{
			{expr: counted(state + " == 4")},
			{expr: counted(state + " != 4")},
			{expr: counted(gone)},
			{expr: counted(degraded)},
			{expr: counted(apart)},
			{expr: bySwitch(sumBy(perNode, host.risen(badLink...)))},
			{expr: bySwitch(maxBy(perNode, host.of("rdma_fabric_node_reachable")))},
		},
		columns: []column{
			{from: "node", title: "Switch"},
			{from: "A", title: "ACTIVE"},
			{from: "B", title: "Not ACTIVE", colours: []step{{1, warning}}},
			{from: "C", title: "Links gone", colours: []step{{1, bad}}},
			{from: "D", title: "Degraded", colours: []step{{1, warning}}},
			{from: "E", title: "Set apart", colours: []step{{1, notice}}},
			{from: "F", title: "Errors in the range", unit: "short"},
			{from: "G", title: "Answers", words: answers},
			{from: "node_guid", title: "GUID"},
			hidden("instance"), cluster, job,
		},
	}
}

func switchLines() []panel {
	waits := sumBy(perNode, host.rate("rdma_fabric_port_transmit_wait_ticks_total"))
	return []panel{
		{
			title: "Ports that are not ACTIVE by switch", unit: "none", width: 12, height: 9, view: lines, points: few, noValue: "none",
			text:    "Ports that have a link or had one and are not ACTIVE; the ten switches with the most at each moment.",
			queries: []query{{top(10, bySwitch(countBy(perNode, maxBy(perLink, host.of("rdma_fabric_port_state_id"))+" != 4"))), "{{node}}"}},
		},
		{
			title: "Degraded links by switch", unit: "none", width: 12, height: 9, view: lines, points: few, noValue: "none",
			text:    "Links that are slower or narrower than both ends have enabled; the ten switches with the most at each moment.",
			queries: []query{{top(10, bySwitch(countBy(perNode, degraded))), "{{node}}"}},
		},
		{
			title: "Errors by switch", unit: "cps", width: 12, height: 9, view: lines, points: few, noValue: "none",
			text:    "Errors on links that a switch's ports counted, a second: symbol errors, recoveries, losses of the link, bad packets, integrity, overruns; the ten most.",
			queries: []query{{top(10, bySwitch(host.sumOf(perNode, badLink...))), "{{node}}"}},
		},
		{
			title: "Transmit wait by switch", unit: "percentunit", width: 12, height: 9, view: lines, points: few, noValue: "none",
			text: "Share of each switch in the time that all switches' ports had data to send and no credit; the ten most. How long a tick is is up to the device, so that shares are told and not times. " +
				"Where it gathers is the congestion, or next to who does not take what is sent.",
			queries: []query{{top(10, bySwitch(waits+" / on ("+perHost+") group_left () "+sumBy(perHost, waits))), "{{node}}"}}, max: share,
		},
	}
}

// linkColumns are those of both tables of links.
var linkColumns = []column{
	{from: "node", title: "Switch"},
	{from: "port", title: "Port", width: 60},
	{from: "neighbour", title: "To"},
	{from: "neighbour_port", title: "Its port", width: 70},
}

func wrongLinks() panel {
	at := func(code, expr string) string { return code + " * (" + expr + ") ^ 0" }
	rate := func(metric string) string {
		return byLink("8 * " + maxBy(perLink, host.of(metric)) + " and on (" + perLink + ") (" + gone + " or " + degraded + " or " + apart + ")")
	}
	return panel{
		title: "Links that are not as they ought to be", unit: "none", width: 24, height: 9, view: table, sort: "What", noValue: "–",
		text: "Links of the chosen switches that are gone, degraded or set lower at one end, with both ends. Of a link between switches one row.",
		queries: []query{
			{expr: byLink(at("3", gone) + " or " + at("2", degraded) + " or " + at("1", apart))},
			{expr: rate("rdma_fabric_port_rate_bytes_per_second")},
			{expr: rate("rdma_fabric_link_enabled_rate_bytes_per_second")},
		},
		columns: append(append([]column{{from: "A", title: "What", words: wrongs, width: 140}}, linkColumns...),
			column{from: "B", title: "Rate", unit: "bps"}, column{from: "C", title: "Both ends enable", unit: "bps"},
			column{from: "node_guid", title: "GUID"}, hidden("instance"), cluster, job),
	}
}

func linkTable() panel {
	of := func(metric string) string { return byLink(maxBy(perLink, host.of(metric))) }
	rate := func(metric string) string { return byLink("8 * " + maxBy(perLink, host.of(metric))) }
	return panel{
		title: "Links of the chosen switches", unit: "none", width: 24, height: 12, view: table, sort: "-Rate", noValue: "–",
		text: "All links of the chosen switches with both ends: what the link does, what both ends have enabled, and the errors that the named end counted in the range that is shown. Choose a switch: a large fabric has thousands.",
		queries: []query{
			{expr: rate("rdma_fabric_port_rate_bytes_per_second")},
			{expr: of("rdma_fabric_port_width_lanes")},
			{expr: rate("rdma_fabric_link_enabled_rate_bytes_per_second")},
			{expr: of("rdma_fabric_link_enabled_width_lanes")},
			{expr: byLink(sumBy(perLink, host.risen(badLink...)))},
			{expr: of("rdma_fabric_link_missing")},
		},
		columns: append(append([]column{}, linkColumns...),
			column{from: "A", title: "Rate", unit: "bps"}, column{from: "B", title: "Lanes"},
			column{from: "C", title: "Both ends enable", unit: "bps"}, column{from: "D", title: "Lanes enabled"},
			column{from: "E", title: "Errors in the range", unit: "short", colours: []step{{1, notice}}},
			column{from: "F", title: "Missing", words: []word{{"1", "gone", bad}}},
			column{from: "node_guid", title: "GUID"}, hidden("instance"), cluster, job),
	}
}

func linkErrors() panel {
	return panel{
		title: "Errors by link", unit: "cps", width: 12, height: 10, view: lines, points: few, noValue: "none",
		text:    "Errors that a port counted on its link, a second; the ten most. What is counted came in there: the cable, or the module at the far end.",
		queries: []query{{top(10, byPort(host.sumOf(perLink, badLink...))+" > 0"), linkName}},
	}
}

func linkStates() panel {
	lost := "min_over_time(" + host.of("rdma_fabric_port_state_id") + "[$__range] @ end()) != 4"
	return panel{
		title: "Ports of switches that were not ACTIVE", unit: "none", width: 12, height: 10, view: timeline, words: portStates, noValue: "none",
		text:    "State over time of ports that were in another state than ACTIVE at some time that is shown; 50 at most. A gap is a time of which nothing is known.",
		queries: []query{{byPort(maxBy(perLink, host.of("rdma_fabric_port_state_id")) + " and on (" + perLink + ") bottomk(50, " + maxBy(perLink, lost) + ")"), linkName}},
	}
}

func subnetSelf() []panel {
	node := maxBy(perNode+", node", host.of("rdma_fabric_node_info"))
	return []panel{
		{
			title: "Subnet managers", unit: "none", width: 12, height: 7, view: table, sort: "State", noValue: "–",
			text: "Subnet managers that answer. The highest priority becomes the master, of equals that of the lowest GUID.",
			queries: []query{
				{expr: maxBy(perNode, host.of("rdma_fabric_subnet_manager_state_id")) + " * on (" + perNode + ") group_left (node) " + node},
				{expr: maxBy(perNode, host.of("rdma_fabric_subnet_manager_priority")) + " * on (" + perNode + ") group_left (node) " + node},
			},
			columns: []column{
				{from: "node", title: "Node"},
				{from: "A", title: "State", words: smStates},
				{from: "B", title: "Priority"},
				{from: "node_guid", title: "GUID"},
				instance, cluster, job,
			},
		},
		{
			title: "Sweeps", unit: "s", width: 12, height: 7, view: lines,
			text: "How long a sweep takes, and how old the last one is.",
			queries: []query{
				{maxBy(perHost, host.of("rdma_fabric_sweep_duration_seconds")), "took"},
				{"time() - " + maxBy(perHost, host.of("rdma_fabric_sweep_timestamp_seconds")), "age"},
			},
		},
	}
}
