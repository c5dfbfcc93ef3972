package main

// roce says who holds the lossless fabric up, and what congestion control does about it.
func roce() board {
	return board{
		name: "roce", title: "RDMA / RoCE congestion", from: "now-3h", refresh: "1m", events: devices.began("critical|warning", `alertname=~"RDMAPFC.+|RDMASlowReceiver|RDMACongestion.*|RDMAGlobalPause.+|RDMALossless.+|RDMATrafficOnLossyPriority|RDMARetr.+|RDMAReceiverNotReady"`),
		text:      "Who pauses whom on RoCE, on which priorities, and what ECN, CNPs and discards say of it.",
		variables: variables(clusters, jobs, allHosts, hcas(hosts)),
		rows: []row{
			{"Pauses", rocePauses()},
			{"Storms shorter than a scrape", roceStorms()},
			{"ECN and CNP", roceNotification()},
			{"Priorities", rocePriorities()},
			{"Discards", roceDiscards()},
		},
	}
}

const (
	perPriority  = perWire + ", priority"
	priorityName = portName + " priority {{priority}}"
)

// paused is the share of the time in which a priority was paused, by either end.
func paused(direction string) string {
	return maxBy(perPriority, devices.rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`))
}

// verdict of a port and priority: 2 for pausing its switch for a tenth of the time, 1 for being paused for three tenths, as the rules
// RDMASlowReceiver and RDMAPFCStormVictim have it.
var (
	verdict      = "2 * (" + paused("transmit") + " > bool 0.1) + (" + paused("receive") + " > bool 0.3)"
	verdictWords = []word{{"3", "both", bad}, {"2", "source", bad}, {"1", "victim", warning}, {"0", "neither", neutral}}
)

func rocePauses() []panel {
	worst := top(50, maxBy(perPriority, devices.rate("rdma_port_pfc_pause_seconds_total"))+" > 0.01")
	of := func(expr string) string { return expr + " and on (" + perPriority + ") " + worst }
	sources := graph("Ports that pause their switch", "Share of the time in which a port paused its switch (PFC sent), the ten worst. The host behind it does not take what it is sent.", "percentunit", 12,
		query{top(10, paused("transmit")+" > 0"), priorityName})
	victims := graph("Ports that their switch pauses", "Share of the time in which the switch paused a port (PFC received), the ten worst. Something behind the switch does not take what it is sent.", "percentunit", 12,
		query{top(10, paused("receive")+" > 0"), priorityName})
	for _, p := range []*panel{&sources, &victims} {
		p.max, p.link, p.points = share, true, few
	}
	return []panel{
		{
			title: "Source or victim", unit: "percentunit", width: 24, height: 10, view: table, sort: "Verdict", noValue: "–",
			text: "Ports and priorities with pauses of 1 % of the time or more, the 50 worst. A source pauses its switch for a tenth of the time or more; a victim is paused for three tenths or more. " +
				"A port that is both may only pass on what it suffers. A source that receives next to nothing is broken, or what is behind it hangs; one that receives is slow. " +
				"Drivers that count no time of pauses are not here: see pause frames of the host.",
			queries: []query{
				{expr: of("(" + verdict + ")")},
				{expr: of(paused("transmit"))},
				{expr: of(paused("receive"))},
				{expr: of("(" + received() + ")")},
			},
			columns: []column{
				{from: "A", title: "Verdict", unit: "none", words: verdictWords, width: 90},
				instance, hca, portOf, netdev,
				{from: "priority", title: "Priority", width: 70},
				{from: "B", title: "Pauses its switch", unit: "percentunit"},
				{from: "C", title: "Is paused", unit: "percentunit"},
				{from: "D", title: "Receives, of its rate", unit: "percentunit"},
				cluster, job,
			},
		},
		sources, victims,
	}
}

// received is what a port receives by RDMA as a share of its rate, for each priority that it has pauses of.
func received() string {
	return "0 * " + paused("transmit") + " + on (" + perPort + ") group_left () (" +
		sumBy(perPort, devices.rate("rdma_port_receive_bytes_total")) + " / " + maxBy(perPort, devices.of("rdma_port_rate_bytes_per_second")) + ")"
}

func roceStorms() []panel {
	direction := func(d string) string { return `direction="` + d + `"` }
	samples := func(d string) query {
		return query{sumBy("le", devices.rate("rdma_port_pfc_paused_sample_ratio_bucket", direction(d))), "{{le}}"}
	}
	histogram := func(title, text, d string) panel {
		return panel{title: title, text: text, unit: "short", width: 8, height: 9, view: buckets, queries: []query{samples(d)}, noValue: "no samples"}
	}
	stalled := maxBy(perPriority+", direction", devices.rate("rdma_port_pfc_stalled_seconds_total")) + " / on (" + perWire + ") group_left () (" +
		maxBy(perWire, devices.rate("rdma_port_pfc_sampled_seconds_total")) + " > 0)"
	stalls := graph("Time in stalls of seconds", "Share of the sampled time in which a priority was paused for more than half of a sample of about a second, the ten worst. RDMAPFCShortStorms looks at it from 5 % on.", "percentunit", 8,
		query{top(10, "("+stalled+") > 0"), priorityName + " {{direction}}"})
	stalls.link, stalls.points = true, few
	return []panel{
		histogram("Samples by the time that ports paused", "Samples a second by the share of their second or so in which a port paused its switch. A storm of seconds, which the average of a scrape hides, is a dark spot at the top. "+
			"Ports are sampled for ten minutes after a pause.", "transmit"),
		histogram("Samples by the time that ports were paused", "Samples a second by the share of their second or so in which a port was paused by its switch.", "receive"),
		stalls,
	}
}

func roceNotification() []panel {
	ppm := func(title, text, counter, packets string) panel {
		p := graph(title, text, "ppm", 8,
			query{top(10, perMillion(perPort, sumBy(perPort, devices.rate(counter)), devices.rate(packets))), portName})
		p.link, p.points = true, few
		return p
	}
	return []panel{
		ppm("ECN marks received", "Packets that a switch had marked on their way, for each million packets received, the ten most. Where marks are many and CNPs few, notification is off.",
			"rdma_port_ecn_marked_packets_total", "rdma_port_receive_packets_total"),
		ppm("CNPs sent", "Notifications that a port answered marked packets with, for each million packets received, the ten most: it is where the congestion ends.",
			"rdma_port_cnp_sent_total", "rdma_port_receive_packets_total"),
		ppm("CNPs handled", "Notifications on which a port slowed down, for each million packets sent, the ten most: it sends into congestion. RDMACongestion looks at it from 10000 per million on.",
			"rdma_port_cnp_handled_total", "rdma_port_transmit_packets_total"),
	}
}

func rocePriorities() []panel {
	bits := func(direction string) query {
		bytes := devices.rate("rdma_port_priority_bytes_total", `direction="`+direction+`"`)
		return query{"8 * " + sumBy("priority", bytes+" unless on ("+perWire+") "+devices.of("rdma_wire_duplicate_info")) + " > 0", direction + " priority {{priority}}"}
	}
	return []panel{
		graph("Traffic by priority", "Traffic of all chosen ports by priority, RDMA and other. RDMA traffic belongs on the priorities that have flow control.", "bps", 8,
			bits("transmit"), bits("receive")),
		{
			title: "Flow control", unit: "none", width: 8, height: 9, view: table, sort: "Ports",
			text: "Ports by the priority that has PFC; none: ports on which no priority has it. All compute ports of a lossless fleet ought to have the same one.",
			queries: []query{{expr: countBy("priority", maxBy(perPriority, devices.of("rdma_port_pfc_enabled"))+" == 1") + " or " +
				`label_replace(count(` + maxBy(perWire, devices.of("rdma_port_pfc_enabled_priorities")) + ` == 0), "priority", "none", "", "")`}},
			columns: []column{{from: "priority", title: "Priority"}, {from: "A", title: "Ports"}},
		},
		{
			title: "Configuration", unit: "none", width: 8, height: 9, view: table, sort: "Ports",
			text: "Ports by what gives a packet its priority, and who configures it. All compute ports of a fleet ought to be in one row.",
			queries: []query{
				{expr: countBy("trust, dcbx", maxBy(perWire+", trust, dcbx", devices.of("rdma_port_qos_info")))},
			},
			columns: []column{{from: "trust", title: "Trust"}, {from: "dcbx", title: "DCBX"}, {from: "A", title: "Ports"}},
		},
	}
}

func roceDiscards() []panel {
	counted := func(title, text string, width uint32, queries ...query) panel {
		p := graph(title, text, "short", width, queries...)
		p.link, p.points = true, few
		return p
	}
	of := func(labels, metric string) string { return top(10, sumBy(labels, devices.increase(metric))+" > 0") }
	return []panel{
		counted("Discards by priority", "Packets received and dropped for want of room, between two points of the graph, the ten most. Of a priority with flow control there ought to be none: "+
			"the headroom does not suffice, or the switch does not obey.", 8,
			query{of(perPriority, "rdma_port_priority_discards_total"), "buffer of the port " + priorityName},
			query{of(perPriority, "rdma_port_priority_buffer_discards_total"), "share of the host " + priorityName},
			query{of(perPriority, "rdma_port_priority_congestion_discards_total"), "queue of the host " + priorityName}),
		counted("Discards of ports", "Packets dropped in each direction, and those for which the application had posted no receive buffer, between two points of the graph, the ten most.", 8,
			query{of(perWire+", direction", "rdma_port_discards_total"), "{{direction}} " + portName},
			query{of(perWire, "rdma_port_out_of_buffer_total"), "no receive buffer " + portName}),
		counted("Pause watchdog", "Times that a NIC had paused its switch for too long: with severity error it stopped, and dropped from then on what it could not take.", 8,
			query{of(perWire+", severity", "rdma_port_pause_storm_events_total"), "{{severity}} " + portName}),
	}
}
