package main

// node shows one host: its ports, what they carry and lose, and what is behind them.
func node() board {
	return board{
		name: "node", title: "RDMA / Node", from: "now-3h", refresh: "1m", events: host.began("critical|warning"),
		text:      "The RDMA ports of one host, from the link to the GPU.",
		variables: variables(clusters, jobs, oneHost, hcas(host)),
		rows: []row{
			{"State", nodeState()},
			{"Traffic", nodeTraffic()},
			{"Errors", nodeErrors()},
			{"Pause", nodePause()},
			{"Congestion", nodeCongestion()},
			{"PCIe", nodePCIe()},
			{"Optics", nodeOptics()},
			{"GPUs", nodeGPUs()},
			{"The exporter", nodeExporter()},
		},
	}
}

// short names a port of a host that is chosen.
const short = "{{device}}/{{port}}"

// graph is a panel of lines, one third or half of the width.
func graph(title, text, unit string, width uint32, queries ...query) panel {
	return panel{title: title, text: text, unit: unit, width: width, height: 9, view: lines, queries: queries}
}

// increases are counters that stand still on a healthy port: only what rose is drawn.
func increases(s scope, labels, legend string, counters ...[2]string) (out []query) {
	for _, c := range counters {
		out = append(out, query{sumBy(labels, s.increase(c[0])) + " > 0", c[1] + " " + legend})
	}
	return out
}

// rates are counters that run.
func rates(s scope, labels, legend string, counters ...[2]string) (out []query) {
	for _, c := range counters {
		out = append(out, query{sumBy(labels, s.rate(c[0])) + " > 0", c[1] + " " + legend})
	}
	return out
}

func nodeState() []panel {
	state := device.of("rdma_port_state_id")
	about := func(labels, metric string) string {
		return maxBy(labels, device.of(metric)) + " and on (" + perPort + ") " + maxBy(perPort, state)
	}
	verdict := func(title, text, series string, words ...word) panel {
		return panel{
			title: title, text: text, unit: "none", width: 4, height: 7, view: number, queries: []query{{expr: maxBy(perHost, host.of(series))}},
			words: words, colours: thresholds(neutral), noValue: "unknown",
		}
	}
	alerts := alertTable(host, 7, hidden("instance"))
	alerts.width = 16
	return []panel{
		verdict("Fit for jobs", "Whether the host may take jobs: no alert drains it, and no maintenance is announced. Unknown where nothing on it can be evaluated, or the rules are not loaded.",
			"instance:rdma_host_fit:state", word{"1", "fit", good}, word{"0", "not fit", warning}),
		verdict("Drain", "What the firing alerts of the host ask for. cordon: no new jobs, running ones may finish. evict: a job on this host cannot progress. `rdma_exporter check --drain` lists the alerts.",
			"instance:rdma_host_drain:state", word{"0", "no", good}, word{"1", "cordon", warning}, word{"2", "evict", bad}),
		alerts,
		{
			title: "Port state", unit: "none", width: 12, height: 9, view: timeline, words: portStates,
			text:    "Logical state of each port. Only ACTIVE carries traffic; INIT on InfiniBand waits for a subnet manager. A gap is a time of which nothing is known.",
			queries: []query{{maxBy(perPort, state), short}},
		},
		{
			title: "Ports", unit: "none", width: 12, height: 9, view: table, sort: "-Device",
			text: "The ports now: state, rate against what is expected of it, and by which evidence; the switch port at the far end, where LLDP or the configuration tells it.",
			queries: []query{
				{expr: maxBy(perPort, state)},
				{expr: about(perPort, "rdma_port_physical_state_id")},
				{expr: "8 * (" + about(perPort, "rdma_port_rate_bytes_per_second") + ")"},
				{expr: "8 * (" + about(perPort, "rdma_port_expected_rate_bytes_per_second") + ")"},
				{expr: about(perPort+", source", "rdma_port_expected_rate_info")},
				{expr: about(perPort+", system, port_id", "rdma_port_neighbour_info")},
			},
			columns: []column{
				hca, portOf,
				{from: "A", title: "State", words: portStates},
				{from: "B", title: "Physical", words: physicalStates},
				{from: "C", title: "Rate", unit: "bps"},
				{from: "D", title: "Expected", unit: "bps"},
				{from: "source", title: "Evidence", words: sources},
				{from: "system", title: "Neighbour"},
				{from: "port_id", title: "Its port"},
				hidden("E"), hidden("F"), hidden("cluster"), hidden("job"), hidden("instance"),
			},
		},
	}
}

func nodeTraffic() []panel {
	bits := func(direction string) string {
		return "8 * " + sumBy(perPort, device.rate("rdma_port_"+direction+"_bytes_total"))
	}
	rate := "8 * " + maxBy(perPort, device.of("rdma_port_rate_bytes_per_second"))
	shares := graph("Throughput against link rate", "Throughput as a share of the link's present rate, which may be lower than what is expected of it.", "percentunit", 12,
		query{bits("transmit") + " / (" + rate + ")", "transmit " + short},
		query{bits("receive") + " / (" + rate + ")", "receive " + short})
	shares.max = share
	return []panel{
		graph("Throughput", "RDMA traffic of each port. Other traffic of the same wire, and that of other functions on it, is not in it.", "bps", 12,
			query{bits("transmit"), "transmit " + short}, query{bits("receive"), "receive " + short}),
		shares,
	}
}

