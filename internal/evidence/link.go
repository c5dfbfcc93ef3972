package evidence

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"rdma_exporter/internal/words"
)

// linkTexts are those of links: rate, width, errors, losses.
var linkTexts = map[string]func(*Fault) Text{
	"link_degraded/rate":        linkDownshifted,
	"link_degraded/width":       linkWidthDegraded,
	"port_down/bond_member":     bondMemberDown,
	"link_degraded/bond_member": bondMemberDownshifted,
	"port_down/port":            portDown,
	"port_down/administrative":  portSetDown,
	"port_down/plane":           planeDegraded,
	"link_flapping/hour":        linkFlapping,
	"link_flapping/once":        linkLost,
	"link_flapping/day":         linkUnstable,
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

func linkDownshifted(f *Fault) Text {
	rate, by := f.pair(rateNow, rateExpected), f.labels(rateExpectedBy, "source")
	var e lines
	width := ""
	if lanes, ok := f.number(widthNow); ok {
		width = " on " + words.Count(int(lanes), "lane")
	}
	e.add("Rate", rate.inGbps()+width+".")
	if rate.expected != "" {
		e.add("Expected", rate.expected+" Gb/s"+eachSource(by, ", by %s")+".")
	}
	f.addShortPorts(&e)
	e.add("Not evaluated", "cable, transceiver and switch port.")
	t := Text{
		Summary: f.where() + ": link degraded, " + rate.of() + " Gb/s" + eachSource(by, " (expected by %s)"),
		Description: "The link runs at " + rate.of() + " Gb/s with all of its lanes. " + slowestLink +
			" Error counters do not show it.",
		Evidence: e,
		Diagnose: f.diagnoseRate(),
		Action: "Compare the speed of the switch port and the part numbers of cable and transceiver with those of a good " +
			"port. Drain the host, reseat both ends, then swap the cable, then the transceivers." + f.acceptRate(),
		DrainReason: f.drainReasonOfRate(),
	}
	t.Measured, t.Limit = rate.compared(" Gb/s")
	return t
}

func linkWidthDegraded(f *Fault) Text {
	lanes, rate := f.pair(widthNow, widthExpected), f.pair(rateNow, rateExpected)
	by := f.labels(widthExpectedBy, "source")
	var e lines
	e.add("Lanes", cmp.Or(lanes.now, "unknown")+when(lanes.expected != "", ", expected "+lanes.expected)+
		eachSource(by, ", by %s")+".")
	e.add("Rate", rate.inGbps()+when(rate.expected != "", ", expected "+rate.expected+" Gb/s")+
		eachSource(f.labels(rateExpectedBy, "source"), ", by %s")+".")
	f.addShortPorts(&e)
	e.add("Not evaluated", "which lane is missing, the far end.")
	t := Text{
		Summary: f.where() + ": link degraded, " + lanes.of() + " lanes, " + rate.of() + " Gb/s" +
			eachSource(by, " (expected by %s)"),
		Description: "The link runs on " + lanes.of() + " expected lanes, at " + rate.of() + " Gb/s. " + slowestLink,
		Evidence:    e,
		Diagnose:    f.diagnoseRate(),
		Action: "Drain the host first: the repair takes the link down. Reseat the cable or transceiver and clean the " +
			"fibre end faces at both ends. If a lane stays dark, swap the cable, then the transceiver." + f.acceptRate(),
		DrainReason: f.drainReasonOfRate(),
	}
	t.Measured, t.Limit = lanes.compared("")
	return t
}

const slowestLink = "Collectives wait for their slowest link: one port of eight at half of its rate makes a training " +
	"step over that rail take up to twice as long, on all nodes."

// addShortPorts adds how many ports of the host are too slow.
func (f *Fault) addShortPorts(e *lines) {
	if short, ok := f.number(`count(port:rdma_port_rate:short{$host})`); ok {
		active := f.text(`count(max by (device, port) (rdma_port_state_id{$host}) == 4)`, " of %v", "")
		e.add("Host ports", plain(short)+active+" ACTIVE ports below the expected rate.")
	}
}

// diagnoseRate are commands that show the rate of the port.
func (f *Fault) diagnoseRate() string {
	out := "cat " + f.portFiles() + "/rate"
	if !f.has(ethernetPort) {
		return out + " ; mlxlink -d " + pasted(f.Labels["device"]) + " -m -c # as root, needs MFT"
	}
	for _, netdev := range f.netdevs() {
		out += " ; ethtool " + pasted(netdev)
	}
	return out
}

// acceptRate is what to do about a rate that is intended, if the expected one is what the port once had.
func (f *Fault) acceptRate() string {
	return when(f.has(`rdma_port_expected_rate_info{source="high_water_mark",$port}`),
		" If the change was intended, run rdma_exporter accept "+pasted(f.Labels["device"])+".")
}

func (f *Fault) drainReasonOfRate() string {
	if f.has(`port:rdma_port_rate:half{$port}`) {
		return "New jobs would wait for this link, which has half of its expected rate or less."
	}
	return "The link is up, and jobs continue with less bandwidth."
}

func bondMemberDown(f *Fault) Text {
	netdev := f.Labels["netdev"]
	members, up := f.bondMembers()
	reported := ""
	for _, reason := range f.labels(`max by (reason) (rdma_port_link_down_reason_info{$netdev})`, "reason") {
		reported += " (driver-reported: " + reason + ")"
	}
	var e lines
	e.add("State", "no link on "+netdev+", by the bonding driver.")
	for _, r := range f.rows(`max by (reason, detail) (rdma_port_link_down_reason_info{$netdev})`, "reason", "detail") {
		e.add("Reason", words.Join(", ", r.Labels["reason"], r.Labels["detail"])+" (driver-reported).")
	}
	if len(members) > 0 {
		e.add("Members", strings.Join(members, ", ")+".")
	}
	e.add("Not evaluated", "cable, transceiver and switch port.")
	return Text{
		Summary: f.atNetdev() + ": bond member link down, RDMA port ACTIVE" + reported,
		Description: "The bonding driver reports no link on " + netdev +
			when(len(members) > 0, fmt.Sprintf(" (%d of %d members up)", up, len(members))) + ". The bond runs at reduced " +
			"bandwidth and, with two members, without redundancy: the next link loss ends all connections. The state of " +
			"the RDMA port does not show it.",
		Evidence: e,
		Diagnose: "ethtool " + pasted(netdev) + " ; ethtool -m " + pasted(netdev) + " ; cat /sys/class/net/" +
			pasted(netdev) + "/bonding_slave/mii_status",
		Action: "Check that the switch port is enabled and in the bundle. Reseat the cable, then replace it, then the " +
			"transceiver. If the link stays down, hand over to the network team.",
		DrainReason: "The bond carries traffic over its other members.",
	}
}

// bondMembers are the members of the bond of the port with their states, and how many of them are up.
func (f *Fault) bondMembers() (members []string, up int) {
	for _, m := range f.rows(`max by (netdev) (rdma_bond_member_up{$port})`, "netdev") {
		state := "down"
		if m.Value == 1 {
			state = "up"
			up++
		}
		members = append(members, m.Labels["netdev"]+" "+state)
	}
	return members, up
}

func bondMemberDownshifted(f *Fault) Text {
	netdev, device, port := f.Labels["netdev"], f.Labels["device"], f.Labels["port"]
	rate, by := f.pair(memberRate, memberRateExpected), eachSource(f.labels(memberExpectedBy, "source"), "%s")
	var e lines
	e.add("Rate", rate.now+" Gb/s.")
	e.add("Expected", rate.expected+" Gb/s, by "+by+".")
	e.add("Not evaluated", "cable, transceiver and switch port.")
	t := Text{
		Summary: f.atNetdev() + ": bond member degraded, " +
			rate.now + " of " + rate.expected + " Gb/s (expected by " + by + ")",
		Description: "The link of " + netdev + ", a member of the bond under " + device + "/" + port + ", runs at " +
			roughly(f.Value) + " of its expected rate. Flows that the bond puts on this member are slower " +
			"than the others. With 802.3ad, a member of another speed may be left out of the aggregate.",
		Evidence: e,
		Diagnose: "ethtool " + pasted(netdev) + " ; cat /proc/net/bonding/* ; rdma_exporter expect list",
		Action: "Compare the speed of the switch port and the part numbers of cable and transceiver with those of the " +
			"other member. Reseat the cable, then replace it, then the transceiver. If the rate is intended: " +
			"rdma_exporter accept " + pasted(device) + ", or pin the rate in --config.file.",
		DrainReason: "The bond carries traffic; only flows over this member are slower.",
	}
	t.Measured, t.Limit = rate.compared(" Gb/s")
	return t
}

func linkFlapping(f *Fault) Text {
	lost, often := " or more in 24h, last within 2h", " or more in the last 24h, and has not been stable for 2h since"
	if f.has(lossesIn1h + ` >= {flaps-per-hour}`) {
		lost, often = " in 1h", " in the last hour"
	}
	var e lines
	e.add("Link losses", f.text(lossesIn1h, "%.0f", "unknown")+" in 1h, administrative ones excluded.")
	if last, ok := f.number(`max(port:rdma_port_link_loss:last_time{$port})`); ok {
		e.add("Last loss", time.Unix(int64(last), 0).UTC().Format("2006-01-02 15:04:05 MST")+".")
	}
	f.addActive(&e)
	e.add("Host ports", f.text(`count(port:rdma_port_link_losses:count1h{$host} >= {flaps-per-hour})`,
		"%v above the limit in 1h.", ""))
	e.add("Not evaluated", lossesNotCounted)
	return Text{
		Summary: f.where() + ": link flapping, lost " + whole(f.Value) + " times" + lost + " (limit {flaps-per-hour-1})",
		Description: "The link was lost " + whole(f.Value) + " times" + often + " (limit {flaps-per-hour-1}). Each loss " +
			"breaks the connections of this port: jobs fail, or hang until their timeouts.",
		Evidence: e,
		Measured: whole(f.Value),
		Limit:    "{flaps-per-hour-1}",
		Diagnose: f.diagnoseLosses(),
		Action: "Drain the host, reseat and clean the cable or transceiver, then swap it, then move to another switch " +
			"port. If several ports of one switch flap at once, repair the switch.",
		DrainReason: "The next loss ends the jobs on this port or makes them hang.",
	}
}

// linkLost is about losses below the limit of a flapping link.
func linkLost(f *Fault) Text {
	times := words.Count(int(f.Value), "time")
	var e lines
	e.add("Link losses", whole(f.Value)+" in 1h, administrative ones excluded.")
	f.addActive(&e)
	e.add("Not evaluated", lossesNotCounted)
	return Text{
		Summary: f.where() + ": link lost " + times + " in 1h",
		Description: "The link was lost " + times + " in the last hour, below the limit of a flapping link. Each loss " +
			"breaks the connections of this port: jobs that used it at that time have failed or hang.",
		Evidence: e,
		Measured: whole(f.Value),
		Limit:    "0",
		Diagnose: f.diagnoseLosses(),
		Action: "No action is needed after work on the cable or the switch. If losses continue, reseat and clean the " +
			"cable or transceiver.",
		DrainReason: "The link is up again, and one or two losses are no pattern.",
	}
}

func linkUnstable(f *Fault) Text {
	lost := whole(f.Value)
	var e lines
	e.add("Link losses", lost+" in 24h (limit {flaps-per-day-1}), administrative ones excluded.")
	e.add("Last hour", f.text(lossesIn1h, "%.0f losses.", ""))
	e.add("Not evaluated", "losses within 10m of boot or of the first reading of the port, the current hour.")
	return Text{
		Summary: f.where() + ": link flapping, lost " + lost + " times in 24h (limit {flaps-per-day-1})",
		Description: "The link was lost " + lost + " times in the last 24 full hours (limit {flaps-per-day-1}). Each loss breaks the " +
			"connections of this port: a job of many hours meets at least one, and fails or hangs.",
		Evidence: e,
		Measured: lost,
		Limit:    "{flaps-per-day-1}",
		Diagnose: f.showLink() + " ; journalctl -k --since -1d | grep -iE 'link (up|down)' | tail -40 # as root",
		Action: "Reseat and clean the cable or transceiver, then swap it, at the next opportunity and before long jobs. " +
			"If several ports of one switch flap, repair the switch.",
		DrainReason: "The link is up between losses that are hours apart: short jobs can run.",
	}
}

const lossesNotCounted = "losses within 10m of boot or of the first reading of the port; losses of InfiniBand ports " +
	"between two rounds when link_downed is saturated."

// addActive adds whether the port is ACTIVE.
func (f *Fault) addActive(e *lines) {
	if state, ok := f.number(`max(rdma_port_state_id{$port})`); ok {
		e.add("State", when(state != 4, "not ")+"ACTIVE.")
	}
}

// diagnoseLosses are commands that show losses of the link.
func (f *Fault) diagnoseLosses() string {
	return f.showLink() + " ; grep . " + f.portFiles() + "/counters/link_downed ; journalctl -k | " +
		"grep -iE 'link (up|down)' | tail -40 # as root"
}

// showLink is the command that shows the state of the port.
func (f *Fault) showLink() string {
	return "rdma link show " + f.pastedPort()
}

// portFiles is the directory of the port in sysfs.
func (f *Fault) portFiles() string {
	return "/sys/class/infiniband/" + pasted(f.Labels["device"]) + "/ports/" + f.Labels["port"]
}

// pair is a value and the expected one; empty: unknown.
type pair struct{ now, expected string }

func (f *Fault) pair(now, expected string) pair {
	return pair{f.text(now, "%v", ""), f.text(expected, "%v", "")}
}

// of is "200 of 400".
func (p pair) of() string {
	return cmp.Or(p.now, "unknown") + when(p.expected != "", " of "+p.expected)
}

func (p pair) inGbps() string {
	return cmp.Or(when(p.now != "", p.now+" Gb/s"), "unknown")
}

// compared are the measured value and its limit, if both are known.
func (p pair) compared(unit string) (measured, limit string) {
	if p.now == "" || p.expected == "" {
		return "", ""
	}
	return p.now + unit, p.expected + unit
}

// eachSource names in a format what expects a value: "high water mark".
func eachSource(sources []string, format string) (out string) {
	for _, s := range sources {
		out += fmt.Sprintf(format, words.Spaced(s))
	}
	return out
}
