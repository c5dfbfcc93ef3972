package link

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// linkFaults are those of links: rate, width, losses.
var linkFaults = fault.Kinds{
	"link_degraded/rate":  {Write: linkDownshifted},
	"link_degraded/width": {Write: linkWidthDegraded},
	"link_degraded/bond_member": {
		Write: bondMemberDownshifted,
		Measure: `max by (netdev) (rdma_bond_member_rate_bytes_per_second{$port}) ` +
			`/ max by (netdev) (rdma_bond_member_expected_rate_bytes_per_second{$port}) < 0.99`,
	},
	"port_down/bond_member": {Write: bondMemberDown, Measure: `max by (netdev) (rdma_bond_member_up{$port}) == 0`},
	"link_flapping/hour":    {Write: linkFlapping},
	"link_flapping/once":    {Write: linkLost},
	"link_flapping/day":     {Write: linkUnstable},
}

const (
	rateNow            = `max(rdma_port_rate_bytes_per_second{$port}) * 8 / 1e9`
	rateExpected       = `max(rdma_port_expected_rate_bytes_per_second{$port}) * 8 / 1e9`
	rateExpectedBy     = `max by (source) (rdma_port_expected_rate_info{$port})`
	widthNow           = `max(rdma_port_width_lanes{$port})`
	widthExpected      = `max(rdma_port_expected_width_lanes{$port})`
	widthExpectedBy    = `max by (source) (rdma_port_expected_width_info{$port})`
	memberRate         = `max(rdma_bond_member_rate_bytes_per_second{$netdev}) * 8 / 1e9`
	memberRateExpected = `max(rdma_bond_member_expected_rate_bytes_per_second{$netdev}) * 8 / 1e9`
	memberExpectedBy   = `max by (source) (rdma_bond_member_expected_rate_info{$netdev})`
	ethernetPort       = `rdma_port_info{link_layer="Ethernet",$port}`
	lossesIn1h         = `max(port:rdma_port_link_losses:count1h{$port})`
)

func linkDownshifted(f *fault.Fault) fault.Text {
	rate, by := pairOf(f, rateNow, rateExpected), f.LabelsOf(rateExpectedBy, "source")
	var e fault.Lines
	width := ""
	if lanes, ok := f.Number(widthNow); ok {
		width = " on " + words.Count(int(lanes), "lane")
	}
	e.Add("Rate", rate.inGbps()+width+".")
	if rate.expected != "" {
		e.Add("Expected", rate.expected+" Gb/s"+eachSource(by, ", by %s")+".")
	}
	addShortPorts(f, &e)
	e.Add("Not evaluated", "cable, transceiver and switch port.")
	t := fault.Text{
		Summary: f.Where() + ": link degraded, " + rate.of() + " Gb/s" + eachSource(by, " (expected by %s)"),
		Description: "The link runs at " + rate.of() + " Gb/s with all of its lanes. " + slowestLink +
			" Error counters do not show it.",
		Evidence: e,
		Diagnose: diagnoseRate(f),
		Action: "Compare the speed of the switch port and the part numbers of cable and transceiver with those of a good " +
			"port. Drain the host, reseat both ends, then swap the cable, then the transceivers." + acceptRate(f),
		DrainReason: drainReasonOfRate(f),
	}
	t.Measured, t.Limit = rate.compared(" Gb/s")
	return t
}

func linkWidthDegraded(f *fault.Fault) fault.Text {
	lanes, rate := pairOf(f, widthNow, widthExpected), pairOf(f, rateNow, rateExpected)
	by := f.LabelsOf(widthExpectedBy, "source")
	var e fault.Lines
	e.Add("Lanes", cmp.Or(lanes.now, "unknown")+fault.When(lanes.expected != "", ", expected "+lanes.expected)+
		eachSource(by, ", by %s")+".")
	e.Add("Rate", rate.inGbps()+fault.When(rate.expected != "", ", expected "+rate.expected+" Gb/s")+
		eachSource(f.LabelsOf(rateExpectedBy, "source"), ", by %s")+".")
	addShortPorts(f, &e)
	e.Add("Not evaluated", "which lane is missing, the far end.")
	t := fault.Text{
		Summary: f.Where() + ": link degraded, " + lanes.of() + " lanes, " + rate.of() + " Gb/s" +
			eachSource(by, " (expected by %s)"),
		Description: "The link runs on " + lanes.of() + " expected lanes, at " + rate.of() + " Gb/s. " + slowestLink,
		Evidence:    e,
		Diagnose:    diagnoseRate(f),
		Action: "Drain the host first: the repair takes the link down. Reseat the cable or transceiver and clean the " +
			"fibre end faces at both ends. If a lane stays dark, swap the cable, then the transceiver." + acceptRate(f),
		DrainReason: drainReasonOfRate(f),
	}
	t.Measured, t.Limit = lanes.compared("")
	return t
}

