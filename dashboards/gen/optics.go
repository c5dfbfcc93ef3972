package main

import (
	"fmt"
	"slices"
	"strings"
)

// optics is about transceivers near their limits, and those that age.
func optics() board {
	return board{
		name: "optics", title: "Optics", from: "now-24h", refresh: "5m",
		events:  devices.began("critical|warning", `alertname=~"RDMATransceiver.+"`),
		text:    "Which transceiver or cable fails next?",
		choices: []choice{clusters, jobs, allHosts, hcas(hosts), books},
		rows: []row{
			{"Faults", opticsFaults(), false},
			{"Temperature", []panel{nearestAlarm(devices, 13, 10, instance, hca), opticsMargins()}, false},
			{"Bit errors", []panel{worstBER(devices), highestBER(devices)}, false},
			{"Lanes", opticsLanes(), false},
			{"Ageing", opticsAgeing(), false},
			{"Parts", opticsParts(), false},
		},
	}
}

// weeks is how many points a line over weeks has, one for half a day of a month: a fleet has tens of thousands of
// lanes.
const weeks = 60

// margin returns the distance of a transceiver from its own temperature alarm.
func margin(s scope) string {
	return maxBy(perNetdev, s.of("rdma_transceiver_temperature_threshold_celsius", `level="high_alarm"`)) + " - " +
		maxBy(perNetdev, s.of("rdma_transceiver_temperature_celsius"))
}

// nearness colours a margin: below 0 the transceiver alarms.
var nearness = []step{{-273, bad}, {0, warning}, {5, notice}, {10, "transparent"}}

// nearestAlarm lists the transceivers with the least margin, which are not always the hottest.
func nearestAlarm(s scope, width, height uint32, where ...column) panel {
	least := bottom(20, margin(s))
	of := func(labels, expr string) string { return maxBy(labels, expr) + " and on (" + perNetdev + ") " + least }
	return panel{
		title: "Transceivers nearest to their alarm", unit: "celsius", width: width, height: height,
		view: table, sort: "-Margin",
		noValue: "no transceiver reports temperature and threshold",
		text:    "Margin: the transceiver's own alarm threshold less its temperature; the 20 smallest. Below 5 °C a warm afternoon suffices. Transceivers without thresholds are left out.",
		queries: []query{
			{expr: least},
			{expr: of(perNetdev, s.of("rdma_transceiver_temperature_celsius"))},
			{expr: of(perNetdev+", vendor, part_number", s.of("rdma_transceiver_info"))},
		},
		columns: slices.Concat(where, []column{
			portOf,
			{from: "A", title: "Margin", unit: "celsius", colours: nearness, width: 90},
			{from: "B", title: "Temperature", unit: "celsius", width: 104},
			{from: "part_number", title: "Part", width: 130},
			{from: "vendor", title: "Vendor", width: 85},
			hidden("netdev"), hidden("C"), cluster, job,
		}),
	}
}

// opticsMargins draws them over time.
func opticsMargins() panel {
	p := graph("Lowest temperature margin",
		"The transceiver's own alarm threshold less its temperature, of the ten that are nearest to it now. At 0 it alarms.",
		"celsius", 11, query{lowest(10, perNetdev, margin(devices)), portName})
	p.height, p.ways, p.points, p.colours = 10, ofHost, weeks,
		thresholds("transparent", step{0, bad}, step{5, "transparent"})
	return p
}

// lit returns the lanes of transceivers that have light: a dark one has no power that could be compared.
func lit(metric string) string { return fmt.Sprintf("%s > %d", devices.of(metric), limitLaneDark) }

// spread returns the difference between the highest and the lowest lane of a transceiver.
func spread(metric string) string {
	return maxBy(perNetdev, lit(metric)) + " - " + minBy(perNetdev, lit(metric))
}

// darkLanes lists the lanes without light of ports that are ACTIVE. Those of other ports have nothing to receive.
func darkLanes() panel {
	dark := func(direction string) string {
		power := maxBy(perLane, fmt.Sprintf("%s <= %d",
			devices.of("rdma_transceiver_"+direction+"_power_dbm"), limitLaneDark))
		return labelled("direction", direction, power)
	}
	measured := maxBy(perLane, devices.of("rdma_transceiver_receive_power_dbm")+" or "+
		devices.of("rdma_transceiver_transmit_power_dbm")) + " and on (" + perPort + ") " +
		maxBy(perPort, devices.of("rdma_port_state_id")) + " == 4"
	return panel{
		title: "Lanes without light", unit: "none", width: 12, height: 7, view: table, sort: "Host",
		noValue: "blind: 0 lanes are measured",
		text: "Lanes below the limit of RDMATransceiverOutOfRange of ports that are ACTIVE, at most 100. receive: the other end, the fibre or its end face; transmit: this transceiver. " +
			"The panels below leave these lanes out.",
		queries: []query{{expr: orNone(bottom(100, "("+dark("receive")+" or "+dark("transmit")+") and on ("+perPort+") "+
			maxBy(perPort, devices.of("rdma_port_state_id"))+" == 4"), "direction", "none of $1", measured)}},
		columns: []column{
			instance, hca, portOf,
			{from: "lane", title: "Lane", width: 50},
			{from: "direction", title: "Direction", width: 114},
			{from: "A", title: "Power", unit: "suffix:dBm", width: 80},
			netdev, cluster, job,
		},
	}
}

