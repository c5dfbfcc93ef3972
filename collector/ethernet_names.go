package collector

import (
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

const statsSource = "ethtool -S (ETHTOOL_GSTATS)"

// netdevDesc is a Desc of a netdev statistic; labels are those beside device, port and netdev.
func netdevDesc(name, help, source string, labels ...string) *Desc {
	return of(ethernetPorts, asks(host.SourceNetdevStats,
		portDesc(name, help, source, append([]string{"netdev"}, labels...)...)))
}

const absentWhenZero = " Absent while 0."

// whereLossless is for statistics that exist, or are used by rules, only for priorities with flow control.
func whereLossless(d *Desc) *Desc {
	d.Of = "rdma_port_pfc_enabled"
	return d
}

var (
	pfcPauseFrames         = netdevDesc("rdma_port_pfc_pause_frames_total", "PFC frames by priority. direction: receive (the link partner pauses the port), transmit (the port pauses the link partner). priority is empty where the driver has a single count, and a traffic class on mana. Only priorities with PFC enabled or a count above 0.", statsSource, "direction", "priority")
	pfcPauseSeconds        = whereLossless(netdevDesc("rdma_port_pfc_pause_seconds_total", "Time for which the priority was paused. direction: receive (paused by the link partner), transmit (link partner paused by the port).", statsSource, "direction", "priority"))
	pfcPauseTransitions    = netdevDesc("rdma_port_pfc_pause_transitions_total", "Transitions of the priority from paused to not paused.", statsSource, "direction", "priority")
	globalPauseFrames      = netdevDesc("rdma_port_global_pause_frames_total", "Pause frames of link-level flow control (802.3x), which pause all priorities.", statsSource+"; ethtool netlink PAUSE_GET, statistics", "direction")
	globalPauseSeconds     = netdevDesc("rdma_port_global_pause_seconds_total", "Time paused by link-level flow control (802.3x). Absent where the driver does not count it.", statsSource, "direction")
	globalPauseTransitions = netdevDesc("rdma_port_global_pause_transitions_total", "Transitions of link-level flow control (802.3x) from paused to not paused. Absent where the driver does not count them.", statsSource, "direction")
	globalPauseEnabled     = of(ethernetPorts, asks(host.SourcePause, portDesc("rdma_port_global_pause_enabled",
		"Whether link-level flow control (802.3x pause) is enabled: receive honours pause frames of the link partner, transmit sends pause frames. Excludes PFC.",
		"ethtool netlink PAUSE_GET, rx and tx", "netdev", "direction")))
	pauseStormEvents           = whereLossless(netdevDesc("rdma_port_pause_storm_events_total", "Times the device sent pause for longer than its limit. severity: error (it stopped sending pause, and the port drops packets), warning (it continued).", statsSource+"; ethtool netlink PAUSE_GET, tx_pause_storm_events", "severity"))
	priorityBytes              = whereLossless(netdevDesc("rdma_port_priority_bytes_total", "Bytes on the link by priority, RDMA and other traffic. Only priorities with PFC enabled or a count above 0.", statsSource, "direction", "priority"))
	priorityPackets            = whereLossless(netdevDesc("rdma_port_priority_packets_total", "Packets on the link by priority, RDMA and other traffic. Only priorities with PFC enabled or a count above 0.", statsSource, "direction", "priority"))
	priorityDiscards           = whereLossless(netdevDesc("rdma_port_priority_discards_total", "Packets received and dropped for lack of port buffer. Expected to stay 0 on a priority with PFC.", statsSource, "priority"))
	priorityBufferDiscards     = whereLossless(netdevDesc("rdma_port_priority_buffer_discards_total", "Packets received and dropped for lack of the receive buffer assigned to the host.", statsSource, "priority"))
	priorityCongestionDiscards = netdevDesc("rdma_port_priority_congestion_discards_total", "Packets received and dropped because of congestion at the host.", statsSource, "priority")
	priorityMarked             = netdevDesc("rdma_port_priority_ecn_marked_packets_total", "Packets received that the device itself marked (ECN) because of congestion at the host.", statsSource, "priority")
	queueDiscards              = netdevDesc("rdma_port_queue_discards_total", "Packets received and dropped for lack of buffer of a class of service. Its priorities are device-specific."+absentWhenZero, statsSource+", rx_discard_packets_cosN of bnxt_en", "queue")
	transmitErrors             = netdevDesc("rdma_port_transmit_frame_errors_total", "Frames that the port could not transmit completely."+absentWhenZero, statsSource)
	portDiscards               = netdevDesc("rdma_port_discards_total", "Packets dropped by the port. direction: receive (buffer full), transmit (link down or packet too old).", statsSource, "direction")
	outOfBuffer                = netdevDesc("rdma_port_out_of_buffer_total", "Packets dropped because a receive queue of the netdev had no buffer: slow host or small queues. For RDMA queues see rdma_port_receive_buffer_exhausted_total.", statsSource)
	deviceQueueExhausted       = netdevDesc("rdma_port_device_queue_exhausted_total", "Packets dropped because an internal queue of the device (flow steering, hairpin) had no buffer."+absentWhenZero, statsSource+", dev_internal_queue_oob of mlx5")
	steeringMisses             = netdevDesc("rdma_port_steering_misses_total", "Packets received that matched no flow steering rule: no receiver on this host."+absentWhenZero, statsSource+", rx_steer_missed_packets of mlx5")
	bufferThresholdEvents      = netdevDesc("rdma_port_receive_buffer_threshold_events_total", "Times the port's receive buffer exceeded its threshold (85% on mlx5).", statsSource)
	pcsSymbolErrors            = netdevDesc("rdma_port_pcs_symbol_errors_total", "Symbol errors received that FEC did not correct: errors after FEC.", statsSource)
	crcErrors                  = netdevDesc("rdma_port_crc_errors_total", "Frames received with a CRC error: damaged on this link, or forwarded damaged by a cut-through switch.", statsSource)
	frameErrors                = netdevDesc("rdma_port_frame_errors_total", "Malformed frames received: undersized, oversized, fragment, alignment error or symbol error.", statsSource)
	macFaults                  = netdevDesc("rdma_port_mac_faults_total", "Link faults at the MAC. end: local (no signal or invalid code received), remote (local fault reported by the far end).", statsSource+", mac_local_faults and mac_remote_faults of ice and i40e", "end")
	laneErrors                 = netdevDesc("rdma_port_lane_raw_errors_total", "Bit errors of a lane before FEC, also of InfiniBand ports. mlx5 has lanes 0 to 3 only.", statsSource, "lane")
	linkRecoveries             = netdevDesc("rdma_port_physical_recoveries_total", "Recoveries of the physical link from an error without link down."+absentWhenZero, statsSource+", total_success_recovery_phy of mlx5")
	pcieStallRatio             = deviceDesc("rdma_port_pcie_stall_ratio",
		"Share of the last second in which the device stalled for lack of PCIe credits. direction: transmit (reads of data to send), receive (writes of received data).",
		statsSource+", outbound_pci_stalled_rd and _wr of mlx5", "port", "netdev", "direction")
	pcieStallEvents     = netdevDesc("rdma_port_pcie_stall_events_total", "Seconds with a PCIe stall above 30%.", statsSource+", outbound_pci_stalled_rd_events and _wr_events of mlx5", "direction")
	pcieBufferOverflows = netdevDesc("rdma_port_pcie_buffer_overflow_packets_total", "Packets received and dropped because of PCIe buffer overflow.", statsSource+", outbound_pci_buffer_overflow of mlx5")
	pcieRecoveries      = netdevDesc("rdma_port_pcie_recoveries_total", "PCIe link recoveries caused by errors. direction: receive (framing and CRC errors detected by the device), transmit (requested by the far end). A rising count indicates a bad slot, riser or card."+absentWhenZero, statsSource+", rx_pci_signal_integrity and tx_pci_signal_integrity of mlx5", "direction")
	moduleEvents        = netdevDesc("rdma_module_events_total", "Transceiver events in the cage of the port since the driver was loaded. event: unplugged, bus_stuck (management bus does not respond), high_temperature, shorted (bad or shorted cable).", statsSource+", module_* of mlx5", "event")
)

// netdevMetric is the metric of a statistic.
type netdevMetric struct {
	desc *Desc
	// labelled and indexed: the labels beside the netdev, first NetdevCount.Label, then Index.
	labelled, indexed bool
	// ethernet: not on InfiniBand ports, whatever the driver lists.
	ethernet bool
}

// LinkDowns has no metric here: it is one of the port.
var netdevMetrics = [snapshot.NumNetdevStats]netdevMetric{
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
	snapshot.QueueDiscards:              {queueDiscards, false, true, true},
	snapshot.TransmitErrors:             {transmitErrors, false, false, true},
	snapshot.Discards:                   {portDiscards, true, false, false},
	snapshot.OutOfBuffer:                {outOfBuffer, false, false, true},
	snapshot.DeviceQueueExhausted:       {deviceQueueExhausted, false, false, true},
	snapshot.SteeringMisses:             {steeringMisses, false, false, true},
	snapshot.BufferThresholdEvents:      {bufferThresholdEvents, false, false, true},
	snapshot.FECCorrectedBits:           {fecCorrectedBits, false, false, false},
	snapshot.FECCorrectedBlocks:         {fecCorrectedBlocks, false, false, false},
	snapshot.FECUncorrectableBlocks:     {fecUncorrectableBlocks, false, false, false},
	snapshot.PCSSymbolErrors:            {pcsSymbolErrors, false, false, false},
	snapshot.CRCErrors:                  {crcErrors, false, false, true},
	snapshot.FrameErrors:                {frameErrors, false, false, true},
	snapshot.MACFaults:                  {macFaults, true, false, true},
	snapshot.LaneErrors:                 {laneErrors, false, true, false},
	snapshot.LinkRecoveries:             {linkRecoveries, false, false, false},
	snapshot.PCIeStallRatio:             {pcieStallRatio, true, false, false},
	snapshot.PCIeStallEvents:            {pcieStallEvents, true, false, true},
	snapshot.PCIeBufferOverflows:        {pcieBufferOverflows, false, false, false},
	snapshot.PCIeRecoveries:             {pcieRecoveries, true, false, false},
	snapshot.ModuleEvents:               {moduleEvents, true, false, false},
}

// sparseCounts are left out while 0, which is permanent on most machines.
var sparseCounts = [snapshot.NumNetdevStats]bool{
	snapshot.QueueDiscards: true, snapshot.TransmitErrors: true, snapshot.DeviceQueueExhausted: true,
	snapshot.SteeringMisses: true,
	snapshot.LinkRecoveries: true, snapshot.PCIeRecoveries: true,
}

func netdevDescs() []*Desc {
	out := append([]*Desc{globalPauseEnabled}, fecDescs...)
	for _, m := range netdevMetrics {
		if m.desc != nil {
			out = append(out, m.desc)
		}
	}
	return out
}

// netdevStatName maps a driver's statistic to a metric. In a name, {} stands for a priority, a lane or a queue: any
// digit from 0 to 7.
type netdevStatName struct {
	name  string
	what  snapshot.NetdevStat
	label string  // value of the first label, where there is one
	per   float64 // how many make the metric's unit; 0 is 1
}

const (
	transmit = "transmit"
	receive  = "receive"
	micro    = 1e6
	percent  = 100
)

// netdevStatNames are the statistics of each driver of a PCI function. Several names of one driver may count towards
// the same metric: ice counts frames that stop (XOFF) and frames that restart (XON) separately, other drivers together.
// A driver with one count for all priorities has a name without {}.
// Not included: durations of hns3 (unit not in its source), discards by lane of ice.
var netdevStatNames = map[string][]netdevStatName{
	// drivers/net/ethernet/mellanox/mlx5/core/en_stats.c. rx_global_pause and the like repeat the counters of priority 0.
	"mlx5_core": {
		{"rx_prio{}_pause", snapshot.PFCPauseFrames, receive, 0},
		{"tx_prio{}_pause", snapshot.PFCPauseFrames, transmit, 0},
		{"rx_prio{}_pause_duration", snapshot.PFCPauseSeconds, receive, micro},
		{"tx_prio{}_pause_duration", snapshot.PFCPauseSeconds, transmit, micro},
		{"rx_prio{}_pause_transition", snapshot.PFCPauseTransitions, receive, 0},
		{"rx_pause_ctrl_phy", snapshot.GlobalPauseFrames, receive, 0},
		{"tx_pause_ctrl_phy", snapshot.GlobalPauseFrames, transmit, 0},
		{"rx_global_pause_duration", snapshot.GlobalPauseSeconds, receive, micro},
		{"tx_global_pause_duration", snapshot.GlobalPauseSeconds, transmit, micro},
		{"rx_global_pause_transition", snapshot.GlobalPauseTransitions, receive, 0},
		{"tx_pause_storm_warning_events", snapshot.PauseStormEvents, "warning", 0},
		{"tx_pause_storm_error_events", snapshot.PauseStormEvents, "error", 0},
		{"rx_prio{}_bytes", snapshot.PriorityBytes, receive, 0},
		{"tx_prio{}_bytes", snapshot.PriorityBytes, transmit, 0},
		{"rx_prio{}_packets", snapshot.PriorityPackets, receive, 0},
		{"tx_prio{}_packets", snapshot.PriorityPackets, transmit, 0},
		{"rx_prio{}_discards", snapshot.PriorityDiscards, "", 0},
		{"rx_prio{}_buf_discard", snapshot.PriorityBufferDiscards, "", 0},
		{"rx_prio{}_cong_discard", snapshot.PriorityCongestionDiscards, "", 0},
		{"rx_prio{}_marked", snapshot.PriorityMarked, "", 0},
		{"rx_discards_phy", snapshot.Discards, receive, 0},
		{"tx_discards_phy", snapshot.Discards, transmit, 0},
		{"tx_errors_phy", snapshot.TransmitErrors, "", 0},
		{"rx_out_of_buffer", snapshot.OutOfBuffer, "", 0},
		{"dev_internal_queue_oob", snapshot.DeviceQueueExhausted, "", 0},
		{"rx_steer_missed_packets", snapshot.SteeringMisses, "", 0},
		{"rx_buffer_passed_thres_phy", snapshot.BufferThresholdEvents, "", 0},
		{"rx_corrected_bits_phy", snapshot.FECCorrectedBits, "", 0},
		{"rx_pcs_symbol_err_phy", snapshot.PCSSymbolErrors, "", 0},
		{"rx_crc_errors_phy", snapshot.CRCErrors, "", 0},
		{"rx_symbol_err_phy", snapshot.FrameErrors, "", 0},
		{"rx_in_range_len_errors_phy", snapshot.FrameErrors, "", 0},
		{"rx_out_of_range_len_phy", snapshot.FrameErrors, "", 0},
		{"rx_oversize_pkts_phy", snapshot.FrameErrors, "", 0},
		{"rx_undersize_pkts_phy", snapshot.FrameErrors, "", 0},
		{"rx_fragments_phy", snapshot.FrameErrors, "", 0},
		{"rx_jabbers_phy", snapshot.FrameErrors, "", 0},
		{"rx_err_lane_{}_phy", snapshot.LaneErrors, "", 0},
		{"link_down_events_phy", snapshot.LinkDowns, "", 0},
		{"total_success_recovery_phy", snapshot.LinkRecoveries, "", 0},          // Linux 7.3
		{"outbound_pci_stalled_rd", snapshot.PCIeStallRatio, transmit, percent}, // it reads what it sends
		{"outbound_pci_stalled_wr", snapshot.PCIeStallRatio, receive, percent},
		{"outbound_pci_stalled_rd_events", snapshot.PCIeStallEvents, transmit, 0},
		{"outbound_pci_stalled_wr_events", snapshot.PCIeStallEvents, receive, 0},
		{"outbound_pci_buffer_overflow", snapshot.PCIeBufferOverflows, "", 0},
		{"rx_pci_signal_integrity", snapshot.PCIeRecoveries, receive, 0},
		{"tx_pci_signal_integrity", snapshot.PCIeRecoveries, transmit, 0},
		{"module_unplug", snapshot.ModuleEvents, "unplugged", 0},
		{"module_bus_stuck", snapshot.ModuleEvents, "bus_stuck", 0},
		{"module_high_temp", snapshot.ModuleEvents, "high_temperature", 0},
		{"module_bad_shorted", snapshot.ModuleEvents, "shorted", 0},
	},
	// drivers/net/ethernet/mellanox/mlx4/en_ethtool.c
	"mlx4_core": {
		{"rx_pause_prio_{}", snapshot.PFCPauseFrames, receive, 0},
		{"tx_pause_prio_{}", snapshot.PFCPauseFrames, transmit, 0},
		{"rx_pause_duration_prio_{}", snapshot.PFCPauseSeconds, receive, micro},
		{"tx_pause_duration_prio_{}", snapshot.PFCPauseSeconds, transmit, micro},
		{"rx_pause_transition_prio_{}", snapshot.PFCPauseTransitions, receive, 0},
		{"tx_pause_transition_prio_{}", snapshot.PFCPauseTransitions, transmit, 0},
		{"rx_pause", snapshot.GlobalPauseFrames, receive, 0},
		{"tx_pause", snapshot.GlobalPauseFrames, transmit, 0},
		{"rx_pause_duration", snapshot.GlobalPauseSeconds, receive, micro},
		{"tx_pause_duration", snapshot.GlobalPauseSeconds, transmit, micro},
		{"rx_pause_transition", snapshot.GlobalPauseTransitions, receive, 0},
		{"tx_pause_transition", snapshot.GlobalPauseTransitions, transmit, 0},
		{"rx_prio_{}_bytes", snapshot.PriorityBytes, receive, 0},
		{"tx_prio_{}_bytes", snapshot.PriorityBytes, transmit, 0},
		{"rx_prio_{}_packets", snapshot.PriorityPackets, receive, 0},
		{"tx_prio_{}_packets", snapshot.PriorityPackets, transmit, 0},
		{"rx_dropped", snapshot.Discards, receive, 0},
		{"rx_over_errors", snapshot.Discards, receive, 0},
		{"rx_crc_errors", snapshot.CRCErrors, "", 0},
	},
	// drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c
	"bnxt_en": {
		{"rx_pfc_ena_frames_pri{}", snapshot.PFCPauseFrames, receive, 0},
		{"tx_pfc_ena_frames_pri{}", snapshot.PFCPauseFrames, transmit, 0},
		{"pfc_pri{}_rx_duration_us", snapshot.PFCPauseSeconds, receive, micro},
		{"pfc_pri{}_tx_duration_us", snapshot.PFCPauseSeconds, transmit, micro},
		{"pfc_pri{}_rx_transitions", snapshot.PFCPauseTransitions, receive, 0},
		{"pfc_pri{}_tx_transitions", snapshot.PFCPauseTransitions, transmit, 0},
		{"rx_pause_frames", snapshot.GlobalPauseFrames, receive, 0},
		{"tx_pause_frames", snapshot.GlobalPauseFrames, transmit, 0},
		{"continuous_pause_events", snapshot.PauseStormEvents, "warning", 0},
		{"continuous_roce_pause_events", snapshot.PauseStormEvents, "warning", 0},
		{"rx_bytes_pri{}", snapshot.PriorityBytes, receive, 0},
		{"tx_bytes_pri{}", snapshot.PriorityBytes, transmit, 0},
		{"rx_packets_pri{}", snapshot.PriorityPackets, receive, 0},
		{"tx_packets_pri{}", snapshot.PriorityPackets, transmit, 0},
		{"rx_stat_discard", snapshot.Discards, receive, 0},
		{"tx_stat_discard", snapshot.Discards, transmit, 0},
		{"rx_discard_packets_cos{}", snapshot.QueueDiscards, "", 0},
		{"rx_total_ring_discards", snapshot.OutOfBuffer, "", 0},
		{"rx_buffer_passed_threshold", snapshot.BufferThresholdEvents, "", 0},
		{"rx_corrected_bits", snapshot.FECCorrectedBits, "", 0},
		{"rx_fec_corrected_blocks", snapshot.FECCorrectedBlocks, "", 0},
		{"rx_fec_uncorrectable_blocks", snapshot.FECUncorrectableBlocks, "", 0},
		{"rx_pcs_symbol_err", snapshot.PCSSymbolErrors, "", 0},
		{"rx_fcs_err_frames", snapshot.CRCErrors, "", 0},
		{"rx_align_err_frames", snapshot.FrameErrors, "", 0},
		{"link_down_events", snapshot.LinkDowns, "", 0},
	},
	// drivers/net/ethernet/intel/ice/ice_ethtool.c
	"ice": {
		{"rx_priority_{}_xoff.nic", snapshot.PFCPauseFrames, receive, 0},
		{"rx_priority_{}_xon.nic", snapshot.PFCPauseFrames, receive, 0},
		{"tx_priority_{}_xoff.nic", snapshot.PFCPauseFrames, transmit, 0},
		{"tx_priority_{}_xon.nic", snapshot.PFCPauseFrames, transmit, 0},
		{"link_xoff_rx.nic", snapshot.GlobalPauseFrames, receive, 0},
		{"link_xon_rx.nic", snapshot.GlobalPauseFrames, receive, 0},
		{"link_xoff_tx.nic", snapshot.GlobalPauseFrames, transmit, 0},
		{"link_xon_tx.nic", snapshot.GlobalPauseFrames, transmit, 0},
		{"rx_dropped.nic", snapshot.Discards, receive, 0},
		{"tx_dropped_link_down.nic", snapshot.Discards, transmit, 0},
		{"tx_errors.nic", snapshot.TransmitErrors, "", 0},
		{"rx_crc_errors.nic", snapshot.CRCErrors, "", 0},
		{"mac_local_faults.nic", snapshot.MACFaults, "local", 0},
		{"mac_remote_faults.nic", snapshot.MACFaults, "remote", 0},
		{"rx_undersize.nic", snapshot.FrameErrors, "", 0},
		{"rx_fragments.nic", snapshot.FrameErrors, "", 0},
		{"rx_oversize.nic", snapshot.FrameErrors, "", 0},
		{"rx_jabber.nic", snapshot.FrameErrors, "", 0},
	},
	// drivers/net/ethernet/intel/i40e/i40e_ethtool.c, the names of priorities since Linux 5.0 and those before,
	// rx_discards since 6.6
	"i40e": {
		{"port.rx_priority_{}_xoff_rx", snapshot.PFCPauseFrames, receive, 0},
		{"port.rx_priority_{}_xon_rx", snapshot.PFCPauseFrames, receive, 0},
		{"port.tx_priority_{}_xoff_tx", snapshot.PFCPauseFrames, transmit, 0},
		{"port.tx_priority_{}_xon_tx", snapshot.PFCPauseFrames, transmit, 0},
		{"port.rx_priority_{}_xoff", snapshot.PFCPauseFrames, receive, 0},
		{"port.rx_priority_{}_xon", snapshot.PFCPauseFrames, receive, 0},
		{"port.tx_priority_{}_xoff", snapshot.PFCPauseFrames, transmit, 0},
		{"port.tx_priority_{}_xon", snapshot.PFCPauseFrames, transmit, 0},
		{"port.rx_priority_{}_xon_2_xoff", snapshot.PFCPauseTransitions, receive, 0},
		{"port.link_xoff_rx", snapshot.GlobalPauseFrames, receive, 0},
		{"port.link_xon_rx", snapshot.GlobalPauseFrames, receive, 0},
		{"port.link_xoff_tx", snapshot.GlobalPauseFrames, transmit, 0},
		{"port.link_xon_tx", snapshot.GlobalPauseFrames, transmit, 0},
		{"port.rx_discards", snapshot.Discards, receive, 0},
		{"port.rx_dropped", snapshot.Discards, receive, 0},
		{"port.tx_dropped_link_down", snapshot.Discards, transmit, 0},
		{"port.tx_errors", snapshot.TransmitErrors, "", 0},
		{"port.rx_crc_errors", snapshot.CRCErrors, "", 0},
		{"port.mac_local_faults", snapshot.MACFaults, "local", 0},
		{"port.mac_remote_faults", snapshot.MACFaults, "remote", 0},
		{"port.rx_undersize", snapshot.FrameErrors, "", 0},
		{"port.rx_fragments", snapshot.FrameErrors, "", 0},
		{"port.rx_oversize", snapshot.FrameErrors, "", 0},
		{"port.rx_jabber", snapshot.FrameErrors, "", 0},
	},
	// drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c
	"hns3": {
		{"mac_rx_pfc_pri{}_pkt_num", snapshot.PFCPauseFrames, receive, 0},
		{"mac_tx_pfc_pri{}_pkt_num", snapshot.PFCPauseFrames, transmit, 0},
		{"mac_rx_mac_pause_num", snapshot.GlobalPauseFrames, receive, 0},
		{"mac_tx_mac_pause_num", snapshot.GlobalPauseFrames, transmit, 0},
		{"mac_rx_bad_pkt_num", snapshot.Discards, receive, 0},
		{"mac_tx_bad_pkt_num", snapshot.Discards, transmit, 0},
		{"mac_rx_fcs_err_pkt_num", snapshot.CRCErrors, "", 0},
	},
	// drivers/net/ethernet/microsoft/mana/mana_ethtool.c: the index is a traffic class
	"mana": {
		{"hc_tc{}_rx_pause_phy", snapshot.PFCPauseFrames, receive, 0},
		{"hc_tc{}_tx_pause_phy", snapshot.PFCPauseFrames, transmit, 0},
		{"hc_rx_pkt_drop_phy", snapshot.Discards, receive, 0},
		{"hc_tx_pkt_drop_phy", snapshot.Discards, transmit, 0},
		{"hc_rx_discards_no_wqe", snapshot.OutOfBuffer, "", 0},
	},
	// drivers/net/ethernet/pensando/ionic/ionic_stats.c: frames_rx_pri_N are data frames
	"ionic": {
		{"frames_rx_pripause", snapshot.PFCPauseFrames, receive, 0},
		{"frames_tx_pripause", snapshot.PFCPauseFrames, transmit, 0},
		{"rx_pripause_{}_1us_count", snapshot.PFCPauseSeconds, receive, micro},
		{"tx_pripause_{}_1us_count", snapshot.PFCPauseSeconds, transmit, micro},
		{"frames_rx_pause", snapshot.GlobalPauseFrames, receive, 0},
		{"frames_tx_pause", snapshot.GlobalPauseFrames, transmit, 0},
		{"rx_pause_1us_count", snapshot.GlobalPauseSeconds, receive, micro},
		{"tx_pause_1us_count", snapshot.GlobalPauseSeconds, transmit, micro},
		{"frames_rx_pri_{}", snapshot.PriorityPackets, receive, 0},
		{"frames_tx_pri_{}", snapshot.PriorityPackets, transmit, 0},
		{"frames_rx_dropped", snapshot.Discards, receive, 0},
		{"frames_rx_bad_fcs", snapshot.CRCErrors, "", 0},
	},
	// drivers/net/ethernet/chelsio/cxgb4/cxgb4_ethtool.c
	"cxgb4": {
		{"rx_ppp{}_frames", snapshot.PFCPauseFrames, receive, 0},
		{"tx_ppp{}_frames", snapshot.PFCPauseFrames, transmit, 0},
		{"rx_pause_frames", snapshot.GlobalPauseFrames, receive, 0},
		{"tx_pause_frames", snapshot.GlobalPauseFrames, transmit, 0},
		{"rx_bg0_frames_dropped", snapshot.Discards, receive, 0},
		{"rx_bg1_frames_dropped", snapshot.Discards, receive, 0},
		{"rx_bg2_frames_dropped", snapshot.Discards, receive, 0},
		{"rx_bg3_frames_dropped", snapshot.Discards, receive, 0},
		{"tx_frames_dropped", snapshot.Discards, transmit, 0},
		{"rx_fcs_errors", snapshot.CRCErrors, "", 0},
		{"rx_symbol_errors", snapshot.FrameErrors, "", 0},
	},
	// drivers/net/ethernet/qlogic/qede/qede_ethtool.c
	"qede": {
		{"rx_pfc_frames", snapshot.PFCPauseFrames, receive, 0},
		{"tx_pfc_frames", snapshot.PFCPauseFrames, transmit, 0},
		{"rx_pause_frames", snapshot.GlobalPauseFrames, receive, 0},
		{"tx_pause_frames", snapshot.GlobalPauseFrames, transmit, 0},
		{"brb_discards", snapshot.Discards, receive, 0},
		{"brb_truncates", snapshot.Discards, receive, 0},
		{"no_buff_discards", snapshot.OutOfBuffer, "", 0},
		{"rx_crc_errors", snapshot.CRCErrors, "", 0},
	},
	// drivers/net/ethernet/emulex/benet/be_ethtool.c
	"be2net": {
		{"rx_priority_pause_frames", snapshot.PFCPauseFrames, receive, 0},
		{"tx_priority_pauseframes", snapshot.PFCPauseFrames, transmit, 0},
		{"rx_pause_frames", snapshot.GlobalPauseFrames, receive, 0},
		{"tx_pauseframes", snapshot.GlobalPauseFrames, transmit, 0},
		{"rxpp_fifo_overflow_drop", snapshot.Discards, receive, 0},
		{"rx_input_fifo_overflow_drop", snapshot.Discards, receive, 0},
		{"pmem_fifo_overflow_drop", snapshot.Discards, receive, 0},
		{"rx_drops_no_pbuf", snapshot.Discards, receive, 0},
		{"rx_drops_no_erx_descr", snapshot.OutOfBuffer, "", 0},
		{"rx_crc_errors", snapshot.CRCErrors, "", 0},
		{"rx_alignment_symbol_errors", snapshot.FrameErrors, "", 0},
		{"rx_in_range_errors", snapshot.FrameErrors, "", 0},
		{"rx_out_range_errors", snapshot.FrameErrors, "", 0},
		{"rx_frame_too_long", snapshot.FrameErrors, "", 0},
		{"rx_dropped_runt", snapshot.FrameErrors, "", 0},
		{"jabber_events", snapshot.FrameErrors, "", 0},
	},
	// Any other driver with ethtool netlink STATS_GET: IEEE 802.3 clause 30 and RFC 2819, by their names in the kernel.
	standard: {
		{"FrameCheckSequenceErrors", snapshot.CRCErrors, "", 0},
		{"SymbolErrorDuringCarrier", snapshot.FrameErrors, "", 0},
		{"AlignmentErrors", snapshot.FrameErrors, "", 0},
		{"InRangeLengthErrors", snapshot.FrameErrors, "", 0},
		{"OutOfRangeLengthField", snapshot.FrameErrors, "", 0},
		{"etherStatsUndersizePkts", snapshot.FrameErrors, "", 0},
		{"etherStatsOversizePkts", snapshot.FrameErrors, "", 0},
		{"etherStatsFragments", snapshot.FrameErrors, "", 0},
		{"etherStatsJabbers", snapshot.FrameErrors, "", 0},
		{"FramesLostDueToIntMACRcvError", snapshot.Discards, receive, 0},
		{"FramesLostDueToIntMACXmitError", snapshot.Discards, transmit, 0},
	},
}

// standard is the table of drivers without a table of their own.
const standard = ""

// listsEnabledOnly are drivers with pause statistics only for priorities with PFC enabled.
var listsEnabledOnly = map[string]bool{"mlx5_core": true}

// priorities is the number of priorities: three bits of the VLAN tag.
const priorities = 8

// netdevEntry is a statistic with its priority, lane or queue; -1 for none.
type netdevEntry struct {
	netdevStatName
	index int
}

// netdevTables are the names of each driver, with {} expanded.
func netdevTables() map[string]map[string]netdevEntry {
	tables := map[string]map[string]netdevEntry{}
	for driver, names := range netdevStatNames {
		t := map[string]netdevEntry{}
		for _, n := range names {
			if !strings.Contains(n.name, "{}") {
				t[n.name] = netdevEntry{n, -1}
				continue
			}
			for i := range priorities {
				t[strings.Replace(n.name, "{}", strconv.Itoa(i), 1)] = netdevEntry{n, i}
			}
		}
		tables[driver] = t
	}
	return tables
}
