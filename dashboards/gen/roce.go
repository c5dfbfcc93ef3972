package main

import "fmt"

// roce is about the source of pause frames on a lossless fabric, and about congestion control.
func roce() board {
	return board{
		Name: "roce", Title: "RoCE congestion", From: "now-3h", Refresh: "1m",
		Events: devices.Began("critical|warning",
			`alertname=~"RDMAPFC.+|RDMASlowReceiver|RDMADiscards|RDMATrafficOnLossyPriority|RDMARetr.+"`),
		Text:    "Which host or port congests the RoCE fabric, and which ones are its victims?",
		Choices: []choice{clusters, jobs, allHosts, hcas(hosts)},
		Rows: []row{
			{Title: "Source and victims of pause frames", Panels: rocePauses(), Closed: false},
			{Title: "Storms of seconds", Panels: roceStorms(), Closed: false},
			{Title: "ECN and CNP", Panels: roceNotification(), Closed: false},
			{Title: "Priorities", Panels: rocePriorities(), Closed: false},
			{Title: "Discards", Panels: roceDiscards(), Closed: false},
			{Title: "Switches", Panels: roceSwitches(), Closed: false},
		},
	}
}

const (
	nonePaused   = "none of {{of}} above 0.1%"
	perPriority  = perNetdev + ", priority"
	priorityName = portName + " priority {{priority}}"
)