// opticsCounts has the faults with the number of transceivers and lanes that are measured.
func opticsCounts() panel {
	lanes := "group by (" + perLane + ", direction) (" + labelled("direction", "receive",
		devices.of("rdma_transceiver_receive_power_dbm")) +
		" or " + labelled("direction", "transmit", devices.of("rdma_transceiver_transmit_power_dbm")) + ") and on (" +
		perPort + ") " +
		devices.of("rdma_port_state_id") + " == 4"
	dark := fmt.Sprintf("(%s <= %d or %s <= %d) and on (%s) %s == 4", labelled("direction", "receive",
		devices.of("rdma_transceiver_receive_power_dbm")), limitLaneDark,
		labelled("direction", "transmit", devices.of("rdma_transceiver_transmit_power_dbm")), limitLaneDark, perPort,
		devices.of("rdma_port_state_id"))
	active := maxBy(perPort, devices.of("rdma_port_state_id")) + " == 4"
	read := maxBy(perPort, devices.of("rdma_transceiver_temperature_celsius")) + " or " +
		maxBy(perPort, devices.of("rdma_transceiver_info", `media="passive_copper"`))
	p := counts("Verdict", "Is something dark or too hot, and is it measured?", 3,
		count{
			title: "Dark", text: "lanes without light of ports that are ACTIVE.", colour: bad,
			expr: orZero(dark, lanes), of: "count(" + lanes + ")",
		},
		count{
			title: "Too hot", text: "transceivers above their own temperature alarm.", colour: warning,
			expr: orZero("("+margin(devices)+") < 0", margin(devices)), of: "count(" + margin(devices) + ")",
		},
		count{
			title: "Blind", text: "ACTIVE ports with neither a transceiver that reports its temperature nor a copper cable: not measured.", colour: neutral,
			expr: orZero("("+active+") unless on ("+perPort+") ("+read+")", active), of: "count(" + active + ")",
		},
	)
	p.height = 7
	return p
}

// opticsFaults are what fails now, before what fails next.
func opticsFaults() []panel {
	alerts := alertTable([]scope{hosts + `,alertname=~"RDMATransceiver.+|RDMALinkErrors|RDMALinkWearing"`}, severities,
		[]column{instance},
		hca)
	alerts.height = 7
	alerts = alerts.setWidths(map[string]uint32{"Meaning": 250, "First": 205, "Where": 130})
	alerts = alerts.orNone("no alert on transceivers of $1 hosts", hosts.evaluated())
	return []panel{alerts, opticsCounts(), darkLanes(), faulty()}
}

func opticsLanes() []panel {
	lanes := func(title, text, unit, expr string, limits ...step) panel {
		p := graph(title, text, unit, 8, query{expr, portName})
		p.ways, p.points = ofHost, weeks
		if limits != nil {
			p.colours, p.reach = thresholds("transparent", limits...), limits[0].from
		}
		return p
	}
	weakest := lanes("Lowest received power",
		"Power that the weakest lane of a transceiver receives, the ten lowest. Lanes without light are left out.",
		"suffix:dBm", lowest(10, perNetdev, minBy(perNetdev, lit("rdma_transceiver_receive_power_dbm"))))
	return []panel{
		lanes("Spread of received power", "Difference in dB between the strongest and the weakest lane that a transceiver receives, the ten widest. The line is the limit of RDMATransceiverOutOfRange. "+
			"A lane below its siblings has a dirty end face, a broken fibre or a weak laser at the other end.", "dB",
			highest(10, perNetdev, spread("rdma_transceiver_receive_power_dbm")), step{limitLaneImbalance, warning}),
		lanes("Spread of transmitted power",
			"Difference in dB between the strongest and the weakest laser of a transceiver, the ten widest. A weak one is a fault of this transceiver.",
			"dB", highest(10, perNetdev, spread("rdma_transceiver_transmit_power_dbm")), step{limitLaneImbalance, warning}),
		weakest,
	}
}

// ages are how far back a reading is compared, the time range first: the first of which there is history.
var ages = []string{"$__range", "7d", "1d", "6h", "1h", "10m"}

// changeSince returns the change of a reading to now, by how far back there is history: change puts the expressions of
// now and then together.
func changeSince(metric string, change func(now, then string) string) string {
	now := maxBy(perLane, devices.of(metric))
	var parts []string
	for _, age := range ages {
		text := strings.Replace(age, "$__range", "time range", 1)
		parts = append(parts, labelled("compared", text, change(now, maxBy(perLane, devices.of(metric)+" offset "+age))))
	}
	return strings.Join(parts, " or on ("+perLane+") ")
}

// byPart returns an expression for a reading of transceivers, one series each, with their part numbers.
func byPart(reading string) string {
	return reading + " * on (" + perNetdev + ") group_left (part_number) " +
		maxBy(perNetdev+", part_number", devices.of("rdma_transceiver_info"))
}

