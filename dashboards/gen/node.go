package main

import "strings"

// nodeBoard is one host. Its first row answers what is wrong, since when, and what else changed; the others are
// collapsed but traffic.
func nodeBoard() board {
	return board{
		name: "node", title: "Node", from: "now-3h", refresh: "1m", events: host.began("critical|warning"),
		text:    "What is wrong with this host, since when, and what else changed at that time?",
		choices: []choice{clusters, jobs, oneHost, hcas(host), books},
		rows: []row{
			{"Alerts, ports, what else changed", nodeState(), false},
			{"Traffic", nodeTraffic(), false},
			{"Errors", nodeErrors(), true},
			{"PFC and pause", nodePause(), true},
			{"Congestion and retransmission", nodeCongestion(), true},
			{"PCIe and temperature", nodePCIe(), true},
			{"Optics", nodeOptics(), true},
			{"GPUs", nodeGPUs(), true},
			{"Subnet and neighbours", nodeSubnet(), true},
			{"Devices and settings", nodeDevices(), true},
			{"Exporter", nodeExporter(), true},
		},
	}
}

// short names a port of the chosen host.
const short = "{{device}}/{{port}}"

// notHere is the reason for an empty graph of what a host may not have.
const notHere = "none, or not exposed by these drivers"

// graph is a panel of lines.
func graph(title, text, unit string, width uint32, queries ...query) panel {
	return panel{
		title: title, text: text, unit: unit, width: width, height: 9, view: lines, queries: queries, noValue: notHere,
	}
}

// or says what no value means in a panel.
func (p panel) or(noValue string) panel {
	p.noValue = noValue
	return p
}