// pausedShare returns the share of the time in which a priority was paused, by either end.
func pausedShare(direction string) string {
	return atMostAll(maxBy(perPriority, devices.Rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`)))
}

// verdict of a port and priority: 2 for pausing its switch, 1 for being paused, from the limits of RDMASlowReceiver and
// RDMAPFCStormVictim on.
var (
	verdict = fmt.Sprintf("2 * (%s > bool %v) + (%s > bool %v)", pausedShare("transmit"), limitSlowReceiver, pausedShare("receive"), limitPaused)

	verdictWords = []word{
		{Value: "3", Text: "both", Colour: bad},
		{Value: "2", Text: "source", Colour: bad},
		{Value: "1", Text: "victim", Colour: warning},
		{Value: "0", Text: "neither", Colour: "transparent"},
	}
)

func rocePauses() []panel {
	worst := top(50, maxBy(perPriority, devices.Rate("rdma_port_pfc_pause_seconds_total"))+" > 0.01")
	of := func(expr string) string { return expr + " and on (" + perPriority + ") " + worst }
	pausing := graph("Ports that send pause frames", "Share of the time in which a port paused its switch (PFC transmitted), the ten highest. The host does not drain what it receives. "+
		"The lines are the limits of RDMASlowReceiver and RDMAPFCStormSource.", "percentunit", 12,
		line(above("0.001", 10, perPriority, pausedShare("transmit")), priorityName),
		noneAbove(pausedShare("transmit"), "0.001", nonePaused))
	victims := graph("Ports that receive pause frames", "Share of the time in which the switch paused a port (PFC received), the ten highest. Something behind the switch does not drain what it receives. "+
		"The line is the limit of RDMAPFCStormVictim.", "percentunit", 12,
		line(above("0.001", 10, perPriority, pausedShare("receive")), priorityName),
		noneAbove(pausedShare("receive"), "0.001", nonePaused))
	for _, p := range []*panel{&pausing, &victims} {
		p.Max, p.Ways, p.Points, p.NoValue = share, ofHost, few,
			"blind: 0 ports measure pause"
	}
	pausing.Colours = sendingLimits
	victims.Colours = thresholds("transparent", step{From: limitPaused, Colour: warning})
	return []panel{
		roceCounts(),
		{
			Title: "Source or victim", Unit: "percentunit", Width: 21, Height: 10, View: table, Sort: "Verdict",
			NoValue: "no port above 1%: of how many is in the counts",
			Text: "Ports and priorities that are paused or pause for 1% of the time or more, the 50 highest. A source sends pause frames for 10% of the time or more; a victim receives them for 30% or more. " +
				"A port that is both may only pass on what it receives. A source that receives less than 1% of its rate hangs; one that receives more is slow. " +
				"Ports of drivers without pause durations are left out: see the pause frames on the dashboard of the host.",
			Queries: []query{
				{Expr: of("(" + verdict + ")")},
				{Expr: of(pausedShare("transmit"))},
				{Expr: of(pausedShare("receive"))},
				{Expr: of("(" + received() + ")")},
			},
			Columns: []column{
				{From: "A", Title: "Verdict", Unit: "none", Words: verdictWords, Width: 80},
				instance, hca, portOf,
				{From: "B", Title: "Sends pause", Unit: "percentunit", Width: 110},
				{From: "C", Title: "Receives pause", Unit: "percentunit", Width: 150},
				{From: "D", Title: "Receives data, of rate", Unit: "percentunit", Width: 215},
				{From: "priority", Title: "Priority", Width: 76},
				netdev,
				cluster, job,
			},
		},
		pausing, victims,
	}
}

// roceCounts is the verdict for all chosen ports, with the number of those that measure pause.
func roceCounts() panel {
	over := func(direction string, limit float64) string {
		return fmt.Sprintf("group by (%s) (%s > %v)", perPort, pausedShare(direction), limit)
	}
	active := maxBy(perPort, devices.Of("rdma_port_state_id")) + " == 4 and on (" + perPort + ") " +
		devices.Of("rdma_port_info", `link_layer="Ethernet"`)
	paused := "group by (" + perPort + ") (" + devices.Rate("rdma_port_pfc_pause_seconds_total") + ")"
	p := counts("Ports", "Is there a storm, and is pause measured?", 3,
		count{
			Title: "Sources", Text: "ports that send pause for 10% of the time or more.", Colour: bad,
			Expr: orZero(over("transmit", limitSlowReceiver), paused), Of: "count(" + paused + ")",
		},
		count{
			Title: "Victims", Text: "ports that receive pause for 30% of the time or more.", Colour: warning,
			Expr: orZero(over("receive", limitPaused), paused), Of: "count(" + paused + ")",
		},
		count{
			Title: "Blind", Text: "ACTIVE Ethernet ports without pause durations: not measured.", Colour: neutral,
			Expr: orZero("("+active+") unless on ("+perPort+") "+paused, active), Of: "count(" + active + ")",
		},
	)
	p.Height = 10
	return p
}

// received returns the RDMA traffic that a port receives as a share of its rate, for each priority with pauses.
func received() string {
	return "0 * " + pausedShare("transmit") + " + on (" + perPort + ") group_left () " +
		atMostAll(sumBy(perPort, devices.Rate("rdma_port_receive_bytes_total"))+" / "+
			maxBy(perPort, devices.Of("rdma_port_rate_bytes_per_second")))
}

func roceStorms() []panel {
	samples := func(title, text, direction string) panel {
		of := func(bound string) string {
			return "sum(" +
				devices.Rate("rdma_port_pfc_paused_sample_ratio_bucket", `direction="`+direction+`"`, `le="`+bound+`"`) + ")"
		}
		p := graph(title, text, "percentunit", 8)
		for _, x := range []struct{ bound, text string }{{"0.1", "10%"}, {"0.5", "50%"}, {"0.9", "90%"}} {
			p.Queries = append(p.Queries,
				line(atMostAll("1 - "+of(x.bound)+" / ("+of("+Inf")+" > 0)"), "paused > "+x.text+" of a sample"))
		}
		p.Max, p.Points, p.NoValue = share, few, "no port is sampled: none was paused in 10m, or not collected"
		return p
	}
	stalled := maxBy(perPriority+", direction", devices.Rate("rdma_port_pfc_stalled_seconds_total")) + " / on (" +
		perNetdev + ") group_left () (" +
		maxBy(perNetdev, devices.Rate("rdma_port_pfc_sampled_seconds_total")) + " > 0)"
	stalls := graph("Time in stalls of seconds",
		"Share of the sampled time in which a priority was paused for more than half of a sample of about a second, the ten highest. The line is the limit of RDMAPFCStormSource.", "percentunit", 8,
		line(above("0", 10, perPriority+", direction", atMostAll(stalled)), priorityName+" {{direction}}"))
	stalls.Ways, stalls.Points, stalls.Max, stalls.Colours = ofHost, few, share,
		thresholds("transparent", step{From: limitShortStorms, Colour: warning})
	stalls.NoValue = "none, or ports are not sampled"
	return []panel{
		samples("Samples with pause sent", "Share of the samples, of about a second each, in which a port sent pause for more than 10%, 50% and 90% of their length, of all chosen ports. "+
			"Lines that are close to each other are storms of seconds, which the average of a scrape interval hides. A port is sampled for 10m after a pause.", "transmit"),
		samples("Samples with pause received", "As before, of samples in which a port received pause.", "receive"),
		stalls,
	}
}

func roceNotification() []panel {
	ppm := func(title, text, marked, packets string) panel {
		p := graph(title, text, "ppm", 8,
			line(
				highest(10, perPort, perMillion(perPort, sumBy(perPort, devices.Rate(marked)), devices.Rate(packets))), portName,
			))
		p.Ways, p.Points = ofHost, few
		return p
	}
	handled := ppm("CNPs handled", "CNPs received on which a port reduced its rate, for each million packets sent, the ten highest: it sends into congestion. The line is one per 100 packets.",
		"rdma_port_cnp_handled_total", "rdma_port_transmit_packets_total")
	handled.Colours = thresholds("transparent", step{From: limitCongestion, Colour: warning})
	return []panel{
		ppm("ECN marks received", "Packets that a switch marked on their way, for each million packets received, the ten highest. Many marks and few CNPs: congestion notification is disabled.",
			"rdma_port_ecn_marked_packets_total", "rdma_port_receive_packets_total"),
		ppm("CNPs sent",
			"CNPs that a port sent in answer to marked packets, for each million packets received, the ten highest: the congestion is on the path to this port.",
			"rdma_port_cnp_sent_total", "rdma_port_receive_packets_total"),
		handled,
	}
}

func rocePriorities() []panel {
	bits := func(direction string) query {
		bytes := devices.Rate("rdma_port_priority_bytes_total", `direction="`+direction+`"`)
		return line(
			"8 * "+sumBy("priority", bytes+" unless on ("+perNetdev+") "+devices.Of("rdma_wire_duplicate_info"))+" > 0",
			direction+" priority {{priority}}",
		)
	}
	traffic := graph("Traffic by priority",
		"Traffic of all chosen ports by priority, RDMA and other. RDMA traffic belongs on the priorities with PFC.", "bps", 8,
		bits("transmit"), bits("receive"))
	traffic.Points = few
	return []panel{
		traffic,
		{
			Title: "PFC", Unit: "none", Width: 8, Height: 9, View: table, Sort: "Ports",
			Text: "Ports by the priority that has PFC enabled; none: ports without PFC. All compute ports of a lossless fleet have the same priority.",
			Queries: []query{
				{Expr: countBy("priority", maxBy(perPriority, devices.Of("rdma_port_pfc_enabled"))+" == 1") + " or " +
					`label_replace(count(` + maxBy(perNetdev, devices.Of("rdma_port_pfc_enabled_priorities")) +
					` == 0), "priority", "none", "", "")`},
			},
			Columns: []column{{From: "priority", Title: "Priority"}, {From: "A", Title: "Ports"}},
		},
		{
			Title: "Trust and DCBX", Unit: "none", Width: 8, Height: 9, View: table, Sort: "Ports",
			Text: "Ports by trust mode (what gives a packet its priority) and by who configures DCB. All compute ports of a fleet are in one row.",
			Queries: []query{
				{Expr: countBy("trust, dcbx", maxBy(perNetdev+", trust, dcbx", devices.Of("rdma_port_qos_info")))},
			},
			Columns: []column{{From: "trust", Title: "Trust"}, {From: "dcbx", Title: "DCBX"}, {From: "A", Title: "Ports"}},
		},
		setting("Congestion notification", "Ports by priority and point (notification: sends CNPs, reaction: reduces its rate) and whether ECN is enabled there.", "priority, point",
			devices.Of("rdma_port_congestion_notification_enabled"), column{From: "priority", Title: "Priority", Width: 76},
			column{From: "point", Title: "Point"}, column{From: "setting", Title: "Enabled", Words: onOff, Width: 85}),
		setting("Global pause", "Ports by direction and whether global pause (802.3x) is enabled. On a port with PFC it is a misconfiguration.", "direction",
			devices.Of("rdma_port_global_pause_enabled"), column{From: "direction", Title: "Direction"},
			column{From: "setting", Title: "Enabled", Words: onOff}),
		setting("DSCP of CNPs", "Ports by DSCP and priority of the CNPs that they send.", "dscp, priority",
			devices.Of("rdma_port_cnp_info"),
			column{From: "dscp", Title: "DSCP"}, column{From: "priority", Title: "Priority"}, hidden("setting")),
	}
}

// onOff are the values of a setting as count_values writes them.
var onOff = []word{{Value: "1", Text: "enabled", Colour: neutral}, {Value: "0", Text: "disabled", Colour: neutral}}

// setting counts the ports by the value of a setting.
func setting(title, text, labels, matchers string, columns ...column) panel {
	return panel{
		Title: title, Text: text, Unit: "none", Width: 8, Height: 9, View: table, Sort: "Ports", NoValue: notHere,
		Queries: []query{
			{Expr: `count_values by (` + labels + `) ("setting", ` + maxBy(perNetdev+", "+labels, matchers) + ")"},
		},
		Columns: append(columns, column{From: "A", Title: "Ports"}),
	}
}

func roceDiscards() []panel {
	counted := func(title, text string, width uint32, queries ...query) panel {
		p := graph(title, text, whole, width, queries...)
		p.Ways, p.Points = ofHost, few
		return p
	}
	of := func(labels, metric string) string {
		return highest(10, labels, sumBy(labels, devices.Increase(metric))) + " > 0"
	}
	return []panel{
		counted("Discards by priority", "Received packets dropped between two points of the graph because no buffer was free, the ten highest. None is expected on a priority with PFC: "+
			"the headroom is too small, or the switch ignores pause frames.", 8,
			line(of(perPriority, "rdma_port_priority_discards_total"), "port buffer "+priorityName),
			line(of(perPriority, "rdma_port_priority_buffer_discards_total"), "shared buffer "+priorityName),
			line(of(perPriority, "rdma_port_priority_congestion_discards_total"), "host queue "+priorityName)),
		counted("Discards of ports", "Packets dropped in each direction, and those for which the application had posted no receive buffer, between two points of the graph, the ten highest.", 8,
			line(of(perNetdev+", direction", "rdma_port_discards_total"), "{{direction}} "+portName),
			line(of(perNetdev, "rdma_port_out_of_buffer_total"), "no receive buffer "+portName)),
		counted("Pause watchdog",
			"Times that a NIC had sent pause for too long. With severity error it stopped, and drops what it cannot drain from then on.", 8,
			line(of(perNetdev+", severity", "rdma_port_pause_storm_events_total"), "{{severity}} "+portName)),
	}
}

// roceSwitches draws the counters of switches that rules --switch-metrics records from another exporter.
func roceSwitches() []panel {
	const perSwitchPort = "cluster, switch, switch_port"
	of := scope(`cluster=~"$cluster"`)
	drawn := func(title, text, metric string) panel {
		p := graph(title, text, "pps", 12, line(
			above("0", 10, perSwitchPort, sumBy(perSwitchPort, of.Rate(metric))), "{{switch}} {{switch_port}}",
		), noneAbove(sumBy(perSwitchPort, of.Rate(metric)), "0", "none of {{of}} switch ports"))
		p.Points, p.NoValue = few, "blind: 0 switch ports are read (docs/neighbours.md)"
		return p
	}
	return []panel{
		drawn("Pause frames sent by switches", "PFC frames that a switch port sends, per second, the ten highest: the switch holds up what is attached there, as one of its other ports does not drain. Of switches whose counters another exporter reads.",
			"switch:rdma_switch_pfc_sent:total"),
		drawn("Packets marked by switches", "Packets that a switch port marks (ECN), per second, the ten highest: its queue is where the congestion is. Of switches whose counters another exporter reads.",
			"switch:rdma_switch_ecn_marked:total"),
	}
}
