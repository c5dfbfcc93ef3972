package main

import (
	"fmt"
	"slices"
	"strings"
)

// optics is about transceivers near their limits, and those that age.
func optics() board {
	return board{
		Name: "optics", Title: "Optics", From: "now-24h", Refresh: "5m",
		Events:  devices.Began("critical|warning", `alertname=~"RDMATransceiver.+"`),
		Text:    "Which transceiver or cable fails next?",
		Choices: []choice{clusters, jobs, allHosts, hcas(hosts), books},
		Rows: []row{
			{Title: "Faults", Panels: opticsFaults(), Closed: false},
			{Title: "Temperature", Panels: []panel{nearestAlarm(devices, 13, 10, instance, hca), opticsMargins()}, Closed: false},
			{Title: "Bit errors", Panels: []panel{worstBER(devices), highestBER(devices)}, Closed: false},
			{Title: "Lanes", Panels: opticsLanes(), Closed: false},
			{Title: "Ageing", Panels: opticsAgeing(), Closed: false},
			{Title: "Parts", Panels: opticsParts(), Closed: false},
		},
	}
}

// weeks is how many points a line over weeks has, one for half a day of a month: a fleet has tens of thousands of
// lanes.
const weeks = 60

// margin returns the distance of a transceiver from its own temperature alarm.
func margin(s scope) string {
	return maxBy(perNetdev, s.Of("rdma_transceiver_temperature_threshold_celsius", `level="high_alarm"`)) + " - " +
		maxBy(perNetdev, s.Of("rdma_transceiver_temperature_celsius"))
}

// nearness colours a margin: below 0 the transceiver alarms.
var nearness = []step{
	{From: -273, Colour: bad},
	{From: 0, Colour: warning},
	{From: 5, Colour: notice},
	{From: 10, Colour: "transparent"},
}

// nearestAlarm lists the transceivers with the least margin, which are not always the hottest.
func nearestAlarm(s scope, width, height uint32, where ...column) panel {
	least := bottom(20, margin(s))
	of := func(labels, expr string) string { return maxBy(labels, expr) + " and on (" + perNetdev + ") " + least }
	return panel{
		Title: "Transceivers nearest to their alarm", Unit: "celsius", Width: width, Height: height,
		View: table, Sort: "-Margin",
		NoValue: "no transceiver reports temperature and threshold",
		Text:    "Margin: the transceiver's own alarm threshold less its temperature; the 20 smallest. Below 5 °C a warm afternoon suffices. Transceivers without thresholds are left out.",
		Queries: []query{
			{Expr: least},
			{Expr: of(perNetdev, s.Of("rdma_transceiver_temperature_celsius"))},
			{Expr: of(perNetdev+", vendor, part_number", s.Of("rdma_transceiver_info"))},
		},
		Columns: slices.Concat(where, []column{
			portOf,
			{From: "A", Title: "Margin", Unit: "celsius", Colours: nearness, Width: 90},
			{From: "B", Title: "Temperature", Unit: "celsius", Width: 104},
			{From: "part_number", Title: "Part", Width: 130},
			{From: "vendor", Title: "Vendor", Width: 85},
			hidden("netdev"), hidden("C"), cluster, job,
		}),
	}
}

// opticsMargins draws them over time.
func opticsMargins() panel {
	p := graph("Lowest temperature margin",
		"The transceiver's own alarm threshold less its temperature, of the ten that are nearest to it now. At 0 it alarms.",
		"celsius", 11, line(lowest(10, perNetdev, margin(devices)), portName))
	p.Height, p.Ways, p.Points, p.Colours = 10, ofHost, weeks,
		thresholds("transparent", step{From: 0, Colour: bad}, step{From: 5, Colour: "transparent"})
	return p
}

// lit returns the lanes of transceivers that have light: a dark one has no power that could be compared.
func lit(metric string) string { return fmt.Sprintf("%s > %d", devices.Of(metric), limitLaneDark) }

// spread returns the difference between the highest and the lowest lane of a transceiver.
func spread(metric string) string {
	return maxBy(perNetdev, lit(metric)) + " - " + minBy(perNetdev, lit(metric))
}