func nodeErrors() []panel {
	return []panel{
		graph("Errors on the link", "Errors that a port counted between two points of the graph; none is drawn while nothing rises. Symbol errors and recoveries come from the cable, the module or the far end; "+
			"remote physical errors were damaged before the last switch.", "short", 12,
			increases(device, perPort, short,
				[2]string{"rdma_port_symbol_errors_total", "symbol errors"}, [2]string{"rdma_port_link_error_recoveries_total", "recoveries"},
				[2]string{"rdma_port_link_downed_total", "link downed"}, [2]string{"rdma_port_receive_errors_total", "receive errors"},
				[2]string{"rdma_port_receive_remote_physical_errors_total", "remote physical"},
				[2]string{"rdma_port_local_link_integrity_errors_total", "link integrity"},
				[2]string{"rdma_port_link_transitions_total", "links lost or won"})...),
		graph("Errors of the wire", "What an Ethernet port's receiver counted: bits that forward error correction put right, which every fast link has, blocks that it could not, and frames with a wrong checksum.", "short", 12,
			increases(device, perWire, short,
				[2]string{"rdma_port_fec_corrected_bit_errors_total", "bits corrected"}, [2]string{"rdma_port_fec_uncorrectable_blocks_total", "blocks lost"},
				[2]string{"rdma_port_crc_errors_total", "CRC"}, [2]string{"rdma_port_pcs_symbol_errors_total", "PCS symbols"})...),
		graph("Packets dropped", "Packets that a port dropped: for want of buffer as they came, or because they could not be sent for too long. On a lossless priority there ought to be none.", "short", 12,
			increases(device, perPort, short,
				[2]string{"rdma_port_discards_total", "discards"}, [2]string{"rdma_port_transmit_discards_total", "transmit discards"},
				[2]string{"rdma_port_excessive_buffer_overrun_errors_total", "buffer overruns"}, [2]string{"rdma_port_vl15_dropped_total", "VL15"})...),
		graph("Requests given up", "Requests of which a queue pair gave up: retries were used up, or the receiver was not ready for too long. Each one breaks a connection, and most often the job.", "short", 12,
			increases(device, perPort, short,
				[2]string{"rdma_port_transport_retries_exceeded_total", "transport retries"}, [2]string{"rdma_port_rnr_retries_exceeded_total", "receiver not ready"},
				[2]string{"rdma_port_requester_cqe_errors_total", "requests in error"})...),
	}
}

