package main

import (
	"strings"
)

// nodeBoard is one host. Its first row answers what is wrong, since when, and what else changed; the others are
// collapsed but traffic.
func nodeBoard() board {
	return board{
		Name: "node", Title: "Node", From: "now-3h", Refresh: "1m", Events: host.Began("critical|warning"),
		Text:    "What is wrong with this host, since when, and what else changed at that time?",
		Choices: []choice{clusters, jobs, oneHost, hcas(host), books},
		Rows: []row{
			{Title: "Alerts, ports, what else changed", Panels: nodeState(), Closed: false},
			{Title: "Traffic", Panels: nodeTraffic(), Closed: false},
			{Title: "Errors", Panels: nodeErrors(), Closed: true},
			{Title: "PFC and pause", Panels: nodePause(), Closed: true},
			{Title: "Congestion and retransmission", Panels: nodeCongestion(), Closed: true},
			{Title: "PCIe and temperature", Panels: nodePCIe(), Closed: true},
			{Title: "Optics", Panels: nodeOptics(), Closed: true},
			{Title: "GPUs", Panels: nodeGPUs(), Closed: true},
			{Title: "Subnet and neighbours", Panels: nodeSubnet(), Closed: true},
			{Title: "Devices and settings", Panels: nodeDevices(), Closed: true},
			{Title: "Exporter", Panels: nodeExporter(), Closed: true},
		},
	}
}

