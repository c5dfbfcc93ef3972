package evidence

import (
	"fmt"
	"strconv"

	"rdma_exporter/internal/words"
)

// errorsTexts are those of bit errors, symbol errors and discards.
var errorsTexts = map[string]func(*Fault) Text{
	"link_errors/ber":           linkBERHigh,
	"link_errors/lane":          laneBERHigh,
	"link_wearing/ber":          linkBERRising,
	"link_errors/symbols":       linkSymbolErrors,
	"link_errors/symbols_again": linkSymbolErrors,
	"link_errors/errors":        linkErrors,
	"link_errors/elsewhere":     damagedElsewhere,
	"link_errors/integrity":     linkIntegrity,
	"discards/transmit":         transmitDiscards,
}

const (
	symbolBurst     = `port:rdma_link_symbol_errors:burst{$port}`
	symbolCordon    = `port:rdma_link_symbol_errors:cordon{$port}`
	symbolLimit12m  = `ceil(port:rdma_link_symbol_errors:limit12m{$port}) - 1`
	symbolLimit125m = `ceil(port:rdma_link_symbol_errors:limit125m{$port}) - 1`
	symbolsAtEnd    = `max(port:rdma_link_symbol_errors:sum125m{$end} > 0 or ` +
		`port:rdma_link_symbol_errors:increase12m{$end} > 0)`
)

func linkSymbolErrors(f *Fault) Text {
	count, limit, window := f.text(symbolBurst, "%.0f", ""), f.text(symbolLimit12m, "%.0f", ""), "12m"
	if !f.has(symbolBurst) {
		count = f.text(`max(port:rdma_link_symbol_errors:sum125m{$port})`, "%.0f", "unknown")
		limit, window = f.text(symbolLimit125m, "%.0f", ""), "125m"
	}
	found := count + " symbol errors in " + window + " (limit " + limit
	ends := f.linkEnds(f.has(atEnd(symbolsAtEnd, ownEnd)), f.has(atEnd(symbolsAtEnd, farEnd)))
	t := Text{
		Summary: f.where() + ": " + found + ")" + f.symbolErrorsFrom(ends),
		Description: "FEC no longer corrects all errors of the link: " + found +
			" at " + f.text(`port:rdma_link_bits:rate{$port} / 1e9`, "%.0f", "") + " Gb/s). " +
			"Packets are lost and retransmitted, and all ranks of a job wait for the slowest.",
		Evidence: f.evidenceOfSymbolErrors(),
		Measured: count + " symbol errors",
		Limit:    limit + " in " + window,
		Diagnose: f.ethtoolErrors("symbol|corrected|err_lane") + f.mlxlinkErrors(),
		Action: "Drain the host first: the repair takes the link down. " +
			ends.repair("Errors at both ends point to what both directions share", "", f.badLanes(ends.end)) +
			" If errors remain with a new transceiver and a new cable, move the cable to another switch port: " +
			"if they stay, replace the NIC; if not, the first switch port is at fault.",
		DrainReason: "The link is up, and one burst of errors may be a touched cable.",
	}
	if !f.has(`rdma_port_info{link_layer="Ethernet",$port}`) {
		t.Diagnose = f.perfquery("-x") + " ; " + f.perfquery("-T") + " ; " + f.mlxlinkErrors()
	}
	if f.has(symbolCordon) {
		t.Description += " The errors go on: the link is likely to go down."
		t.DrainReason = "Errors after FEC that go on precede the loss of the link: finish the jobs, then repair it."
	}
	return t
}

// symbolErrorsFrom is the end of a headline: where the errors come from.
func (f *Fault) symbolErrorsFrom(ends linkEnds) string {
	way := ", received from "
	switch {
	case ends.own && ends.far:
		way = ", at both ends, far end "
	case ends.far:
		way = ", received by "
	}
	if system, port, ok := f.neighbour(); ok {
		return way + portOf(system, port)
	}
	if ends.own {
		return way + "an unknown neighbour"
	}
	return way + "the far end"
}