// rosePause returns the seconds of pause in the time range.
func rosePause() string {
	of := func(text, direction string) string {
		paused := device.of("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`)
		return labelled("counter", text, maxBy(perPort, "increase("+paused+"[$__range])"))
	}
	return "round(" + of("seconds of pause sent", "transmit") + " or " +
		of("seconds of pause received", "receive") + ") > 0"
}

// ownHost leaves out what the choice of a host makes the same in all rows of a table.
var ownHost = []column{hidden("cluster"), hidden("job"), hidden("instance")}

func nodeState() []panel {
	state := device.of("rdma_port_state_id")
	about := func(labels, metric string) string {
		return maxBy(labels, device.of(metric)) + " and on (" + perPort + ") " + maxBy(perPort, state)
	}
	drained := host.of("instance:rdma_host_drain:state")
	evicting := host.firing("critical|warning", `drain="evict"`)
	// 3 critical, 2 warning.
	pending := "3 * " + host.of("rdma:placed", `drain=~"cordon|evict"`, `severity="critical"`) + " or 2 * " +
		host.of("rdma:placed", `drain=~"cordon|evict"`, `severity="warning"`)
	counted := counts("Verdict", "What do the firing alerts mean for jobs, and can the host take one?", 4, count{
		title: "Fit for jobs",
		text:  "whether the host may take jobs: no alert drains it or is pending to, and no maintenance is announced. Unknown where no rule can be evaluated on it, or the rules are not loaded.",
		expr:  "max(" + host.of("instance:rdma_host_fit:state") + ") or 3 - (max(" + pending + ") == bool 3)", colour: good,
	}, count{
		title:  "Drain",
		text:   "what the firing alerts of the host ask for. cordon: no new jobs, running ones may finish. evict: a job on this host cannot progress; from 5m after the alert began, as a leaf or rail may be the cause. `rdma_exporter check --drain` lists the alerts.",
		expr:   "3 * (max(" + drained + ") == 1) and on () " + evicting + " or max(" + drained + ")",
		colour: bad,
	})
	counted.height = 8
	counted.values = [][]word{
		{
			unknown,
			{"1", "fit", good},
			{"0", "not fit", warning},
			{"2", "critical pending", bad},
			{"3", "warning pending", warning},
		},
		{unknown, {"0", "no", good}, {"1", "cordon", warning}, {"2", "evict", bad}, {"3", "cordon; evict at 5m", bad}},
	}
	alerts := alertTable([]scope{host}, severities, nil, ownHCA, hidden("instance"))
	alerts.width, alerts.height = 20, 8
	alerts = alerts.setWidths(map[string]uint32{"Alert": 205, "Meaning": 250, "First": 205, "Where": 125})
	alerts = alerts.orNone("no alert: rules are evaluated on this host", host.evaluated())
	alerts.beside = []way{
		ofThisHost("RoCE congestion", "roce"), ofThisHost("Optics", "optics"),
		ofThisHost("GPUDirect", "gpudirect"),
	}
	return []panel{
		counted,
		alerts,
		{
			title: "Port state", unit: "none", width: 8, height: 9, view: timeline, words: portStates,
			noValue: "no RDMA port, or unknown",
			text:    "Logical state of each port. Only ACTIVE carries traffic; INIT on InfiniBand waits for a subnet manager. A gap is unknown.",
			queries: []query{{maxBy(perPort, state), short}},
		},
		nodePaused(),
		{
			title: "Counters that rose", unit: "none", width: 8, height: 9, view: table, sort: "Increase",
			noValue: "none in this time range",
			text:    "Counters of errors and events that rose in the time range, of all ports, devices and GPUs of the host. Choose the time around the beginning of an alert to find what moved with it.",
			queries: []query{{expr: rose(device, perPort, linkCounters, netdevCounters, dropCounters, requestCounters,
				moreCounters) + " or " + rose(device, perDevice, deviceCounters) + " or " + rose(host, perGPU, ofGPUs) +
				" or " + rosePause()}},
			columns: append([]column{
				{from: "counter", title: "Counter", width: 200},
				{from: "A", title: "Increase", unit: whole, width: 85},
				ownHCA, portOf, gpu, hidden("UUID"),
			}, ownHost...),
		},
		{
			title: "Ports", unit: "none", width: 24, height: 9, view: table, sort: "-Of expected", noValue: "no RDMA port",
			text: "The ports now, those that are down or slow first: role, state, rate against the expected rate and the evidence for it; why a link is down, where the driver reports it; the switch port at the other end, from LLDP, the subnet or the site configuration.",
			queries: []query{
				{expr: maxBy(perPort, state)},
				{expr: about(perPort, "rdma_port_physical_state_id")},
				{expr: "8 * (" + about(perPort, "rdma_port_rate_bytes_per_second") + ")"},
				{expr: "8 * (" + about(perPort, "rdma_port_expected_rate_bytes_per_second") + ")"},
				{expr: about(perPort+", source", "rdma_port_expected_rate_info")},
				{expr: about(perPort+", system, port_id", "rdma_port_neighbour_info")},
				{expr: about(perPort+", reason", "rdma_port_link_down_reason_info")},
				{expr: about(perPort+", role", "rdma_port_info")},
				{expr: "(" + about(perPort, "rdma_port_rate_bytes_per_second") + ") / (" + about(perPort, "rdma_port_expected_rate_bytes_per_second") +
					") and on (" + perPort + ") " + state + " == 4 or 0 * (" + maxBy(perPort, state) + " != 4)"},
			},
			columns: append([]column{
				ownHCA, portOf,
				{from: "A", title: "State", words: portStates, width: 105},
				{from: "C", title: "Rate", unit: "bps", width: 85, missing: "no link"},
				{from: "D", title: "Expected", unit: "bps", width: 85},
				{from: "I", title: "Of expected", unit: "percentunit", colours: []step{{0, warning}, {0.99, "transparent"}}, width: 102},
				{from: "reason", title: "Down because"},
				{from: "B", title: "Physical state", words: physicalStates, width: 150},
				{from: "role", title: "Role", width: 90, missing: "unknown"},
				{from: "source", title: "Evidence", words: sources, missing: "unknown"},
				{from: "system", title: "Neighbour", missing: "unknown"},
				{from: "port_id", title: "Neighbour port", missing: "unknown"},
				hidden("E"), hidden("F"), hidden("G"), hidden("H"),
			}, ownHost...),
		},
		jobsOfHost(),
	}
}

// jobsOfHost lists the jobs on the host.
func jobsOfHost() panel {
	of := func(labels, metric string) string {
		return countBy("cluster, job, "+perWorkload, maxBy(labels+", "+perWorkload, host.of(metric)))
	}
	ports, gpus := of(perPort, "rdma_port_job_info"), of(perGPU, "rdma_gpu_job_info")
	hit := countBy("cluster, job, "+perWorkload, maxBy(perPort+", "+perWorkload,
		host.of("rdma_port_job_info"))+" and on ("+perPort+") "+
		host.of("rdma:placed", `severity=~"critical|warning"`, `port!=""`))
	return panel{
		title: "Jobs on this host", unit: "none", width: 24, height: 5, view: table, sort: "With a finding", rows: "B",
		noValue: "no job, or processes are not read",
		text:    "Workloads that use ports or GPUs of the host, and how many of their ports have a critical or warning finding. The ID links to the job with all its hosts.",
		queries: []query{{expr: hit + " or 0 * " + ports}, {expr: ports}, {expr: gpus}},
		columns: []column{
			{from: "job_id", title: "ID", width: 285, ways: []way{toJob(sameJob, cell)}},
			{from: "A", title: "With a finding", colours: []step{{1, warning}}, width: 150, missing: "0"},
			{from: "B", title: "Ports", width: 80, missing: "0"},
			{from: "C", title: "GPUs", width: 80, missing: "0"},
			{from: "scheduler", title: "Scheduler", width: 110},
			{from: "namespace", title: "Namespace"},
			{from: "pod", title: "Pod"},
			cluster, job,
		},
	}
}

func nodeTraffic() []panel {
	bits := func(direction string) string {
		return "8 * " + sumBy(perPort, device.rate("rdma_port_"+direction+"_bytes_total"))
	}
	rate := "8 * " + maxBy(perPort, device.of("rdma_port_rate_bytes_per_second"))
	shares := graph("Throughput against link rate",
		"Throughput as a share of the present link rate, which may be below the expected rate.", "percentunit", 12,
		query{atMostAll(bits("transmit") + " / (" + rate + ")"), "transmit " + short},
		query{atMostAll(bits("receive") + " / (" + rate + ")"), "receive " + short})
	shares.max = share
	return []panel{
		graph("Throughput",
			"RDMA traffic of each port. Other traffic of the link, and that of other functions on it, is not included.", "bps",
			12, query{bits("transmit"), "transmit " + short}, query{bits("receive"), "receive " + short}),
		shares,
	}
}

func nodeErrors() []panel {
	corrected := counter{"rdma_port_fec_corrected_bit_errors_total", "bits"}
	blocks := counter{"rdma_port_fec_corrected_blocks_total", "blocks"}
	return []panel{
		graph("Link errors", "Errors that a port counted between two points of the graph; only counters that rise are drawn. Symbol errors and recoveries come from the cable, the transceiver or the other end; "+
			"remote physical errors were damaged before the last switch.", whole, 12,
			increases(device, perPort, short, linkCounters...)...).
			or("none in this time range, or not exposed by these drivers"),
		graph("Ethernet errors", "Errors of the receiver of an Ethernet port: blocks that FEC could not correct, frames with a wrong checksum, faults of the link.", whole, 12,
			increases(device, perNetdev, short, netdevCounters...)...).
			or("none in this time range, or not exposed by these drivers"),
		graph("Dropped packets", "Packets that a port dropped: no buffer on receive, not sent in time, or refused by partition. None is expected on a lossless priority.", whole, 12,
			increases(device, perPort, short, dropCounters...)...).
			or("none in this time range, or not exposed by these drivers"),
		graph("Failed requests", "Requests that a queue pair gave up or refused: retries exceeded, receiver not ready, access errors. Each breaks a connection, and most often the job.", whole, 12,
			increases(device, perPort, short, requestCounters...)...).
			or("none in this time range, or not exposed by these drivers"),
		graph("FEC corrections", "Errors that FEC corrected, per second. Every fast link has them; one that has many times more than its siblings is on its way to uncorrectable blocks.", "cps", 12,
			rates(device, perNetdev, short, corrected, blocks)...),
		berOfPorts(device, 12),
		graph("Raw errors by lane", "Raw bit errors of each lane before correction, per second. One lane far above the others is a dirty or damaged fibre, or a failing laser.", "cps", 12,
			query{sumBy(perLane, device.rate("rdma_port_lane_raw_errors_total")) + " > 0", short + " lane {{lane}}"}),
	}
}

// nodePaused draws the pauses of the ports of a host.
func nodePaused() panel {
	paused := func(says, direction string) query {
		of := atMostAll(maxBy(perNetdev+", priority",
			device.rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`)))
		return query{above("0.001", 10, perNetdev+", priority", of), says + " {{device}}/{{port}} priority {{priority}}"}
	}
	p := graph("Time paused", "Share of the time in which a priority was paused (PFC), from 0.1% on. Sending: the host does not drain what it receives. Receiving: something behind the switch does not. "+
		"The lines are the limits of RDMASlowReceiver and RDMAPFCStormSource (sending).", "percentunit", 8,
		paused("sends", "transmit"), paused("receives", "receive"),
		noneAbove(atMostAll(maxBy(perPort, device.rate("rdma_port_pfc_pause_seconds_total"))), "0.001",
			"none of {{of}} ports above 0.1%"),
		query{`clamp_max(0 * count_values("of", count(` + device.of("rdma_port_info", `link_layer="InfiniBand"`) +
			`)), 0) unless on () ` + device.rate("rdma_port_pfc_pause_seconds_total"), "n/a: {{of}} InfiniBand ports"}).
		or("blind: 0 ports measure pause (PFC)")
	p.max, p.colours = share, thresholds("transparent", step{limitSlowReceiver, warning}, step{limitStormSource, bad})
	return p
}

func nodePause() []panel {
	frames := func(direction string) string {
		return sumBy(perNetdev+", priority", device.rate("rdma_port_pfc_pause_frames_total", `direction="`+direction+`"`))
	}
	return []panel{
		graph("Pause frames", "PFC frames per second. Drivers without pause durations have these alone, which do not show for how long traffic was paused.", "pps", grid,
			query{frames("transmit"), "sent {{device}}/{{port}} priority {{priority}}"},
			query{frames("receive"), "received {{device}}/{{port}} priority {{priority}}"},
			query{
				sumBy(perNetdev+", direction", device.rate("rdma_port_global_pause_frames_total")) + " > 0",
				"global pause, {{direction}} {{device}}/{{port}}",
			}),
	}
}

func nodeCongestion() []panel {
	return []panel{
		graph("Congestion notification", "Packets per second: ECN-marked on receive, CNPs sent in answer, CNPs received that slowed this host down.", "pps", 8,
			rates(device, perPort, short,
				counter{"rdma_port_ecn_marked_packets_total", "ECN marked"}, counter{"rdma_port_cnp_sent_total", "CNP sent"},
				counter{"rdma_port_cnp_handled_total", "CNP handled"}, counter{"rdma_port_cnp_ignored_total", "CNP ignored"})...),
		graph("Retransmission events",
			"Events per second that made this host retransmit, or showed it that its peer has to.", "cps", 8,
			rates(device, perPort, short,
				counter{"rdma_port_packet_sequence_errors_total", "sequence NAKs"},
				counter{"rdma_port_implied_nak_errors_total", "implied NAKs"},
				counter{"rdma_port_ack_timeouts_total", "ACK timeouts"},
				counter{"rdma_port_adaptive_retransmissions_total", "adaptive"},
				counter{"rdma_port_retransmitted_packets_total", "retransmitted packets"},
				counter{"rdma_port_out_of_sequence_total", "out of sequence"},
				counter{"rdma_port_rnr_naks_received_total", "receiver not ready"})...),
		graph("Transmit wait", "Ticks per second in which an InfiniBand port had data to send and no credit, at this end and at the other end of the link. The length of a tick depends on the device: compare a port with its own past.", "short", 8,
			rates(device, perPort, short, counter{"rdma_port_transmit_wait_ticks_total", "this end"},
				counter{"rdma_port_neighbour_transmit_wait_ticks_total", "other end"})...),
	}
}

func nodePCIe() []panel {
	bandwidth := func(which string) string {
		return maxBy(perDevice, device.of("rdma_device_pcie_"+which+"_bytes_per_second"))
	}
	stalls := graph("PCIe stalls", "Share of the last second in which a NIC waited for PCIe: transmit, to fetch what it sends; receive, to write what it received.", "percentunit", 8,
		query{
			atMostAll(maxBy(perNetdev, device.of("rdma_port_pcie_stall_ratio", `direction="transmit"`))), "transmit " + short,
		},
		query{
			atMostAll(maxBy(perNetdev, device.of("rdma_port_pcie_stall_ratio", `direction="receive"`))), "receive " + short,
		})
	stalls.max = share
	return []panel{
		{
			title: "PCIe bandwidth", unit: "Bps", width: 8, height: 9, view: table, sort: "-Device",
			noValue: "unknown, or no PCIe device",
			text:    "What the PCIe links between a device and its root port carry now, and what both ends of each support. Less than supported is a degraded link; the bottleneck names it.",
			queries: []query{
				{expr: bandwidth("available")},
				{expr: bandwidth("capable")},
				{expr: bandwidth("available") + " / " + bandwidth("capable")},
				{expr: maxBy(perDevice+", bottleneck", device.of("rdma_device_pcie_path_info"))},
			},
			columns: append([]column{
				ownHCA,
				{from: "A", title: "Now", unit: "Bps", width: 85},
				{from: "B", title: "Supported", unit: "Bps", width: 90},
				{from: "C", title: "Share", unit: "percentunit", colours: []step{{0, warning}, {0.99, "transparent"}}, width: 60},
				{from: "bottleneck", title: "Bottleneck"},
				hidden("D"),
			}, ownHost...),
		},
		stalls,
		graph("PCIe errors", "Errors that the PCIe functions on the path of the RDMA devices and GPUs reported (AER). Correctable ones cost a replay; fatal ones take the link down.", whole, 8,
			query{
				sumBy(perHost+", pci_address, severity", host.increase("rdma_pcie_aer_errors_total")) + " > 0",
				"{{severity}} {{pci_address}}",
			}).or("none, or no AER of these functions"),
		graph("Temperature of devices",
			"Temperature of each sensor of an RDMA device, of its transceiver if a sensor has it, and the critical thresholds.", "celsius", 12,
			query{maxBy(perDevice+", sensor", device.of("rdma_device_temperature_celsius")), "{{device}} {{sensor}}"},
			query{maxBy(perPort, device.of("rdma_transceiver_sensor_celsius")), "{{device}}/{{port}} transceiver"},
			query{
				maxBy(perDevice+", sensor, level", device.of("rdma_device_temperature_threshold_celsius")),
				"{{level}} {{device}} {{sensor}}",
			},
			query{
				maxBy(perPort+", level", device.of("rdma_transceiver_sensor_threshold_celsius")),
				"{{level}} {{device}}/{{port}} transceiver",
			}),
		{
			title: "PCIe links", unit: "none", width: 12, height: 9, view: table, sort: "-Address",
			noValue: "unknown, or no PCIe device",
			text:    "PCIe links on the path of RDMA devices and GPUs: present and supported speed and width.",
			queries: []query{
				{expr: maxBy(perHost+", pci_address", host.of("rdma_pcie_link_speed_transfers_per_second")) + " / 1e9"},
				{expr: maxBy(perHost+", pci_address", host.of("rdma_pcie_link_max_speed_transfers_per_second")) + " / 1e9"},
				{expr: maxBy(perHost+", pci_address", host.of("rdma_pcie_link_width_lanes"))},
				{expr: maxBy(perHost+", pci_address", host.of("rdma_pcie_link_max_width_lanes"))},
			},
			columns: append([]column{
				{from: "pci_address", title: "Address"},
				{from: "A", title: "Speed", unit: "suffix: GT/s", width: 90},
				{from: "B", title: "Supported", unit: "suffix: GT/s", width: 100},
				{from: "C", title: "Lanes"},
				{from: "D", title: "Supported lanes"},
			}, ownHost...),
		},
	}
}

func nodeOptics() []panel {
	lane := func(metric string) string { return maxBy(perLane, device.of(metric)) }
	// alarms are the transceivers' own thresholds; those that are the same for all ports are one line.
	alarms := func(metric, level string) query {
		return query{"max by (level) (" + device.of(metric, `level="`+level+`"`) + ")", "{{level}}, highest of the ports"}
	}
	lanes := func(title, text, unit, metric, threshold string) panel {
		return graph(title, text, unit, 12, query{lane(metric), short + " lane {{lane}}"}, alarms(threshold, "low_alarm"),
			alarms(threshold, "high_alarm"))
	}
	temperature := maxBy(perNetdev, device.of("rdma_transceiver_temperature_celsius"))
	return []panel{
		graph("Transceiver temperature", "Temperature of each transceiver, and its own alarm threshold.", "celsius", 12,
			query{temperature, short}, query{
				maxBy(perNetdev, device.of("rdma_transceiver_temperature_threshold_celsius", `level="high_alarm"`)),
				"alarm " + short,
			}).or(
			"no transceiver reports it, or they are not read"),
		lanes("Received power",
			"Optical power that each lane receives, and the transceiver's own alarm thresholds. -40 dBm is no light.",
			"suffix:dBm", "rdma_transceiver_receive_power_dbm", "rdma_transceiver_receive_power_threshold_dbm"),
		lanes("Transmitted power", "Optical power that each lane transmits, and the transceiver's own alarm thresholds.",
			"suffix:dBm", "rdma_transceiver_transmit_power_dbm", "rdma_transceiver_transmit_power_threshold_dbm"),
		lanes("Laser bias",
			"Bias current of the laser of each lane, and the transceiver's own alarm thresholds. It rises as a laser ages.",
			"amp", "rdma_transceiver_bias_amperes", "rdma_transceiver_bias_threshold_amperes"),
		graph("Supply voltage", "Supply voltage of each transceiver, and its own alarm thresholds. All ports low together: the supply of the NIC.", "volt", 12,
			query{maxBy(perNetdev, device.of("rdma_transceiver_voltage_volts")), short},
			alarms("rdma_transceiver_voltage_threshold_volts", "low_alarm"),
			alarms("rdma_transceiver_voltage_threshold_volts", "high_alarm")),
		{
			title: "Age of transceiver data", unit: "s", width: 12, height: 9, view: lines, noValue: notHere,
			text:    "Time since a transceiver was read. A reading is kept for some time, since each read occupies the management bus of the transceiver.",
			queries: []query{{maxBy(perNetdev, device.of("rdma_transceiver_age_seconds")), short}},
		},
	}
}

func nodeGPUs() []panel {
	states := func(title, text, labels, expr string, columns ...column) panel {
		return panel{
			title: title, text: text, unit: "none", width: 8, height: 8, view: table, sort: "-GPU",
			noValue: "none, or no GPUs are collected",
			queries: []query{{expr: maxBy(labels, expr)}},
			columns: append(append(columns, hidden("A"), hidden("UUID")), ownHost...),
		}
	}
	lastXID, recovery := maxBy(perGPU, host.of("rdma_gpu_last_xid")), maxBy(perGPU, host.of("rdma_gpu_recovery_action_id"))
	return []panel{
		verdicts(host, 9, "-GPU", hidden("instance"), ownHCA),
		graph("PCIe traffic of GPUs",
			"What each GPU transmits and receives over PCIe, to NICs, host memory and peers alike. Hopper and later.", "Bps", 8,
			query{maxBy(perGPU, host.rate("rdma_gpu_pcie_transmit_bytes_total")), "transmit GPU {{gpu}}"},
			query{maxBy(perGPU, host.rate("rdma_gpu_pcie_receive_bytes_total")), "receive GPU {{gpu}}"}).
			or("no GPUs, or their counters are not read"),
		graph("NVLinks", "NVLinks of each GPU that are up. GPUs of one model have the same number.", "none", 8,
			query{maxBy(perGPU, host.of("rdma_gpu_nvlinks_up")), "GPU {{gpu}}"}).or("no NVLink, or no GPUs are collected"),
		graph("NVLink traffic", "What each GPU transmits and receives over NVLink.", "Bps", 8,
			query{maxBy(perGPU, host.rate("rdma_gpu_nvlink_transmit_bytes_total")), "transmit GPU {{gpu}}"},
			query{maxBy(perGPU, host.rate("rdma_gpu_nvlink_receive_bytes_total")), "receive GPU {{gpu}}"}).
			or("no NVLink, or its counters are not read"),
		states("NVLink fabric", "State of each GPU on its NVLink fabric (NVSwitch systems).", perGPU+", state", host.of("rdma_gpu_fabric_state")+" == 1", gpu, column{from: "state", title: "State"}),
		states("Throttling", "Why the clocks of a GPU are reduced now.", perGPU+", reason", host.of("rdma_gpu_throttle")+" == 1", gpu, column{from: "reason", title: "Reason"}),
		{
			title: "XID and recovery", unit: "none", width: 8, height: 8, view: table, sort: "-GPU",
			noValue: "none, or no GPUs are collected",
			text:    "Number of the last XID of each GPU since the exporter started, and the recovery action that the driver asks for.",
			queries: []query{{expr: lastXID + " or -1 + 0 * " + recovery}, {expr: recovery + " or -1 + 0 * " + lastXID}},
			columns: append([]column{gpu, {
				from: "A", title: "Last XID", words: []word{{"-1", "none", neutral}},
			}, {from: "B", title: "Recovery action", words: recoveries}, hidden("UUID")}, ownHost...),
		},
	}
}

func nodeSubnet() []panel {
	return []panel{
		{
			title: "Subnet manager of each port", unit: "none", width: 12, height: 9, view: table, sort: "-Device",
			noValue: "no InfiniBand port, or not collected",
			text:    "The port's LID, the LID of its subnet manager, the manager's state and priority, and how many expected P_Keys the port is missing.",
			queries: []query{
				{expr: maxBy(perPort, device.of("rdma_port_lid"))},
				{expr: maxBy(perPort, device.of("rdma_port_sm_lid"))},
				{expr: maxBy(perPort, device.of("rdma_port_subnet_manager_state_id"))},
				{expr: maxBy(perPort, device.of("rdma_port_subnet_manager_priority"))},
				{expr: maxBy(perPort, device.of("rdma_port_pkeys_missing"))},
			},
			columns: append([]column{
				ownHCA, portOf,
				{from: "A", title: "LID", width: 60},
				{from: "B", title: "SM LID", width: 75},
				{from: "C", title: "SM state", words: smStates, width: 100},
				{from: "D", title: "SM priority", width: 105},
				{from: "E", title: "P_Keys missing", colours: []step{{1, warning}}},
			}, ownHost...),
		},
		graph("Activity of the subnet manager",
			"ActCount of the subnet manager per second. A manager that answers and whose count does not rise hangs.", "cps", 6,
			rates(device, perPort, short, counter{"rdma_port_subnet_manager_activity_total", "activity"})...).
			or("no InfiniBand port, or not collected"),
		{
			title: "Cabling", unit: "none", width: 6, height: 9, view: table, sort: "-Device",
			noValue: "no cabling in the site configuration",
			text:    "Ports whose cable ends elsewhere than the site configuration says.",
			queries: []query{{expr: maxBy(perNetdev, device.of("rdma_port_miscabled"))}},
			columns: append([]column{
				ownHCA, portOf, netdev,
				{from: "A", title: "Cabling", words: []word{{"1", "wrong", bad}, {"0", "right", good}}, width: 90},
			}, ownHost...),
		},
	}
}

func nodeDevices() []panel {
	labels := perDevice + ", hca_type, board_id, firmware_version, pci_address, numa_node, driver, function_type"
	bond := perNetdev
	return []panel{
		{
			title: "RDMA devices", unit: "none", width: 24, height: 8, view: table, sort: "-Device", noValue: "no RDMA device",
			text:    "Identity of the RDMA devices. One board has one firmware version across a fleet.",
			queries: []query{{expr: maxBy(labels, device.of("rdma_device_info"))}},
			columns: append([]column{
				ownHCA,
				{from: "hca_type", title: "Type"},
				{from: "board_id", title: "Board"},
				{from: "firmware_version", title: "Firmware"},
				{from: "driver", title: "Driver"},
				{from: "pci_address", title: "PCI address"},
				{from: "numa_node", title: "NUMA node"},
				{from: "function_type", title: "Function"},
				{from: "A"},
			}, ownHost...),
		},
		{
			title: "Settings to change", unit: "none", width: 24, height: 8, view: table, sort: "-Setting",
			noValue: "none, or settings are not read",
			text:    "Settings of the host that differ from what is wanted of them. `rdma_exporter check --setup` prints what is wanted, why, and the command that sets it; docs/setup.md lists all.",
			queries: []query{{expr: maxBy(perHost+", domain, setting, object, value", host.of("rdma_setup_info"))}},
			columns: append([]column{
				{from: "setting", title: "Setting"},
				{from: "object", title: "Object"},
				{from: "value", title: "Found"},
				{from: "domain", title: "Domain"},
				hidden("A"),
			}, ownHost...),
		},
		{
			title: "Missing and renamed devices", unit: "none", width: 8, height: 8, view: table,
			sort: "-Device", noValue: "none",
			text:    "RDMA devices that the inventory or the site configuration names and that are missing, with the reason.",
			queries: []query{{expr: maxBy(perDevice+", pci_address, reason", host.of("rdma_device_missing_info"))}},
			columns: append([]column{
				ownHCA, {from: "pci_address", title: "PCI address"}, {from: "reason", title: "Reason"}, {from: "A"},
			}, ownHost...),
		},
		{
			title: "MTU and GIDs", unit: "none", width: 8, height: 8, view: table, sort: "-Device", noValue: notHere,
			text: "MTU of the netdev, and the RoCE MTU that follows from it: the largest of 256, 512, 1024, 2048 and 4096 bytes that fits. Lowest GID index of RoCE v2 over IPv4, for NCCL_IB_GID_INDEX.",
			queries: []query{
				{expr: maxBy(perPort, device.of("rdma_port_mtu_bytes"))},
				{expr: maxBy(perPort, device.of("rdma_port_active_mtu_bytes"))},
				{expr: maxBy(perPort, device.of("rdma_port_roce_v2_gid_index", `family="ipv4"`))},
			},
			columns: append([]column{
				ownHCA, portOf,
				{from: "A", title: "Netdev", width: 80},
				{from: "B", title: "RoCE", width: 70},
				{from: "C", title: "GID index", width: 90},
			}, ownHost...),
		},
		{
			title: "Saturated counters", unit: "none", width: 8, height: 8, view: table, sort: "-Device", noValue: "none",
			text:    "Counters of 32 bits or fewer at their maximum, which no longer count until they are cleared: their alerts are not evaluated.",
			queries: []query{{expr: maxBy(perPort+", counter", device.of("rdma_port_counter_saturated")) + " == 1"}},
			columns: append([]column{ownHCA, portOf, {from: "counter", title: "Counter"}, hidden("A")}, ownHost...),
		},
		{
			title: "Kernel messages", unit: "none", width: 8, height: 8, view: table, sort: "-Kind",
			noValue: "none, or the kernel log is not read",
			text:    "Messages of the kernel log in the last 15 minutes about RDMA devices, the PCIe ports above them and GPUs, by kind.",
			queries: []query{{expr: maxBy(perHost+", device, pci_address, kind", host.of("rdma_kernel_log_recent_events"))}},
			columns: append([]column{
				{from: "kind", title: "Kind"},
				ownHCA,
				{from: "pci_address", title: "PCI address"},
				{from: "A", title: "Messages", unit: whole, width: 85},
			}, ownHost...),
		},
		{
			title: "Ignored and pinned", unit: "none", width: 8, height: 8, view: table, sort: "-Device",
			noValue: "none in the site configuration",
			text:    "Devices and ports whose faults raise no alert, and ports that are expected to be ACTIVE, by the site configuration.",
			queries: []query{{expr: `label_replace(` + maxBy(perPort, device.of("rdma_port_ignored")) +
				`, "by", "ignored", "", "") or label_replace(` +
				maxBy(perDevice, device.of("rdma_device_ignored")) + `, "by", "ignored", "", "") or label_replace(` +
				maxBy(perPort, device.of("rdma_port_pinned_active")) + `, "by", "expected ACTIVE", "", "")`}},
			columns: append([]column{ownHCA, portOf, {from: "by", title: "Setting"}, hidden("A")}, ownHost...),
		},
		{
			title: "Members of bonds", unit: "none", width: 8, height: 8, view: table, sort: "-Netdev", noValue: "no RoCE LAG",
			text: "Links of the members of a RoCE LAG: up, rate and expected rate.",
			queries: []query{
				{expr: maxBy(bond, device.of("rdma_bond_member_up"))},
				{expr: "8 * " + maxBy(bond, device.of("rdma_bond_member_rate_bytes_per_second"))},
				{expr: "8 * " + maxBy(bond, device.of("rdma_bond_member_expected_rate_bytes_per_second"))},
			},
			columns: append([]column{
				ownHCA, portOf,
				{from: "netdev", title: "Netdev", width: 105},
				{from: "A", title: "Link", words: []word{{"1", "up", good}, {"0", "down", bad}}, width: 60},
				{from: "B", title: "Rate", unit: "bps", width: 75},
				{from: "C", title: "Expected", unit: "bps", width: 80},
			}, ownHost...),
		},
	}
}

// exporterChecks are what an exporter reports of itself, as 1 where it is well.
var exporterChecks = []struct{ text, expr string }{
	{"configuration reloaded", host.of("rdma_config_last_reload_successful")},
	{"state written", host.of("rdma_state_last_write_successful")},
	{"alert store on disk", "1 - " + host.of("rdma_alerting_store_degraded")},
	{"incident captured", host.of("rdma_incident_last_capture_successful")},
	{"network configuration readable (rtnl)", "1 - " + host.of("rdma_scrape_rtnl_back_off")},
	{"reads within budget", "1 - " + maxBy(perHost, host.of("rdma_scrape_over_budget"))},
	{"serves this host", "0 * " + maxBy(perHost, host.of("rdma_exporter_replay_info")) + " or " + maxBy(perHost, host.of("rdma_exporter_build_info"))},
}

func nodeExporter() []panel {
	var checks []string
	for _, c := range exporterChecks {
		checks = append(checks, labelled("check", c.text, maxBy(perHost, c.expr)))
	}
	listed := func(title, text, noValue, labels, expr string, columns ...column) panel {
		return panel{
			title: title, text: text, unit: "none", width: 8, height: 9, view: table,
			sort: "-" + columns[0].title, noValue: noValue,
			queries: []query{{expr: maxBy(labels, expr)}}, columns: append(append(columns, hidden("A")), ownHost...),
		}
	}
	return []panel{
		listed("Not evaluated",
			"Alerts that cannot be evaluated on this host, and why: what no alert says of them is unknown and not well.",
			"none: all alerts that apply are evaluated",
			perHost+", alert, reason", host.of("rdma_detection_unavailable"),
			column{from: "alert", title: "Alert", ways: []way{toRunbook}}, column{from: "reason", title: "Reason"}),
		listed("Permission denied",
			"Sources that the exporter may not open. docs/permissions.md has the capability that each needs.", "none",
			perHost+", source", host.of("rdma_scrape_permission_denied")+" == 1", column{from: "source", title: "Source"}),
		{
			title: "Collectors", unit: "none", width: 8, height: 9, view: timeline, noValue: "unknown",
			words:   []word{{"1", "ok", good}, {"0", "failed", bad}},
			text:    "Whether each collector finished in time and without an error of its own.",
			queries: []query{{minBy(perHost+", collector", host.of("rdma_scrape_collector_success")), "{{collector}}"}},
		},
		graph("Failed reads", "Files and requests that failed between two points of the graph, each of which costs its own sample, and devices whose read has not returned from the kernel, or not in time because the exporter waits for a CPU.", whole, 8,
			query{
				sumBy(perHost+", collector, device, reason", host.increase("rdma_scrape_errors_total")) + " > 0",
				"{{collector}} {{device}} {{reason}}",
			},
			query{maxBy(perDevice, host.of("rdma_scrape_collector_stuck")) + " == 1", "{{device}} stuck"},
			query{maxBy(perDevice, host.of("rdma_scrape_collector_late")) + " == 1", "{{device}} late"},
			query{
				maxBy(perDevice+", collector", host.of("rdma_scrape_quarantined_items")) + " > 0",
				"{{collector}} {{device}} quarantined",
			}).or("none"),
		graph("Collection time", "Wall time of each collector's last collection, and the time of each second in which the exporter waited for a CPU.", "s", 8,
			query{maxBy(perHost+", collector", host.of("rdma_scrape_collector_duration_seconds")), "{{collector}}"},
			query{maxBy(perHost, host.rate("rdma_exporter_cpu_wait_seconds_total")), "waiting for a CPU"}),
		graph("Notifications", "Alerts that the exporter sent to Alertmanagers, failed to send, and dropped, between two points of the graph. Only of an exporter that evaluates the rules itself.", whole, 8,
			increases(host, perHost, "", counter{"rdma_alerting_notifications_sent_total", "sent"},
				counter{"rdma_alerting_notification_errors_total", "failed"},
				counter{"rdma_alerting_notifications_dropped_total", "dropped"}, counter{
					"rdma_alerting_rule_failures_total", "failed evaluations",
				})...).or("none, or this exporter evaluates no rules"),
		{
			title: "State of the exporter", unit: "none", width: 12, height: 9, view: table, sort: "-OK", noValue: "unknown",
			text:    "What the exporter reports of itself. Alerts and checks that are missing do not apply: an exporter without a configuration file never reloads one.",
			queries: []query{{expr: strings.Join(checks, " or ")}},
			columns: append([]column{
				{from: "check", title: "Check"}, {from: "A", title: "OK", words: []word{{"1", "ok", good}, {"0", "failed", bad}}},
			}, ownHost...),
		},
		graph("Rounds and store of the alerts", "Rounds of rule evaluations per second, the duration of the last one in seconds, and thousands of series in the store. Only of an exporter that evaluates the rules itself.", "short", 12,
			query{maxBy(perHost, host.rate("rdma_alerting_rounds_total")), "rounds/s"},
			query{maxBy(perHost, host.of("rdma_alerting_last_round_duration_seconds")), "duration (s)"},
			query{maxBy(perHost, host.of("rdma_alerting_store_series")) + " / 1000", "series (thousands)"}).
			or("this exporter evaluates no rules"),
	}
}
