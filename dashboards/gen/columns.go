package main

// Columns that many tables have.
var (
	cluster  = column{From: "cluster", Title: "Cluster", Width: 90}
	job      = column{From: "job", Title: "Scrape job", Width: 165}
	instance = column{
		From: "host", Title: "Host", Width: 220, Ways: []way{toNode(jobCell, targetCell, ""), toPage(targetCell)},
	}
	hca = column{
		From: "device", Title: "Device", Width: 80, Words: noDevice, Ways: []way{toNode(jobCell, targetCell, cell)},
	}
	// On the dashboard of a host.
	ownHCA = column{
		From: "device", Title: "Device", Width: 80, Words: noDevice, Ways: []way{toNode(sameJob, "${host}", cell)},
	}
	portOf = column{From: "port", Title: "Port", Width: 50}
	// Of rows that may have no host: withWay adds the addresses.
	hostByWay = column{From: "host", Title: "Host", Width: 220, Ways: []way{
		{Title: "Dashboard of " + cell, URL: "${__data.fields.Way}"},
		{Title: "Findings on the page of " + cell, URL: "${__data.fields.Page}"},
	}}
	byWay = []column{{From: "way", Title: "Way", Address: true}, {From: "page", Title: "Page", Address: true}}

	netdev = column{From: "netdev", Title: "Netdev", Width: 120}
	gpu    = column{From: "gpu", Title: "GPU", Width: 50}
	uuid   = column{From: "UUID", Title: "UUID", Width: 150}
)

// noDevice is the value of rows without a device or switch, whose link chooses all of them.
var noDevice = []word{{Value: "$__all", Text: "all", Colour: neutral}}