// darkLanes lists the lanes without light of ports that are ACTIVE. Those of other ports have nothing to receive.
func darkLanes() panel {
	dark := func(direction string) string {
		power := maxBy(perLane, fmt.Sprintf("%s <= %d",
			devices.Of("rdma_transceiver_"+direction+"_power_dbm"), limitLaneDark))
		return labelled("direction", direction, power)
	}
	measured := maxBy(perLane, devices.Of("rdma_transceiver_receive_power_dbm")+" or "+
		devices.Of("rdma_transceiver_transmit_power_dbm")) + " and on (" + perPort + ") " +
		maxBy(perPort, devices.Of("rdma_port_state_id")) + " == 4"
	return panel{
		Title: "Lanes without light", Unit: "none", Width: 12, Height: 7, View: table, Sort: "Host",
		NoValue: "blind: 0 lanes are measured",
		Text: "Lanes below the limit of RDMATransceiverOutOfRange of ports that are ACTIVE, at most 100. receive: the other end, the fibre or its end face; transmit: this transceiver. " +
			"The panels below leave these lanes out.",
		Queries: []query{{Expr: orNone(bottom(100, "("+dark("receive")+" or "+dark("transmit")+") and on ("+perPort+") "+
			maxBy(perPort, devices.Of("rdma_port_state_id"))+" == 4"), "direction", "none of $1", measured)}},
		Columns: []column{
			instance, hca, portOf,
			{From: "lane", Title: "Lane", Width: 50},
			{From: "direction", Title: "Direction", Width: 114},
			{From: "A", Title: "Power", Unit: "suffix:dBm", Width: 80},
			netdev, cluster, job,
		},
	}
}

// opticsCounts has the faults with the number of transceivers and lanes that are measured.
func opticsCounts() panel {
	lanes := "group by (" + perLane + ", direction) (" + labelled("direction", "receive",
		devices.Of("rdma_transceiver_receive_power_dbm")) +
		" or " + labelled("direction", "transmit", devices.Of("rdma_transceiver_transmit_power_dbm")) + ") and on (" +
		perPort + ") " +
		devices.Of("rdma_port_state_id") + " == 4"
	dark := fmt.Sprintf("(%s <= %d or %s <= %d) and on (%s) %s == 4", labelled("direction", "receive",
		devices.Of("rdma_transceiver_receive_power_dbm")), limitLaneDark,
		labelled("direction", "transmit", devices.Of("rdma_transceiver_transmit_power_dbm")), limitLaneDark, perPort,
		devices.Of("rdma_port_state_id"))
	active := maxBy(perPort, devices.Of("rdma_port_state_id")) + " == 4"
	read := maxBy(perPort, devices.Of("rdma_transceiver_temperature_celsius")) + " or " +
		maxBy(perPort, devices.Of("rdma_transceiver_info", `media="passive_copper"`))
	p := counts("Verdict", "Is something dark or too hot, and is it measured?", 3,
		count{
			Title: "Dark", Text: "lanes without light of ports that are ACTIVE.", Colour: bad,
			Expr: orZero(dark, lanes), Of: "count(" + lanes + ")",
		},
		count{
			Title: "Too hot", Text: "transceivers above their own temperature alarm.", Colour: warning,
			Expr: orZero("("+margin(devices)+") < 0", margin(devices)), Of: "count(" + margin(devices) + ")",
		},
		count{
			Title: "Blind", Text: "ACTIVE ports with neither a transceiver that reports its temperature nor a copper cable: not measured.", Colour: neutral,
			Expr: orZero("("+active+") unless on ("+perPort+") ("+read+")", active), Of: "count(" + active + ")",
		},
	)
	p.Height = 7
	return p
}

// opticsFaults are what fails now, before what fails next.
func opticsFaults() []panel {
	alerts := alertTable([]scope{hosts + `,alertname=~"RDMATransceiver.+|RDMALinkErrors|RDMALinkWearing"`}, severities,
		[]column{instance},
		hca)
	alerts.Height = 7
	alerts = alerts.SetWidths(map[string]uint32{"Meaning": 250, "First": 205, "Where": 130})
	alerts = alerts.OrNone("no alert on transceivers of $1 hosts", hosts.Evaluated())
	return []panel{alerts, opticsCounts(), darkLanes(), faulty()}
}

func opticsLanes() []panel {
	uneven := step{From: limitLaneImbalance, Colour: warning}
	lanes := func(title, text, unit, expr string, limits ...step) panel {
		p := graph(title, text, unit, 8, line(expr, portName))
		p.Ways, p.Points = ofHost, weeks
		if limits != nil {
			p.Colours, p.Reach = thresholds("transparent", limits...), limits[0].From
		}
		return p
	}
	weakest := lanes("Lowest received power",
		"Power that the weakest lane of a transceiver receives, the ten lowest. Lanes without light are left out.",
		"suffix:dBm", lowest(10, perNetdev, minBy(perNetdev, lit("rdma_transceiver_receive_power_dbm"))))
	return []panel{
		lanes("Spread of received power", "Difference in dB between the strongest and the weakest lane that a transceiver receives, the ten widest. The line is the limit of RDMATransceiverOutOfRange. "+
			"A lane below its siblings has a dirty end face, a broken fibre or a weak laser at the other end.", "dB",
			highest(10, perNetdev, spread("rdma_transceiver_receive_power_dbm")), uneven),
		lanes("Spread of transmitted power",
			"Difference in dB between the strongest and the weakest laser of a transceiver, the ten widest. A weak one is a fault of this transceiver.",
			"dB", highest(10, perNetdev, spread("rdma_transceiver_transmit_power_dbm")), uneven),
		weakest,
	}
}

