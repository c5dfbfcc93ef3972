package evidence

import "rdma_exporter/internal/words"

func retransmissions(f *Fault) Text {
	limit := "1%"
	meaning := "). The device counts the packets themselves."
	if f.has(`port:rdma_port_retransmissions:ratio{$port} > {retransmission-ratio}`) {
		limit = "{retransmission-ratio%}"
		meaning = "). Each loss retransmits a window: at 0.01% the loss of rate is measurable, at 0.1% a link runs at a " +
			"fraction of its rate."
	}
	diagnose := f.showStatistics()
	for _, netdev := range f.netdevs() {
		diagnose += " ; ethtool -S " + pasted(netdev) + " | grep -E 'discard|crc|symbol|prio._pause'"
	}
	action := "If one port retransmits, repair its cable or switch port. If all ports of the host or of a rack " +
		"retransmit, check the discards of their switches, and PFC and ECN on the path."
	if f.has(`rdma_device_info{driver="efa",$device}`) {
		action = "Compare with the other instances of the job. If only this one retransmits, stop and start it, which " +
			"moves it to other hardware; if all do, report the path to the provider."
	}
	return Text{
		Summary: f.where() + ": retransmitting, " + roughly(f.Value) + " of packets sent over 10m (limit " + limit + ")",
		Description: "Retransmissions of the port are " + roughly(f.Value) + " of the packets that it sends, over 10m " +
			"(limit " + limit + meaning,
		Evidence:    f.evidenceOfRetransmissions(limit),
		Measured:    percent(f.Value),
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

func (f *Fault) evidenceOfRetransmissions(limit string) (e lines) {
	e.add("Retransmissions", roughly(f.Value)+" of packets sent over 10m (limit "+limit+").")
	e.addKnown("Retransmitted packets",
		f.text(`max(increase(rdma_port_retransmitted_packets_total{$port}[10m]))`, "%.0f", ""), " in 10m.")
	for _, c := range lossCounters {
		e.addKnown(c.name, f.text("max(increase("+c.metric+"{$port}[10m])) > 0", "%.0f", ""), c.unit+" in 10m.")
	}
	for _, c := range retransmissionCauses {
		e.add(c.name, f.text("max(increase("+c.metric+"{$port}[10m]))", "%.0f", "unknown")+" in 10m.")
	}
	e.addKnown("Host ports", f.text(`count(port:rdma_retransmissions:warning{$host})`, "%v", ""), " above the limit.")
	e.add("Not evaluated", "where packets are lost.")
	return e
}

func retriesWithLinkFault(f *Fault) Text {
	windows := plain(f.Value) + " of the last six 5m windows (limit {retries-windows-1})"
	var e lines
	e.add("Retries", "exceeded in "+windows+".")
	f.addPortsWithRetries(&e)
	e.addKnown("Link losses", f.text(`sum(increase(rdma_port_link_transitions_total{to="down",$port}[30m])) > 0 `+
		`or max(increase(rdma_port_link_down_events_total{$port}[30m])) > 0`, "%.0f", ""), " in 30m.")
	e.addKnown("FEC", f.text(`max(increase(rdma_port_fec_uncorrectable_blocks_total{$port}[30m])) > 0`, "%.0f", ""),
		" uncorrectable blocks in 30m.")
	for _, r := range f.rows(`max by (direction) (increase(rdma_port_discards_total{$port}[30m])) > 0`, "direction") {
		e.add("Discards", whole(r.Value)+" packets in 30m, "+r.Labels["direction"]+".")
	}
	e.addKnown("Pause watchdog",
		f.text(`max(increase(rdma_port_pause_storm_events_total{severity="error",$port}[30m])) > 0`, "%.0f", ""),
		" events in 30m.")
	e = append(e, f.settings("nccl_timeout|nccl_retry_cnt|nccl_sl")...)
	e.add("Not evaluated", "the far ends of the connections.")
	diagnose := f.showStatistics()
	for _, netdev := range f.netdevs() {
		diagnose += " ; ip -s -s link show dev " + pasted(netdev)
	}
	return Text{
		Summary: f.where() + ": transport retry counter exceeded in " + windows + ", fault of its link likely",
		Description: "Requests exceeded the transport retry counter (NCCL status 12) in " + windows + ", and the port " +
			"had link losses, FEC errors, discards or pause watchdog events meanwhile. Each breaks its queue pair: the job " +
			"ends, or restarts from its checkpoint.",
		Evidence: e,
		Measured: plain(f.Value),
		Limit:    "{retries-windows-1}",
		Diagnose: diagnose + " ; dmesg -T | grep -i link | tail -20 # as root",
		Action: "Drain the host and repair its link: reseat and clean the cable or transceiver, then swap it, then move " +
			"to another switch port. If only discards or the pause watchdog count, check PFC on the path.",
		DrainReason: "The next job on this port is likely to fail as well.",
	}
}

func retriesWithoutLinkFault(f *Fault) Text {
	windows := plain(f.Value) + " of the last six 5m windows (limit {retries-windows-1})"
	var e lines
	e.add("Retries", "exceeded in "+windows+".")
	f.addPortsWithRetries(&e)
	e = append(e, f.settings("nccl_timeout|nccl_retry_cnt|nccl_sl")...)
	e.add("Not evaluated", "the peers of the connections, the path to them.")
	return Text{
		Summary: f.where() + ": transport retry counter exceeded in " + windows + ", no link fault on this port",
		Description: "Requests exceeded the transport retry counter (NCCL status 12) in " + windows + ", without link " +
			"losses or errors of this port. Each breaks its queue pair: the job ends, or restarts from its checkpoint.",
		Evidence: e,
		Measured: plain(f.Value),
		Limit:    "{retries-windows-1}",
		Diagnose: f.showStatistics() + " ; rdma resource show qp link " + f.pastedPort() + " # as root",
		Action: "Find the peers of the broken connections in the log of the job. If all hosts lose the same peer, repair " +
			"that peer. If this port loses all of its peers, swap its cable, then move to another switch port.",
		DrainReason: "This port reports no fault: a peer or the path can be the cause.",
	}
}

func retriesOnce(f *Fault) Text {
	requests := whole(f.Value)
	var e lines
	e.add("Retries", requests+" exceeded in 5m.")
	f.addPortsWithRetries(&e)
	e = append(e, f.settings("nccl_timeout|nccl_retry_cnt|nccl_sl")...)
	e.add("Not evaluated", "whether a job was killed.")
	return Text{
		Summary: f.where() + ": transport retry counter exceeded, " + requests + " in 5m (NCCL status 12); normal when a " +
			"job is killed",
		Description: requests + " request" + when(f.Value != 1, "s") + " exceeded the transport retry counter in one 5m " +
			"window. A job that is killed or a peer that reboots leaves such a burst. Otherwise the job on this port has " +
			"ended, or restarts from its checkpoint.",
		Evidence: e,
		Measured: requests,
		Limit:    "0",
		Diagnose: f.showStatistics(),
		Action: "No action is needed if a job was killed or a peer rebooted. Otherwise compare the time with the log of " +
			"the job that failed.",
		DrainReason: "A single burst is normal when a job is killed.",
	}
}

func (f *Fault) addPortsWithRetries(e *lines) {
	e.addKnown("Host ports", f.text(`count(max by (device, port) (port:rdma_port_retries_exceeded:increase5m{$host}))`,
		"%v", ""), " with exceeded retries in 5m.")
}

// requestsFailOnEFA is of a host, for all of its EFA ports.
func requestsFailOnEFA(f *Fault) Text {
	ports, requests := words.Count(int(f.Value), "EFA port"), ""
	if n, ok := f.number(`sum(port:rdma_request_errors:increase5m{$host})`); ok {
		requests = ", " + whole(n) + " in 5m"
	}
	var e lines
	for _, port := range f.rows(`port:rdma_request_errors:lasting{$host}`, "device", "port") {
		e.add("Port", portName(port)+", in 5m: "+f.of(port).efaErrors()+".")
	}
	e.add("Expected", "none while a job runs.")
	e.add("Not evaluated", "which peers.")
	return Text{
		Summary: f.host() + ": requests fail on " + ports + requests,
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

// efaErrors are the counts of the port in 5m.
func (f *Fault) efaErrors() string {
	var counts []string
	for _, c := range efaCounters {
		counts = append(counts, f.text("max(increase("+c.metric+"{$port}[5m]))", "%.0f "+c.what, ""))
	}
	retransmitted := "retransmissions unknown"
	if v, ok := f.number(`port:rdma_port_retransmitted:ratio{$port}`); ok {
		retransmitted = percent(v) + " retransmitted"
	}
	return words.Join(", ", append(counts, retransmitted)...)
}

// showStatistics is a command that shows the counters of the port.
func (f *Fault) showStatistics() string { return "rdma statistic show link " + f.pastedPort() }
