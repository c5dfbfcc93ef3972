package main

// optics shows modules near their limits, and those that age.
func optics() board {
	return board{
		name: "optics", title: "RDMA / Optics", from: "now-24h", refresh: "5m", events: devices.began("critical|warning", `alertname=~"RDMATransceiver.+"`),
		text:      "Modules and cables: how far from their limits, how even their lanes, how they age.",
		variables: variables(clusters, jobs, allHosts, hcas(hosts)),
		rows: []row{
			{"Temperature", []panel{nearestAlarm(devices, 12, 10, instance), opticsMargins()}},
			{"Lanes", opticsLanes()},
			{"Ageing", opticsAgeing()},
			{"Parts", opticsParts()},
		},
	}
}

// weeks is how many points a line over weeks has, one for half a day of a month: a fleet has tens of thousands of lanes.
const weeks = 60

// margin is how far a module is from its own alarm.
func margin(s scope) string {
	return maxBy(perWire, s.of("rdma_transceiver_temperature_threshold_celsius", `level="high_alarm"`)) + " - " +
		maxBy(perWire, s.of("rdma_transceiver_temperature_celsius"))
}

// nearness colours a margin: below 0 the module alarms.
var nearness = []step{{-273, bad}, {0, warning}, {5, notice}, {10, "transparent"}}

// nearestAlarm lists the modules with the least margin, which are not always the hottest.
func nearestAlarm(s scope, width, height uint32, where column) panel {
	least := bottom(20, margin(s))
	of := func(labels, expr string) string { return maxBy(labels, expr) + " and on (" + perWire + ") " + least }
	return panel{
		title: "Modules nearest to their alarm", unit: "celsius", width: width, height: height, view: table, sort: "-Margin", noValue: "–",
		text: "Margin: the module's own alarm threshold less its temperature; the 20 smallest. Below 5 °C a warm afternoon suffices. Modules without thresholds are not here.",
		queries: []query{
			{expr: least},
			{expr: of(perWire, s.of("rdma_transceiver_temperature_celsius"))},
			{expr: of(perWire+", vendor, part_number", s.of("rdma_transceiver_info"))},
		},
		columns: []column{
			{from: "A", title: "Margin", unit: "celsius", colours: nearness, width: 90},
			{from: "B", title: "Temperature", unit: "celsius", width: 110},
			where, hca, portOf, netdev,
			{from: "vendor", title: "Vendor"},
			{from: "part_number", title: "Part"},
			hidden("C"), cluster, job,
		},
	}
}

// opticsMargins draws them over time.
func opticsMargins() panel {
	p := graph("Least temperature margin", "The module's own alarm threshold less its temperature, of the ten modules that are nearest to it at each moment. At 0 it alarms.", "celsius", 12,
		query{bottom(10, margin(devices)), portName})
	p.height, p.link, p.points, p.colours = 10, true, weeks, thresholds("transparent", step{0, bad}, step{5, "transparent"})
	return p
}

// spread is the difference between the best and the worst lane of a module.
func spread(metric string) string {
	return maxBy(perWire, devices.of(metric)) + " - " + minBy(perWire, devices.of(metric))
}

func opticsLanes() []panel {
	lanes := func(title, text, expr string) panel {
		p := graph(title, text, "suffix:dBm", 8, query{expr, portName})
		p.link, p.points = true, weeks
		return p
	}
	received := lanes("Spread of power received", "Difference in dB between the strongest and the weakest lane that a module receives, the ten widest. "+
		"A lane that falls behind its neighbours has a dirty end face, a broken fibre or a bad laser at the far end.", top(10, spread("rdma_transceiver_receive_power_dbm")))
	sent := lanes("Spread of power sent", "Difference in dB between the strongest and the weakest laser of a module, the ten widest. A weak one is the module's own fault.",
		top(10, spread("rdma_transceiver_transmit_power_dbm")))
	received.unit, sent.unit = "dB", "dB"
	return []panel{
		received, sent,
		lanes("Weakest power received", "Power that the weakest lane of a module receives, the ten weakest modules. Lanes without any light, −40 dBm, are left out: there may be nothing to receive.",
			bottom(10, minBy(perWire, devices.of("rdma_transceiver_receive_power_dbm")+" > -40"))),
	}
}

// since is by how much a reading differs from what it was where the graphs begin.
func since(metric string) string {
	return maxBy(perLane, devices.of(metric)) + " - " + maxBy(perLane, devices.of(metric)+" offset $__range")
}