const slowestLink = "Collectives wait for their slowest link: one port of eight at half of its rate makes a training " +
	"step over that rail take up to twice as long, on all nodes."

// addShortPorts adds how many ports of the host are too slow.
func addShortPorts(f *fault.Fault, e *fault.Lines) {
	if short, ok := f.Number(`count(port:rdma_port_rate:short{$host})`); ok {
		active := f.Text(`count(max by (device, port) (rdma_port_state_id{$host}) == 4)`, " of %v", "")
		e.Add("Host ports", fault.Plain(short)+active+" ACTIVE ports below the expected rate.")
	}
}

// diagnoseRate returns commands that show the rate of the port.
func diagnoseRate(f *fault.Fault) string {
	out := "cat " + portFiles(f) + "/rate"
	if !f.Has(ethernetPort) {
		return out + " ; mlxlink -d " + fault.Pasted(f.Labels["device"]) + " -m -c # as root, needs MFT"
	}
	for _, netdev := range f.Netdevs() {
		out += " ; ethtool " + fault.Pasted(netdev)
	}
	return out
}

// acceptRate returns what to do about a rate that is intended, if the expected one is what the port once had.
func acceptRate(f *fault.Fault) string {
	return fault.When(f.Has(`rdma_port_expected_rate_info{source="high_water_mark",$port}`),
		" If the change was intended, run rdma_exporter accept "+fault.Pasted(f.Labels["device"])+".")
}

func drainReasonOfRate(f *fault.Fault) string {
	if f.Has(`port:rdma_port_rate:half{$port}`) {
		return "New jobs would wait for this link, which has half of its expected rate or less."
	}
	return "The link is up, and jobs continue with less bandwidth."
}

func bondMemberDown(f *fault.Fault) fault.Text {
	netdev := f.Labels["netdev"]
	members, up := bondMembers(f)
	reported := ""
	for _, reason := range f.LabelsOf(`max by (reason) (rdma_port_link_down_reason_info{$netdev})`, "reason") {
		reported += " (driver-reported: " + reason + ")"
	}
	var e fault.Lines
	e.Add("State", "no link on "+netdev+", by the bonding driver.")
	for _, r := range f.Rows(`max by (reason, detail) (rdma_port_link_down_reason_info{$netdev})`, "reason", "detail") {
		e.Add("Reason", words.Join(", ", r.Labels["reason"], r.Labels["detail"])+" (driver-reported).")
	}
	if len(members) > 0 {
		e.Add("Members", strings.Join(members, ", ")+".")
	}
	e.Add("Not evaluated", "cable, transceiver and switch port.")
	return fault.Text{
		Summary: f.AtNetdev() + ": bond member link down, RDMA port ACTIVE" + reported,
		Description: "The bonding driver reports no link on " + netdev +
			fault.When(
				len(members) > 0,
				fmt.Sprintf(" (%d of %d members up)", up, len(members)),
			) + ". The bond runs at reduced " +
			"bandwidth and, with two members, without redundancy: the next link loss ends all connections. The state of " +
			"the RDMA port does not show it.",
		Evidence: e,
		Diagnose: "ethtool " + fault.Pasted(netdev) + " ; ethtool -m " + fault.Pasted(netdev) + " ; cat /sys/class/net/" +
			fault.Pasted(netdev) + "/bonding_slave/mii_status",
		Action: "Check that the switch port is enabled and in the bundle. Reseat the cable, then replace it, then the " +
			"transceiver. If the link stays down, hand over to the network team.",
		DrainReason: "The bond carries traffic over its other members.",
	}
}

