package link

import (
	"fmt"
	"strconv"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// errorFaults are those of errors that cost packets, and of discards.
var errorFaults = fault.Kinds{
	"link_errors/symbols":       {Write: linkSymbolErrors},
	"link_errors/symbols_again": {Write: linkSymbolErrors},
	"link_errors/errors":        {Write: linkErrors},
	"link_errors/elsewhere":     {Write: damagedElsewhere},
	"link_errors/integrity":     {Write: linkIntegrity},
	"discards/transmit":         {Write: transmitDiscards},
}

const (
	symbolBurst     = `port:rdma_link_symbol_errors:burst{$port}`
	symbolCordon    = `port:rdma_link_symbol_errors:cordon{$port}`
	symbolLimit12m  = `ceil(port:rdma_link_symbol_errors:limit12m{$port}) - 1`
	symbolLimit125m = `ceil(port:rdma_link_symbol_errors:limit125m{$port}) - 1`
	symbolsAtEnd    = `max(port:rdma_link_symbol_errors:sum125m{$end} > 0 or ` +
		`port:rdma_link_symbol_errors:increase12m{$end} > 0)`
)

func linkSymbolErrors(f *fault.Fault) fault.Text {
	count, limit, window := f.Text(symbolBurst, "%.0f", ""), f.Text(symbolLimit12m, "%.0f", ""), "12m"
	if !f.Has(symbolBurst) {
		count = f.Text(`max(port:rdma_link_symbol_errors:sum125m{$port})`, "%.0f", "unknown")
		limit, window = f.Text(symbolLimit125m, "%.0f", ""), "125m"
	}
	found := count + " symbol errors in " + window + " (limit " + limit
	ends := bothEnds(f, f.Has(atEnd(symbolsAtEnd, ownEnd)), f.Has(atEnd(symbolsAtEnd, farEnd)))
	t := fault.Text{
		Summary: f.Where() + ": " + found + ")" + symbolErrorsFrom(f, ends),
		Description: "FEC no longer corrects all errors of the link: " + found +
			" at " + f.Text(`port:rdma_link_bits:rate{$port} / 1e9`, "%.0f", "") + " Gb/s). " +
			"Packets are lost and retransmitted, and all ranks of a job wait for the slowest.",
		Evidence: evidenceOfSymbolErrors(f),
		Measured: count + " symbol errors",
		Limit:    limit + " in " + window,
		Diagnose: ethtoolErrors(f, "symbol|corrected|err_lane") + mlxlinkErrors(f),
		Action: "Drain the host first: the repair takes the link down. " +
			ends.repair("Errors at both ends point to what both directions share", "", unevenLanes(f, ends.end)) +
			" If errors remain with a new transceiver and a new cable, move the cable to another switch port: " +
			"if they stay, replace the NIC; if not, the first switch port is at fault.",
		DrainReason: "The link is up, and one burst of errors may be a touched cable.",
	}
	if !f.Has(`rdma_port_info{link_layer="Ethernet",$port}`) {
		t.Diagnose = perfquery(f, "-x") + " ; " + perfquery(f, "-T") + " ; " + mlxlinkErrors(f)
	}
	if f.Has(symbolCordon) {
		t.Description += " The errors go on: the link is likely to go down."
		t.DrainReason = "Errors after FEC that go on precede the loss of the link: finish the jobs, then repair it."
	}
	return t
}

// symbolErrorsFrom returns the end of a headline: where the errors come from.
func symbolErrorsFrom(f *fault.Fault, ends linkEnds) string {
	way := ", received from "
	switch {
	case ends.own && ends.far:
		way = ", at both ends, far end "
	case ends.far:
		way = ", received by "
	}
	if system, port, ok := neighbour(f); ok {
		return way + fault.PortOf(system, port)
	}
	if ends.own {
		return way + "an unknown neighbour"
	}
	return way + "the far end"
}

func evidenceOfSymbolErrors(f *fault.Fault) (e fault.Lines) {
	withLimits := " (limits " + f.Text(symbolLimit12m, "%.0f", "unknown") + " and " +
		f.Text(symbolLimit125m, "%.0f", "unknown") + ")."
	for _, r := range f.Rows(`max by (end) (port:rdma_link_symbol_errors:sum125m{$port})`, "end") {
		name, end := "Far end", r.Labels["end"]
		if end == ownEnd {
			name = "This end"
		}
		recent := f.Text(atEnd(`max(port:rdma_link_symbol_errors:increase12m{$end})`, end), "%.0f", "unknown")
		e.Add(name, recent+" symbol errors in 12m, "+fault.Whole(r.Value)+" in 125m"+withLimits)
	}
	if at, ok := f.Number(`max(port:rdma_link_symbol_errors:repeat_time{$port})`); ok {
		e.Add("Repeated", "second burst within 24h at "+fault.UTC(at)+".")
	}
	addBER(f, &e, false)
	addUnreadEnds(f, &e, `port:rdma_link_symbol_errors:count{$end}`, "symbol errors")
	e.Add("Not evaluated", "errors within 5m of link-up, eye opening and margins (registers of the vendor).")
	return e
}

const (
	receiveErrors1h = `port:rdma_port_receive_errors_local:sum1h{$port}`
	badFECWindows   = `port:rdma_port_fec_uncorrectable_blocks:windows30m{$port}`
)

// errors1h selects the errors of a counter within 1h.
func errors1h(counter string) string {
	return `port:rdma_port_errors:sum1h{counter="` + counter + `",$port}`
}

// within1h returns the number that a record has of a counter, in words. It has none where there was no error.
func within1h(f *fault.Fault, record, counter string) string {
	if n, ok := f.Number(record); ok {
		return fault.Whole(n)
	}
	if f.Has(`last_over_time(port:rdma_port_errors:last{counter="` + counter + `",$port}[1h]) ` +
		`unless on (cluster, instance, job, device, port, counter) rdma_port_counter_saturated == 1`) {
		return "0"
	}
	return "unknown"
}

// counted1h returns the errors of a counter within 1h, in words.
func counted1h(f *fault.Fault, counter string) string { return within1h(f, errors1h(counter), counter) }

// linkErrorKinds are the errors that RDMALinkErrors may have as its value, the foremost first.
var linkErrorKinds = []struct{ expr, headline, limit string }{
	{errors1h("symbol_error") + ` > {symbol-errors} unless on (cluster, instance, job, device, port) port:rdma_link_fec:rs`, "%.0f symbol errors in 1h (limit {symbol-errors})", "{symbol-errors}"},
	{errors1h("link_error_recovery") + ` >= {link-error-recoveries}`, "%.0f link error recoveries in 1h (limit {link-error-recoveries-1})", "{link-error-recoveries-1}"},
	{receiveErrors1h + ` > {receive-errors}`, "%.0f receive errors in 1h (limit {receive-errors})", "{receive-errors}"},
	{badFECWindows + ` >= 2`, "uncorrectable FEC blocks in %.0f of the last three 10m windows (limit 1)", "1"},
}

func linkErrors(f *fault.Fault) fault.Text {
	headline, limit := "%.1e of received packets damaged in 1h (limit 1.0e-09)", "1e-09"
	for _, kind := range linkErrorKinds {
		if f.Has(kind.expr) {
			headline, limit = kind.headline, kind.limit
			break
		}
	}
	found, measured := fmt.Sprintf(headline, f.Value), fmt.Sprintf("%.2g", f.Value)
	if f.Has(`port:rdma_link_errors:warning{$port} >= 1`) {
		measured = fault.Whole(f.Value)
	}
	diagnose := ethtoolErrors(f, "crc|symbol|corrected|fcs")
	if !f.Has(`rdma_port_info{link_layer="Ethernet",$port}`) {
		diagnose = perfquery(f, "-x") + " ; "
	}
	return fault.Text{
		Summary: f.Where() + ": link errors, " + found,
		Description: "The port reports " + found + ". Damaged packets are retransmitted, and all ranks of a job wait " +
			"for the slowest. Such a link is likely to go down later.",
		Evidence: evidenceOfLinkErrors(f),
		Measured: measured,
		Limit:    limit,
		Diagnose: diagnose + mlxlinkErrors(f),
		Action: "Drain the host first: the repair takes the link down. Reseat and clean the cable or transceiver, " +
			"then swap it. If the errors continue, move to another switch port.",
		DrainReason: "The link is up, and jobs continue with retransmissions; repair it at the next opportunity.",
	}
}

func evidenceOfLinkErrors(f *fault.Fault) (e fault.Lines) {
	e.Add("Symbol errors", counted1h(f, "symbol_error")+" in 1h (limit {symbol-errors}).")
	e.Add("Link error recoveries", counted1h(f, "link_error_recovery")+" in 1h (limit {link-error-recoveries-1}).")
	e.Add("Receive errors",
		within1h(f, receiveErrors1h, "port_rcv_errors")+" in 1h, of this link (limit {receive-errors}).")
	e.Add("Remote errors", f.Text(errors1h("port_rcv_remote_physical_errors")+` > 0`,
		"%.0f packets arrived already marked bad in 1h, not counted above.", ""))
	for _, r := range f.Rows(`sum by (error) (increase(rdma_port_neighbour_errors_total{`+
		`error=~"link_error_recoveries|receive_errors|symbol_errors",$port}[1h]))`, "error") {
		e.Add("Far end", fault.Whole(r.Value)+" "+words.Spaced(r.Labels["error"])+" in 1h, of what this port sends.")
	}
	if crc := counted1h(f, "crc_errors"); crc != "unknown" {
		e.Add("FEC", "uncorrectable blocks in "+f.Text(badFECWindows, "%.0f", "0")+
			" of the last three 10m windows (limit 1).")
		e.Add("CRC errors", crc+" in 1h, of "+
			f.Text(`port:rdma_port_received_packets:increase1h{$port}`, "%.0f", "unknown")+
			" packets received (limit 1.0e-09 of them).")
		e.Add("PCS symbol errors", counted1h(f, "pcs_symbol_errors")+" in 1h (limit 1.0e-09 of the packets).")
	}
	for _, r := range f.Rows(`max by (netdev) (rdma_transceiver_temperature_celsius{$port})`, "netdev") {
		e.Add("Temperature", fmt.Sprintf("%.1f °C, transceiver in %s.", r.Value, r.Labels["netdev"]))
	}
	for _, netdev := range f.LabelsOf(withReceivePower, "netdev") {
		e.Add("Receive power", fault.Listed(receivePower(f, netdev), "%.1f")+" dBm by lane, transceiver in "+netdev+".")
	}
	e.Add("Not evaluated", "errors within 5m of link-up, corrected bits, frames that a switch forwarded damaged.")
	return e
}

// damagedElsewhere tells of packets that arrive marked as bad.
func damagedElsewhere(f *fault.Fault) fault.Text {
	count := fault.Whole(f.Value)
	return fault.Text{
		Summary: f.Where() + ": receives packets damaged on another link, " + count + " in 1h (limit 120)",
		Description: count + " packets arrived already marked bad in the last hour (limit 120): a link beyond the " +
			"neighbour damaged them, and the errors of this link are below their limits. Damaged packets are " +
			"retransmitted, and all ranks of a job wait for the slowest.",
		Evidence: fault.Lines{
			{Name: "Remote errors", Text: count + " packets arrived already marked bad in 1h (limit 120)."},
			{Name: "Not evaluated", Text: "which link damages them."},
		},
		Measured: count,
		Limit:    "120",
		Diagnose: perfquery(f, "-x") + " # as root",
		Action: "Keep this cable. Find the switch port with symbol errors (ibqueryerrors, as root) and repair its " +
			"link.",
		DrainReason: "The faulty link is elsewhere in the fabric.",
	}
}

func linkIntegrity(f *fault.Fault) fault.Text {
	count := fault.Whole(f.Value)
	t := fault.Text{
		Summary: f.Where() + ": receive buffers overrun, " + count + " excessive buffer overruns in 1h (limit 1)",
		Description: "The receive buffer of the port overran in several flow control periods in a row, " + count +
			" times in 1h (limit 1). Packets are lost and retransmitted, although InfiniBand has flow control.",
		Measured: count,
		Limit:    "1",
		Diagnose: perfquery(f, "-x") + " ; " + mlxlinkErrors(f),
		Action: "Compare firmware and virtual lane settings of the switch port and the adapter: the far end sends " +
			"more than its credits allow.",
		DrainReason: "The link is up, and jobs continue with retransmissions; repair it at the next opportunity.",
	}
	if f.Has(errors1h("local_link_integrity_errors") + ` >= 2`) {
		t.Summary = f.Where() + ": receives too many bit errors, " + count + " local link integrity errors in 1h (limit 1)"
		t.Description = "The local physical errors of the port exceeded its LocalPhyErrors threshold " + count +
			" times in 1h (limit 1). Packets are lost and retransmitted; such a link retrains, and goes down later."
		t.Action = "Drain the host first: the repair takes the link down. Reseat and clean the cable or transceiver, " +
			"then swap it."
	}
	t.Action += " If it continues, move to another switch port."
	var e fault.Lines
	e.Add("Integrity errors", counted1h(f, "local_link_integrity_errors")+" in 1h (limit 1).")
	e.Add("Buffer overruns", counted1h(f, "excessive_buffer_overrun_errors")+" in 1h (limit 1).")
	for _, counter := range f.LabelsOf(`max by (counter) (rdma_port_counter_saturated{`+
		`counter=~"local_link_integrity_errors|excessive_buffer_overrun_errors",$port}) == 1`, "counter") {
		e.Add("Saturated", counter+" is at its maximum of 15, further events are not counted.")
	}
	e.Add("Symbol errors", counted1h(f, "symbol_error")+" in 1h.")
	e.Add("Not evaluated", "events within 5m of link-up, counters of the far end.")
	t.Evidence = e
	return t
}

func transmitDiscards(f *fault.Fault) fault.Text {
	count := fault.Whole(f.Value)
	var e fault.Lines
	e.Add("Discarded", count+" packets in the last hour (limit {transmit-discards}).")
	e.Add("Transmitted", f.Text(`sum(increase(rdma_port_transmit_packets_total{$port}[1h]))`,
		"%.0f packets in the last hour.", ""))
	e.Add("Credit wait", f.Text(`max(rate(rdma_port_transmit_wait_ticks_total{$port}[10m]))`, "%.0f ticks/s.", ""))
	e.Add("Not evaluated", "path of the packets, discards within 5m of link-up.")
	return fault.Text{
		Summary: f.WhereAll() + ": " + count + " packets discarded on transmit in 1h (limit {transmit-discards})",
		Description: "The InfiniBand port discarded " + count +
			" packets that it had to transmit in 1h (limit {transmit-discards}): " +
			"in most cases the switch port gave no credits for longer than the packets may wait. They are " +
			"retransmitted after a timeout, and the job stalls for that long; where the retries are exceeded, it ends.",
		Evidence: e,
		Measured: count + " packets",
		Limit:    "{transmit-discards} packets",
		Diagnose: perfquery(f, "-x") + " ; ibqueryerrors --details # as root",
		Action: "Follow the ports with a high PortXmitWait from the switch port to the slow receiver or link, and " +
			"repair that. If the routing was changed, check it for credit loops. The counter stops at 65535: clear " +
			"it once the cause is removed.",
		DrainReason: "The cause is in most cases further along the path, not on this host.",
	}
}

// withReceivePower has the interfaces whose transceivers report their receive power.
const withReceivePower = `count by (netdev) (rdma_transceiver_receive_power_dbm{$port})`

// receivePower returns the power that a transceiver receives, by lane.
func receivePower(f *fault.Fault, netdev string) []fault.Sample {
	return f.Rows(`max by (lane) (rdma_transceiver_receive_power_dbm{$port,netdev=`+strconv.Quote(netdev)+`})`, "lane")
}

// ethtoolErrors returns commands, each with a separator after it, that show error counters of the interfaces of the
// port.
func ethtoolErrors(f *fault.Fault, counters string) (out string) {
	for _, netdev := range f.Netdevs() {
		out += "ethtool -S " + fault.Pasted(netdev) + " | grep -E '" + counters + "' ; "
	}
	return out
}

// perfquery returns a command that shows the InfiniBand counters of the port.
func perfquery(f *fault.Fault, flag string) string {
	return "perfquery " + flag + " -C " + fault.Pasted(f.Labels["device"]) + " -P " + f.Labels["port"]
}

// mlxlinkErrors returns a command that shows the counters and the eye opening of the link.
func mlxlinkErrors(f *fault.Fault) string {
	return "mlxlink -d " + fault.Pasted(f.Labels["device"]) + " -c -e # as root, needs MFT"
}
