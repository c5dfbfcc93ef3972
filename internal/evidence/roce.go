package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"rdma_exporter/internal/words"
)

// roceTexts are those of RoCE, its transport, and ports that differ from their siblings.
var roceTexts = map[string]func(*Fault) Text{
	"RDMAPFCShortStorms":                         pfcShortStorms,
	"RDMAPFCStormSource":                         pfcStormSource,
	"RDMAPFCStormVictim":                         pfcStormVictim,
	"RDMAPFCWatchdogFired":                       pfcWatchdogFired,
	"RDMASlowReceiver":                           slowReceiver,
	"RDMARetransmissions":                        retransmissions,
	"RDMARetriesExceeded":                        retriesExceeded,
	"port_misconfigured/global_pause":            globalPauseInsteadOfPFC,
	"RDMALosslessPriorityDiscards":               losslessPriorityDiscards,
	"RDMATrafficOnLossyPriority":                 trafficOnLossyPriority,
	"port_misconfigured/congestion_notification": congestionNotificationOff,

	"port_misconfigured/address":     addressConflict,
	"host_misconfigured/firmware":    firmwareDrift,
	"port_misconfigured/ipoib":       ipoibDown,
	"port_misconfigured/link_layer":  linkLayerDiffers,
	"port_misconfigured/mtu":         mtuMismatch,
	"port_misconfigured/roce_mtu":    roceMTULow,
	"port_misconfigured/roce_v2_gid": roceV2GIDMissing,
	"port_misconfigured/pkey":        pkeyMissing,
	"port_miscabled/neighbour":       portMiscabled,
}

const (
	// How many ports of the host send, and receive, pause.
	portsPausing = `count(max by (device, port, netdev) ` +
		`(port:rdma_port_pfc_paused:ratio{direction="transmit",$host}) > 0.1)`
	portsPaused = `count(max by (device, port, netdev) ` +
		`(port:rdma_port_pfc_paused:ratio{direction="receive",$host}) > 0.3)`

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
		"Find the port that pauses the switch: another host on the same path with this alert in direction transmit, " +
			"RDMAPFCStormSource or RDMASlowReceiver.",
	},
}

func pfcShortStorms(f *Fault) Text {
	priority, texts := f.Labels["priority"], shortStorms[f.Labels["direction"]]
	stalled := roughly(f.Value) + " of last 5m (limit 5%)"
	var e lines
	e.add("Stalled", stalled+" on priority "+priority+".")
	e.add("Direction", texts.line+".")
	if v, ok := f.number(`max(increase(rdma_port_pfc_sampled_seconds_total{$netdev}[5m]))`); ok {
		e.add("Sampled", fewMinutes(v)+" of last 5m.")
	}
	f.addPausingPorts(&e)
	e.add("Not evaluated", "stalls shorter than 500ms, stalls before the port was sampled.")
	return Text{
		Summary: f.atNetdev() + ": short PFC storms, " + texts.headline + " " + stalled + " on priority " + priority,
		Description: texts.sentence + " of a second or more, together " + stalled + ": seconds in which priority " +
			priority + " was paused for more than half. Each collective waits for such a second, on all hosts of the job.",
		Evidence: e,
		Measured: percent(f.Value),
		Limit:    "5%",
		Diagnose: "for i in 1 2 3 4 5 ; do ethtool -S " + pasted(f.Labels["netdev"]) +
			" | grep pause_duration ; sleep 1 ; done",
		Action:      texts.action,
		DrainReason: "Jobs continue, slowed by stalls of seconds.",
	}
}