// bondMembers returns the members of the bond of the port with their states, and how many of them are up.
func bondMembers(f *fault.Fault) (members []string, up int) {
	for _, m := range f.Rows(`max by (netdev) (rdma_bond_member_up{$port})`, "netdev") {
		state := "down"
		if m.Value == 1 {
			state = "up"
			up++
		}
		members = append(members, m.Labels["netdev"]+" "+state)
	}
	return members, up
}

func bondMemberDownshifted(f *fault.Fault) fault.Text {
	netdev, device, port := f.Labels["netdev"], f.Labels["device"], f.Labels["port"]
	rate, by := pairOf(f, memberRate, memberRateExpected), eachSource(f.LabelsOf(memberExpectedBy, "source"), "%s")
	var e fault.Lines
	e.Add("Rate", rate.now+" Gb/s.")
	e.Add("Expected", rate.expected+" Gb/s, by "+by+".")
	e.Add("Not evaluated", "cable, transceiver and switch port.")
	t := fault.Text{
		Summary: f.AtNetdev() + ": bond member degraded, " +
			rate.now + " of " + rate.expected + " Gb/s (expected by " + by + ")",
		Description: "The link of " + netdev + ", a member of the bond under " + device + "/" + port + ", runs at " +
			fault.Roughly(f.Value) + " of its expected rate. Flows that the bond puts on this member are slower " +
			"than the others. With 802.3ad, a member of another speed may be left out of the aggregate.",
		Evidence: e,
		Diagnose: "ethtool " + fault.Pasted(netdev) + " ; cat /proc/net/bonding/* ; rdma_exporter expect list",
		Action: "Compare the speed of the switch port and the part numbers of cable and transceiver with those of the " +
			"other member. Reseat the cable, then replace it, then the transceiver. If the rate is intended: " +
			"rdma_exporter accept " + fault.Pasted(device) + ", or pin the rate in --config.file.",
		DrainReason: "The bond carries traffic; only flows over this member are slower.",
	}
	t.Measured, t.Limit = rate.compared(" Gb/s")
	return t
}

func linkFlapping(f *fault.Fault) fault.Text {
	lost, often := " or more in 24h, last within 2h", " or more in the last 24h, and has not been stable for 2h since"
	if f.Has(lossesIn1h + ` >= {flaps-per-hour}`) {
		lost, often = " in 1h", " in the last hour"
	}
	var e fault.Lines
	e.Add("Link losses", f.Text(lossesIn1h, "%.0f", "unknown")+" in 1h, administrative ones excluded.")
	if last, ok := f.Number(`max(port:rdma_port_link_loss:last_time{$port})`); ok {
		e.Add("Last loss", time.Unix(int64(last), 0).UTC().Format("2006-01-02 15:04:05 MST")+".")
	}
	addActive(f, &e)
	e.Add("Host ports", f.Text(`count(port:rdma_port_link_losses:count1h{$host} >= {flaps-per-hour})`,
		"%v above the limit in 1h.", ""))
	e.Add("Not evaluated", lossesNotCounted)
	return fault.Text{
		Summary: f.Where() + ": link flapping, lost " + fault.Whole(
			f.Value,
		) + " times" + lost + " (limit {flaps-per-hour-1})",
		Description: "The link was lost " + fault.Whole(
			f.Value,
		) + " times" + often + " (limit {flaps-per-hour-1}). Each loss " +
			"breaks the connections of this port: jobs fail, or hang until their timeouts.",
		Evidence: e,
		Measured: fault.Whole(f.Value),
		Limit:    "{flaps-per-hour-1}",
		Diagnose: diagnoseLosses(f),
		Action: "Drain the host, reseat and clean the cable or transceiver, then swap it, then move to another switch " +
			"port. If several ports of one switch flap at once, repair the switch.",
		DrainReason: "The next loss ends the jobs on this port or makes them hang.",
	}
}