// byPart are readings of modules, one of each, with their part numbers.
func byPart(reading string) string {
	return reading + " * on (" + perWire + ") group_left (part_number) " + maxBy(perWire+", part_number", devices.of("rdma_transceiver_info"))
}

func opticsAgeing() []panel {
	bias := maxBy(perLane, devices.of("rdma_transceiver_bias_amperes")) + " / (" + maxBy(perLane, devices.of("rdma_transceiver_bias_amperes")+" offset $__range") + " > 0) - 1"
	aged := func(title, text, unit, expr string, sort string) panel {
		return panel{
			title: title, text: text, unit: unit, width: 12, height: 9, view: table, sort: sort, noValue: "–", queries: []query{{expr: expr}},
			columns: []column{{from: "A", title: "Change", unit: unit, width: 100}, instance, hca, portOf, netdev, {from: "lane", title: "Lane"}, cluster, job},
		}
	}
	half := func(title, text, unit, metric string) panel {
		p := graph(title, text, unit, 12,
			query{"quantile by (part_number) (0.5, " + byPart("avg by ("+perWire+") ("+devices.of(metric)+")") + ")", "median {{part_number}}"},
			query{"max by (part_number) (" + byPart(maxBy(perWire, devices.of(metric))) + ")", "most {{part_number}}"},
			query{"min by (part_number) (" + byPart(minBy(perWire, devices.of(metric))) + ")", "least {{part_number}}"})
		p.points = weeks
		return p
	}
	return []panel{
		aged("Bias that rose most", "Change of a laser's bias current from the beginning of what is shown to now, the 20 largest. A laser that needs a third more for the same light nears its end. "+
			"Choose weeks at the top; empty where Prometheus keeps less.", "percentunit", top(20, bias), "Change"),
		aged("Received power that fell most", "Change of the power received, in dB, from the beginning of what is shown to now, the 20 largest losses. 3 dB is half of the light. "+
			"Choose weeks at the top; empty where Prometheus keeps less.", "dB", bottom(20, since("rdma_transceiver_receive_power_dbm")), "-Change"),
		half("Bias by part", "Bias current of each kind of module: the median of the modules, by the mean of their lanes, and the lanes with the most and the least. A median that climbs over weeks is ageing, a most that leaves it behind a single module.", "amp", "rdma_transceiver_bias_amperes"),
		half("Power sent by part", "Power of the lasers of each kind of module: the median of the modules, by the mean of their lanes, and the lanes with the most and the least. It holds while the bias can make up for ageing, and falls at the end.", "suffix:dBm", "rdma_transceiver_transmit_power_dbm"),
	}
}

func opticsParts() []panel {
	info := maxBy(perWire+", vendor, part_number", devices.of("rdma_transceiver_info"))
	with := func(expr string) string {
		return "(" + expr + ") * on (" + perWire + ") group_left (vendor, part_number) " + info
	}
	worst := func(op, expr string) query {
		return query{expr: op + " by (vendor, part_number) (" + with(expr) + ")"}
	}
	return []panel{
		{
			title: "Modules and cables by part", unit: "none", width: 14, height: 10, view: table, sort: "Number",
			text: "What is plugged in, by vendor and part number, with its hottest module, the least margin to an alarm, and the widest spread between lanes. Copper cables have no readings.",
			queries: []query{
				{expr: countBy("vendor, part_number", info)},
				worst("max", maxBy(perWire, devices.of("rdma_transceiver_temperature_celsius"))),
				worst("min", margin(devices)), worst("max", spread("rdma_transceiver_receive_power_dbm")),
			},
			columns: []column{
				{from: "vendor", title: "Vendor"},
				{from: "part_number", title: "Part"},
				{from: "A", title: "Number"},
				{from: "B", title: "Hottest", unit: "celsius"},
				{from: "C", title: "Least margin", unit: "celsius", colours: nearness},
				{from: "D", title: "Widest spread", unit: "dB"},
			},
		},
		{
			title: "Modules that are not well", unit: "none", width: 10, height: 10, view: table, sort: "-State", noValue: "–",
			text: "Modules that cannot be read, report a fault, or have no readings yet, and cages that are empty though the port was ACTIVE before.",
			queries: []query{{expr: maxBy(perWire+", state", devices.of("rdma_transceiver_state", `state=~"unreadable|fault|unknown_layout|not_ready|absent"`)) +
				" and on (" + perPort + ") (" + maxBy(perPort, devices.of("rdma_port_was_active")) + " == 1)"}},
			columns: []column{{from: "state", title: "State"}, instance, hca, portOf, netdev, {from: "A"}, cluster, job},
		},
	}
}