func (f *Fault) evidenceOfSymbolErrors() (e lines) {
	limits := " (limits " + f.text(symbolLimit12m, "%.0f", "unknown") + " and " +
		f.text(symbolLimit125m, "%.0f", "unknown") + ")."
	for _, r := range f.rows(`max by (end) (port:rdma_link_symbol_errors:sum125m{$port})`, "end") {
		name, end := "Far end", r.Labels["end"]
		if end == ownEnd {
			name = "This end"
		}
		recent := f.text(atEnd(`max(port:rdma_link_symbol_errors:increase12m{$end})`, end), "%.0f", "unknown")
		e.add(name, recent+" symbol errors in 12m, "+whole(r.Value)+" in 125m"+limits)
	}
	if at, ok := f.number(`max(port:rdma_link_symbol_errors:repeat_time{$port})`); ok {
		e.add("Repeated", "second burst within 24h at "+utc(at)+".")
	}
	f.addBER(&e, false)
	f.addUnreadEnds(&e, `port:rdma_link_symbol_errors:count{$end}`, "symbol errors")
	e.add("Not evaluated", "errors within 5m of link-up, eye opening and margins (registers of the vendor).")
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

// within1h is the number that a record has of a counter, in words. It has none where there was no error.
func (f *Fault) within1h(record, counter string) string {
	if n, ok := f.number(record); ok {
		return whole(n)
	}
	if f.has(`last_over_time(port:rdma_port_errors:last{counter="` + counter + `",$port}[1h]) ` +
		`unless on (cluster, instance, job, device, port, counter) rdma_port_counter_saturated == 1`) {
		return "0"
	}
	return "unknown"
}

// counted1h is the errors of a counter within 1h, in words.
func (f *Fault) counted1h(counter string) string { return f.within1h(errors1h(counter), counter) }

// linkErrorKinds are the errors that RDMALinkErrors may have as its value, the foremost first.
var linkErrorKinds = []struct{ expr, headline, limit string }{
	{errors1h("symbol_error") + ` > {symbol-errors} unless on (cluster, instance, job, device, port) port:rdma_link_fec:rs`, "%.0f symbol errors in 1h (limit {symbol-errors})", "{symbol-errors}"},
	{errors1h("link_error_recovery") + ` >= {link-error-recoveries}`, "%.0f link error recoveries in 1h (limit {link-error-recoveries-1})", "{link-error-recoveries-1}"},
	{receiveErrors1h + ` > {receive-errors}`, "%.0f receive errors in 1h (limit {receive-errors})", "{receive-errors}"},
	{badFECWindows + ` >= 2`, "uncorrectable FEC blocks in %.0f of the last three 10m windows (limit 1)", "1"},
}

func linkErrors(f *Fault) Text {
	headline, limit := "%.1e of received packets damaged in 1h (limit 1.0e-09)", "1e-09"
	for _, kind := range linkErrorKinds {
		if f.has(kind.expr) {
			headline, limit = kind.headline, kind.limit
			break
		}
	}
	found, measured := fmt.Sprintf(headline, f.Value), fmt.Sprintf("%.2g", f.Value)
	if f.has(`port:rdma_link_errors:warning{$port} >= 1`) {
		measured = whole(f.Value)
	}
	diagnose := f.ethtoolErrors("crc|symbol|corrected|fcs")
	if !f.has(`rdma_port_info{link_layer="Ethernet",$port}`) {
		diagnose = f.perfquery("-x") + " ; "
	}
	return Text{
		Summary: f.where() + ": link errors, " + found,
		Description: "The port reports " + found + ". Damaged packets are retransmitted, and all ranks of a job wait " +
			"for the slowest. Such a link is likely to go down later.",
		Evidence: f.evidenceOfLinkErrors(),
		Measured: measured,
		Limit:    limit,
		Diagnose: diagnose + f.mlxlinkErrors(),
		Action: "Drain the host first: the repair takes the link down. Reseat and clean the cable or transceiver, " +
			"then swap it. If the errors continue, move to another switch port.",
		DrainReason: "The link is up, and jobs continue with retransmissions; repair it at the next opportunity.",
	}
}

func (f *Fault) evidenceOfLinkErrors() (e lines) {
	e.add("Symbol errors", f.counted1h("symbol_error")+" in 1h (limit {symbol-errors}).")
	e.add("Link error recoveries", f.counted1h("link_error_recovery")+" in 1h (limit {link-error-recoveries-1}).")
	e.add("Receive errors",
		f.within1h(receiveErrors1h, "port_rcv_errors")+" in 1h, of this link (limit {receive-errors}).")
	e.add("Remote errors", f.text(errors1h("port_rcv_remote_physical_errors")+` > 0`,
		"%.0f packets arrived already marked bad in 1h, not counted above.", ""))
	for _, r := range f.rows(`sum by (error) (increase(rdma_port_neighbour_errors_total{`+
		`error=~"link_error_recoveries|receive_errors|symbol_errors",$port}[1h]))`, "error") {
		e.add("Far end", whole(r.Value)+" "+words.Spaced(r.Labels["error"])+" in 1h, of what this port sends.")
	}
	if crc := f.counted1h("crc_errors"); crc != "unknown" {
		e.add("FEC", "uncorrectable blocks in "+f.text(badFECWindows, "%.0f", "0")+
			" of the last three 10m windows (limit 1).")
		e.add("CRC errors", crc+" in 1h, of "+
			f.text(`port:rdma_port_received_packets:increase1h{$port}`, "%.0f", "unknown")+
			" packets received (limit 1.0e-09 of them).")
		e.add("PCS symbol errors", f.counted1h("pcs_symbol_errors")+" in 1h (limit 1.0e-09 of the packets).")
	}
	for _, r := range f.rows(`max by (netdev) (rdma_transceiver_temperature_celsius{$port})`, "netdev") {
		e.add("Temperature", fmt.Sprintf("%.1f °C, transceiver in %s.", r.Value, r.Labels["netdev"]))
	}
	for _, netdev := range f.labels(withReceivePower, "netdev") {
		e.add("Receive power", listed(f.receivePower(netdev), "%.1f")+" dBm by lane, transceiver in "+netdev+".")
	}
	e.add("Not evaluated", "errors within 5m of link-up, corrected bits, frames that a switch forwarded damaged.")
	return e
}

// damagedElsewhere is RDMALinkErrors of packets that arrive marked as bad.
func damagedElsewhere(f *Fault) Text {
	count := whole(f.Value)
	return Text{
		Summary: f.where() + ": receives packets damaged on another link, " + count + " in 1h (limit 120)",
		Description: count + " packets arrived already marked bad in the last hour (limit 120): a link beyond the " +
			"neighbour damaged them, and the errors of this link are below their limits. Damaged packets are " +
			"retransmitted, and all ranks of a job wait for the slowest.",
		Evidence: lines{
			{"Remote errors", count + " packets arrived already marked bad in 1h (limit 120)."},
			{"Not evaluated", "which link damages them."},
		},
		Measured: count,
		Limit:    "120",
		Diagnose: f.perfquery("-x") + " # as root",
		Action: "Keep this cable. Find the switch port with symbol errors (ibqueryerrors, as root) and repair its " +
			"link.",
		DrainReason: "The faulty link is elsewhere in the fabric.",
	}
}

func linkIntegrity(f *Fault) Text {
	count := whole(f.Value)
	t := Text{
		Summary: f.where() + ": receive buffers overrun, " + count + " excessive buffer overruns in 1h (limit 1)",
		Description: "The receive buffer of the port overran in several flow control periods in a row, " + count +
			" times in 1h (limit 1). Packets are lost and retransmitted, although InfiniBand has flow control.",
		Measured: count,
		Limit:    "1",
		Diagnose: f.perfquery("-x") + " ; " + f.mlxlinkErrors(),
		Action: "Compare firmware and virtual lane settings of the switch port and the adapter: the far end sends " +
			"more than its credits allow.",
		DrainReason: "The link is up, and jobs continue with retransmissions; repair it at the next opportunity.",
	}
	if f.has(errors1h("local_link_integrity_errors") + ` >= 2`) {
		t.Summary = f.where() + ": receives too many bit errors, " + count + " local link integrity errors in 1h (limit 1)"
		t.Description = "The local physical errors of the port exceeded its LocalPhyErrors threshold " + count +
			" times in 1h (limit 1). Packets are lost and retransmitted; such a link retrains, and goes down later."
		t.Action = "Drain the host first: the repair takes the link down. Reseat and clean the cable or transceiver, " +
			"then swap it."
	}
	t.Action += " If it continues, move to another switch port."
	var e lines
	e.add("Integrity errors", f.counted1h("local_link_integrity_errors")+" in 1h (limit 1).")
	e.add("Buffer overruns", f.counted1h("excessive_buffer_overrun_errors")+" in 1h (limit 1).")
	for _, counter := range f.labels(`max by (counter) (rdma_port_counter_saturated{`+
		`counter=~"local_link_integrity_errors|excessive_buffer_overrun_errors",$port}) == 1`, "counter") {
		e.add("Saturated", counter+" is at its maximum of 15, further events are not counted.")
	}
	e.add("Symbol errors", f.counted1h("symbol_error")+" in 1h.")
	e.add("Not evaluated", "events within 5m of link-up, counters of the far end.")
	t.Evidence = e
	return t
}

func transmitDiscards(f *Fault) Text {
	count := whole(f.Value)
	var e lines
	e.add("Discarded", count+" packets in the last hour (limit {transmit-discards}).")
	e.add("Transmitted", f.text(`sum(increase(rdma_port_transmit_packets_total{$port}[1h]))`,
		"%.0f packets in the last hour.", ""))
	e.add("Credit wait", f.text(`max(rate(rdma_port_transmit_wait_ticks_total{$port}[10m]))`, "%.0f ticks/s.", ""))
	e.add("Not evaluated", "path of the packets, discards within 5m of link-up.")
	return Text{
		Summary: f.whereAll() + ": " + count + " packets discarded on transmit in 1h (limit {transmit-discards})",
		Description: "The InfiniBand port discarded " + count +
			" packets that it had to transmit in 1h (limit {transmit-discards}): " +
			"in most cases the switch port gave no credits for longer than the packets may wait. They are " +
			"retransmitted after a timeout, and the job stalls for that long; where the retries are exceeded, it ends.",
		Evidence: e,
		Measured: count + " packets",
		Limit:    "{transmit-discards} packets",
		Diagnose: f.perfquery("-x") + " ; ibqueryerrors --details # as root",
		Action: "Follow the ports with a high PortXmitWait from the switch port to the slow receiver or link, and " +
			"repair that. If the routing was changed, check it for credit loops. The counter stops at 65535: clear " +
			"it once the cause is removed.",
		DrainReason: "The cause is in most cases further along the path, not on this host.",
	}
}

// withReceivePower has the interfaces whose transceivers report their receive power.
const withReceivePower = `count by (netdev) (rdma_transceiver_receive_power_dbm{$port})`

// receivePower is the power that a transceiver receives, by lane.
func (f *Fault) receivePower(netdev string) []Sample {
	return f.rows(`max by (lane) (rdma_transceiver_receive_power_dbm{$port,netdev=`+strconv.Quote(netdev)+`})`, "lane")
}

// ethtoolErrors are commands, each with a separator after it, that show error counters of the interfaces of the port.
func (f *Fault) ethtoolErrors(counters string) (out string) {
	for _, netdev := range f.netdevs() {
		out += "ethtool -S " + pasted(netdev) + " | grep -E '" + counters + "' ; "
	}
	return out
}

// perfquery is a command that shows the InfiniBand counters of the port.
func (f *Fault) perfquery(flag string) string {
	return "perfquery " + flag + " -C " + pasted(f.Labels["device"]) + " -P " + f.Labels["port"]
}

// mlxlinkErrors is a command that shows the counters and the eye opening of the link.
func (f *Fault) mlxlinkErrors() string {
	return "mlxlink -d " + pasted(f.Labels["device"]) + " -c -e # as root, needs MFT"
}
