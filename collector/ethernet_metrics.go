package collector

import (
	"strconv"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

const statsSource = "ethtool -S (ETHTOOL_GSTATS)"

// wireDesc is a Desc of what a netdev counts; labels are those beside device, port and netdev.
func wireDesc(name, help, source string, labels ...string) *Desc {
	return &Desc{
		Name: name, Type: counter, Scope: scopePort, Help: help,
		Labels: append([]string{"device", "port", "netdev"}, labels...), Source: source, Of: ethernetPorts, Asks: host.SourceNetdevStats.Name(),
	}
}

// whereLossless is for what drivers count, or rules ask for, of priorities with flow control only.
func whereLossless(d *Desc) *Desc {
	d.Of = "rdma_port_pfc_enabled"
	return d
}

var (
	pfcPauseFrames         = wireDesc("rdma_port_pfc_pause_frames_total", "PFC frames by priority: received, the link partner asks the port to stop; transmitted, the port asks the partner. priority is empty where the driver counts all together; a traffic class on mana. Only of priorities that have PFC or have counted something.", statsSource, "direction", "priority")
	pfcPauseSeconds        = whereLossless(wireDesc("rdma_port_pfc_pause_seconds_total", "Time that the priority could not send (receive: it was paused), or kept the link partner from sending (transmit).", statsSource, "direction", "priority"))
	pfcPauseTransitions    = wireDesc("rdma_port_pfc_pause_transitions_total", "Times that the priority changed from paused to not paused.", statsSource, "direction", "priority")
	globalPauseFrames      = wireDesc("rdma_port_global_pause_frames_total", "Frames of link-level flow control (802.3x), which stops all priorities at once.", statsSource+"; ethtool netlink PAUSE_GET, statistics", "direction")
	globalPauseSeconds     = wireDesc("rdma_port_global_pause_seconds_total", "Time paused by link-level flow control; where the driver counts it.", statsSource, "direction")
	globalPauseTransitions = wireDesc("rdma_port_global_pause_transitions_total", "Times that link-level flow control changed from paused to not paused; where the driver counts them.", statsSource, "direction")
	globalPauseEnabled     = &Desc{
		Name: "rdma_port_global_pause_enabled", Of: ethernetPorts, Asks: host.SourcePause.Name(), Type: gauge, Scope: scopePort,
		Help:   "Whether link-level flow control (802.3x) is on: receive obeys the partner's frames, transmit sends some. It excludes PFC.",
		Labels: []string{"device", "port", "netdev", "direction"}, Source: "ethtool netlink PAUSE_GET, rx and tx",
	}
	pauseStormEvents           = whereLossless(wireDesc("rdma_port_pause_storm_events_total", "Times that the device had sent pause for too long. error: it stopped sending pause, and the port drops what it cannot take; warning: it did not.", statsSource+"; ethtool netlink PAUSE_GET, tx_pause_storm_events", "severity"))
	priorityBytes              = whereLossless(wireDesc("rdma_port_priority_bytes_total", "Bytes on the wire by priority, TCP as well as RDMA. Only of priorities that have PFC or have counted something.", statsSource, "direction", "priority"))
	priorityPackets            = whereLossless(wireDesc("rdma_port_priority_packets_total", "Packets on the wire by priority, TCP as well as RDMA.", statsSource, "direction", "priority"))
	priorityDiscards           = whereLossless(wireDesc("rdma_port_priority_discards_total", "Packets received and dropped for want of room in the port's buffer. Of a priority with PFC there ought to be none.", statsSource, "priority"))
	priorityBufferDiscards     = whereLossless(wireDesc("rdma_port_priority_buffer_discards_total", "Packets received and dropped for want of room in the host's share of the buffer.", statsSource, "priority"))
	priorityCongestionDiscards = wireDesc("rdma_port_priority_congestion_discards_total", "Packets received and dropped because the host's queue was congested.", statsSource, "priority")
	priorityMarked             = wireDesc("rdma_port_priority_ecn_marked_packets_total", "Packets received that the device itself marked for congestion (ECN), because the host's queue was congested.", statsSource, "priority")
	portDiscards               = wireDesc("rdma_port_discards_total", "Packets that the port dropped: received, its buffer was full; transmitted, the link was down or the packet too old.", statsSource, "direction")
	outOfBuffer                = wireDesc("rdma_port_out_of_buffer_total", "Packets dropped because a receive queue of the netdev had no buffer: the host is slow, or its queues are small. RDMA queues count in rdma_port_receive_buffer_exhausted_total.", statsSource)
	bufferThresholdEvents      = wireDesc("rdma_port_receive_buffer_threshold_events_total", "Times that the port's receive buffer was fuller than its threshold, 85 % on mlx5.", statsSource)
	fecCorrectedBits           = wireDesc("rdma_port_fec_corrected_bit_errors_total", "Bits that forward error correction put right. Normal on links of 50 Gb/s and more a lane.", statsSource+"; ethtool netlink FEC_GET, corrected bits")
	fecCorrectedBlocks         = wireDesc("rdma_port_fec_corrected_blocks_total", "Blocks that forward error correction put right.", statsSource+"; ethtool netlink FEC_GET, corrected blocks")
	fecUncorrectableBlocks     = wireDesc("rdma_port_fec_uncorrectable_blocks_total", "Blocks that forward error correction could not put right: packets are lost.", statsSource+"; ethtool netlink FEC_GET, uncorrectable blocks")
	fecInfo                    = &Desc{
		Name: "rdma_port_fec_info", Type: gauge, Scope: scopePort,
		Help:   "Forward error correction in use, always 1. mode: rs, base-r, llrs, none; absent where the driver does not tell.",
		Labels: []string{"device", "port", "netdev", "mode"}, Source: "ethtool netlink FEC_GET, active",
	}
	pcsSymbolErrors = wireDesc("rdma_port_pcs_symbol_errors_total", "Symbols that arrived broken and were not put right.", statsSource)
	crcErrors       = wireDesc("rdma_port_crc_errors_total", "Frames received whose checksum is wrong: damaged on this link, or by a switch that passes damaged frames on.", statsSource)
	frameErrors     = wireDesc("rdma_port_frame_errors_total", "Frames received that are none: too short, too long, cut, not aligned or with a broken code.", statsSource)
	macFaults       = wireDesc("rdma_port_mac_faults_total", "Faults of the link: local, this end receives no signal or no code; remote, the other end says so of its own.", statsSource+", mac_local_faults and mac_remote_faults of ice and i40e", "end")
	laneErrors      = wireDesc("rdma_port_lane_raw_errors_total", "Bit errors of a lane before correction.", statsSource, "lane")
	pcieStallRatio  = &Desc{
		Name: "rdma_port_pcie_stall_ratio", Type: gauge, Unit: "ratio", Scope: scopeDevice,
		Help:   "Share of the last second in which the device had something to ask of PCIe and no credits: transmit, to read what it sends; receive, to write what it received.",
		Labels: []string{"device", "port", "netdev", "direction"}, Source: statsSource + ", outbound_pci_stalled_rd and _wr of mlx5",
	}
	pcieStallEvents     = wireDesc("rdma_port_pcie_stall_events_total", "Seconds in which the stall was above 30 %.", statsSource+", outbound_pci_stalled_rd_events and _wr_events of mlx5", "direction")
	pcieBufferOverflows = wireDesc("rdma_port_pcie_buffer_overflow_packets_total", "Packets received and dropped because PCIe did not take them in time.", statsSource+", outbound_pci_buffer_overflow of mlx5")
	moduleEvents        = wireDesc("rdma_module_events_total", "Events of the module in the port's cage since the driver was loaded: unplugged, bus_stuck its management bus does not answer, high_temperature, shorted a bad or shorted cable.", statsSource+", module_* of mlx5", "event")
)

// wireMetric is the metric of what drivers count.
type wireMetric struct {
	desc *Desc
	// labelled and indexed say which labels beside the netdev there are: WireCount.Label first, then Index.
	labelled, indexed bool
	// ethernet: InfiniBand has it not, whatever the driver lists, or nobody looks for it there.
	ethernet bool
}

var wireMetrics = [snapshot.WireWhats]wireMetric{
	snapshot.PFCPauseFrames:             {pfcPauseFrames, true, true, true},
	snapshot.PFCPauseSeconds:            {pfcPauseSeconds, true, true, true},
	snapshot.PFCPauseTransitions:        {pfcPauseTransitions, true, true, true},
	snapshot.GlobalPauseFrames:          {globalPauseFrames, true, false, true},
	snapshot.GlobalPauseSeconds:         {globalPauseSeconds, true, false, true},
	snapshot.GlobalPauseTransitions:     {globalPauseTransitions, true, false, true},
	snapshot.PauseStormEvents:           {pauseStormEvents, true, false, true},
	snapshot.PriorityBytes:              {priorityBytes, true, true, true},
	snapshot.PriorityPackets:            {priorityPackets, true, true, true},
	snapshot.PriorityDiscards:           {priorityDiscards, false, true, true},
	snapshot.PriorityBufferDiscards:     {priorityBufferDiscards, false, true, true},
	snapshot.PriorityCongestionDiscards: {priorityCongestionDiscards, false, true, true},
	snapshot.PriorityMarked:             {priorityMarked, false, true, true},
	snapshot.Discards:                   {portDiscards, true, false, false},
	snapshot.OutOfBuffer:                {outOfBuffer, false, false, true},
	snapshot.BufferThresholdEvents:      {bufferThresholdEvents, false, false, true},
	snapshot.FECCorrectedBits:           {fecCorrectedBits, false, false, false},
	snapshot.FECCorrectedBlocks:         {fecCorrectedBlocks, false, false, false},
	snapshot.FECUncorrectableBlocks:     {fecUncorrectableBlocks, false, false, false},
	snapshot.PCSSymbolErrors:            {pcsSymbolErrors, false, false, false},
	snapshot.CRCErrors:                  {crcErrors, false, false, true},
	snapshot.FrameErrors:                {frameErrors, false, false, true},
	snapshot.MACFaults:                  {macFaults, true, false, true},
	snapshot.LaneErrors:                 {laneErrors, false, true, true},
	snapshot.PCIeStallRatio:             {pcieStallRatio, true, false, false},
	snapshot.PCIeStallEvents:            {pcieStallEvents, true, false, true},
	snapshot.PCIeBufferOverflows:        {pcieBufferOverflows, false, false, false},
	snapshot.ModuleEvents:               {moduleEvents, true, false, false},
}

func wireDescs() []*Desc {
	out := []*Desc{globalPauseEnabled, fecInfo}
	for _, m := range wireMetrics {
		out = append(out, m.desc)
	}
	return out
}

// fecModes are the link mode bits of forward error correction, enum ethtool_link_mode_bit_indices.
var fecModes = map[uint64]string{49: "none", 50: "rs", 51: "base-r", 74: "llrs"}

func emitEthernet(n *snapshot.Node, s Sink) {
	if n.Ethernet == nil {
		return
	}
	for i := range n.Ethernet.Netdevs {
		nd := &n.Ethernet.Netdevs[i]
		at := [...]string{nd.Device, strconv.Itoa(nd.Port), nd.Netdev}
		emitWire(s, nd, at[:])
		if nd.Pause != nil {
			emitUint(s, globalPauseEnabled, nd.Pause.RX, append(at[:], receive)...)
			emitUint(s, globalPauseEnabled, nd.Pause.TX, append(at[:], transmit)...)
		}
		if nd.FEC != nil && nd.FEC.Active != nil && fecModes[*nd.FEC.Active] != "" {
			s.Emit(fecInfo, 1, append(at[:], fecModes[*nd.FEC.Active])...)
		}
		emitAnswers(s, nd, at[:])
		emitPFCSamples(s, nd.PFC, at[:])
	}
}

func emitWire(s Sink, nd *snapshot.NetdevCounters, at []string) {
	if nd.Wire == nil {
		return
	}
	var labels [5]string
	for i := range nd.Wire.Counts {
		c := &nd.Wire.Counts[i]
		m := &wireMetrics[c.What]
		if m.ethernet && nd.LinkLayer != "Ethernet" || !nd.Wire.Tells(c) {
			continue
		}
		l := append(labels[:0], at...)
		if m.labelled {
			l = append(l, c.Label)
		}
		if m.indexed {
			l = append(l, index(c.Index))
		}
		s.Emit(m.desc, c.Value, l...)
	}
}

// index is the label of a priority or a lane; empty for all together.
func index(i int) string {
	if i < 0 {
		return ""
	}
	return strconv.Itoa(i)
}

// answer is a count that netlink tells.
type answer struct {
	what  snapshot.WireWhat
	label string
	value *uint64
}

func answers(nd *snapshot.NetdevCounters) (out []answer) {
	if p := nd.Pause; p != nil {
		out = append(out, answer{snapshot.GlobalPauseFrames, receive, p.RXFrames}, answer{snapshot.GlobalPauseFrames, transmit, p.TXFrames},
			answer{snapshot.PauseStormEvents, "error", p.TXStormEvents})
	}
	if f := nd.FEC; f != nil {
		out = append(out, answer{snapshot.FECCorrectedBits, "", f.CorrectedBits}, answer{snapshot.FECCorrectedBlocks, "", f.Corrected},
			answer{snapshot.FECUncorrectableBlocks, "", f.Uncorrectable})
	}
	return out
}

// emitAnswers emits what pause and FEC tell beside the driver's own statistics.
func emitAnswers(s Sink, nd *snapshot.NetdevCounters, at []string) {
	for _, a := range answers(nd) {
		if a.value == nil {
			continue
		}
		m := &wireMetrics[a.what]
		l := at
		if m.labelled {
			l = append(at, a.label)
		}
		s.Emit(m.desc, float64(*a.value), l...)
	}
}
