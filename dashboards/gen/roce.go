package main

import "fmt"

// roce is about the source of pause frames on a lossless fabric, and about congestion control.
func roce() board {
	return board{
		name: "roce", title: "RoCE congestion", from: "now-3h", refresh: "1m",
		events: devices.began("critical|warning",
			`alertname=~"RDMAPFC.+|RDMASlowReceiver|RDMADiscards|RDMATrafficOnLossyPriority|RDMARetr.+"`),
		text:    "Which host or port congests the RoCE fabric, and which ones are its victims?",
		choices: []choice{clusters, jobs, allHosts, hcas(hosts)},
		rows: []row{
			{"Source and victims of pause frames", rocePauses(), false},
			{"Storms of seconds", roceStorms(), false},
			{"ECN and CNP", roceNotification(), false},
			{"Priorities", rocePriorities(), false},
			{"Discards", roceDiscards(), false},
			{"Switches", roceSwitches(), false},
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
	return atMostAll(maxBy(perPriority, devices.rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`)))
}

// verdict of a port and priority: 2 for pausing its switch, 1 for being paused, from the limits of RDMASlowReceiver and
// RDMAPFCStormVictim on.
var (
	verdict = fmt.Sprintf("2 * (%s > bool %v) + (%s > bool %v)", pausedShare("transmit"), limitSlowReceiver, pausedShare("receive"), limitPaused)

	verdictWords = []word{
		{"3", "both", bad}, {"2", "source", bad}, {"1", "victim", warning}, {"0", "neither", "transparent"},
	}
)

func rocePauses() []panel {
	worst := top(50, maxBy(perPriority, devices.rate("rdma_port_pfc_pause_seconds_total"))+" > 0.01")
	of := func(expr string) string { return expr + " and on (" + perPriority + ") " + worst }
	pausing := graph("Ports that send pause frames", "Share of the time in which a port paused its switch (PFC transmitted), the ten highest. The host does not drain what it receives. "+
		"The lines are the limits of RDMASlowReceiver and RDMAPFCStormSource.", "percentunit", 12,
		query{above("0.001", 10, perPriority, pausedShare("transmit")), priorityName},
		noneAbove(pausedShare("transmit"), "0.001", nonePaused))
	victims := graph("Ports that receive pause frames", "Share of the time in which the switch paused a port (PFC received), the ten highest. Something behind the switch does not drain what it receives. "+
		"The line is the limit of RDMAPFCStormVictim.", "percentunit", 12,
		query{above("0.001", 10, perPriority, pausedShare("receive")), priorityName},
		noneAbove(pausedShare("receive"), "0.001", nonePaused))
	for _, p := range []*panel{&pausing, &victims} {
		p.max, p.ways, p.points, p.noValue = share, ofHost, few,
			"blind: 0 ports measure pause"
	}
	pausing.colours = thresholds("transparent", step{limitSlowReceiver, warning}, step{limitStormSource, bad})
	victims.colours = thresholds("transparent", step{limitPaused, warning})
	return []panel{
		roceCounts(),
		{
			title: "Source or victim", unit: "percentunit", width: 21, height: 10, view: table, sort: "Verdict",
			noValue: "no port above 1%: of how many is in the counts",
			text: "Ports and priorities that are paused or pause for 1% of the time or more, the 50 highest. A source sends pause frames for 10% of the time or more; a victim receives them for 30% or more. " +
				"A port that is both may only pass on what it receives. A source that receives less than 1% of its rate hangs; one that receives more is slow. " +
				"Ports of drivers without pause durations are left out: see the pause frames on the dashboard of the host.",
			queries: []query{
				{expr: of("(" + verdict + ")")},
				{expr: of(pausedShare("transmit"))},
				{expr: of(pausedShare("receive"))},
				{expr: of("(" + received() + ")")},
			},
			columns: []column{
				{from: "A", title: "Verdict", unit: "none", words: verdictWords, width: 80},
				instance, hca, portOf,
				{from: "B", title: "Sends pause", unit: "percentunit", width: 110},
				{from: "C", title: "Receives pause", unit: "percentunit", width: 150},
				{from: "D", title: "Receives data, of rate", unit: "percentunit", width: 215},
				{from: "priority", title: "Priority", width: 76},
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
	active := maxBy(perPort, devices.of("rdma_port_state_id")) + " == 4 and on (" + perPort + ") " +
		devices.of("rdma_port_info", `link_layer="Ethernet"`)
	paused := "group by (" + perPort + ") (" + devices.rate("rdma_port_pfc_pause_seconds_total") + ")"
	p := counts("Ports", "Is there a storm, and is pause measured?", 3,
		count{
			title: "Sources", text: "ports that send pause for 10% of the time or more.", colour: bad,
			expr: orZero(over("transmit", limitSlowReceiver), paused), of: "count(" + paused + ")",
		},
		count{
			title: "Victims", text: "ports that receive pause for 30% of the time or more.", colour: warning,
			expr: orZero(over("receive", limitPaused), paused), of: "count(" + paused + ")",
		},
		count{
			title: "Blind", text: "ACTIVE Ethernet ports without pause durations: not measured.", colour: neutral,
			expr: orZero("("+active+") unless on ("+perPort+") "+paused, active), of: "count(" + active + ")",
		},
	)
	p.height = 10
	return p
}

// received returns the RDMA traffic that a port receives as a share of its rate, for each priority with pauses.
func received() string {
	return "0 * " + pausedShare("transmit") + " + on (" + perPort + ") group_left () " +
		atMostAll(sumBy(perPort, devices.rate("rdma_port_receive_bytes_total"))+" / "+
			maxBy(perPort, devices.of("rdma_port_rate_bytes_per_second")))
}

func roceStorms() []panel {
	samples := func(title, text, direction string) panel {
		of := func(bound string) string {
			return "sum(" +
				devices.rate("rdma_port_pfc_paused_sample_ratio_bucket", `direction="`+direction+`"`, `le="`+bound+`"`) + ")"
		}
		p := graph(title, text, "percentunit", 8)
		for _, x := range []struct{ bound, text string }{{"0.1", "10%"}, {"0.5", "50%"}, {"0.9", "90%"}} {
			p.queries = append(p.queries,
				query{atMostAll("1 - " + of(x.bound) + " / (" + of("+Inf") + " > 0)"), "paused > " + x.text + " of a sample"})
		}
		p.max, p.points, p.noValue = share, few, "no port is sampled: none was paused in 10m, or not collected"
		return p
	}
	stalled := maxBy(perPriority+", direction", devices.rate("rdma_port_pfc_stalled_seconds_total")) + " / on (" +
		perNetdev + ") group_left () (" +
		maxBy(perNetdev, devices.rate("rdma_port_pfc_sampled_seconds_total")) + " > 0)"
	stalls := graph("Time in stalls of seconds",
		"Share of the sampled time in which a priority was paused for more than half of a sample of about a second, the ten highest. The line is the limit of RDMAPFCStormSource.", "percentunit", 8,
		query{above("0", 10, perPriority+", direction", atMostAll(stalled)), priorityName + " {{direction}}"})
	stalls.ways, stalls.points, stalls.max, stalls.colours = ofHost, few, share,
		thresholds("transparent", step{limitShortStorms, warning})
	stalls.noValue = "none, or ports are not sampled"
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
			query{
				highest(10, perPort, perMillion(perPort, sumBy(perPort, devices.rate(marked)), devices.rate(packets))), portName,
			})
		p.ways, p.points = ofHost, few
		return p
	}
	handled := ppm("CNPs handled", "CNPs received on which a port reduced its rate, for each million packets sent, the ten highest: it sends into congestion. The line is one per 100 packets.",
		"rdma_port_cnp_handled_total", "rdma_port_transmit_packets_total")
	handled.colours = thresholds("transparent", step{limitCongestion, warning})
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
		bytes := devices.rate("rdma_port_priority_bytes_total", `direction="`+direction+`"`)
		return query{
			"8 * " + sumBy("priority", bytes+" unless on ("+perNetdev+") "+devices.of("rdma_wire_duplicate_info")) + " > 0",
			direction + " priority {{priority}}",
		}
	}
	traffic := graph("Traffic by priority",
		"Traffic of all chosen ports by priority, RDMA and other. RDMA traffic belongs on the priorities with PFC.", "bps", 8,
		bits("transmit"), bits("receive"))
	traffic.points = few
	return []panel{
		traffic,
		{
			title: "PFC", unit: "none", width: 8, height: 9, view: table, sort: "Ports",
			text: "Ports by the priority that has PFC enabled; none: ports without PFC. All compute ports of a lossless fleet have the same priority.",
			queries: []query{
				{expr: countBy("priority", maxBy(perPriority, devices.of("rdma_port_pfc_enabled"))+" == 1") + " or " +
					`label_replace(count(` + maxBy(perNetdev, devices.of("rdma_port_pfc_enabled_priorities")) +
					` == 0), "priority", "none", "", "")`},
			},
			columns: []column{{from: "priority", title: "Priority"}, {from: "A", title: "Ports"}},
		},
		{
			title: "Trust and DCBX", unit: "none", width: 8, height: 9, view: table, sort: "Ports",
			text: "Ports by trust mode (what gives a packet its priority) and by who configures DCB. All compute ports of a fleet are in one row.",
			queries: []query{
				{expr: countBy("trust, dcbx", maxBy(perNetdev+", trust, dcbx", devices.of("rdma_port_qos_info")))},
			},
			columns: []column{{from: "trust", title: "Trust"}, {from: "dcbx", title: "DCBX"}, {from: "A", title: "Ports"}},
		},
		setting("Congestion notification", "Ports by priority and point (notification: sends CNPs, reaction: reduces its rate) and whether ECN is enabled there.", "priority, point",
			devices.of("rdma_port_congestion_notification_enabled"), column{from: "priority", title: "Priority", width: 76},
			column{from: "point", title: "Point"}, column{from: "setting", title: "Enabled", words: onOff, width: 85}),
		setting("Global pause", "Ports by direction and whether global pause (802.3x) is enabled. On a port with PFC it is a misconfiguration.", "direction",
			devices.of("rdma_port_global_pause_enabled"), column{from: "direction", title: "Direction"},
			column{from: "setting", title: "Enabled", words: onOff}),
		setting("DSCP of CNPs", "Ports by DSCP and priority of the CNPs that they send.", "dscp, priority",
			devices.of("rdma_port_cnp_info"),
			column{from: "dscp", title: "DSCP"}, column{from: "priority", title: "Priority"}, hidden("setting")),
	}
}

// onOff are the values of a setting as count_values writes them.
var onOff = []word{{"1", "enabled", neutral}, {"0", "disabled", neutral}}

// setting counts the ports by the value of a setting.
func setting(title, text, labels, matchers string, columns ...column) panel {
	return panel{
		title: title, text: text, unit: "none", width: 8, height: 9, view: table, sort: "Ports", noValue: notHere,
		queries: []query{
			{expr: `count_values by (` + labels + `) ("setting", ` + maxBy(perNetdev+", "+labels, matchers) + ")"},
		},
		columns: append(columns, column{from: "A", title: "Ports"}),
	}
}

func roceDiscards() []panel {
	counted := func(title, text string, width uint32, queries ...query) panel {
		p := graph(title, text, whole, width, queries...)
		p.ways, p.points = ofHost, few
		return p
	}
	of := func(labels, metric string) string {
		return highest(10, labels, sumBy(labels, devices.increase(metric))) + " > 0"
	}
	return []panel{
		counted("Discards by priority", "Received packets dropped between two points of the graph because no buffer was free, the ten highest. None is expected on a priority with PFC: "+
			"the headroom is too small, or the switch ignores pause frames.", 8,
			query{of(perPriority, "rdma_port_priority_discards_total"), "port buffer " + priorityName},
			query{of(perPriority, "rdma_port_priority_buffer_discards_total"), "shared buffer " + priorityName},
			query{of(perPriority, "rdma_port_priority_congestion_discards_total"), "host queue " + priorityName}),
		counted("Discards of ports", "Packets dropped in each direction, and those for which the application had posted no receive buffer, between two points of the graph, the ten highest.", 8,
			query{of(perNetdev+", direction", "rdma_port_discards_total"), "{{direction}} " + portName},
			query{of(perNetdev, "rdma_port_out_of_buffer_total"), "no receive buffer " + portName}),
		counted("Pause watchdog",
			"Times that a NIC had sent pause for too long. With severity error it stopped, and drops what it cannot drain from then on.", 8,
			query{of(perNetdev+", severity", "rdma_port_pause_storm_events_total"), "{{severity}} " + portName}),
	}
}

// roceSwitches draws the counters of switches that rules --switch-metrics records from another exporter.
func roceSwitches() []panel {
	const perSwitchPort = "cluster, switch, switch_port"
	of := scope(`cluster=~"$cluster"`)
	drawn := func(title, text, metric string) panel {
		p := graph(title, text, "pps", 12, query{
			above("0", 10, perSwitchPort, sumBy(perSwitchPort, of.rate(metric))), "{{switch}} {{switch_port}}",
		}, noneAbove(sumBy(perSwitchPort, of.rate(metric)), "0", "none of {{of}} switch ports"))
		p.points, p.noValue = few, "blind: 0 switch ports are read (docs/neighbours.md)"
		return p
	}
	return []panel{
		drawn("Pause frames sent by switches", "PFC frames that a switch port sends, per second, the ten highest: the switch holds up what is attached there, as one of its other ports does not drain. Of switches whose counters another exporter reads.",
			"switch:rdma_switch_pfc_sent:total"),
		drawn("Packets marked by switches", "Packets that a switch port marks (ECN), per second, the ten highest: its queue is where the congestion is. Of switches whose counters another exporter reads.",
			"switch:rdma_switch_ecn_marked:total"),
	}
}