func opticsAgeing() []panel {
	aged := func(title, text, unit, expr string, sort string) panel {
		return panel{
			title: title, text: text + " Compared with the beginning of the time range, or with the longest of 7d, 1d, 6h, 1h and 10m of which there is history.",
			unit: unit, width: 12, height: 9, view: table, sort: sort, noValue: "no history of 10m, or no readings",
			queries: []query{{expr: expr}},
			columns: []column{
				instance, hca, portOf,
				{from: "lane", title: "Lane", width: 50},
				{from: "A", title: "Change", unit: unit, width: 90},
				{from: "compared", title: "Over", width: 90},
				netdev,
				cluster, job,
			},
		}
	}
	half := func(title, text, unit, metric string) panel {
		p := graph(title, text, unit, 12,
			query{
				"quantile by (part_number) (0.5, " + byPart("avg by ("+perNetdev+") ("+devices.of(metric)+")") + ")",
				"median {{part_number}}",
			},
			query{"max by (part_number) (" + byPart(maxBy(perNetdev, devices.of(metric))) + ")", "highest {{part_number}}"},
			query{"min by (part_number) (" + byPart(minBy(perNetdev, devices.of(metric))) + ")", "lowest {{part_number}}"})
		p.points = weeks
		return p
	}
	grown := changeSince("rdma_transceiver_bias_amperes",
		func(now, then string) string { return now + " / (" + then + " > 0) - 1" })
	fallen := changeSince("rdma_transceiver_receive_power_dbm",
		func(now, then string) string { return now + " - " + then })
	return []panel{
		aged("Highest rise of bias", "Change of a laser's bias current, the 20 largest. A laser that needs a third more current for the same power is near its end.", "percentunit", top(20, grown), "Change"),
		aged("Highest loss of received power", "Change of the received power in dB, the 20 largest losses. 3 dB is half of the light.", "dB", bottom(20, fallen), "-Change"),
		half("Bias by part", "Bias current by part number: the median of the transceivers (mean of their lanes), the highest and the lowest lane. A median that climbs over weeks is ageing, a highest that leaves it behind is one transceiver.", "amp", "rdma_transceiver_bias_amperes"),
		half("Transmitted power by part", "Transmitted power by part number: the median of the transceivers (mean of their lanes), the highest and the lowest lane. It holds while the bias compensates for ageing, and falls at the end.", "suffix:dBm", "rdma_transceiver_transmit_power_dbm"),
	}
}

func opticsParts() []panel {
	info := maxBy(perNetdev+", vendor, part_number", devices.of("rdma_transceiver_info"))
	with := func(expr string) string {
		return "(" + expr + ") * on (" + perNetdev + ") group_left (vendor, part_number) " + info
	}
	worst := func(op, expr string) query {
		return query{expr: op + " by (vendor, part_number) (" + with(expr) + ")"}
	}
	return []panel{
		{
			title: "Transceivers and cables by part", unit: "none", width: grid, height: 10, view: table, sort: "Number",
			noValue: "none readable",
			text:    "Transceivers and cables by vendor and part number: the highest temperature, the lowest margin to an alarm, and the widest spread between lanes. Copper cables have no readings.",
			queries: []query{
				{expr: countBy("vendor, part_number", info)},
				worst("max", maxBy(perNetdev, devices.of("rdma_transceiver_temperature_celsius"))),
				worst("min", margin(devices)), worst("max", maxBy(perNetdev,
					labelled("direction", "receive", spread("rdma_transceiver_receive_power_dbm"))+" or "+
						labelled("direction", "transmit", spread("rdma_transceiver_transmit_power_dbm")))),
			},
			columns: []column{
				{from: "part_number", title: "Part", width: 160},
				{from: "A", title: "Number", width: 75},
				{from: "C", title: "Lowest margin", unit: "celsius", colours: nearness, width: 118},
				{from: "B", title: "Highest temp.", unit: "celsius", width: 118},
				{from: "D", title: "Widest spread", unit: "dB", width: 118},
				{from: "vendor", title: "Vendor"},
			},
		},
	}
}

// faulty lists transceivers that do not work.
func faulty() panel {
	return panel{
		title: "Unreadable or failed transceivers", unit: "none", width: 9, height: 7, view: table,
		sort: "-State", noValue: "blind: 0 transceivers report their state",
		text: "Transceivers that cannot be read, report a fault, or have no readings yet, and empty cages of ports that were ACTIVE before. One with a dark lane or beyond a limit works: it is in the tables beside.",
		queries: []query{{expr: orNone(maxBy(perNetdev+", state",
			devices.of("rdma_transceiver_state", `state=~"unreadable|fault|unknown_layout|not_ready|absent"`))+
			" and on ("+perPort+") ("+maxBy(perPort, devices.of("rdma_port_was_active"))+" == 1)", "state",
			"none of $1 unreadable", maxBy(perNetdev, devices.of("rdma_transceiver_state")))}},
		columns: []column{
			instance, hca, portOf, {from: "state", title: "State", width: 170}, hidden("netdev"), {from: "A"}, cluster, job,
		},
	}
}
