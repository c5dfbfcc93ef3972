package evidence

import (
	"cmp"
	"strconv"
	"strings"

	"rdma_exporter/internal/words"
)

// roceTexts are those of RoCE, its transport, and ports that differ from their siblings.
var roceTexts = map[string]func(*Fault) Text{
	"pfc_storm_source/short_storms":              pfcShortStorms,
	"pfc_storm_source/storm":                     pfcStormSource,
	"pfc_storm_victim/paused":                    pfcStormVictim,
	"pfc_storm_victim/slowed":                    pfcStormVictim,
	"pfc_storm_source/watchdog":                  pfcWatchdogFired,
	"slow_receiver/pauses":                       slowReceiver,
	"retransmissions/packets":                    retransmissions,
	"retries_exceeded/link_trouble":              retriesWithLinkFault,
	"retries_exceeded/lasting":                   retriesWithoutLinkFault,
	"retries_exceeded/requests":                  requestsFailOnEFA,
	"retries_exceeded/once":                      retriesOnce,
	"port_misconfigured/global_pause":            globalPauseInsteadOfPFC,
	"discards/lossless_priority":                 losslessPriorityDiscards,
	"traffic_on_lossy_priority/priority":         trafficOnLossyPriority,
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

func pfcShortStorms(f *Fault) Text {
	priority, texts := f.Labels["priority"], shortStorms[f.Labels["direction"]]
	stalled := roughly(f.Value) + " of last 5m (limit {short-storms-ratio%})"
	var e lines
	e.add("Stalled", stalled+" on priority "+priority+".")
	e.add("Direction", texts.line+".")
	if v, ok := f.number(`max(increase(rdma_port_pfc_sampled_seconds_total{$netdev}[5m]))`); ok {
		e.add("Sampled", lasting(v)+" of last 5m.")
	}
	f.addPausingPorts(&e)
	e.add("Not evaluated", "stalls shorter than 500ms, stalls before the port was sampled.")
	return Text{
		Summary: f.atNetdev() + ": short PFC storms, " + texts.headline + " " + stalled + " on priority " + priority,
		Description: texts.sentence + " of a second or more, together " + stalled + ": seconds in which priority " +
			priority + " was paused for more than half. Each collective waits for such a second, on all hosts of the job.",
		Evidence: e,
		Measured: percent(f.Value),
		Limit:    "{short-storms-ratio%}",
		Diagnose: "for i in 1 2 3 4 5 ; do ethtool -S " + pasted(f.Labels["netdev"]) +
			" | grep pause_duration ; sleep 1 ; done",
		Action:      texts.action,
		DrainReason: "Jobs continue, slowed by stalls of seconds.",
	}
}

func pfcStormSource(f *Fault) Text {
	sent := f.paused("{storm-source-ratio%}")
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
		Limit:    "{storm-source-ratio%}",
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
		"{storm-victim-ratio%}", "PFC storm victim, paused by its switch ",
		"It transmits almost nothing, and jobs on this port stall.",
	},
	"info": {
		"{paused-ratio%}", "paused by its switch (PFC) ",
		"What this host sends waits, and collectives are slower.",
	},
}

func pfcStormVictim(f *Fault) Text {
	texts := stormVictims[f.Labels["severity"]]
	received := f.paused(texts.limit)
	var e lines
	e.add("Pause received", received+".")
	e.addKnown("Pause sent", f.share(`max(port:rdma_port_pfc_paused:ratio{direction="transmit",$netdev}) > {slow-receiver-ratio}`),
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
	sent, received := f.paused("{slow-receiver-ratio%}"), f.received()
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
		Limit:    "{slow-receiver-ratio%}",
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
			" of line rate (limit {lossy-traffic-ratio%})"
		t.Description = share + " of line rate is sent on priority " + priority + ", which has no PFC" +
			when(lossy != "", ", and at least "+lossy+" of line rate is RDMA on such priorities") +
			" (limit {lossy-traffic-ratio%}), although the port is expected to be lossless."
		t.Measured, t.Limit = percent(f.Value), "{lossy-traffic-ratio%}"
	}
	t.Description += " Under congestion these packets are dropped instead of paused. Each drop costs the " +
		"retransmission of a window."
	return t
}

func (f *Fault) evidenceOfLossyTraffic(lossy string) (e lines) {
	priority, traffic := f.Labels["priority"], "below the limit, or not counted by priority."
	if f.Value > 0 {
		traffic = roughly(f.Value) + " of line rate on priority " + priority + " without PFC (limit {lossy-traffic-ratio%})."
	}
	e.add("Traffic", traffic)
	e.add("RDMA", "at least "+cmp.Or(lossy, "an unknown share")+
		" of line rate on priorities without PFC (limit {lossy-traffic-ratio%}).")
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
		Diagnose: f.showStatistics(),
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

// paused is the value of an alert on pauses: "12% of last 90s (limit 10%) on priority 3".
func (f *Fault) paused(limit string) string {
	return roughly(f.Value) + " of last 90s (limit " + limit + ") on priority " + f.Labels["priority"]
}

// received is the share of line rate that the port receives on the priority of the alert; empty: unknown.
func (f *Fault) received() string {
	return f.share(`max(port:rdma_port_pfc_received:ratio{priority=` + strconv.Quote(f.Labels["priority"]) + `,$netdev})`)
}

func (f *Fault) addPausingPorts(e *lines) {
	e.add("Ports pausing", f.text(portsPausing, "%v", "0")+" (send pause > {slow-receiver-ratio%} of last 90s).")
	e.add("Ports paused", f.text(portsPaused, "%v", "0")+" (receive pause > {paused-ratio%} of last 90s).")
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
