package port

import (
	"cmp"
	"strconv"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// roceFaults are those of lossless Ethernet: pauses, priorities, congestion control.
var roceFaults = fault.Kinds{
	"pfc_storm_source/short_storms": {Write: pfcShortStorms, Measure: `port:rdma_pfc_short_storms:warning{$port}`},
	"pfc_storm_source/storm":        {Write: pfcStormSource, Measure: `port:rdma_pfc_storm_source:critical{$port}`},
	"pfc_storm_source/watchdog":     {Write: pfcWatchdogFired, Measure: `port:rdma_pfc_watchdog_fired:critical{$port}`},
	"pfc_storm_victim/paused":       {Write: pfcStormVictim, Measure: `port:rdma_pfc_storm_victim:critical{$port}`},
	"pfc_storm_victim/slowed":       {Write: pfcStormVictim, Measure: `port:rdma_pfc_storm_victim:info{$port}`},
	"slow_receiver/pauses":          {Write: slowReceiver, Measure: `port:rdma_slow_receiver:warning{$port}`},
	"port_misconfigured/global_pause": {
		Write: globalPauseInsteadOfPFC,
		Measure: `port:rdma_global_pause_instead_of_pfc:warning{$port} ` +
			`or port:rdma_global_pause_instead_of_pfc:info{$port}`,
	},
	"port_misconfigured/congestion_notification": {
		Write: congestionNotificationOff,
		Measure: `port:rdma_congestion_notification_off:warning{$port} ` +
			`or port:rdma_congestion_notification_off:info{$port}`,
	},
	"discards/lossless_priority": {
		Write:   losslessPriorityDiscards,
		Measure: `port:rdma_lossless_priority_discards:warning{$port}`,
	},
	"traffic_on_lossy_priority/priority": {
		Write:   trafficOnLossyPriority,
		Measure: `port:rdma_traffic_on_lossy_priority:warning{$port}`,
	},
}

const (
	// How many ports of the host send, and receive, pause.
	portsPausing = `count(max by (device, port, netdev) ` +
		`(port:rdma_port_pfc_paused:ratio{direction="transmit",$host}) > {slow-receiver-ratio})`
	portsPaused = `count(max by (device, port, netdev) ` +
		`(port:rdma_port_pfc_paused:ratio{direction="receive",$host}) > {paused-ratio})`

	pfcOfPort = `max by (priority) (rdma_port_pfc_enabled{$netdev}) == 1`
	pfcOfHost = `max by (priority) (rdma_port_pfc_enabled{$host}) == 1`
	pinOfRoCE = `max by (roce) (rdma_port_roce_pin_info{$port})`
	rdmaLossy = `max(port:rdma_port_rdma_lossy:ratio{$port})`
)

// shortStorms are the texts that depend on the direction of pauses.
var shortStorms = map[string]struct{ headline, sentence, line, action string }{
	"transmit": {
		"stalls its switch", "The port pauses its switch in bursts", "this port pauses its switch",
		"Check the PCIe slot of this port, the receive buffers of the job, and which hosts send to it.",
	},
	"receive": {
		"stalled by its switch", "The switch pauses this port in bursts", "the switch pauses this port",
		"Find the port that pauses the switch: another host on the same path whose alert says that it sends pauses, " +
			"RDMAPFCStormSource or RDMASlowReceiver.",
	},
}

func pfcShortStorms(f *fault.Fault) fault.Text {
	priority, texts := f.Labels["priority"], shortStorms[f.Labels["direction"]]
	stalled := fault.Roughly(f.Value) + " of last 5m (limit {short-storms-ratio%})"
	var e fault.Lines
	e.Add("Stalled", stalled+" on priority "+priority+".")
	e.Add("Direction", texts.line+".")
	if v, ok := f.Number(`max(increase(rdma_port_pfc_sampled_seconds_total{$netdev}[5m]))`); ok {
		e.Add("Sampled", fault.Lasting(v)+" of last 5m.")
	}
	addPausingPorts(f, &e)
	e.Add("Not evaluated", "stalls shorter than 500ms, stalls before the port was sampled.")
	return fault.Text{
		Summary: f.AtNetdev() + ": short PFC storms, " + texts.headline + " " + stalled + " on priority " + priority,
		Description: texts.sentence + " of a second or more, together " + stalled + ": seconds in which priority " +
			priority + " was paused for more than half. Each collective waits for such a second, on all hosts of the job.",
		Evidence: e,
		Measured: fault.Percent(f.Value),
		Limit:    "{short-storms-ratio%}",
		Diagnose: "for i in 1 2 3 4 5 ; do ethtool -S " + fault.Pasted(f.Labels["netdev"]) +
			" | grep pause_duration ; sleep 1 ; done",
		Action:      texts.action,
		DrainReason: "Jobs continue, slowed by stalls of seconds.",
	}
}

func pfcStormSource(f *fault.Fault) fault.Text {
	sent := paused(f, "{storm-source-ratio%}")
	var e fault.Lines
	e.Add("Pause sent", sent+".")
	e.AddKnown("Received", receivedShare(f), " of line rate (limit 1%) on priority "+f.Labels["priority"]+".")
	e.AddKnown("Pause received", shareOf(f, `max(port:rdma_port_pfc_paused:ratio{direction="receive",$netdev})`),
		" of last 90s, on the priority with the most.")
	addPausingPorts(f, &e)
	e.Add("Not evaluated", "why the NIC has stopped receiving, how far the storm has spread.")
	return fault.Text{
		Summary: f.AtNetdev() + ": PFC storm source, sending pause " + sent + ", receiving < 1% of line rate",
		Description: "The port sends PFC pause " + sent + " and receives < 1% of line rate: the NIC or the path behind " +
			"it has stopped. The buffers of the switch fill, and it pauses its own senders. Within seconds, jobs on other " +
			"hosts stall.",
		Evidence: e,
		Measured: fault.Percent(f.Value),
		Limit:    "{storm-source-ratio%}",
		Diagnose: diagnosePauses(f) + " ; dmesg -T | grep -iE 'mlx5|bnxt|pcieport|aer' | tail -20 # as root",
		Action: "Shut the switch port or set the interface down (ip link set " + fault.Pasted(
			f.Labels["netdev"],
		) + " down) to " +
			"end the storm: jobs on this port stall already. Drain the host, then reset the device or reboot. Check dmesg " +
			"for firmware errors and the PCIe slot for errors.",
		DrainReason: "Jobs on this port stall, and jobs of other hosts wait for them.",
	}
}

// stormVictims are the texts that depend on the share of time in which the port is paused, by severity.
var stormVictims = map[string]struct{ limit, headline, impact string }{
	"critical": {
		"{storm-victim-ratio%}", "PFC storm victim, paused by its switch ",
		"It transmits almost nothing, and jobs on this port stall.",
	},
	"info": {
		"{paused-ratio%}", "paused by its switch (PFC) ",
		"What this host sends waits, and collectives are slower.",
	},
}

func pfcStormVictim(f *fault.Fault) fault.Text {
	texts := stormVictims[f.Labels["severity"]]
	received := paused(f, texts.limit)
	var e fault.Lines
	e.Add("Pause received", received+".")
	e.AddKnown("Pause sent", shareOf(f, `max(port:rdma_port_pfc_paused:ratio{direction="transmit",$netdev}) > {slow-receiver-ratio}`),
		" of last 90s; which direction came first is not known here.")
	addPausingPorts(f, &e)
	e.Add("Not evaluated", "which port pauses the switch.")
	return fault.Text{
		Summary: f.AtNetdev() + ": " + texts.headline + received,
		Description: "The switch pauses this port (PFC) " + received + ". " + texts.impact +
			" The cause is another port, on another host or in the fabric.",
		Evidence: e,
		Measured: fault.Percent(f.Value),
		Limit:    texts.limit,
		Diagnose: diagnosePauses(f),
		Action: "Leave this port as it is. Find RDMAPFCStormSource or RDMASlowReceiver on other hosts, and follow the " +
			"pauses from switch to switch to their source.",
		DrainReason: "The cause is elsewhere: draining moves the load to another host, which is paused in its place.",
	}
}

func slowReceiver(f *fault.Fault) fault.Text {
	sent, received := paused(f, "{slow-receiver-ratio%}"), receivedShare(f)
	var e fault.Lines
	e.Add("Pause sent", sent+".")
	e.AddKnown("Received", received, " of line rate on priority "+f.Labels["priority"]+".")
	for _, r := range f.Rows(`max by (direction) (rdma_port_pcie_stall_ratio{$netdev}) >= 0.3`, "direction") {
		e.Add("PCIe stalls", fault.Roughly(r.Value)+" of last 1s, "+r.Labels["direction"]+
			" (limit 30%), likely cause the slot or the memory behind it.")
	}
	e.AddKnown("Receive buffers", f.Text(`max(increase(rdma_port_receive_buffer_exhausted_total{$port}[10m])) > 0`,
		"%.0f", ""), " packets without a receive work request in 10m, likely cause the application.")
	addPausingPorts(f, &e)
	e.Add("Not evaluated", "the PCIe path to the GPU, the application.")
	diagnose := "ethtool -S " + fault.Pasted(f.Labels["netdev"]) + " | grep -E 'pause|pci'"
	if pci := f.LabelOf(`max by (pci_address) (last_over_time(rdma_device_info{pci_address!="",$device}[1h]))`,
		"pci_address"); pci != "" {
		diagnose += " ; lspci -vv -s " + pci + " | grep -E 'LnkSta:|MaxReadReq'"
	}
	return fault.Text{
		Summary: f.AtNetdev() + ": slow receiver, sending PFC pause " + sent +
			fault.When(received != "", ", receiving "+received+" of line rate"),
		Description: "The port sends PFC pause " + sent + " while it receives: it drains packets more slowly than they " +
			"arrive. Senders and their collectives wait, and the pauses reach other flows that cross the same switch ports.",
		Evidence: e,
		Measured: fault.Percent(f.Value),
		Limit:    "{slow-receiver-ratio%}",
		Diagnose: diagnose + " # as root",
		Action: "Compare the PCIe link, MaxReadReq, the NUMA node of the memory of the job, and the IOMMU with those of " +
			"a port without pauses. Repair the slot or the settings at the next drain.",
		DrainReason: "Jobs continue and wait for this receiver; repair it between jobs.",
	}
}

func pfcWatchdogFired(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("Watchdog", f.Text(`max(rdma_port_pause_storm_events_total{severity="error",$netdev})`, "%.0f", "unknown")+
		" events since the driver was loaded, "+fault.Whole(f.Value)+" in the last 5m.")
	e.Add("Sending pause", countPorts(f, portsPausing)+" of this host for more than 10% of the time.")
	e.Add("Receiving pause", countPorts(f, portsPaused)+" of this host for more than 30% of the time.")
	e.Add("Not evaluated", "whether the storm is over (not reported by the driver).")
	return fault.Text{
		Summary: f.AtNetdev() + ": PFC watchdog fired, NIC stopped sending pause and drops packets",
		Description: "The NIC sent PFC pause without a break for as long as its watermark allows (mlx5: 8s by default) " +
			"and stopped pausing: packets that it cannot receive are dropped. Priorities that are meant to be lossless are " +
			"lossy, which causes retransmissions and broken connections. Traffic of the fabric to this port stood still " +
			"before.",
		Evidence: e,
		Diagnose: "ethtool -S " + fault.Pasted(f.Labels["netdev"]) + " | grep -E 'pause_storm|discard' ; " +
			"dmesg -T | tail # as root",
		Action: "Check for a hung process or GPU, firmware errors and PCIe errors. Drain the host, then reset the device " +
			"or reboot. If the fault returns, replace the NIC.",
		DrainReason: "The port drops packets of lossless priorities until the NIC sends pause again.",
	}
}

// countPorts returns the number of ports that an expression counts: "2 ports".
func countPorts(f *fault.Fault, expr string) string {
	if n, ok := f.Number(expr); ok {
		return words.Count(int(n), "port")
	}
	return "no port"
}

func globalPauseInsteadOfPFC(f *fault.Fault) fault.Text {
	netdev := fault.Pasted(f.Labels["netdev"])
	directions := f.LabelsOf(`max by (direction) (rdma_port_global_pause_enabled{$netdev}) == 1`, "direction")
	priorities := cmp.Or(strings.Join(f.LabelsOf(pfcOfHost, "priority"), " "), "of RoCE")
	var e fault.Lines
	e.Add("Pause", "802.3x enabled"+fault.When(len(directions) > 0, " for "+strings.Join(directions, " and "))+".")
	e.Add("PFC", "enabled on no priority.")
	e.Add("Expected", "PFC on priority "+priorities+whyLossless(f, "by the other ports of this role")+".")
	addClassification(f, &e)
	e.Add("Not evaluated", "configuration of the switch port.")
	return fault.Text{
		Summary: f.AtNetdev() + ": 802.3x pause enabled for all traffic, PFC on no priority (expected: PFC)",
		Description: "802.3x pause is enabled and PFC is enabled on no priority, although the port is expected to be " +
			"lossless. A pause frame stops all traffic of the port, TCP and congestion notifications included. Switches " +
			"configured for PFC ignore or drop 802.3x frames: then the port is not lossless at all.",
		Evidence: e,
		Diagnose: "ethtool -a " + netdev + " ; dcb pfc show dev " + netdev,
		Action: "Set PFC as on the other ports (mlnx_qos, dcb pfc, or the switch by DCBX); most drivers then disable " +
			"802.3x pause. If the port is lossy on purpose, pin roce: lossy.",
		DrainReason: "The port works; its traffic stops as a whole under congestion.",
	}
}

func losslessPriorityDiscards(f *fault.Fault) fault.Text {
	netdev, priority := fault.Pasted(f.Labels["netdev"]), f.Labels["priority"]
	drops := fault.Whole(f.Value) + " packets of "
	var e fault.Lines
	e.Add("Drops", drops+"priority "+priority+" in 5m, receive buffer full.")
	e.Add("Expected", "none, the port pauses its switch before the buffer is full.")
	e.AddKnown("Pause frames", f.Text(`max(increase(rdma_port_pfc_pause_frames_total{direction="transmit",priority=`+
		strconv.Quote(priority)+`,$netdev}[5m]))`, "%.0f", ""), " sent on this priority in 5m.")
	addClassification(f, &e)
	e.Add("Not evaluated", "PFC of the switch port.")
	return fault.Text{
		Summary: f.AtNetdev() + ": " + drops + "lossless priority " + priority + " dropped in 5m (limit 0)",
		Description: drops + "priority " + priority + " were dropped in 5m because the receive buffer was full " +
			"(expected: none, the priority has PFC). Each drop costs the retransmission of a window, and senders on a " +
			"lossless network expect none.",
		Evidence: e,
		Measured: fault.Whole(f.Value) + " packets",
		Limit:    "0 packets",
		Diagnose: "dcb buffer show dev " + netdev + " ; ethtool -S " + netdev +
			" | grep -E 'prio" + priority + "_|discard'",
		Action: "If pause frames were sent, correct PFC of the switch port: it does not obey them. If none were sent, " +
			"compare buffer sizes, MTU and cable length with a port that drops nothing.",
		DrainReason: "Jobs run; each drop costs a retransmission.",
	}
}

// trafficOnLossyPriority has the share of line rate as its value; 0: a traffic class leads to the priority.
func trafficOnLossyPriority(f *fault.Fault) fault.Text {
	netdev, priority, lossy := fault.Pasted(f.Labels["netdev"]), f.Labels["priority"], shareOf(f, rdmaLossy)
	t := fault.Text{
		Summary: f.AtNetdev() + ": traffic class leads to priority " + priority + " without PFC " +
			"(expected: a priority with PFC)",
		Description: "RDMA packets with the traffic class in use have priority " + priority + ", which has no PFC, " +
			"although the port is expected to be lossless.",
		Evidence: evidenceOfLossyTraffic(f, lossy),
		Measured: "no PFC",
		Limit:    "PFC",
		Diagnose: "dcb pfc show dev " + netdev + " ; dcb app show dev " + netdev + " ; cat /sys/class/infiniband/" +
			fault.Pasted(f.Labels["device"]) + "/tc/" + f.Labels["port"] + "/traffic_class # needs MLNX_OFED",
		Action: "Set the traffic class of the lossless priority in the job (NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS; " +
			"rdma_exporter check --setup prints the value), or set PFC and trust of the port as on its siblings and its " +
			"switch. If the port is lossy on purpose, pin roce: lossy.",
		DrainReason: "Jobs run; packets are dropped under congestion only.",
	}
	if f.Value > 0 {
		share := fault.Roughly(f.Value)
		t.Summary = f.AtNetdev() + ": RDMA traffic on priority " + priority + " without PFC, " + share +
			" of line rate (limit {lossy-traffic-ratio%})"
		t.Description = share + " of line rate is sent on priority " + priority + ", which has no PFC" +
			fault.When(lossy != "", ", and at least "+lossy+" of line rate is RDMA on such priorities") +
			" (limit {lossy-traffic-ratio%}), although the port is expected to be lossless."
		t.Measured, t.Limit = fault.Percent(f.Value), "{lossy-traffic-ratio%}"
	}
	t.Description += " Under congestion these packets are dropped instead of paused. Each drop costs the " +
		"retransmission of a window."
	return t
}

func evidenceOfLossyTraffic(f *fault.Fault, lossy string) (e fault.Lines) {
	priority, traffic := f.Labels["priority"], "below the limit, or not counted by priority."
	if f.Value > 0 {
		traffic = fault.Roughly(
			f.Value,
		) + " of line rate on priority " + priority + " without PFC (limit {lossy-traffic-ratio%})."
	}
	e.Add("Traffic", traffic)
	e.Add("RDMA", "at least "+cmp.Or(lossy, "an unknown share")+
		" of line rate on priorities without PFC (limit {lossy-traffic-ratio%}).")
	e.Add("PFC", "on this port "+cmp.Or(strings.Join(f.LabelsOf(pfcOfPort, "priority"), " "), "none")+
		", on this host "+cmp.Or(strings.Join(f.LabelsOf(pfcOfHost, "priority"), " "), "none")+".")
	e.Add("Expected", "RDMA on a priority with PFC"+whyLossless(f, "by the ports of this role")+".")
	addClassification(f, &e)
	causes := f.Rows(`max by (workload, setting, class) (rdma_port_lossy_class_info{$netdev,priority=`+
		strconv.Quote(priority)+`})`, "workload", "setting")
	for _, c := range causes {
		job := c.Labels["workload"]
		e.Add("Cause", fault.When(job != "", "job "+job+", ")+c.Labels["setting"]+"="+c.Labels["class"]+
			" leads to priority "+priority+".")
	}
	e.Add("Not evaluated", fault.When(len(causes) == 0, "which job sends this traffic."))
	return e
}

func congestionNotificationOff(f *fault.Fault) fault.Text {
	t := fault.Text{
		Diagnose: showStatistics(f),
		Action: "Enable congestion notification on the priority of RDMA, on all hosts alike (mlnx_qos, " +
			"/sys/class/net/*/ecn, or firmware setting ROCE_CC_PRIO_MASK). If another congestion control is in use, pin " +
			"congestion_control: zerotouch_rtt or off.",
		DrainReason: "Jobs run; congestion is limited by PFC alone.",
	}
	switch {
	case f.Labels["severity"] == "info":
		cnpsIgnored(f, &t)
	case f.Labels["priority"] != "":
		notificationDisabled(f, &t)
	default:
		noCNPSent(f, &t)
	}
	return t
}

// cnpsIgnored has the ratio of ignored to handled CNPs as its value, which is infinite if none are handled.
func cnpsIgnored(f *fault.Fault, t *fault.Text) {
	ignored := f.Text(`max(rate(rdma_port_cnp_ignored_total{$port}[5m]))`, "%.0f CNPs/s", "CNPs")
	ratio := ", none handled"
	if f.Value < 1000 {
		ratio = ", ratio of ignored to handled CNPs " + fault.Roughly(f.Value) + " (limit 10%)"
		t.Measured, t.Limit = fault.Percent(f.Value), "10%"
	}
	var e fault.Lines
	e.Add("Ignored", ignored+ratio+".")
	e.Add("Expected", "enabled at the reaction point"+congestionControl(f)+".")
	e.Add("Not evaluated", "CNPs for queue pairs that no longer exist.")
	t.Summary = f.Where() + ": " + ignored + " ignored" + ratio
	t.Description = "The port ignores " + ignored + ratio + ". Its senders do not reduce their rate on these, and PFC " +
		"alone limits congestion: pauses spread through the fabric."
	t.Evidence = e
	t.Diagnose += " | grep -o 'rp_[a-z_]* [0-9]*'"
	t.Action = "Enable the reaction point on the priority on which CNPs arrive (mlnx_qos, or firmware setting " +
		"ROCE_CC_PRIO_MASK). If another congestion control is in use, pin congestion_control: zerotouch_rtt or off."
}

const unslowedSenders = " Senders do not reduce their rate, and PFC alone limits congestion: pauses spread through " +
	"the fabric."

func notificationDisabled(f *fault.Fault, t *fault.Text) {
	priority := f.Labels["priority"]
	points := f.LabelsOf(`min by (point) (rdma_port_congestion_notification_enabled{priority=`+strconv.Quote(priority)+
		`,$netdev}) == 0`, "point")
	var e fault.Lines
	e.Add("Notification", "disabled on priority "+priority+
		fault.When(len(points) > 0, " at the "+strings.Join(points, " and ")+" point")+".")
	e.Add("Expected", "enabled"+congestionControl(f)+".")
	e.Add("Not evaluated", "ECN marking of the switches; the senders.")
	t.Summary = f.Where() + ": congestion notification disabled on priority " + priority + ", which has PFC"
	t.Description = "Congestion notification (DCQCN) is disabled on priority " + priority + ", which has PFC " +
		"(expected: enabled)." + unslowedSenders
	t.Evidence = e
	t.Diagnose = "grep . /sys/class/net/" + fault.Pasted(f.Labels["netdev"]) + "/ecn/roce_*/enable/* ; " + t.Diagnose +
		" # files of MLNX_OFED"
}

func noCNPSent(f *fault.Fault, t *fault.Text) {
	marks := fault.Whole(f.Value)
	var e fault.Lines
	e.Add("Marks", marks+" ECN-marked packets/s received (limit 1000).")
	e.Add("CNPs", "none sent.")
	e.Add("Expected", "CNPs"+congestionControl(f)+".")
	e.Add("Not evaluated", "ECN marking of the switches; the senders.")
	t.Summary = f.Where() + ": " + marks + " ECN-marked packets/s received (limit 1000), no CNP sent"
	t.Description = "The port received " + marks + " ECN-marked packets/s (limit 1000) and sent no congestion " +
		"notification (CNP), although DCQCN is pinned." + unslowedSenders
	t.Evidence = e
	t.Measured, t.Limit = marks+" packets/s", "1000 packets/s"
}

// congestionControl returns why notification is expected.
func congestionControl(f *fault.Fault) string {
	if pin := f.LabelOf(`max by (congestion_control) (rdma_port_roce_pin_info{$port,congestion_control!=""})`,
		"congestion_control"); pin != "" {
		return " (congestion_control " + pin + " is pinned)"
	}
	return " (no other congestion control is pinned)"
}

// paused returns the value of an alert on pauses: "12% of last 90s (limit 10%) on priority 3".
func paused(f *fault.Fault, limit string) string {
	return fault.Roughly(f.Value) + " of last 90s (limit " + limit + ") on priority " + f.Labels["priority"]
}

// receivedShare returns the share of line rate that the port receives on the priority of the alert; empty: unknown.
func receivedShare(f *fault.Fault) string {
	return shareOf(f, `max(port:rdma_port_pfc_received:ratio{priority=`+strconv.Quote(f.Labels["priority"])+`,$netdev})`)
}

func addPausingPorts(f *fault.Fault, e *fault.Lines) {
	e.Add("Ports pausing", f.Text(portsPausing, "%v", "0")+" (send pause > {slow-receiver-ratio%} of last 90s).")
	e.Add("Ports paused", f.Text(portsPaused, "%v", "0")+" (receive pause > {paused-ratio%} of last 90s).")
}

// diagnosePauses returns a command that shows counters of the priority of the alert.
func diagnosePauses(f *fault.Fault) string {
	priority := f.Labels["priority"]
	return "ethtool -S " + fault.Pasted(
		f.Labels["netdev"],
	) + " | grep -E 'prio" + priority + "_|pri" + priority + "|pause'"
}

// whyLossless returns why the port is expected to be lossless.
func whyLossless(f *fault.Fault, unpinned string) string {
	for _, pin := range f.Rows(pinOfRoCE) {
		return ", pinned " + pin.Labels["roce"]
	}
	return ", " + unpinned
}

func addClassification(f *fault.Fault, e *fault.Lines) {
	for _, q := range f.Rows(`max by (trust, dcbx) (rdma_port_qos_info{$netdev})`) {
		e.Add("Classification", "trust "+cmp.Or(q.Labels["trust"], "unknown")+
			", DCBX "+cmp.Or(q.Labels["dcbx"], "unknown")+".")
	}
}

// shareOf returns the first result of an expression in percent, roughly; empty: there is none.
func shareOf(f *fault.Fault, expr string) string {
	if v, ok := f.Number(expr); ok {
		return fault.Roughly(v)
	}
	return ""
}