func pfcStormSource(f *Fault) Text {
	sent := f.paused("50%")
	var e lines
	e.add("Pause sent", sent+".")
	e.addKnown("Received", f.received(), " of line rate (limit 1%) on priority "+f.Labels["priority"]+".")
	e.addKnown("Pause received", f.share(`max(port:rdma_port_pfc_paused:ratio{direction="receive",$netdev})`),
		" of last 90s, on the priority with the most.")
	f.addPausingPorts(&e)
	e.add("Not evaluated", "why the NIC has stopped receiving, how far the storm has spread.")
	return Text{
		Summary: f.atNetdev() + ": PFC storm source, sending pause " + sent + ", receiving < 1% of line rate",
		Description: "The port sends PFC pause " + sent + " and receives < 1% of line rate: the NIC or the path behind " +
			"it has stopped. The buffers of the switch fill, and it pauses its own senders. Within seconds, jobs on other " +
			"hosts stall.",
		Evidence: e,
		Measured: percent(f.Value),
		Limit:    "50%",
		Diagnose: f.diagnosePauses() + " ; dmesg -T | grep -iE 'mlx5|bnxt|pcieport|aer' | tail -20 # as root",
		Action: "Shut the switch port or set the interface down (ip link set " + pasted(f.Labels["netdev"]) + " down) to " +
			"end the storm: jobs on this port stall already. Drain the host, then reset the device or reboot. Check dmesg " +
			"for firmware errors and the PCIe slot for errors.",
		DrainReason: "Jobs on this port stall, and jobs of other hosts wait for them.",
	}
}

// stormVictims are the texts that depend on the share of time in which the port is paused, by severity.
var stormVictims = map[string]struct{ limit, headline, impact string }{
	"critical": {
		"90%", "PFC storm victim, paused by its switch ",
		"It transmits almost nothing, and jobs on this port stall.",
	},
	"info": {
		"30%", "paused by its switch (PFC) ",
		"What this host sends waits, and collectives are slower.",
	},
}

func pfcStormVictim(f *Fault) Text {
	texts := stormVictims[f.Labels["severity"]]
	received := f.paused(texts.limit)
	var e lines
	e.add("Pause received", received+".")
	e.addKnown("Pause sent", f.share(`max(port:rdma_port_pfc_paused:ratio{direction="transmit",$netdev}) > 0.1`),
		" of last 90s; which direction came first is not known here.")
	f.addPausingPorts(&e)
	e.add("Not evaluated", "which port pauses the switch.")
	return Text{
		Summary: f.atNetdev() + ": " + texts.headline + received,
		Description: "The switch pauses this port (PFC) " + received + ". " + texts.impact +
			" The cause is another port, on another host or in the fabric.",
		Evidence: e,
		Measured: percent(f.Value),
		Limit:    texts.limit,
		Diagnose: f.diagnosePauses(),
		Action: "Leave this port as it is. Find RDMAPFCStormSource or RDMASlowReceiver on other hosts, and follow the " +
			"pauses from switch to switch to their source.",
		DrainReason: "The cause is elsewhere: draining moves the load to another host, which is paused in its place.",
	}
}

func slowReceiver(f *Fault) Text {
	sent, received := f.paused("10%"), f.received()
	var e lines
	e.add("Pause sent", sent+".")
	e.addKnown("Received", received, " of line rate on priority "+f.Labels["priority"]+".")
	for _, r := range f.rows(`max by (direction) (rdma_port_pcie_stall_ratio{$netdev}) >= 0.3`, "direction") {
		e.add("PCIe stalls", roughly(r.Value)+" of last 1s, "+r.Labels["direction"]+
			" (limit 30%), likely cause the slot or the memory behind it.")
	}
	e.addKnown("Receive buffers", f.text(`max(increase(rdma_port_receive_buffer_exhausted_total{$port}[10m])) > 0`,
		"%.0f", ""), " packets without a receive work request in 10m, likely cause the application.")
	f.addPausingPorts(&e)
	e.add("Not evaluated", "the PCIe path to the GPU, the application.")
	diagnose := "ethtool -S " + pasted(f.Labels["netdev"]) + " | grep -E 'pause|pci'"
	if pci := f.label(`max by (pci_address) (last_over_time(rdma_device_info{pci_address!="",$device}[1h]))`,
		"pci_address"); pci != "" {
		diagnose += " ; lspci -vv -s " + pci + " | grep -E 'LnkSta:|MaxReadReq'"
	}
	return Text{
		Summary: f.atNetdev() + ": slow receiver, sending PFC pause " + sent +
			when(received != "", ", receiving "+received+" of line rate"),
		Description: "The port sends PFC pause " + sent + " while it receives: it drains packets more slowly than they " +
			"arrive. Senders and their collectives wait, and the pauses reach other flows that cross the same switch ports.",
		Evidence: e,
		Measured: percent(f.Value),
		Limit:    "10%",
		Diagnose: diagnose + " # as root",
		Action: "Compare the PCIe link, MaxReadReq, the NUMA node of the memory of the job, and the IOMMU with those of " +
			"a port without pauses. Repair the slot or the settings at the next drain.",
		DrainReason: "Jobs continue and wait for this receiver; repair it between jobs.",
	}
}