// rosePause returns the seconds of pause in the time range.
func rosePause() string {
	of := func(text, direction string) string {
		paused := device.Of("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`)
		return labelled("counter", text, maxBy(perPort, "increase("+paused+"[$__range])"))
	}
	return "round(" + of("seconds of pause sent", "transmit") + " or " +
		of("seconds of pause received", "receive") + ") > 0"
}

// ownHost leaves out what the choice of a host makes the same in all rows of a table.
var ownHost = []column{hidden("cluster"), hidden("job"), hidden("instance")}

func nodeState() []panel {
	state := device.Of("rdma_port_state_id")
	about := func(labels, metric string) string {
		return maxBy(labels, device.Of(metric)) + " and on (" + perPort + ") " + maxBy(perPort, state)
	}
	drained := host.Of("instance:rdma_host_drain:state")
	evicting := host.Firing("critical|warning", `drain="evict"`)
	// 3 critical, 2 warning.
	pending := "3 * " + host.Of("rdma:placed", `drain=~"cordon|evict"`, `severity="critical"`) + " or 2 * " +
		host.Of("rdma:placed", `drain=~"cordon|evict"`, `severity="warning"`)
	counted := counts("Verdict", "What do the firing alerts mean for jobs, and can the host take one?", 4, count{
		Title: "Fit for jobs",
		Text:  "whether the host may take jobs: no alert drains it or is pending to, and no maintenance is announced. Unknown where no rule can be evaluated on it, or the rules are not loaded.",
		Expr:  "max(" + host.Of("instance:rdma_host_fit:state") + ") or 3 - (max(" + pending + ") == bool 3)", Colour: good,
	}, count{
		Title:  "Drain",
		Text:   "what the firing alerts of the host ask for. cordon: no new jobs, running ones may finish. evict: a job on this host cannot progress; from 5m after the alert began, as a leaf or rail may be the cause. `rdma_exporter check --drain` lists the alerts.",
		Expr:   "3 * (max(" + drained + ") == 1) and on () " + evicting + " or max(" + drained + ")",
		Colour: bad,
	})
	counted.Height = 8
	counted.Values = [][]word{
		{
			unknown,
			{Value: "1", Text: "fit", Colour: good},
			{Value: "0", Text: "not fit", Colour: warning},
			{Value: "2", Text: "critical pending", Colour: bad},
			{Value: "3", Text: "warning pending", Colour: warning},
		},
		{unknown, {Value: "0", Text: "no", Colour: good}, {Value: "1", Text: "cordon", Colour: warning}, {Value: "2", Text: "evict", Colour: bad}, {Value: "3", Text: "cordon; evict at 5m", Colour: bad}},
	}
	alerts := alertTable([]scope{host}, severities, nil, ownHCA, hidden("instance"))
	alerts.Width, alerts.Height = 20, 8
	alerts = alerts.SetWidths(map[string]uint32{"Alert": 205, "Meaning": 246, "First": 205, "Where": 125})
	alerts = alerts.OrNone("no alert: rules are evaluated on this host", host.Evaluated())
	alerts.Beside = []way{
		ofThisHost("RoCE congestion", "roce"), ofThisHost("Optics", "optics"),
		ofThisHost("GPUDirect", "gpudirect"),
	}
	return []panel{
		counted,
		alerts,
		{
			Title: "Port state", Unit: "none", Width: 8, Height: 9, View: timeline, Words: portStates,
			NoValue: "no RDMA port, or unknown",
			Text:    "Logical state of each port. Only ACTIVE carries traffic; INIT on InfiniBand waits for a subnet manager. A gap is unknown.",
			Queries: []query{line(maxBy(perPort, state), short)},
		},
		nodePaused(),
		{
			Title: "Counters that rose", Unit: "none", Width: 8, Height: 9, View: table, Sort: "Increase",
			NoValue: "none in this time range",
			Text:    "Counters of errors and events that rose in the time range, of all ports, devices and GPUs of the host. Choose the time around the beginning of an alert to find what moved with it.",
			Queries: []query{{Expr: rose(device, perPort, linkCounters, netdevCounters, dropCounters, requestCounters,
				moreCounters) + " or " + rose(device, perDevice, deviceCounters) + " or " + rose(host, perGPU, ofGPUs) +
				" or " + rosePause()}},
			Columns: append([]column{
				{From: "counter", Title: "Counter", Width: 200},
				{From: "A", Title: "Increase", Unit: whole, Width: 85},
				ownHCA, portOf, gpu, hidden("UUID"),
			}, ownHost...),
		},
		{
			Title: "Ports", Unit: "none", Width: 24, Height: 9, View: table, Sort: "-Of expected", NoValue: "no RDMA port",
			Text: "The ports now, those that are down or slow first: role, state, rate against the expected rate and the evidence for it; why a link is down, where the driver reports it; the switch port at the other end, from LLDP, the subnet or the site configuration.",
			Queries: []query{
				{Expr: maxBy(perPort, state)},
				{Expr: about(perPort, "rdma_port_physical_state_id")},
				{Expr: "8 * (" + about(perPort, "rdma_port_rate_bytes_per_second") + ")"},
				{Expr: "8 * (" + about(perPort, "rdma_port_expected_rate_bytes_per_second") + ")"},
				{Expr: about(perPort+", source", "rdma_port_expected_rate_info")},
				{Expr: about(perPort+", system, port_id", "rdma_port_neighbour_info")},
				{Expr: about(perPort+", reason", "rdma_port_link_down_reason_info")},
				{Expr: about(perPort+", role", "rdma_port_info")},
				{Expr: "(" + about(perPort, "rdma_port_rate_bytes_per_second") + ") / (" + about(perPort, "rdma_port_expected_rate_bytes_per_second") +
					") and on (" + perPort + ") " + state + " == 4 or 0 * (" + maxBy(perPort, state) + " != 4)"},
			},
			Columns: append([]column{
				ownHCA, portOf,
				{From: "A", Title: "State", Words: portStates, Width: 105},
				{From: "C", Title: "Rate", Unit: "bps", Width: 85, Missing: "no link"},
				{From: "D", Title: "Expected", Unit: "bps", Width: 85},
				{
					From: "I", Title: "Of expected", Unit: "percentunit", Words: []word{{Value: "0", Text: "down", Colour: bad}},
					Colours: []step{{From: 0, Colour: warning}, {From: 0.99, Colour: "transparent"}}, Width: 102,
				},
				{From: "reason", Title: "Down because"},
				{From: "B", Title: "Physical state", Words: physicalStates, Width: 150},
				{From: "role", Title: "Role", Width: 90, Missing: "unknown"},
				{From: "source", Title: "Evidence", Words: sources, Missing: "unknown"},
				{From: "system", Title: "Neighbour", Missing: "unknown"},
				{From: "port_id", Title: "Neighbour port", Missing: "unknown"},
				hidden("E"), hidden("F"), hidden("G"), hidden("H"),
			}, ownHost...),
		},
		jobsOfHost(),
	}
}

// jobsOfHost lists the jobs on the host.
func jobsOfHost() panel {
	of := func(labels, metric string) string {
		return countBy("cluster, job, "+perWorkload, maxBy(labels+", "+perWorkload, host.Of(metric)))
	}
	ports, gpus := of(perPort, "rdma_port_job_info"), of(perGPU, "rdma_gpu_job_info")
	hit := countBy("cluster, job, "+perWorkload, maxBy(perPort+", "+perWorkload,
		host.Of("rdma_port_job_info"))+" and on ("+perPort+") "+
		host.Of("rdma:placed", `severity=~"critical|warning"`, `port!=""`))
	return panel{
		Title: "Jobs on this host", Unit: "none", Width: 24, Height: 5, View: table, Sort: "With a finding", Rows: "B",
		NoValue: "no job, or processes are not read",
		Text:    "Workloads that use ports or GPUs of the host, and how many of their ports have a critical or warning finding. The ID links to the job with all its hosts.",
		Queries: []query{{Expr: hit + " or 0 * " + ports}, {Expr: ports}, {Expr: gpus}},
		Columns: []column{
			{From: "job_id", Title: "ID", Width: 285, Ways: []way{toJob(sameJob, cell)}},
			{From: "A", Title: "With a finding", Colours: []step{{From: 1, Colour: warning}}, Width: 150, Missing: "0"},
			{From: "B", Title: "Ports", Width: 80, Missing: "0"},
			{From: "C", Title: "GPUs", Width: 80, Missing: "0"},
			{From: "scheduler", Title: "Scheduler", Width: 110},
			{From: "namespace", Title: "Namespace"},
			{From: "pod", Title: "Pod"},
			cluster, job,
		},
	}
}

func nodeTraffic() []panel {
	bits := func(direction string) string {
		return "8 * " + sumBy(perPort, device.Rate("rdma_port_"+direction+"_bytes_total"))
	}
	rate := "8 * " + maxBy(perPort, device.Of("rdma_port_rate_bytes_per_second"))
	shares := graph("Throughput against link rate",
		"Throughput as a share of the present link rate, which may be below the expected rate.", "percentunit", 12,
		line(atMostAll(bits("transmit")+" / ("+rate+")"), "transmit "+short),
		line(atMostAll(bits("receive")+" / ("+rate+")"), "receive "+short))
	shares.Max = share
	return []panel{
		graph("Throughput",
			"RDMA traffic of each port. Other traffic of the link, and that of other functions on it, is not included.", "bps",
			12, line(bits("transmit"), "transmit "+short), line(bits("receive"), "receive "+short)),
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
			Or("none in this time range, or not exposed by these drivers"),
		graph("Ethernet errors", "Errors of the receiver of an Ethernet port: blocks that FEC could not correct, frames with a wrong checksum, faults of the link.", whole, 12,
			increases(device, perNetdev, short, netdevCounters...)...).
			Or("none in this time range, or not exposed by these drivers"),
		graph("Dropped packets", "Packets that a port dropped: no buffer on receive, not sent in time, or refused by partition. None is expected on a lossless priority.", whole, 12,
			increases(device, perPort, short, dropCounters...)...).
			Or("none in this time range, or not exposed by these drivers"),
		graph("Failed requests", "Requests that a queue pair gave up or refused: retries exceeded, receiver not ready, access errors. Each breaks a connection, and most often the job.", whole, 12,
			increases(device, perPort, short, requestCounters...)...).
			Or("none in this time range, or not exposed by these drivers"),
		graph("FEC corrections", "Errors that FEC corrected, per second. Every fast link has them; one that has many times more than its siblings is on its way to uncorrectable blocks.", "cps", 12,
			rates(device, perNetdev, short, corrected, blocks)...),
		berOfPorts(device, 12),
		graph("Raw errors by lane", "Raw bit errors of each lane before correction, per second. One lane far above the others is a dirty or damaged fibre, or a failing laser.", "cps", 12,
			line(sumBy(perLane, device.Rate("rdma_port_lane_raw_errors_total"))+" > 0", short+" lane {{lane}}")),
	}
}

// sendingLimits are the limits of a port that sends pause.
var sendingLimits = thresholds("transparent",
	step{From: limitSlowReceiver, Colour: warning}, step{From: limitStormSource, Colour: bad})

// nodePaused draws the pauses of the ports of a host.
func nodePaused() panel {
	paused := func(says, direction string) query {
		of := atMostAll(maxBy(perNetdev+", priority",
			device.Rate("rdma_port_pfc_pause_seconds_total", `direction="`+direction+`"`)))
		return line(above("0.001", 10, perNetdev+", priority", of), says+" {{device}}/{{port}} priority {{priority}}")
	}
	p := graph("Time paused", "Share of the time in which a priority was paused (PFC), from 0.1% on. Sending: the host does not drain what it receives. Receiving: something behind the switch does not. "+
		"The lines are the limits of RDMASlowReceiver and RDMAPFCStormSource (sending).", "percentunit", 8,
		paused("sends", "transmit"), paused("receives", "receive"),
		noneAbove(atMostAll(maxBy(perPort, device.Rate("rdma_port_pfc_pause_seconds_total"))), "0.001",
			"none of {{of}} ports above 0.1%"),
		line(`clamp_max(0 * count_values("of", count(`+device.Of("rdma_port_info", `link_layer="InfiniBand"`)+
			`)), 0) unless on () `+device.Rate("rdma_port_pfc_pause_seconds_total"), "n/a: {{of}} InfiniBand ports")).
		Or("blind: 0 ports measure pause (PFC)")
	p.Max, p.Colours = share, sendingLimits
	return p
}

func nodePause() []panel {
	frames := func(direction string) string {
		return sumBy(perNetdev+", priority", device.Rate("rdma_port_pfc_pause_frames_total", `direction="`+direction+`"`))
	}
	return []panel{
		graph("Pause frames", "PFC frames per second. Drivers without pause durations have these alone, which do not show for how long traffic was paused.", "pps", grid,
			line(frames("transmit"), "sent {{device}}/{{port}} priority {{priority}}"),
			line(frames("receive"), "received {{device}}/{{port}} priority {{priority}}"),
			line(
				sumBy(perNetdev+", direction", device.Rate("rdma_port_global_pause_frames_total"))+" > 0",
				"global pause, {{direction}} {{device}}/{{port}}",
			)),
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
		return maxBy(perDevice, device.Of("rdma_device_pcie_"+which+"_bytes_per_second"))
	}
	stalls := graph("PCIe stalls", "Share of the last second in which a NIC waited for PCIe: transmit, to fetch what it sends; receive, to write what it received.", "percentunit", 8,
		line(
			atMostAll(maxBy(perNetdev, device.Of("rdma_port_pcie_stall_ratio", `direction="transmit"`))), "transmit "+short,
		),
		line(
			atMostAll(maxBy(perNetdev, device.Of("rdma_port_pcie_stall_ratio", `direction="receive"`))), "receive "+short,
		))
	stalls.Max = share
	return []panel{
		{
			Title: "PCIe bandwidth", Unit: "Bps", Width: 8, Height: 9, View: table, Sort: "-Device",
			NoValue: "unknown, or no PCIe device",
			Text:    "What the PCIe links between a device and its root port carry now, and what both ends of each support. Less than supported is a degraded link; the bottleneck names it.",
			Queries: []query{
				{Expr: bandwidth("available")},
				{Expr: bandwidth("capable")},
				{Expr: bandwidth("available") + " / " + bandwidth("capable")},
				{Expr: maxBy(perDevice+", bottleneck", device.Of("rdma_device_pcie_path_info"))},
			},
			Columns: append([]column{
				ownHCA,
				{From: "A", Title: "Now", Unit: "Bps", Width: 85},
				{From: "B", Title: "Supported", Unit: "Bps", Width: 90},
				{From: "C", Title: "Share", Unit: "percentunit", Colours: []step{{From: 0, Colour: warning}, {From: 0.99, Colour: "transparent"}}, Width: 60},
				{From: "bottleneck", Title: "Bottleneck"},
				hidden("D"),
			}, ownHost...),
		},
		stalls,
		graph("PCIe errors", "Errors that the PCIe functions on the path of the RDMA devices and GPUs reported (AER). Correctable ones cost a replay; fatal ones take the link down.", whole, 8,
			line(
				sumBy(perHost+", pci_address, severity", host.Increase("rdma_pcie_aer_errors_total"))+" > 0",
				"{{severity}} {{pci_address}}",
			)).Or("none, or no AER of these functions"),
		graph("Temperature of devices",
			"Temperature of each sensor of an RDMA device, of its transceiver if a sensor has it, and the critical thresholds.", "celsius", 12,
			line(maxBy(perDevice+", sensor", device.Of("rdma_device_temperature_celsius")), "{{device}} {{sensor}}"),
			line(maxBy(perPort, device.Of("rdma_transceiver_sensor_celsius")), "{{device}}/{{port}} transceiver"),
			line(
				maxBy(perDevice+", sensor, level", device.Of("rdma_device_temperature_threshold_celsius")),
				"{{level}} {{device}} {{sensor}}",
			),
			line(
				maxBy(perPort+", level", device.Of("rdma_transceiver_sensor_threshold_celsius")),
				"{{level}} {{device}}/{{port}} transceiver",
			)),
		{
			Title: "PCIe links", Unit: "none", Width: 12, Height: 9, View: table, Sort: "-Address",
			NoValue: "unknown, or no PCIe device",
			Text:    "PCIe links on the path of RDMA devices and GPUs: present and supported speed and width.",
			Queries: []query{
				{Expr: maxBy(perHost+", pci_address", host.Of("rdma_pcie_link_speed_transfers_per_second")) + " / 1e9"},
				{Expr: maxBy(perHost+", pci_address", host.Of("rdma_pcie_link_max_speed_transfers_per_second")) + " / 1e9"},
				{Expr: maxBy(perHost+", pci_address", host.Of("rdma_pcie_link_width_lanes"))},
				{Expr: maxBy(perHost+", pci_address", host.Of("rdma_pcie_link_max_width_lanes"))},
			},
			Columns: append([]column{
				{From: "pci_address", Title: "Address"},
				{From: "A", Title: "Speed", Unit: "suffix: GT/s", Width: 90},
				{From: "B", Title: "Supported", Unit: "suffix: GT/s", Width: 100},
				{From: "C", Title: "Lanes"},
				{From: "D", Title: "Supported lanes"},
			}, ownHost...),
		},
	}
}

func nodeOptics() []panel {
	lane := func(metric string) string { return maxBy(perLane, device.Of(metric)) }
	// alarms are the transceivers' own thresholds; those that are the same for all ports are one line.
	alarms := func(metric, level string) query {
		return line("max by (level) ("+device.Of(metric, `level="`+level+`"`)+")", "{{level}}, highest of the ports")
	}
	lanes := func(title, text, unit, metric, threshold string) panel {
		return graph(title, text, unit, 12, line(lane(metric), short+" lane {{lane}}"), alarms(threshold, "low_alarm"),
			alarms(threshold, "high_alarm"))
	}
	temperature := maxBy(perNetdev, device.Of("rdma_transceiver_temperature_celsius"))
	return []panel{
		graph("Transceiver temperature", "Temperature of each transceiver, and its own alarm threshold.", "celsius", 12,
			line(temperature, short), line(
				maxBy(perNetdev, device.Of("rdma_transceiver_temperature_threshold_celsius", `level="high_alarm"`)),
				"alarm "+short,
			)).Or(
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
			line(maxBy(perNetdev, device.Of("rdma_transceiver_voltage_volts")), short),
			alarms("rdma_transceiver_voltage_threshold_volts", "low_alarm"),
			alarms("rdma_transceiver_voltage_threshold_volts", "high_alarm")),
		{
			Title: "Age of transceiver data", Unit: "s", Width: 12, Height: 9, View: lines, NoValue: notHere,
			Text:    "Time since a transceiver was read. A reading is kept for some time, since each read occupies the management bus of the transceiver.",
			Queries: []query{line(maxBy(perNetdev, device.Of("rdma_transceiver_age_seconds")), short)},
		},
	}
}

func nodeGPUs() []panel {
	states := func(title, text, labels, expr string, columns ...column) panel {
		return panel{
			Title: title, Text: text, Unit: "none", Width: 8, Height: 8, View: table, Sort: "-GPU",
			NoValue: "none, or no GPUs are collected",
			Queries: []query{{Expr: maxBy(labels, expr)}},
			Columns: append(append(columns, hidden("A"), hidden("UUID")), ownHost...),
		}
	}
	lastXID, recovery := maxBy(perGPU, host.Of("rdma_gpu_last_xid")), maxBy(perGPU, host.Of("rdma_gpu_recovery_action_id"))
	return []panel{
		verdicts(host, 9, "-GPU", hidden("instance"), ownHCA),
		graph("PCIe traffic of GPUs",
			"What each GPU transmits and receives over PCIe, to NICs, host memory and peers alike. Hopper and later.", "Bps", 8,
			line(maxBy(perGPU, host.Rate("rdma_gpu_pcie_transmit_bytes_total")), "transmit GPU {{gpu}}"),
			line(maxBy(perGPU, host.Rate("rdma_gpu_pcie_receive_bytes_total")), "receive GPU {{gpu}}")).
			Or("no GPUs, or their counters are not read"),
		graph("NVLinks", "NVLinks of each GPU that are up. GPUs of one model have the same number.", "none", 8,
			line(maxBy(perGPU, host.Of("rdma_gpu_nvlinks_up")), "GPU {{gpu}}")).Or("no NVLink, or no GPUs are collected"),
		graph("NVLink traffic", "What each GPU transmits and receives over NVLink.", "Bps", 8,
			line(maxBy(perGPU, host.Rate("rdma_gpu_nvlink_transmit_bytes_total")), "transmit GPU {{gpu}}"),
			line(maxBy(perGPU, host.Rate("rdma_gpu_nvlink_receive_bytes_total")), "receive GPU {{gpu}}")).
			Or("no NVLink, or its counters are not read"),
		states("NVLink fabric", "State of each GPU on its NVLink fabric (NVSwitch systems).", perGPU+", state", host.Of("rdma_gpu_fabric_state")+" == 1", gpu, column{From: "state", Title: "State"}),
		states("Throttling", "Why the clocks of a GPU are reduced now.", perGPU+", reason", host.Of("rdma_gpu_throttle")+" == 1", gpu, column{From: "reason", Title: "Reason"}),
		{
			Title: "XID and recovery", Unit: "none", Width: 8, Height: 8, View: table, Sort: "-GPU",
			NoValue: "none, or no GPUs are collected",
			Text:    "Number of the last XID of each GPU since the exporter started, and the recovery action that the driver asks for.",
			Queries: []query{{Expr: lastXID + " or -1 + 0 * " + recovery}, {Expr: recovery + " or -1 + 0 * " + lastXID}},
			Columns: append([]column{gpu, {
				From: "A", Title: "Last XID", Words: []word{{Value: "-1", Text: "none", Colour: neutral}},
			}, {From: "B", Title: "Recovery action", Words: recoveries}, hidden("UUID")}, ownHost...),
		},
	}
}

func nodeSubnet() []panel {
	return []panel{
		{
			Title: "Subnet manager of each port", Unit: "none", Width: 12, Height: 9, View: table, Sort: "-Device",
			NoValue: "no InfiniBand port, or not collected",
			Text:    "The port's LID, the LID of its subnet manager, the manager's state and priority, and how many expected P_Keys the port is missing.",
			Queries: []query{
				{Expr: maxBy(perPort, device.Of("rdma_port_lid"))},
				{Expr: maxBy(perPort, device.Of("rdma_port_sm_lid"))},
				{Expr: maxBy(perPort, device.Of("rdma_port_subnet_manager_state_id"))},
				{Expr: maxBy(perPort, device.Of("rdma_port_subnet_manager_priority"))},
				{Expr: maxBy(perPort, device.Of("rdma_port_pkeys_missing"))},
			},
			Columns: append([]column{
				ownHCA, portOf,
				{From: "A", Title: "LID", Width: 60},
				{From: "B", Title: "SM LID", Width: 75},
				{From: "C", Title: "SM state", Words: smStates, Width: 100},
				{From: "D", Title: "SM priority", Width: 105},
				{From: "E", Title: "P_Keys missing", Colours: []step{{From: 1, Colour: warning}}},
			}, ownHost...),
		},
		graph("Activity of the subnet manager",
			"ActCount of the subnet manager per second. A manager that answers and whose count does not rise hangs.", "cps", 6,
			rates(device, perPort, short, counter{"rdma_port_subnet_manager_activity_total", "activity"})...).
			Or("no InfiniBand port, or not collected"),
		{
			Title: "Cabling", Unit: "none", Width: 6, Height: 9, View: table, Sort: "-Device",
			NoValue: "no cabling in the site configuration",
			Text:    "Ports whose cable ends elsewhere than the site configuration says.",
			Queries: []query{{Expr: maxBy(perNetdev, device.Of("rdma_port_miscabled"))}},
			Columns: append([]column{
				ownHCA, portOf, netdev,
				{From: "A", Title: "Cabling", Words: []word{{Value: "1", Text: "wrong", Colour: bad}, {Value: "0", Text: "right", Colour: good}}, Width: 90},
			}, ownHost...),
		},
	}
}

func nodeDevices() []panel {
	labels := perDevice + ", hca_type, board_id, firmware_version, pci_address, numa_node, driver, function_type"
	bond := perNetdev
	return []panel{
		{
			Title: "RDMA devices", Unit: "none", Width: 24, Height: 8, View: table, Sort: "-Device", NoValue: "no RDMA device",
			Text:    "Identity of the RDMA devices. One board has one firmware version across a fleet.",
			Queries: []query{{Expr: maxBy(labels, device.Of("rdma_device_info"))}},
			Columns: append([]column{
				ownHCA,
				{From: "hca_type", Title: "Type"},
				{From: "board_id", Title: "Board"},
				{From: "firmware_version", Title: "Firmware"},
				{From: "driver", Title: "Driver"},
				{From: "pci_address", Title: "PCI address"},
				{From: "numa_node", Title: "NUMA node"},
				{From: "function_type", Title: "Function"},
				{From: "A"},
			}, ownHost...),
		},
		{
			Title: "Settings to change", Unit: "none", Width: 24, Height: 8, View: table, Sort: "-Setting",
			NoValue: "none, or settings are not read",
			Text:    "Settings of the host that differ from what is wanted of them. `rdma_exporter check --setup` prints what is wanted, why, and the command that sets it; docs/setup.md lists all.",
			Queries: []query{{Expr: maxBy(perHost+", domain, setting, object, value", host.Of("rdma_setup_info"))}},
			Columns: append([]column{
				{From: "setting", Title: "Setting"},
				{From: "object", Title: "Object"},
				{From: "value", Title: "Found"},
				{From: "domain", Title: "Domain"},
				hidden("A"),
			}, ownHost...),
		},
		{
			Title: "Missing and renamed devices", Unit: "none", Width: 8, Height: 8, View: table,
			Sort: "-Device", NoValue: "none",
			Text:    "RDMA devices that the inventory or the site configuration names and that are missing, with the reason.",
			Queries: []query{{Expr: maxBy(perDevice+", pci_address, reason", host.Of("rdma_device_missing_info"))}},
			Columns: append([]column{
				ownHCA, {From: "pci_address", Title: "PCI address"}, {From: "reason", Title: "Reason"}, {From: "A"},
			}, ownHost...),
		},
		{
			Title: "MTU and GIDs", Unit: "none", Width: 8, Height: 8, View: table, Sort: "-Device", NoValue: notHere,
			Text: "MTU of the netdev, and the RoCE MTU that follows from it: the largest of 256, 512, 1024, 2048 and 4096 bytes that fits. Lowest GID index of RoCE v2 over IPv4, for NCCL_IB_GID_INDEX.",
			Queries: []query{
				{Expr: maxBy(perPort, device.Of("rdma_port_mtu_bytes"))},
				{Expr: maxBy(perPort, device.Of("rdma_port_active_mtu_bytes"))},
				{Expr: maxBy(perPort, device.Of("rdma_port_roce_v2_gid_index", `family="ipv4"`))},
			},
			Columns: append([]column{
				ownHCA, portOf,
				{From: "A", Title: "Netdev", Width: 80},
				{From: "B", Title: "RoCE", Width: 70},
				{From: "C", Title: "GID index", Width: 90},
			}, ownHost...),
		},
		{
			Title: "Saturated counters", Unit: "none", Width: 8, Height: 8, View: table, Sort: "-Device", NoValue: "none",
			Text:    "Counters of 32 bits or fewer at their maximum, which no longer count until they are cleared: their alerts are not evaluated.",
			Queries: []query{{Expr: maxBy(perPort+", counter", device.Of("rdma_port_counter_saturated")) + " == 1"}},
			Columns: append([]column{ownHCA, portOf, {From: "counter", Title: "Counter"}, hidden("A")}, ownHost...),
		},
		{
			Title: "Kernel messages", Unit: "none", Width: 8, Height: 8, View: table, Sort: "-Kind",
			NoValue: "none, or the kernel log is not read",
			Text:    "Messages of the kernel log in the last 15 minutes about RDMA devices, the PCIe ports above them and GPUs, by kind.",
			Queries: []query{{Expr: maxBy(perHost+", device, pci_address, kind", host.Of("rdma_kernel_log_recent_events"))}},
			Columns: append([]column{
				{From: "kind", Title: "Kind"},
				ownHCA,
				{From: "pci_address", Title: "PCI address"},
				{From: "A", Title: "Messages", Unit: whole, Width: 85},
			}, ownHost...),
		},
		{
			Title: "Ignored and pinned", Unit: "none", Width: 8, Height: 8, View: table, Sort: "-Device",
			NoValue: "none in the site configuration",
			Text:    "Devices and ports whose faults raise no alert, and ports that are expected to be ACTIVE, by the site configuration.",
			Queries: []query{{Expr: `label_replace(` + maxBy(perPort, device.Of("rdma_port_ignored")) +
				`, "by", "ignored", "", "") or label_replace(` +
				maxBy(perDevice, device.Of("rdma_device_ignored")) + `, "by", "ignored", "", "") or label_replace(` +
				maxBy(perPort, device.Of("rdma_port_pinned_active")) + `, "by", "expected ACTIVE", "", "")`}},
			Columns: append([]column{ownHCA, portOf, {From: "by", Title: "Setting"}, hidden("A")}, ownHost...),
		},
		{
			Title: "Members of bonds", Unit: "none", Width: 8, Height: 8, View: table, Sort: "-Netdev", NoValue: "no RoCE LAG",
			Text: "Links of the members of a RoCE LAG: up, rate and expected rate.",
			Queries: []query{
				{Expr: maxBy(bond, device.Of("rdma_bond_member_up"))},
				{Expr: "8 * " + maxBy(bond, device.Of("rdma_bond_member_rate_bytes_per_second"))},
				{Expr: "8 * " + maxBy(bond, device.Of("rdma_bond_member_expected_rate_bytes_per_second"))},
			},
			Columns: append([]column{
				ownHCA, portOf,
				{From: "netdev", Title: "Netdev", Width: 105},
				{From: "A", Title: "Link", Words: []word{{Value: "1", Text: "up", Colour: good}, {Value: "0", Text: "down", Colour: bad}}, Width: 60},
				{From: "B", Title: "Rate", Unit: "bps", Width: 75},
				{From: "C", Title: "Expected", Unit: "bps", Width: 80},
			}, ownHost...),
		},
	}
}

// exporterChecks are what an exporter reports of itself, as 1 where it is well.
var exporterChecks = []struct{ text, expr string }{
	{"configuration reloaded", host.Of("rdma_config_last_reload_successful")},
	{"state written", host.Of("rdma_state_last_write_successful")},
	{"alert store on disk", "1 - " + host.Of("rdma_alerting_store_degraded")},
	{"incident captured", host.Of("rdma_incident_last_capture_successful")},
	{"network configuration readable (rtnl)", "1 - " + host.Of("rdma_scrape_rtnl_back_off")},
	{"reads within budget", "1 - " + maxBy(perHost, host.Of("rdma_scrape_over_budget"))},
	{"serves this host", "0 * " + maxBy(perHost, host.Of("rdma_exporter_replay_info")) + " or " + maxBy(perHost, host.Of("rdma_exporter_build_info"))},
}

func nodeExporter() []panel {
	var checks []string
	for _, c := range exporterChecks {
		checks = append(checks, labelled("check", c.text, maxBy(perHost, c.expr)))
	}
	listed := func(title, text, noValue, labels, expr string, columns ...column) panel {
		return panel{
			Title: title, Text: text, Unit: "none", Width: 8, Height: 9, View: table,
			Sort: "-" + columns[0].Title, NoValue: noValue,
			Queries: []query{{Expr: maxBy(labels, expr)}}, Columns: append(append(columns, hidden("A")), ownHost...),
		}
	}
	return []panel{
		listed("Not evaluated",
			"Alerts that cannot be evaluated on this host, and why: what no alert says of them is unknown and not well.",
			"none: all alerts that apply are evaluated",
			perHost+", alert, reason", host.Of("rdma_detection_unavailable"),
			column{From: "alert", Title: "Alert", Ways: []way{toRunbook}}, column{From: "reason", Title: "Reason"}),
		listed("Permission denied",
			"Sources that the exporter may not open. docs/permissions.md has the capability that each needs.", "none",
			perHost+", source", host.Of("rdma_scrape_permission_denied")+" == 1", column{From: "source", Title: "Source"}),
		{
			Title: "Collectors", Unit: "none", Width: 8, Height: 9, View: timeline, NoValue: "unknown",
			Words:   okOrFailed,
			Text:    "Whether each collector finished in time and without an error of its own.",
			Queries: []query{line(minBy(perHost+", collector", host.Of("rdma_scrape_collector_success")), "{{collector}}")},
		},
		graph("Failed reads", "Files and requests that failed between two points of the graph, each of which costs its own sample, and devices whose read has not returned from the kernel, or not in time because the exporter waits for a CPU.", whole, 8,
			line(
				sumBy(perHost+", collector, device, reason", host.Increase("rdma_scrape_errors_total"))+" > 0",
				"{{collector}} {{device}} {{reason}}",
			),
			line(maxBy(perDevice, host.Of("rdma_scrape_collector_stuck"))+" == 1", "{{device}} stuck"),
			line(maxBy(perDevice, host.Of("rdma_scrape_collector_late"))+" == 1", "{{device}} late"),
			line(
				maxBy(perDevice+", collector", host.Of("rdma_scrape_quarantined_items"))+" > 0",
				"{{collector}} {{device}} quarantined",
			)).Or("none"),
		graph("Collection time", "Wall time of each collector's last collection, and the time of each second in which the exporter waited for a CPU.", "s", 8,
			line(maxBy(perHost+", collector", host.Of("rdma_scrape_collector_duration_seconds")), "{{collector}}"),
			line(maxBy(perHost, host.Rate("rdma_exporter_cpu_wait_seconds_total")), "waiting for a CPU")),
		graph("Notifications", "Alerts that the exporter sent to Alertmanagers, failed to send, and dropped, between two points of the graph. Only of an exporter that evaluates the rules itself.", whole, 8,
			increases(host, perHost, "", counter{"rdma_alerting_notifications_sent_total", "sent"},
				counter{"rdma_alerting_notification_errors_total", "failed"},
				counter{"rdma_alerting_notifications_dropped_total", "dropped"}, counter{
					"rdma_alerting_rule_failures_total", "failed evaluations",
				})...).Or("none, or this exporter evaluates no rules"),
		{
			Title: "State of the exporter", Unit: "none", Width: 12, Height: 9, View: table, Sort: "-OK", NoValue: "unknown",
			Text:    "What the exporter reports of itself. Alerts and checks that are missing do not apply: an exporter without a configuration file never reloads one.",
			Queries: []query{{Expr: strings.Join(checks, " or ")}},
			Columns: append([]column{
				{From: "check", Title: "Check"}, {From: "A", Title: "OK", Words: okOrFailed},
			}, ownHost...),
		},
		graph("Rounds and store of the alerts", "Rounds of rule evaluations per second, the duration of the last one in seconds, and thousands of series in the store. Only of an exporter that evaluates the rules itself.", "short", 12,
			line(maxBy(perHost, host.Rate("rdma_alerting_rounds_total")), "rounds/s"),
			line(maxBy(perHost, host.Of("rdma_alerting_last_round_duration_seconds")), "duration (s)"),
			line(maxBy(perHost, host.Of("rdma_alerting_store_series"))+" / 1000", "series (thousands)")).
			Or("this exporter evaluates no rules"),
	}
}
