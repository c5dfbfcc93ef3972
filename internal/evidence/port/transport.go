package port

import (
	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// transportFaults are those of the reliable transport.
var transportFaults = fault.Kinds{
	"retransmissions/packets":       {Write: retransmissions},
	"retries_exceeded/link_trouble": {Write: retriesWithLinkFault},
	"retries_exceeded/lasting":      {Write: retriesWithoutLinkFault},
	"retries_exceeded/requests":     {Write: requestsFailOnEFA, OfHost: true},
	"retries_exceeded/once":         {Write: retriesOnce},
	"retries_exceeded/unreachable":  {Write: peersUnreachable},
}

func retransmissions(f *fault.Fault) fault.Text {
	limit := "1%"
	meaning := "). The device counts the packets themselves."
	if f.Has(`port:rdma_port_retransmissions:ratio{$port} > {retransmission-ratio}`) {
		limit = "{retransmission-ratio%}"
		meaning = "). Each loss retransmits a window: at 0.01% the loss of rate is measurable, at 0.1% a link runs at a " +
			"fraction of its rate."
	}
	diagnose := showStatistics(f)
	for _, netdev := range f.Netdevs() {
		diagnose += " ; ethtool -S " + fault.Pasted(netdev) + " | grep -E 'discard|crc|symbol|prio._pause'"
	}
	action := "If one port retransmits, repair its cable or switch port. If all ports of the host or of a rack " +
		"retransmit, check the discards of their switches, and PFC and ECN on the path."
	if f.Has(`rdma_device_info{driver="efa",$device}`) {
		action = "Compare with the other instances of the job. If only this one retransmits, stop and start it, which " +
			"moves it to other hardware; if all do, report the path to the provider."
	}
	return fault.Text{
		Summary: f.Where() + ": retransmitting, " + fault.Roughly(
			f.Value,
		) + " of packets sent over 10m (limit " + limit + ")",
		Description: "Retransmissions of the port are " + fault.Roughly(
			f.Value,
		) + " of the packets that it sends, over 10m " +
			"(limit " + limit + meaning,
		Evidence:    evidenceOfRetransmissions(f, limit),
		Measured:    fault.Percent(f.Value),
		Limit:       limit,
		Diagnose:    diagnose,
		Action:      action,
		DrainReason: "Jobs continue, with less bandwidth.",
	}
}

// lossCounters are shown if they count; devices have some of them.
var lossCounters = []struct{ name, metric, unit string }{
	{"Peers that do not answer", "rdma_port_unresponsive_peers_total", " requests"},
	{"Impaired connections", "rdma_port_impaired_connections_total", " events"},
	{"Failed writes", "rdma_port_write_request_errors_total", ""},
	{"Failed reads", "rdma_port_read_request_errors_total", ""},
	{"Dropped at the receiver", "rdma_port_receive_buffer_exhausted_total", " packets"},
}

// retransmissionCauses are shown always.
var retransmissionCauses = []struct{ name, metric string }{
	{"Sequence errors", "rdma_port_packet_sequence_errors_total"},
	{"Implied NAKs", "rdma_port_implied_nak_errors_total"},
	{"ACK timeouts", "rdma_port_ack_timeouts_total"},
	{"Adaptive retransmissions", "rdma_port_adaptive_retransmissions_total"},
}

func evidenceOfRetransmissions(f *fault.Fault, limit string) (e fault.Lines) {
	e.Add("Retransmissions", fault.Roughly(f.Value)+" of packets sent over 10m (limit "+limit+").")
	e.AddKnown("Retransmitted packets",
		f.Text(`max(increase(rdma_port_retransmitted_packets_total{$port}[10m]))`, "%.0f", ""), " in 10m.")
	for _, c := range lossCounters {
		e.AddKnown(c.name, f.Text("max(increase("+c.metric+"{$port}[10m])) > 0", "%.0f", ""), c.unit+" in 10m.")
	}
	for _, c := range retransmissionCauses {
		e.Add(c.name, f.Text("max(increase("+c.metric+"{$port}[10m]))", "%.0f", "unknown")+" in 10m.")
	}
	e.AddKnown("Host ports", f.Text(`count(port:rdma_retransmissions:warning{$host})`, "%v", ""), " above the limit.")
	e.Add("Not evaluated", "where packets are lost.")
	return e
}

func retriesWithLinkFault(f *fault.Fault) fault.Text {
	windows := fault.Plain(f.Value) + " of the last six 5m windows (limit {retries-windows-1})"
	var e fault.Lines
	e.Add("Retries", "exceeded in "+windows+".")
	addPortsWithRetries(f, &e)
	addLostPeers(f, &e)
	e.AddKnown("Link losses", f.Text(`sum(increase(rdma_port_link_transitions_total{to="down",$port}[30m])) > 0 `+
		`or max(increase(rdma_port_link_down_events_total{$port}[30m])) > 0`, "%.0f", ""), " in 30m.")
	e.AddKnown("FEC", f.Text(`max(increase(rdma_port_fec_uncorrectable_blocks_total{$port}[30m])) > 0`, "%.0f", ""),
		" uncorrectable blocks in 30m.")
	for _, r := range f.Rows(`max by (direction) (increase(rdma_port_discards_total{$port}[30m])) > 0`, "direction") {
		e.Add("Discards", fault.Whole(r.Value)+" packets in 30m, "+r.Labels["direction"]+".")
	}
	e.AddKnown("Pause watchdog",
		f.Text(`max(increase(rdma_port_pause_storm_events_total{severity="error",$port}[30m])) > 0`, "%.0f", ""),
		" events in 30m.")
	e = append(e, f.JobSettings("nccl_timeout|nccl_retry_cnt|nccl_sl")...)
	e.Add("Not evaluated", "the far ends of the connections.")
	diagnose := showStatistics(f)
	for _, netdev := range f.Netdevs() {
		diagnose += " ; ip -s -s link show dev " + fault.Pasted(netdev)
	}
	return fault.Text{
		Summary: f.Where() + ": transport retry counter exceeded in " + windows + ", fault of its link likely",
		Description: "Requests exceeded the transport retry counter (NCCL status 12) in " + windows + ", and the port " +
			"had link losses, FEC errors, discards or pause watchdog events meanwhile. Each breaks its queue pair: the job " +
			"ends, or restarts from its checkpoint.",
		Evidence: e,
		Measured: fault.Plain(f.Value),
		Limit:    "{retries-windows-1}",
		Diagnose: diagnose + " ; dmesg -T | grep -i link | tail -20 # as root",
		Action: "Drain the host and repair its link: reseat and clean the cable or transceiver, then swap it, then move " +
			"to another switch port. If only discards or the pause watchdog count, check PFC on the path.",
		DrainReason: "The next job on this port is likely to fail as well.",
	}
}

func retriesWithoutLinkFault(f *fault.Fault) fault.Text {
	windows := fault.Plain(f.Value) + " of the last six 5m windows (limit {retries-windows-1})"
	var e fault.Lines
	e.Add("Retries", "exceeded in "+windows+".")
	addPortsWithRetries(f, &e)
	addLostPeers(f, &e)
	e = append(e, f.JobSettings("nccl_timeout|nccl_retry_cnt|nccl_sl")...)
	e.Add("Not evaluated", fault.When(!f.Has(lostAt), "the peers of the connections, ")+"the path to them.")
	return fault.Text{
		Summary: f.Where() + ": transport retry counter exceeded in " + windows + ", no link fault on this port",
		Description: "Requests exceeded the transport retry counter (NCCL status 12) in " + windows + ", without link " +
			"losses or errors of this port. Each breaks its queue pair: the job ends, or restarts from its checkpoint.",
		Evidence: e,
		Measured: fault.Plain(f.Value),
		Limit:    "{retries-windows-1}",
		Diagnose: showStatistics(f) + " ; rdma resource show qp link " + f.PastedPort() + " # as root",
		Action: "Find the peers of the broken connections in the log of the job. If all hosts lose the same peer, repair " +
			"that peer. If this port loses all of its peers, swap its cable, then move to another switch port.",
		DrainReason: "This port reports no fault: a peer or the path can be the cause.",
	}
}

func retriesOnce(f *fault.Fault) fault.Text {
	requests := fault.Whole(f.Value)
	var e fault.Lines
	e.Add("Retries", requests+" exceeded in 5m.")
	addPortsWithRetries(f, &e)
	addLostPeers(f, &e)
	e = append(e, f.JobSettings("nccl_timeout|nccl_retry_cnt|nccl_sl")...)
	e.Add("Not evaluated", "whether a job was killed.")
	return fault.Text{
		Summary: f.Where() + ": transport retry counter exceeded, " + requests + " in 5m (NCCL status 12); normal when a " +
			"job is killed",
		Description: requests + " request" + fault.When(
			f.Value != 1,
			"s",
		) + " exceeded the transport retry counter in one 5m " +
			"window. A job that is killed or a peer that reboots leaves such a burst. Otherwise the job on this port has " +
			"ended, or restarts from its checkpoint.",
		Evidence: e,
		Measured: requests,
		Limit:    "0",
		Diagnose: showStatistics(f),
		Action: "No action is needed if a job was killed or a peer rebooted. Otherwise compare the time with the log of " +
			"the job that failed.",
		DrainReason: "A single burst is normal when a job is killed.",
	}
}

func addPortsWithRetries(f *fault.Fault, e *fault.Lines) {
	e.AddKnown("Host ports", f.Text(`count(max by (device, port) (port:rdma_port_retries_exceeded:increase5m{$host}))`,
		"%v", ""), " with exceeded retries in 5m.")
}

// requestsFailOnEFA tells of a host, with all of its EFA ports.
func requestsFailOnEFA(f *fault.Fault) fault.Text {
	ports, requests := words.Count(int(f.Value), "EFA port"), ""
	if n, ok := f.Number(`sum(port:rdma_request_errors:increase5m{$host})`); ok {
		requests = ", " + fault.Whole(n) + " in 5m"
	}
	var e fault.Lines
	for _, port := range f.Rows(`port:rdma_request_errors:lasting{$host}`, "device", "port") {
		e.Add("Port", fault.PortName(port)+", in 5m: "+efaErrors(f.Of(port))+".")
	}
	e.Add("Expected", "none while a job runs.")
	e.Add("Not evaluated", "which peers.")
	return fault.Text{
		Summary: f.Host() + ": requests fail on " + ports + requests,
		Description: "On " + ports + " requests failed in at least three of the last six 5m windows: peers do not " +
			"answer, connections are impaired, or work requests complete with an error. The job ends, or restarts from its " +
			"checkpoint.",
		Evidence: e,
		Diagnose: "rdma statistic show ; dmesg -T | grep -i efa | tail -20",
		Action: "Check whether the peers run and whether other hosts report the same. If only this host does, check its " +
			"security group and routes, then stop and start the instance, which moves it to other hardware.",
		DrainReason: "Jobs fail, and the peers may be the cause.",
	}
}

// efaCounters are shown where a device has them.
var efaCounters = []struct{ metric, what string }{
	{"rdma_port_unresponsive_peers_total", "requests to peers that do not answer"},
	{"rdma_port_impaired_connections_total", "events of impaired connections"},
	{"rdma_port_write_request_errors_total", "failed writes"},
	{"rdma_port_read_request_errors_total", "failed reads"},
	{"rdma_port_receive_buffer_exhausted_total", "packets dropped at the receiver"},
}

// efaErrors returns the counts of the port in 5m.
func efaErrors(f *fault.Fault) string {
	var counts []string
	for _, c := range efaCounters {
		counts = append(counts, f.Text("max(increase("+c.metric+"{$port}[5m]))", "%.0f "+c.what, ""))
	}
	retransmitted := "retransmissions unknown"
	if v, ok := f.Number(`port:rdma_port_retransmitted:ratio{$port}`); ok {
		retransmitted = fault.Percent(v) + " retransmitted"
	}
	return words.Join(", ", append(counts, retransmitted)...)
}

// showStatistics returns a command that shows the counters of the port.
func showStatistics(f *fault.Fault) string { return "rdma statistic show link " + f.PastedPort() }