func pfcWatchdogFired(f *Fault) Text {
	var e lines
	e.add("Watchdog", f.text(`max(rdma_port_pause_storm_events_total{severity="error",$netdev})`, "%.0f", "unknown")+
		" events since the driver was loaded, "+whole(f.Value)+" in the last 5m.")
	e.add("Sending pause", f.ports(portsPausing)+" of this host for more than 10% of the time.")
	e.add("Receiving pause", f.ports(portsPaused)+" of this host for more than 30% of the time.")
	e.add("Not evaluated", "whether the storm is over (not reported by the driver).")
	return Text{
		Summary: f.atNetdev() + ": PFC watchdog fired, NIC stopped sending pause and drops packets",
		Description: "The NIC sent PFC pause without a break for as long as its watermark allows (mlx5: 8s by default) " +
			"and stopped pausing: packets that it cannot receive are dropped. Priorities that are meant to be lossless are " +
			"lossy, which causes retransmissions and broken connections. Traffic of the fabric to this port stood still " +
			"before.",
		Evidence: e,
		Diagnose: "ethtool -S " + pasted(f.Labels["netdev"]) + " | grep -E 'pause_storm|discard' ; " +
			"dmesg -T | tail # as root",
		Action: "Check for a hung process or GPU, firmware errors and PCIe errors. Drain the host, then reset the device " +
			"or reboot. If the fault returns, replace the NIC.",
		DrainReason: "The port drops packets of lossless priorities until the NIC sends pause again.",
	}
}

// ports is the number of ports that an expression counts: "2 ports".
func (f *Fault) ports(expr string) string {
	if n, ok := f.number(expr); ok {
		return words.Count(int(n), "port")
	}
	return "no port"
}