// linkLost tells of losses below the limit of a flapping link.
func linkLost(f *fault.Fault) fault.Text {
	times := words.Count(int(f.Value), "time")
	var e fault.Lines
	e.Add("Link losses", fault.Whole(f.Value)+" in 1h, administrative ones excluded.")
	addActive(f, &e)
	e.Add("Not evaluated", lossesNotCounted)
	return fault.Text{
		Summary: f.Where() + ": link lost " + times + " in 1h",
		Description: "The link was lost " + times + " in the last hour, below the limit of a flapping link. Each loss " +
			"breaks the connections of this port: jobs that used it at that time have failed or hang.",
		Evidence: e,
		Measured: fault.Whole(f.Value),
		Limit:    "0",
		Diagnose: diagnoseLosses(f),
		Action: "No action is needed after work on the cable or the switch. If losses continue, reseat and clean the " +
			"cable or transceiver.",
		DrainReason: "The link is up again, and one or two losses are no pattern.",
	}
}

func linkUnstable(f *fault.Fault) fault.Text {
	lost := fault.Whole(f.Value)
	var e fault.Lines
	e.Add("Link losses", lost+" in 24h (limit {flaps-per-day-1}), administrative ones excluded.")
	e.Add("Last hour", f.Text(lossesIn1h, "%.0f losses.", ""))
	e.Add("Not evaluated", "losses within 10m of boot or of the first reading of the port, the current hour.")
	return fault.Text{
		Summary: f.Where() + ": link flapping, lost " + lost + " times in 24h (limit {flaps-per-day-1})",
		Description: "The link was lost " + lost + " times in the last 24 full hours (limit {flaps-per-day-1}). Each loss breaks the " +
			"connections of this port: a job of many hours meets at least one, and fails or hangs.",
		Evidence: e,
		Measured: lost,
		Limit:    "{flaps-per-day-1}",
		Diagnose: f.ShowLink() + " ; journalctl -k --since -1d | grep -iE 'link (up|down)' | tail -40 # as root",
		Action: "Reseat and clean the cable or transceiver, then swap it, at the next opportunity and before long jobs. " +
			"If several ports of one switch flap, repair the switch.",
		DrainReason: "The link is up between losses that are hours apart: short jobs can run.",
	}
}

const lossesNotCounted = "losses within 10m of boot or of the first reading of the port; losses of InfiniBand ports " +
	"between two rounds when link_downed is saturated."

// addActive adds whether the port is ACTIVE.
func addActive(f *fault.Fault, e *fault.Lines) {
	if state, ok := f.Number(`max(rdma_port_state_id{$port})`); ok {
		e.Add("State", fault.When(state != 4, "not ")+"ACTIVE.")
	}
}

// diagnoseLosses returns commands that show losses of the link.
func diagnoseLosses(f *fault.Fault) string {
	return f.ShowLink() + " ; grep . " + portFiles(f) + "/counters/link_downed ; journalctl -k | " +
		"grep -iE 'link (up|down)' | tail -40 # as root"
}

// portFiles returns the directory of the port in sysfs.
func portFiles(f *fault.Fault) string {
	return "/sys/class/infiniband/" + fault.Pasted(f.Labels["device"]) + "/ports/" + f.Labels["port"]
}

// pair is a value and the expected one; empty: unknown.
type pair struct{ now, expected string }

func pairOf(f *fault.Fault, now, expected string) pair {
	return pair{f.Text(now, "%v", ""), f.Text(expected, "%v", "")}
}

// of returns "200 of 400".
func (p pair) of() string {
	return cmp.Or(p.now, "unknown") + fault.When(p.expected != "", " of "+p.expected)
}

func (p pair) inGbps() string {
	return cmp.Or(fault.When(p.now != "", p.now+" Gb/s"), "unknown")
}

// compared returns the measured value and its limit, if both are known.
func (p pair) compared(unit string) (measured, limit string) {
	if p.now == "" || p.expected == "" {
		return "", ""
	}
	return p.now + unit, p.expected + unit
}

// eachSource names in a format what expects a value: "highest rate seen".
func eachSource(sources []string, format string) (out string) {
	for _, s := range sources {
		out += fmt.Sprintf(format, words.Basis(s))
	}
	return out
}