func nodePause() []panel {
	seconds := func(direction string) string {
		return maxBy(perWire+", priority", device.rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`))
	}
	frames := func(direction string) string {
		return sumBy(perWire+", priority", device.rate("rdma_port_pfc_pause_frames_total", `direction="`+direction+`"`))
	}
	paused := graph("Time paused", "Share of the time in which a priority was paused (PFC). The port pauses its switch: the host is slow to take what it is sent. The switch pauses the port: something behind the switch is.", "percentunit", 12,
		query{seconds("transmit"), "pauses its switch {{device}}/{{port}} priority {{priority}}"},
		query{seconds("receive"), "is paused {{device}}/{{port}} priority {{priority}}"})
	paused.max = share
	return []panel{
		paused,
		graph("Pause frames", "PFC frames a second. Drivers that count no time have these alone; how long a frame holds traffic up they do not say.", "pps", 12,
			query{frames("transmit"), "sent {{device}}/{{port}} priority {{priority}}"},
			query{frames("receive"), "received {{device}}/{{port}} priority {{priority}}"},
			query{sumBy(perWire+", direction", device.rate("rdma_port_global_pause_frames_total")) + " > 0", "global pause, {{direction}} {{device}}/{{port}}"}),
	}
}

func nodeCongestion() []panel {
	return []panel{
		graph("Congestion notification", "Packets a second: marked by a switch on their way here, notifications (CNPs) that this host answered with, and those that told it to slow down.", "pps", 8,
			rates(device, perPort, short,
				[2]string{"rdma_port_ecn_marked_packets_total", "ECN marked"}, [2]string{"rdma_port_cnp_sent_total", "CNP sent"},
				[2]string{"rdma_port_cnp_handled_total", "CNP handled"}, [2]string{"rdma_port_cnp_ignored_total", "CNP ignored"})...),
		graph("Retransmissions", "Events a second that made this host send again, or showed it that another has to.", "cps", 8,
			rates(device, perPort, short,
				[2]string{"rdma_port_packet_sequence_errors_total", "sequence NAKs"}, [2]string{"rdma_port_implied_nak_errors_total", "implied NAKs"},
				[2]string{"rdma_port_ack_timeouts_total", "ACK time-outs"}, [2]string{"rdma_port_adaptive_retransmissions_total", "adaptive"},
				[2]string{"rdma_port_retransmitted_packets_total", "packets sent again"}, [2]string{"rdma_port_out_of_sequence_total", "out of sequence"},
				[2]string{"rdma_port_rnr_naks_received_total", "receiver not ready"})...),
		graph("Waiting for credits", "Ticks a second in which an InfiniBand port had data to send and no credit. The length of a tick is up to the device: compare a port with its own past.", "short", 8,
			rates(device, perPort, short, [2]string{"rdma_port_transmit_wait_ticks_total", "waits"})...),
	}
}

func nodePCIe() []panel {
	bandwidth := func(which string) string {
		return maxBy(perDevice, device.of("rdma_device_pcie_"+which+"_bytes_per_second"))
	}
	stalls := graph("PCIe stalls", "Share of the last second in which a NIC waited for PCIe: transmit, to fetch what it sends; receive, to write what it received. From 30 % on a slow receiver is explained by it.", "percentunit", 8,
		query{maxBy(perWire, device.of("rdma_port_pcie_stall_ratio", `direction="transmit"`)), "transmit " + short},
		query{maxBy(perWire, device.of("rdma_port_pcie_stall_ratio", `direction="receive"`)), "receive " + short})
	stalls.max = share
	return []panel{
		{
			title: "PCIe bandwidth", unit: "Bps", width: 8, height: 9, view: table, sort: "-Device",
			text: "What the PCIe links between a device and its root port let through now, and what both ends of each could. Less than that is a link that came up short.",
			queries: []query{
				{expr: bandwidth("available")}, {expr: bandwidth("capable")}, {expr: bandwidth("available") + " / " + bandwidth("capable")},
			},
			columns: []column{
				hca,
				{from: "A", title: "Now", unit: "Bps"},
				{from: "B", title: "Could be", unit: "Bps"},
				{from: "C", title: "Share", unit: "percentunit", colours: []step{{0, warning}, {0.99, "transparent"}}},
				hidden("cluster"), hidden("job"), hidden("instance"),
			},
		},
		stalls,
		graph("PCIe errors", "Errors that the PCIe functions on the way of the RDMA devices and GPUs reported (AER). Correctable ones cost a repetition; fatal ones take the link down.", "short", 8,
			query{sumBy(perHost+", pci_address, severity", host.increase("rdma_pcie_aer_errors_total")) + " > 0", "{{severity}} {{pci_address}}"}),
	}
}

func nodeOptics() []panel {
	lane := func(metric string) string { return maxBy(perLane, device.of(metric)) }
	temperature := maxBy(perWire, device.of("rdma_transceiver_temperature_celsius"))
	alarm := maxBy(perWire, device.of("rdma_transceiver_temperature_threshold_celsius", `level="high_alarm"`))
	return []panel{
		graph("Temperature of modules", "Temperature of each module, and its own alarm threshold.", "celsius", 8,
			query{temperature, short}, query{alarm, "alarm " + short}),
		graph("Power received", "Optical power that each lane receives. −40 dBm is no light.", "suffix:dBm", 8,
			query{lane("rdma_transceiver_receive_power_dbm"), short + " lane {{lane}}"}),
		graph("Laser bias", "Current through the laser of each lane. It rises as a laser ages.", "amp", 8,
			query{lane("rdma_transceiver_bias_amperes"), short + " lane {{lane}}"}),
	}
}

func nodeGPUs() []panel {
	return []panel{
		verdicts(host, 24, 9, hidden("instance")),
		graph("PCIe traffic of GPUs", "What each GPU sends and receives over PCIe, to NICs, host memory and peers alike. Hopper and later.", "Bps", 12,
			query{maxBy(perGPU, host.rate("rdma_gpu_pcie_transmit_bytes_total")), "transmit GPU {{gpu}}"},
			query{maxBy(perGPU, host.rate("rdma_gpu_pcie_receive_bytes_total")), "receive GPU {{gpu}}"}),
		graph("NVLinks", "NVLinks of each GPU that are up. GPUs of one model ought to have the same number.", "none", 12,
			query{maxBy(perGPU, host.of("rdma_gpu_nvlinks_up")), "GPU {{gpu}}"}),
	}
}

func nodeExporter() []panel {
	return []panel{
		{
			title: "Collectors", unit: "none", width: 8, height: 9, view: timeline,
			words:   []word{{"1", "ok", good}, {"0", "failed", bad}},
			text:    "Whether each collector finished in time and without an error of its own.",
			queries: []query{{minBy(perHost+", collector", host.of("rdma_scrape_collector_success")), "{{collector}}"}},
		},
		graph("What could not be read", "Files and requests that failed between two points of the graph, each of which costs its own sample, and devices whose read has not returned from the kernel.", "short", 8,
			query{sumBy(perHost+", collector, device, reason", host.increase("rdma_scrape_errors_total")) + " > 0", "{{collector}} {{device}} {{reason}}"},
			query{maxBy(perDevice, host.of("rdma_scrape_collector_stuck")) + " == 1", "{{device}} stuck"}),
		graph("Time of a collection", "Wall time of each collector's last collection.", "s", 8,
			query{maxBy(perHost+", collector", host.of("rdma_scrape_collector_duration_seconds")), "{{collector}}"}),
	}
}