func globalPauseInsteadOfPFC(f *Fault) Text {
	netdev := pasted(f.Labels["netdev"])
	directions := f.labels(`max by (direction) (rdma_port_global_pause_enabled{$netdev}) == 1`, "direction")
	priorities := cmp.Or(strings.Join(f.labels(pfcOfHost, "priority"), " "), "of RoCE")
	var e lines
	e.add("Pause", "802.3x enabled"+when(len(directions) > 0, " for "+strings.Join(directions, " and "))+".")
	e.add("PFC", "enabled on no priority.")
	e.add("Expected", "PFC on priority "+priorities+f.whyLossless("by the other ports of this role")+".")
	f.addClassification(&e)
	e.add("Not evaluated", "configuration of the switch port.")
	return Text{
		Summary: f.atNetdev() + ": 802.3x pause enabled for all traffic, PFC on no priority (expected: PFC)",
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

func losslessPriorityDiscards(f *Fault) Text {
	netdev, priority := pasted(f.Labels["netdev"]), f.Labels["priority"]
	drops := whole(f.Value) + " packets of "
	var e lines
	e.add("Drops", drops+"priority "+priority+" in 5m, receive buffer full.")
	e.add("Expected", "none, the port pauses its switch before the buffer is full.")
	e.addKnown("Pause frames", f.text(`max(increase(rdma_port_pfc_pause_frames_total{direction="transmit",priority=`+
		strconv.Quote(priority)+`,$netdev}[5m]))`, "%.0f", ""), " sent on this priority in 5m.")
	f.addClassification(&e)
	e.add("Not evaluated", "PFC of the switch port.")
	return Text{
		Summary: f.atNetdev() + ": " + drops + "lossless priority " + priority + " dropped in 5m (limit 0)",
		Description: drops + "priority " + priority + " were dropped in 5m because the receive buffer was full " +
			"(expected: none, the priority has PFC). Each drop costs the retransmission of a window, and senders on a " +
			"lossless network expect none.",
		Evidence: e,
		Measured: whole(f.Value) + " packets",
		Limit:    "0 packets",
		Diagnose: "dcb buffer show dev " + netdev + " ; ethtool -S " + netdev +
			" | grep -E 'prio" + priority + "_|discard'",
		Action: "If pause frames were sent, correct PFC of the switch port: it does not obey them. If none were sent, " +
			"compare buffer sizes, MTU and cable length with a port that drops nothing.",
		DrainReason: "Jobs run; each drop costs a retransmission.",
	}
}

// trafficOnLossyPriority has the share of line rate as its value; 0: a traffic class leads to the priority.
func trafficOnLossyPriority(f *Fault) Text {
	netdev, priority, lossy := pasted(f.Labels["netdev"]), f.Labels["priority"], f.share(rdmaLossy)
	t := Text{
		Summary: f.atNetdev() + ": traffic class leads to priority " + priority + " without PFC " +
			"(expected: a priority with PFC)",
		Description: "RDMA packets with the traffic class in use have priority " + priority + ", which has no PFC, " +
			"although the port is expected to be lossless.",
		Evidence: f.evidenceOfLossyTraffic(lossy),
		Measured: "no PFC",
		Limit:    "PFC",
		Diagnose: "dcb pfc show dev " + netdev + " ; dcb app show dev " + netdev + " ; cat /sys/class/infiniband/" +
			pasted(f.Labels["device"]) + "/tc/" + f.Labels["port"] + "/traffic_class # needs MLNX_OFED",
		Action: "Set the traffic class of the lossless priority in the job (NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS; " +
			"rdma_exporter check --setup prints the value), or set PFC and trust of the port as on its siblings and its " +
			"switch. If the port is lossy on purpose, pin roce: lossy.",
		DrainReason: "Jobs run; packets are dropped under congestion only.",
	}
	if f.Value > 0 {
		share := roughly(f.Value)
		t.Summary = f.atNetdev() + ": RDMA traffic on priority " + priority + " without PFC, " + share +
			" of line rate (limit 5%)"
		t.Description = share + " of line rate is sent on priority " + priority + ", which has no PFC" +
			when(lossy != "", ", and at least "+lossy+" of line rate is RDMA on such priorities") +
			" (limit 5%), although the port is expected to be lossless."
		t.Measured, t.Limit = percent(f.Value), "5%"
	}
	t.Description += " Under congestion these packets are dropped instead of paused. Each drop costs the " +
		"retransmission of a window."
	return t
}

func (f *Fault) evidenceOfLossyTraffic(lossy string) (e lines) {
	priority, traffic := f.Labels["priority"], "below the limit, or not counted by priority."
	if f.Value > 0 {
		traffic = roughly(f.Value) + " of line rate on priority " + priority + " without PFC (limit 5%)."
	}
	e.add("Traffic", traffic)
	e.add("RDMA", "at least "+cmp.Or(lossy, "an unknown share")+" of line rate on priorities without PFC (limit 5%).")
	e.add("PFC", "on this port "+cmp.Or(strings.Join(f.labels(pfcOfPort, "priority"), " "), "none")+
		", on this host "+cmp.Or(strings.Join(f.labels(pfcOfHost, "priority"), " "), "none")+".")
	e.add("Expected", "RDMA on a priority with PFC"+f.whyLossless("by the ports of this role")+".")
	f.addClassification(&e)
	causes := f.rows(`max by (workload, setting, class) (rdma_port_lossy_class_info{$netdev,priority=`+
		strconv.Quote(priority)+`})`, "workload", "setting")
	for _, c := range causes {
		job := c.Labels["workload"]
		e.add("Cause", when(job != "", "job "+job+", ")+c.Labels["setting"]+"="+c.Labels["class"]+
			" leads to priority "+priority+".")
	}
	e.add("Not evaluated", when(len(causes) == 0, "which job sends this traffic."))
	return e
}

func congestionNotificationOff(f *Fault) Text {
	t := Text{
		Diagnose: "rdma statistic show link " + pasted(f.Labels["device"]) + "/" + f.Labels["port"],
		Action: "Enable congestion notification on the priority of RDMA, on all hosts alike (mlnx_qos, " +
			"/sys/class/net/*/ecn, or firmware setting ROCE_CC_PRIO_MASK). If another congestion control is in use, pin " +
			"congestion_control: zerotouch_rtt or off.",
		DrainReason: "Jobs run; congestion is limited by PFC alone.",
	}
	switch {
	case f.Labels["severity"] == "info":
		f.cnpsIgnored(&t)
	case f.Labels["priority"] != "":
		f.notificationDisabled(&t)
	default:
		f.noCNPSent(&t)
	}
	return t
}

// cnpsIgnored has the ratio of ignored to handled CNPs as its value, which is infinite if none are handled.
func (f *Fault) cnpsIgnored(t *Text) {
	ignored := f.text(`max(rate(rdma_port_cnp_ignored_total{$port}[5m]))`, "%.0f CNPs/s", "CNPs")
	ratio := ", none handled"
	if f.Value < 1000 {
		ratio = ", ratio of ignored to handled CNPs " + roughly(f.Value) + " (limit 10%)"
		t.Measured, t.Limit = percent(f.Value), "10%"
	}
	var e lines
	e.add("Ignored", ignored+ratio+".")
	e.add("Expected", "enabled at the reaction point"+f.congestionControl()+".")
	e.add("Not evaluated", "CNPs for queue pairs that no longer exist.")
	t.Summary = f.where() + ": " + ignored + " ignored" + ratio
	t.Description = "The port ignores " + ignored + ratio + ". Its senders do not reduce their rate on these, and PFC " +
		"alone limits congestion: pauses spread through the fabric."
	t.Evidence = e
	t.Diagnose += " | grep -o 'rp_[a-z_]* [0-9]*'"
	t.Action = "Enable the reaction point on the priority on which CNPs arrive (mlnx_qos, or firmware setting " +
		"ROCE_CC_PRIO_MASK). If another congestion control is in use, pin congestion_control: zerotouch_rtt or off."
}

const unslowedSenders = " Senders do not reduce their rate, and PFC alone limits congestion: pauses spread through " +
	"the fabric."

func (f *Fault) notificationDisabled(t *Text) {
	priority := f.Labels["priority"]
	points := f.labels(`min by (point) (rdma_port_congestion_notification_enabled{priority=`+strconv.Quote(priority)+
		`,$netdev}) == 0`, "point")
	var e lines
	e.add("Notification", "disabled on priority "+priority+
		when(len(points) > 0, " at the "+strings.Join(points, " and ")+" point")+".")
	e.add("Expected", "enabled"+f.congestionControl()+".")
	e.add("Not evaluated", "ECN marking of the switches; the senders.")
	t.Summary = f.where() + ": congestion notification disabled on priority " + priority + ", which has PFC"
	t.Description = "Congestion notification (DCQCN) is disabled on priority " + priority + ", which has PFC " +
		"(expected: enabled)." + unslowedSenders
	t.Evidence = e
	t.Diagnose = "grep . /sys/class/net/" + pasted(f.Labels["netdev"]) + "/ecn/roce_*/enable/* ; " + t.Diagnose +
		" # files of MLNX_OFED"
}

func (f *Fault) noCNPSent(t *Text) {
	marks := whole(f.Value)
	var e lines
	e.add("Marks", marks+" ECN-marked packets/s received (limit 1000).")
	e.add("CNPs", "none sent.")
	e.add("Expected", "CNPs"+f.congestionControl()+".")
	e.add("Not evaluated", "ECN marking of the switches; the senders.")
	t.Summary = f.where() + ": " + marks + " ECN-marked packets/s received (limit 1000), no CNP sent"
	t.Description = "The port received " + marks + " ECN-marked packets/s (limit 1000) and sent no congestion " +
		"notification (CNP), although DCQCN is pinned." + unslowedSenders
	t.Evidence = e
	t.Measured, t.Limit = marks+" packets/s", "1000 packets/s"
}

// congestionControl is why notification is expected.
func (f *Fault) congestionControl() string {
	if pin := f.label(`max by (congestion_control) (rdma_port_roce_pin_info{$port,congestion_control!=""})`,
		"congestion_control"); pin != "" {
		return " (congestion_control " + pin + " is pinned)"
	}
	return " (no other congestion control is pinned)"
}

func retransmissions(f *Fault) Text {
	limit := "1%"
	meaning := "). The device counts the packets themselves."
	if f.has(`port:rdma_port_retransmissions:ratio{$port} > 0.0001`) {
		limit = "0.01%"
		meaning = "). Each loss retransmits a window: at 0.01% the loss of rate is measurable, at 0.1% a link runs at a " +
			"fraction of its rate."
	}
	diagnose := "rdma statistic show link " + pasted(f.Labels["device"]) + "/" + f.Labels["port"]
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

func retriesExceeded(f *Fault) Text {
	switch {
	case f.Labels["device"] == "":
		return requestsFailOnEFA(f)
	case f.Labels["severity"] == "critical":
		return retriesWithLinkFault(f)
	case f.Labels["severity"] == "warning":
		return retriesWithoutLinkFault(f)
	}
	return retriesOnce(f)
}

func retriesWithLinkFault(f *Fault) Text {
	windows := plain(f.Value) + " of the last six 5m windows (limit 2)"
	link := pasted(f.Labels["device"]) + "/" + f.Labels["port"]
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
	f.addRetrySettings(&e)
	e.add("Not evaluated", "the far ends of the connections.")
	diagnose := "rdma statistic show link " + link
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
		Limit:    "2",
		Diagnose: diagnose + " ; dmesg -T | grep -i link | tail -20 # as root",
		Action: "Drain the host and repair its link: reseat and clean the cable or transceiver, then swap it, then move " +
			"to another switch port. If only discards or the pause watchdog count, check PFC on the path.",
		DrainReason: "The next job on this port is likely to fail as well.",
	}
}

func retriesWithoutLinkFault(f *Fault) Text {
	windows := plain(f.Value) + " of the last six 5m windows (limit 2)"
	link := pasted(f.Labels["device"]) + "/" + f.Labels["port"]
	var e lines
	e.add("Retries", "exceeded in "+windows+".")
	f.addPortsWithRetries(&e)
	f.addRetrySettings(&e)
	e.add("Not evaluated", "the peers of the connections, the path to them.")
	return Text{
		Summary: f.where() + ": transport retry counter exceeded in " + windows + ", no link fault on this port",
		Description: "Requests exceeded the transport retry counter (NCCL status 12) in " + windows + ", without link " +
			"losses or errors of this port. Each breaks its queue pair: the job ends, or restarts from its checkpoint.",
		Evidence: e,
		Measured: plain(f.Value),
		Limit:    "2",
		Diagnose: "rdma statistic show link " + link + " ; rdma resource show qp link " + link + " # as root",
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
	f.addRetrySettings(&e)
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
		Diagnose: "rdma statistic show link " + pasted(f.Labels["device"]) + "/" + f.Labels["port"],
		Action: "No action is needed if a job was killed or a peer rebooted. Otherwise compare the time with the log of " +
			"the job that failed.",
		DrainReason: "A single burst is normal when a job is killed.",
	}
}

func (f *Fault) addPortsWithRetries(e *lines) {
	e.addKnown("Host ports", f.text(`count(max by (device, port) (port:rdma_port_retries_exceeded:increase5m{$host}))`,
		"%v", ""), " with exceeded retries in 5m.")
}

func (f *Fault) addRetrySettings(e *lines) {
	for _, s := range f.rows(`max by (workload, setting, value) `+
		`(rdma_job_setting_info{setting=~"nccl_timeout|nccl_retry_cnt|nccl_sl",$host})`, "workload", "setting") {
		e.add("Setting", words.Join(" ", s.Labels["setting"], s.Labels["value"])+" of job "+s.Labels["workload"]+
			" differs from what is wanted (rdma_exporter topo).")
	}
}

// requestsFailOnEFA is of a host, for all of its EFA ports.
func requestsFailOnEFA(f *Fault) Text {
	ports, requests := words.Count(int(f.Value), "EFA port"), ""
	if n, ok := f.number(`sum(port:rdma_request_errors:increase5m{$host})`); ok {
		requests = ", " + whole(n) + " in 5m"
	}
	var e lines
	for _, port := range f.rows(`port:rdma_request_errors:lasting{$host}`, "device", "port") {
		e.add("Port", port.Labels["device"]+"/"+port.Labels["port"]+", in 5m: "+f.efaErrors(port)+".")
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

// efaErrors are the counts of a port of the host in 5m.
func (f *Fault) efaErrors(port Sample) string {
	labels := maps.Clone(f.Labels)
	maps.Copy(labels, port.Labels)
	of := &Fault{f.Alert, labels, f.Value, f.query}
	var counts []string
	for _, c := range efaCounters {
		counts = append(counts, of.text("max(increase("+c.metric+"{$port}[5m]))", "%.0f "+c.what, ""))
	}
	retransmitted := "retransmissions unknown"
	if v, ok := of.number(`port:rdma_port_retransmitted:ratio{$port}`); ok {
		retransmitted = percent(v) + " retransmitted"
	}
	return words.Join(", ", append(counts, retransmitted)...)
}

// hostPort is the name of the port for a headline: "gpu-1 mlx5_3/1".
func (f *Fault) hostPort() string {
	return f.host() + " " + f.Labels["device"] + "/" + f.Labels["port"]
}

// atNetdev is the name of the port for a headline, with the interface of the alert.
func (f *Fault) atNetdev() string {
	netdev := f.Labels["netdev"]
	return f.hostPort() + when(netdev != "", " ("+netdev+")")
}

// netdevs are the interfaces of the port.
func (f *Fault) netdevs() []string {
	return f.labels(`max by (netdev) (rdma_port_info{netdev!="",$port})`, "netdev")
}

// paused is the value of an alert on pauses: "12% of last 90s (limit 10%) on priority 3".
func (f *Fault) paused(limit string) string {
	return roughly(f.Value) + " of last 90s (limit " + limit + ") on priority " + f.Labels["priority"]
}

// received is the share of line rate that the port receives on the priority of the alert; empty: unknown.
func (f *Fault) received() string {
	return f.share(`max(port:rdma_port_pfc_received:ratio{priority=` + strconv.Quote(f.Labels["priority"]) + `,$netdev})`)
}

func (f *Fault) addPausingPorts(e *lines) {
	e.add("Ports pausing", f.text(portsPausing, "%v", "0")+" (send pause > 10% of last 90s).")
	e.add("Ports paused", f.text(portsPaused, "%v", "0")+" (receive pause > 30% of last 90s).")
}

// diagnosePauses is a command that shows counters of the priority of the alert.
func (f *Fault) diagnosePauses() string {
	priority := f.Labels["priority"]
	return "ethtool -S " + pasted(f.Labels["netdev"]) + " | grep -E 'prio" + priority + "_|pri" + priority + "|pause'"
}

// whyLossless is why the port is expected to be lossless.
func (f *Fault) whyLossless(unpinned string) string {
	for _, pin := range f.rows(pinOfRoCE) {
		return ", pinned " + pin.Labels["roce"]
	}
	return ", " + unpinned
}

func (f *Fault) addClassification(e *lines) {
	for _, q := range f.rows(`max by (trust, dcbx) (rdma_port_qos_info{$netdev})`) {
		e.add("Classification", "trust "+cmp.Or(q.Labels["trust"], "unknown")+
			", DCBX "+cmp.Or(q.Labels["dcbx"], "unknown")+".")
	}
}

// share is the first result of an expression in percent, roughly; empty: there is none.
func (f *Fault) share(expr string) string {
	if v, ok := f.number(expr); ok {
		return roughly(v)
	}
	return ""
}

// addKnown adds a line of a value and what follows it, if there is a value.
func (l *lines) addKnown(name, value, rest string) { l.add(name, when(value != "", value+rest)) }

// percent is a share in percent.
func percent(share float64) string { return fmt.Sprintf("%.4g%%", share*100) }

// roughly is a share in percent, from two of its digits.
func roughly(share float64) string {
	rounded, _ := strconv.ParseFloat(fmt.Sprintf("%.2g", share), 64)
	return percent(rounded)
}

// fewMinutes is a duration below an hour: "4m 12s", "12.5s".
func fewMinutes(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.4gs", seconds)
	}
	return fmt.Sprintf("%dm %ds", int(seconds)/60, int(seconds)%60)
}