// ages are how far back a reading is compared, the time range first: the first of which there is history.
var ages = []string{"$__range", "7d", "1d", "6h", "1h", "10m"}

// changeSince returns the change of a reading to now, by how far back there is history: change puts the expressions of
// now and then together.
func changeSince(metric string, change func(now, then string) string) string {
	now := maxBy(perLane, devices.Of(metric))
	var parts []string
	for _, age := range ages {
		text := strings.Replace(age, "$__range", "time range", 1)
		parts = append(parts, labelled("compared", text, change(now, maxBy(perLane, devices.Of(metric)+" offset "+age))))
	}
	return strings.Join(parts, " or on ("+perLane+") ")
}

// byPart returns an expression for a reading of transceivers, one series each, with their part numbers.
func byPart(reading string) string {
	return reading + " * on (" + perNetdev + ") group_left (part_number) " +
		maxBy(perNetdev+", part_number", devices.Of("rdma_transceiver_info"))
}

func opticsAgeing() []panel {
	aged := func(title, text, unit, expr string, sort string) panel {
		return panel{
			Title: title, Text: text + " Compared with the beginning of the time range, or with the longest of 7d, 1d, 6h, 1h and 10m of which there is history.",
			Unit: unit, Width: 12, Height: 9, View: table, Sort: sort, NoValue: "no history of 10m, or no readings",
			Queries: []query{{Expr: expr}},
			Columns: []column{
				instance, hca, portOf,
				{From: "lane", Title: "Lane", Width: 50},
				{From: "A", Title: "Change", Unit: unit, Width: 90},
				{From: "compared", Title: "Over", Width: 90},
				netdev,
				cluster, job,
			},
		}
	}
	half := func(title, text, unit, metric string) panel {
		p := graph(title, text, unit, 12,
			line(
				"quantile by (part_number) (0.5, "+byPart("avg by ("+perNetdev+") ("+devices.Of(metric)+")")+")",
				"median {{part_number}}",
			),
			line("max by (part_number) ("+byPart(maxBy(perNetdev, devices.Of(metric)))+")", "highest {{part_number}}"),
			line("min by (part_number) ("+byPart(minBy(perNetdev, devices.Of(metric)))+")", "lowest {{part_number}}"))
		p.Points = weeks
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
	info := maxBy(perNetdev+", vendor, part_number", devices.Of("rdma_transceiver_info"))
	with := func(expr string) string {
		return "(" + expr + ") * on (" + perNetdev + ") group_left (vendor, part_number) " + info
	}
	worst := func(op, expr string) query {
		return query{Expr: op + " by (vendor, part_number) (" + with(expr) + ")"}
	}
	return []panel{
		{
			Title: "Transceivers and cables by part", Unit: "none", Width: grid, Height: 10, View: table, Sort: "Number",
			NoValue: "none readable",
			Text:    "Transceivers and cables by vendor and part number: the highest temperature, the lowest margin to an alarm, and the widest spread between lanes. Copper cables have no readings.",
			Queries: []query{
				{Expr: countBy("vendor, part_number", info)},
				worst("max", maxBy(perNetdev, devices.Of("rdma_transceiver_temperature_celsius"))),
				worst("min", margin(devices)), worst("max", maxBy(perNetdev,
					labelled("direction", "receive", spread("rdma_transceiver_receive_power_dbm"))+" or "+
						labelled("direction", "transmit", spread("rdma_transceiver_transmit_power_dbm")))),
			},
			Columns: []column{
				{From: "part_number", Title: "Part", Width: 160},
				{From: "A", Title: "Number", Width: 75},
				{From: "C", Title: "Lowest margin", Unit: "celsius", Colours: nearness, Width: 118},
				{From: "B", Title: "Highest temp.", Unit: "celsius", Width: 118},
				{From: "D", Title: "Widest spread", Unit: "dB", Width: 118},
				{From: "vendor", Title: "Vendor"},
			},
		},
	}
}

// faulty lists transceivers that do not work.
func faulty() panel {
	return panel{
		Title: "Unreadable or failed transceivers", Unit: "none", Width: 9, Height: 7, View: table,
		Sort: "-State", NoValue: "blind: 0 transceivers report their state",
		Text: "Transceivers that cannot be read, report a fault, or have no readings yet, and empty cages of ports that were ACTIVE before. One with a dark lane or beyond a limit works: it is in the tables beside.",
		Queries: []query{{Expr: orNone(maxBy(perNetdev+", state",
			devices.Of("rdma_transceiver_state", `state=~"unreadable|fault|unknown_layout|not_ready|absent"`))+
			" and on ("+perPort+") ("+maxBy(perPort, devices.Of("rdma_port_was_active"))+" == 1)", "state",
			"none of $1 unreadable", maxBy(perNetdev, devices.Of("rdma_transceiver_state")))}},
		Columns: []column{
			instance, hca, portOf, {From: "state", Title: "State", Width: 170}, hidden("netdev"), {From: "A"}, cluster, job,
		},
	}
}
