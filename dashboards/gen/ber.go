package main

// Raw bit error rates (before FEC) come from rules/node: errors of 10m divided by the bits of the link. A link has two
// ends: own is what the port receives, neighbour what the other end receives.
const (
	rawBER      = "port:rdma_link_raw_ber:ratio10m"
	rawBERLimit = "port:rdma_link_raw_ber:warning_limit"
	perEnd      = perPort + ", end"
	noBER       = "no corrected errors, not counted by these drivers, or rules/node are not evaluated"
)

// Those of switch ports, from rules/central: what the port receives.
const (
	fabricRawBER      = "link:rdma_fabric_raw_ber:ratio10m"
	fabricRawBERLimit = "link:rdma_fabric_raw_ber:warning_limit"
	noFabricBER       = "no corrected errors, not counted by these switches, or rules/central are not evaluated"
)

// Columns of both tables.
var (
	ofLimit = column{
		From: "A", Title: "Of limit", Unit: "percentunit",
		Colours: []step{{From: 0, Colour: "transparent"}, {From: 0.1, Colour: notice}, {From: 1, Colour: warning}}, Width: 90,
	}
	berNow = column{From: "B", Title: "Raw BER", Unit: scientific, Width: 90}
)

// ofEnd returns a rate or limit of the ends of links.
func ofEnd(s scope, record string) string { return maxBy(perEnd, s.Of(record)) }

// berOfPorts draws the rates of a host with the lowest of their limits.
func berOfPorts(s scope, width uint32) panel {
	p := graph("Raw bit error rate", "Bit errors before FEC, as a share of the bits of the link, over 10m. own: received here; neighbour: received by the far end. "+
		"The limit is the lowest of the ports, of RDMALinkErrors; each decade nearer to it is ten times the errors. A link without errors in 10m has no line.", scientific, width,
		line(ofEnd(s, rawBER)+" > 0", short+" {{end}}"),
		line("min("+s.Of(rawBERLimit)+")", "lowest limit")).Or(noBER)
	p.Decades = true
	return p
}

// worstBER lists the links that are nearest to their limit.
func worstBER(s scope) panel {
	worst := top(20, ofEnd(s, rawBER)+" / "+ofEnd(s, rawBERLimit)+" > 0")
	of := func(labels, expr string) string { return maxBy(labels, expr) + " and on (" + perEnd + ") " + worst }
	onPort := func(labels, expr string) string { return maxBy(labels, expr) + " and on (" + perPort + ") " + worst }
	return panel{
		Title: "Links nearest to their limit", Unit: "percentunit", Width: 14, Height: 10, View: table,
		Sort: "Of limit", NoValue: noBER,
		Text: "Raw bit error rate (before FEC) over 10m as a share of the limit of RDMALinkErrors for this speed, FEC and medium; the 20 highest ends of links. " +
			"end: own is received here, neighbour by the far end. FEC corrects these errors; from the limit on its reserve is used up.",
		Queries: []query{
			{Expr: worst},
			{Expr: of(perEnd, s.Of(rawBER))},
			{Expr: of(perEnd, s.Of(rawBERLimit))},
			{Expr: onPort(perPort+", mode", s.Of("port:rdma_link_fec:info"))},
		},
		Columns: []column{
			instance, hca, portOf,
			{From: "end", Title: "End", Width: 90},
			ofLimit, berNow,
			{From: "C", Title: "Limit", Unit: scientific, Width: 80},
			{From: "mode", Title: "FEC", Width: 136, Missing: "unknown"},
			hidden("D"), cluster, job,
		},
	}
}

// highestBER draws the highest rates of a fleet.
func highestBER(s scope) panel {
	p := graph("Highest raw bit error rates", "Bit errors before FEC as a share of the bits of the link, over 10m, of the ten ends of links with the most. The limit is the lowest of RDMALinkErrors among all links. "+
		"A rate that rises over days is a transceiver that ages or a connector that gets dirty.", scientific, 10,
		line(highest(10, perEnd, ofEnd(s, rawBER)+" > 0"), portName+" {{end}}"),
		line("min("+s.Of(rawBERLimit)+")", "lowest limit")).Or(noBER)
	p.Height, p.Decades, p.Ways, p.Points = 10, true, ofHost, weeks
	return p
}

// fabricBER are the switch ports nearest to their limit, and the highest rates.
func fabricBER() []panel {
	rate, limit := maxBy(perLink, fabricOf.Of(fabricRawBER)), maxBy(perLink, fabricOf.Of(fabricRawBERLimit))
	worst := top(20, byPort(rate+" / "+limit+" > 0"))
	of := func(expr string) string { return byPort(expr) + " and on (" + perLink + ") " + worst }
	ten := graph("Highest raw bit error rates", "Bit errors before FEC that a switch port receives, as a share of the bits of the link, over 10m; the ten highest. The limit is the lowest of RDMAFabricLinkErrors among all ports. "+
		"The far end transmitted them.", scientific, 10,
		line(highest(10, perLink, byPort(rate+" > 0")), linkName),
		line("min("+fabricOf.Of(fabricRawBERLimit)+")", "lowest limit")).Or(noFabricBER)
	ten.Height, ten.Decades, ten.Points, ten.Ways = 10, true, few, ofSwitch
	return []panel{
		{
			Title: "Ports nearest to their limit", Unit: "percentunit", Width: 14, Height: 10, View: table, Sort: "Of limit",
			NoValue: noFabricBER,
			Text: "Raw bit error rate (before FEC) that a switch port receives, over 10m, as a share of the limit of RDMAFabricLinkErrors for this speed, FEC and medium; the 20 highest. " +
				"FEC corrects these errors; from the limit on its reserve is used up. The far end transmitted them.",
			Queries: []query{{Expr: worst}, {Expr: of(rate)}, {Expr: of(limit)}},
			Columns: append(append([]column{}, linkColumns...),
				ofLimit, berNow,
				column{From: "C", Title: "Limit", Unit: scientific, Width: 90},
				aGUID, hidden("instance"), cluster, job),
		},
		ten,
	}
}
