package counters

import (
	"strconv"
	"strings"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot/wire"
)

// StatsSource is the source of statistics in the help of their metrics.
const StatsSource = "ethtool -S (ETHTOOL_GSTATS)"

// NetdevDesc returns a Desc of a netdev statistic; labels are added to device, port and netdev.
func NetdevDesc(name, help, origin string, labels ...string) *metric.Desc {
	return metric.Of(metric.EthernetPorts, metric.Asks(source.NetdevStats,
		metric.Port(name, help, origin, append([]string{"netdev"}, labels...)...)))
}

// WhereLossless is for statistics that exist, or are used by rules, only for priorities with flow control.
func WhereLossless(d *metric.Desc) *metric.Desc {
	d.Of = "rdma_port_pfc_enabled"
	return d
}

// GlobalPauseEnabled is whether global pause is enabled, by direction.
var GlobalPauseEnabled = metric.Of(
	metric.EthernetPorts,
	metric.Asks(source.Pause, metric.Port(
		"rdma_port_global_pause_enabled",
		"Whether link-level flow control (802.3x pause) is enabled: receive honours pause frames of the link partner, transmit sends pause frames. Excludes PFC.",
		"ethtool netlink PAUSE_GET, rx and tx",
		"netdev",
		"direction",
	)),
)

// netdevMetric is the metric of a statistic.
type netdevMetric struct {
	Desc *metric.Desc
	// ethernet: not on InfiniBand ports, whatever the driver lists.
	Ethernet bool
	// sparse: left out while 0, which is permanent on most machines.
	Sparse bool
}

// LinkDowns has no metric here: it is one of the port.
var NetdevMetrics = [wire.NumNetdevStats]netdevMetric{
	wire.PFCPauseFrames:             {Ethernet: true, Desc: NetdevDesc("rdma_port_pfc_pause_frames_total", "PFC frames by priority. direction: receive (the link partner pauses the port), transmit (the port pauses the link partner). priority is empty where the driver has a single count, and a traffic class on mana. Only priorities with PFC enabled or a count above 0.", StatsSource, "direction", "priority")},
	wire.PFCPauseSeconds:            {Ethernet: true, Desc: WhereLossless(NetdevDesc("rdma_port_pfc_pause_seconds_total", "Time for which the priority was paused. direction: receive (paused by the link partner), transmit (link partner paused by the port).", StatsSource, "direction", "priority"))},
	wire.PFCPauseTransitions:        {Ethernet: true, Desc: NetdevDesc("rdma_port_pfc_pause_transitions_total", "Transitions of the priority from paused to not paused.", StatsSource, "direction", "priority")},
	wire.GlobalPauseFrames:          {Ethernet: true, Desc: NetdevDesc("rdma_port_global_pause_frames_total", "Pause frames of link-level flow control (802.3x), which pause all priorities.", StatsSource+"; ethtool netlink PAUSE_GET, statistics", "direction")},
	wire.GlobalPauseSeconds:         {Ethernet: true, Desc: NetdevDesc("rdma_port_global_pause_seconds_total", "Time paused by link-level flow control (802.3x). Absent where the driver does not count it.", StatsSource, "direction")},
	wire.GlobalPauseTransitions:     {Ethernet: true, Desc: NetdevDesc("rdma_port_global_pause_transitions_total", "Transitions of link-level flow control (802.3x) from paused to not paused. Absent where the driver does not count them.", StatsSource, "direction")},
	wire.PauseStormEvents:           {Ethernet: true, Desc: WhereLossless(NetdevDesc("rdma_port_pause_storm_events_total", "Times the device sent pause for longer than its limit. severity: error (it stopped sending pause, and the port drops packets), warning (it continued).", StatsSource+"; ethtool netlink PAUSE_GET, tx_pause_storm_events", "severity"))},
	wire.PriorityBytes:              {Ethernet: true, Desc: WhereLossless(NetdevDesc("rdma_port_priority_bytes_total", "Bytes on the link by priority, RDMA and other traffic. Only priorities with PFC enabled or a count above 0.", StatsSource, "direction", "priority"))},
	wire.PriorityPackets:            {Ethernet: true, Desc: WhereLossless(NetdevDesc("rdma_port_priority_packets_total", "Packets on the link by priority, RDMA and other traffic. Only priorities with PFC enabled or a count above 0.", StatsSource, "direction", "priority"))},
	wire.PriorityDiscards:           {Ethernet: true, Desc: WhereLossless(NetdevDesc("rdma_port_priority_discards_total", "Packets received and dropped for lack of port buffer. Expected to stay 0 on a priority with PFC.", StatsSource, "priority"))},
	wire.PriorityBufferDiscards:     {Ethernet: true, Desc: WhereLossless(NetdevDesc("rdma_port_priority_buffer_discards_total", "Packets received and dropped for lack of the receive buffer assigned to the host.", StatsSource, "priority"))},
	wire.PriorityCongestionDiscards: {Ethernet: true, Desc: NetdevDesc("rdma_port_priority_congestion_discards_total", "Packets received and dropped because of congestion at the host.", StatsSource, "priority")},
	wire.PriorityMarked:             {Ethernet: true, Desc: NetdevDesc("rdma_port_priority_ecn_marked_packets_total", "Packets received that the device itself marked (ECN) because of congestion at the host.", StatsSource, "priority")},
	wire.QueueDiscards:              {Sparse: true, Ethernet: true, Desc: NetdevDesc("rdma_port_queue_discards_total", "Packets received and dropped for lack of buffer of a class of service. Its priorities are device-specific."+AbsentWhenZero, StatsSource+", rx_discard_packets_cosN of bnxt_en", "queue")},
	wire.TransmitErrors:             {Sparse: true, Ethernet: true, Desc: NetdevDesc("rdma_port_transmit_frame_errors_total", "Frames that the port could not transmit completely."+AbsentWhenZero, StatsSource)},
	wire.Discards:                   {Desc: NetdevDesc("rdma_port_discards_total", "Packets dropped by the port. direction: receive (buffer full), transmit (link down or packet too old).", StatsSource, "direction")},
	wire.OutOfBuffer:                {Ethernet: true, Desc: NetdevDesc("rdma_port_out_of_buffer_total", "Packets dropped because a receive queue of the netdev had no buffer: slow host or small queues. For RDMA queues see rdma_port_receive_buffer_exhausted_total.", StatsSource)},
	wire.DeviceQueueExhausted:       {Sparse: true, Ethernet: true, Desc: NetdevDesc("rdma_port_device_queue_exhausted_total", "Packets dropped because an internal queue of the device (flow steering, hairpin) had no buffer."+AbsentWhenZero, StatsSource+", dev_internal_queue_oob of mlx5")},
	wire.SteeringMisses:             {Sparse: true, Ethernet: true, Desc: NetdevDesc("rdma_port_steering_misses_total", "Packets received that matched no flow steering rule: no receiver on this host."+AbsentWhenZero, StatsSource+", rx_steer_missed_packets of mlx5")},
	wire.BufferThresholdEvents:      {Ethernet: true, Desc: NetdevDesc("rdma_port_receive_buffer_threshold_events_total", "Times the port's receive buffer exceeded its threshold (85% on mlx5).", StatsSource)},
	wire.FECCorrectedBits:           {Desc: fecCorrectedBits},
	wire.FECCorrectedBlocks:         {Desc: FECCorrectedBlocks},
	wire.FECUncorrectableBlocks:     {Desc: FECUncorrectableBlocks},
	wire.PCSSymbolErrors:            {Desc: NetdevDesc("rdma_port_pcs_symbol_errors_total", "Symbol errors received that FEC did not correct: errors after FEC.", StatsSource)},
	wire.CRCErrors:                  {Ethernet: true, Desc: NetdevDesc("rdma_port_crc_errors_total", "Frames received with a CRC error: damaged on this link, or forwarded damaged by a cut-through switch.", StatsSource)},
	wire.FrameErrors:                {Ethernet: true, Desc: NetdevDesc("rdma_port_frame_errors_total", "Malformed frames received: undersized, oversized, fragment, alignment error or symbol error.", StatsSource)},
	wire.MACFaults:                  {Ethernet: true, Desc: NetdevDesc("rdma_port_mac_faults_total", "Link faults at the MAC. end: local (no signal or invalid code received), remote (local fault reported by the far end).", StatsSource+", mac_local_faults and mac_remote_faults of ice and i40e", "end")},
	wire.LaneErrors:                 {Desc: NetdevDesc("rdma_port_lane_raw_errors_total", "Bit errors of a lane before FEC, also of InfiniBand ports. mlx5 has lanes 0 to 3 only.", StatsSource, "lane")},
	wire.LinkRecoveries:             {Sparse: true, Desc: NetdevDesc("rdma_port_physical_recoveries_total", "Recoveries of the physical link from an error without link down."+AbsentWhenZero, StatsSource+", total_success_recovery_phy of mlx5")},
	wire.PCIeStallRatio: {Desc: metric.Device("rdma_port_pcie_stall_ratio",
		"Share of the last second in which the device stalled for lack of PCIe credits. direction: transmit (reads of data to send), receive (writes of received data).",
		StatsSource+", outbound_pci_stalled_rd and _wr of mlx5", "port", "netdev", "direction")},
	wire.PCIeStallEvents:     {Ethernet: true, Desc: NetdevDesc("rdma_port_pcie_stall_events_total", "Seconds with a PCIe stall above 30%.", StatsSource+", outbound_pci_stalled_rd_events and _wr_events of mlx5", "direction")},
	wire.PCIeBufferOverflows: {Desc: NetdevDesc("rdma_port_pcie_buffer_overflow_packets_total", "Packets received and dropped because of PCIe buffer overflow.", StatsSource+", outbound_pci_buffer_overflow of mlx5")},
	wire.PCIeRecoveries:      {Sparse: true, Desc: NetdevDesc("rdma_port_pcie_recoveries_total", "PCIe link recoveries caused by errors. direction: receive (framing and CRC errors detected by the device), transmit (requested by the far end). A rising count indicates a bad slot, riser or card."+AbsentWhenZero, StatsSource+", rx_pci_signal_integrity and tx_pci_signal_integrity of mlx5", "direction")},
	wire.ModuleEvents:        {Desc: NetdevDesc("rdma_module_events_total", "Transceiver events in the cage of the port since the driver was loaded. event: unplugged, bus_stuck (management bus does not respond), high_temperature, shorted (bad or shorted cable).", StatsSource+", module_* of mlx5", "event")},
}

// NetdevDescs returns the metrics of netdevs.
func NetdevDescs() []*metric.Desc {
	out := append([]*metric.Desc{GlobalPauseEnabled}, FECDescs...)
	for _, m := range NetdevMetrics {
		if m.Desc != nil {
			out = append(out, m.Desc)
		}
	}
	return out
}

// netdevStatName maps a driver's statistic to a metric. In a name, {} stands for a priority, a lane or a queue: any
// digit from 0 to 7. [rt]x stands for rx, with the label receive, and tx, with the label transmit.
type netdevStatName struct {
	name  string
	what  wire.NetdevStat
	label string  // value of the first label, where there is one
	per   float64 // how many make the metric's unit; 0 is 1
}

const (
	Transmit = "transmit"
	Receive  = "receive"
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
		{"[rt]x_prio{}_pause", wire.PFCPauseFrames, "", 0},
		{"[rt]x_prio{}_pause_duration", wire.PFCPauseSeconds, "", micro},
		{"rx_prio{}_pause_transition", wire.PFCPauseTransitions, Receive, 0},
		{"[rt]x_pause_ctrl_phy", wire.GlobalPauseFrames, "", 0},
		{"[rt]x_global_pause_duration", wire.GlobalPauseSeconds, "", micro},
		{"rx_global_pause_transition", wire.GlobalPauseTransitions, Receive, 0},
		{"tx_pause_storm_warning_events", wire.PauseStormEvents, "warning", 0},
		{"tx_pause_storm_error_events", wire.PauseStormEvents, "error", 0},
		{"[rt]x_prio{}_bytes", wire.PriorityBytes, "", 0},
		{"[rt]x_prio{}_packets", wire.PriorityPackets, "", 0},
		{"rx_prio{}_discards", wire.PriorityDiscards, "", 0},
		{"rx_prio{}_buf_discard", wire.PriorityBufferDiscards, "", 0},
		{"rx_prio{}_cong_discard", wire.PriorityCongestionDiscards, "", 0},
		{"rx_prio{}_marked", wire.PriorityMarked, "", 0},
		{"[rt]x_discards_phy", wire.Discards, "", 0},
		{"tx_errors_phy", wire.TransmitErrors, "", 0},
		{"rx_out_of_buffer", wire.OutOfBuffer, "", 0},
		{"dev_internal_queue_oob", wire.DeviceQueueExhausted, "", 0},
		{"rx_steer_missed_packets", wire.SteeringMisses, "", 0},
		{"rx_buffer_passed_thres_phy", wire.BufferThresholdEvents, "", 0},
		{"rx_corrected_bits_phy", wire.FECCorrectedBits, "", 0},
		{"rx_pcs_symbol_err_phy", wire.PCSSymbolErrors, "", 0},
		{"rx_crc_errors_phy", wire.CRCErrors, "", 0},
		{"rx_symbol_err_phy", wire.FrameErrors, "", 0},
		{"rx_in_range_len_errors_phy", wire.FrameErrors, "", 0},
		{"rx_out_of_range_len_phy", wire.FrameErrors, "", 0},
		{"rx_oversize_pkts_phy", wire.FrameErrors, "", 0},
		{"rx_undersize_pkts_phy", wire.FrameErrors, "", 0},
		{"rx_fragments_phy", wire.FrameErrors, "", 0},
		{"rx_jabbers_phy", wire.FrameErrors, "", 0},
		{"rx_err_lane_{}_phy", wire.LaneErrors, "", 0},
		{"link_down_events_phy", wire.LinkDowns, "", 0},
		{"total_success_recovery_phy", wire.LinkRecoveries, "", 0},          // Linux 7.3
		{"outbound_pci_stalled_rd", wire.PCIeStallRatio, Transmit, percent}, // it reads what it sends
		{"outbound_pci_stalled_wr", wire.PCIeStallRatio, Receive, percent},
		{"outbound_pci_stalled_rd_events", wire.PCIeStallEvents, Transmit, 0},
		{"outbound_pci_stalled_wr_events", wire.PCIeStallEvents, Receive, 0},
		{"outbound_pci_buffer_overflow", wire.PCIeBufferOverflows, "", 0},
		{"[rt]x_pci_signal_integrity", wire.PCIeRecoveries, "", 0},
		{"module_unplug", wire.ModuleEvents, "unplugged", 0},
		{"module_bus_stuck", wire.ModuleEvents, "bus_stuck", 0},
		{"module_high_temp", wire.ModuleEvents, "high_temperature", 0},
		{"module_bad_shorted", wire.ModuleEvents, "shorted", 0},
	},
	// drivers/net/ethernet/mellanox/mlx4/en_ethtool.c
	"mlx4_core": {
		{"[rt]x_pause_prio_{}", wire.PFCPauseFrames, "", 0},
		{"[rt]x_pause_duration_prio_{}", wire.PFCPauseSeconds, "", micro},
		{"[rt]x_pause_transition_prio_{}", wire.PFCPauseTransitions, "", 0},
		{"[rt]x_pause", wire.GlobalPauseFrames, "", 0},
		{"[rt]x_pause_duration", wire.GlobalPauseSeconds, "", micro},
		{"[rt]x_pause_transition", wire.GlobalPauseTransitions, "", 0},
		{"[rt]x_prio_{}_bytes", wire.PriorityBytes, "", 0},
		{"[rt]x_prio_{}_packets", wire.PriorityPackets, "", 0},
		{"rx_dropped", wire.Discards, Receive, 0},
		{"rx_over_errors", wire.Discards, Receive, 0},
		{"rx_crc_errors", wire.CRCErrors, "", 0},
	},
	// drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c
	"bnxt_en": {
		{"[rt]x_pfc_ena_frames_pri{}", wire.PFCPauseFrames, "", 0},
		{"pfc_pri{}_[rt]x_duration_us", wire.PFCPauseSeconds, "", micro},
		{"pfc_pri{}_[rt]x_transitions", wire.PFCPauseTransitions, "", 0},
		{"[rt]x_pause_frames", wire.GlobalPauseFrames, "", 0},
		{"continuous_pause_events", wire.PauseStormEvents, "warning", 0},
		{"continuous_roce_pause_events", wire.PauseStormEvents, "warning", 0},
		{"[rt]x_bytes_pri{}", wire.PriorityBytes, "", 0},
		{"[rt]x_packets_pri{}", wire.PriorityPackets, "", 0},
		{"[rt]x_stat_discard", wire.Discards, "", 0},
		{"rx_discard_packets_cos{}", wire.QueueDiscards, "", 0},
		{"rx_total_ring_discards", wire.OutOfBuffer, "", 0},
		{"rx_buffer_passed_threshold", wire.BufferThresholdEvents, "", 0},
		{"rx_corrected_bits", wire.FECCorrectedBits, "", 0},
		{"rx_fec_corrected_blocks", wire.FECCorrectedBlocks, "", 0},
		{"rx_fec_uncorrectable_blocks", wire.FECUncorrectableBlocks, "", 0},
		{"rx_pcs_symbol_err", wire.PCSSymbolErrors, "", 0},
		{"rx_fcs_err_frames", wire.CRCErrors, "", 0},
		{"rx_align_err_frames", wire.FrameErrors, "", 0},
		{"link_down_events", wire.LinkDowns, "", 0},
	},
	// drivers/net/ethernet/intel/ice/ice_ethtool.c
	"ice": {
		{"rx_priority_{}_xoff.nic", wire.PFCPauseFrames, Receive, 0},
		{"rx_priority_{}_xon.nic", wire.PFCPauseFrames, Receive, 0},
		{"tx_priority_{}_xoff.nic", wire.PFCPauseFrames, Transmit, 0},
		{"tx_priority_{}_xon.nic", wire.PFCPauseFrames, Transmit, 0},
		{"link_xoff_rx.nic", wire.GlobalPauseFrames, Receive, 0},
		{"link_xon_rx.nic", wire.GlobalPauseFrames, Receive, 0},
		{"link_xoff_tx.nic", wire.GlobalPauseFrames, Transmit, 0},
		{"link_xon_tx.nic", wire.GlobalPauseFrames, Transmit, 0},
		{"rx_dropped.nic", wire.Discards, Receive, 0},
		{"tx_dropped_link_down.nic", wire.Discards, Transmit, 0},
		{"tx_errors.nic", wire.TransmitErrors, "", 0},
		{"rx_crc_errors.nic", wire.CRCErrors, "", 0},
		{"mac_local_faults.nic", wire.MACFaults, "local", 0},
		{"mac_remote_faults.nic", wire.MACFaults, "remote", 0},
		{"rx_undersize.nic", wire.FrameErrors, "", 0},
		{"rx_fragments.nic", wire.FrameErrors, "", 0},
		{"rx_oversize.nic", wire.FrameErrors, "", 0},
		{"rx_jabber.nic", wire.FrameErrors, "", 0},
	},
	// drivers/net/ethernet/intel/i40e/i40e_ethtool.c, the names of priorities since Linux 5.0 and those before,
	// rx_discards since 6.6
	"i40e": {
		{"port.rx_priority_{}_xoff_rx", wire.PFCPauseFrames, Receive, 0},
		{"port.rx_priority_{}_xon_rx", wire.PFCPauseFrames, Receive, 0},
		{"port.tx_priority_{}_xoff_tx", wire.PFCPauseFrames, Transmit, 0},
		{"port.tx_priority_{}_xon_tx", wire.PFCPauseFrames, Transmit, 0},
		{"port.rx_priority_{}_xoff", wire.PFCPauseFrames, Receive, 0},
		{"port.rx_priority_{}_xon", wire.PFCPauseFrames, Receive, 0},
		{"port.tx_priority_{}_xoff", wire.PFCPauseFrames, Transmit, 0},
		{"port.tx_priority_{}_xon", wire.PFCPauseFrames, Transmit, 0},
		{"port.rx_priority_{}_xon_2_xoff", wire.PFCPauseTransitions, Receive, 0},
		{"port.link_xoff_rx", wire.GlobalPauseFrames, Receive, 0},
		{"port.link_xon_rx", wire.GlobalPauseFrames, Receive, 0},
		{"port.link_xoff_tx", wire.GlobalPauseFrames, Transmit, 0},
		{"port.link_xon_tx", wire.GlobalPauseFrames, Transmit, 0},
		{"port.rx_discards", wire.Discards, Receive, 0},
		{"port.rx_dropped", wire.Discards, Receive, 0},
		{"port.tx_dropped_link_down", wire.Discards, Transmit, 0},
		{"port.tx_errors", wire.TransmitErrors, "", 0},
		{"port.rx_crc_errors", wire.CRCErrors, "", 0},
		{"port.mac_local_faults", wire.MACFaults, "local", 0},
		{"port.mac_remote_faults", wire.MACFaults, "remote", 0},
		{"port.rx_undersize", wire.FrameErrors, "", 0},
		{"port.rx_fragments", wire.FrameErrors, "", 0},
		{"port.rx_oversize", wire.FrameErrors, "", 0},
		{"port.rx_jabber", wire.FrameErrors, "", 0},
	},
	// drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c
	"hns3": {
		{"mac_[rt]x_pfc_pri{}_pkt_num", wire.PFCPauseFrames, "", 0},
		{"mac_[rt]x_mac_pause_num", wire.GlobalPauseFrames, "", 0},
		{"mac_[rt]x_bad_pkt_num", wire.Discards, "", 0},
		{"mac_rx_fcs_err_pkt_num", wire.CRCErrors, "", 0},
	},
	// drivers/net/ethernet/microsoft/mana/mana_ethtool.c: the index is a traffic class
	"mana": {
		{"hc_tc{}_[rt]x_pause_phy", wire.PFCPauseFrames, "", 0},
		{"hc_[rt]x_pkt_drop_phy", wire.Discards, "", 0},
		{"hc_rx_discards_no_wqe", wire.OutOfBuffer, "", 0},
	},
	// drivers/net/ethernet/pensando/ionic/ionic_stats.c: frames_rx_pri_N are data frames
	"ionic": {
		{"frames_[rt]x_pripause", wire.PFCPauseFrames, "", 0},
		{"[rt]x_pripause_{}_1us_count", wire.PFCPauseSeconds, "", micro},
		{"frames_[rt]x_pause", wire.GlobalPauseFrames, "", 0},
		{"[rt]x_pause_1us_count", wire.GlobalPauseSeconds, "", micro},
		{"frames_[rt]x_pri_{}", wire.PriorityPackets, "", 0},
		{"frames_rx_dropped", wire.Discards, Receive, 0},
		{"frames_rx_bad_fcs", wire.CRCErrors, "", 0},
	},
	// drivers/net/ethernet/chelsio/cxgb4/cxgb4_ethtool.c
	"cxgb4": {
		{"[rt]x_ppp{}_frames", wire.PFCPauseFrames, "", 0},
		{"[rt]x_pause_frames", wire.GlobalPauseFrames, "", 0},
		{"rx_bg0_frames_dropped", wire.Discards, Receive, 0},
		{"rx_bg1_frames_dropped", wire.Discards, Receive, 0},
		{"rx_bg2_frames_dropped", wire.Discards, Receive, 0},
		{"rx_bg3_frames_dropped", wire.Discards, Receive, 0},
		{"tx_frames_dropped", wire.Discards, Transmit, 0},
		{"rx_fcs_errors", wire.CRCErrors, "", 0},
		{"rx_symbol_errors", wire.FrameErrors, "", 0},
	},
	// drivers/net/ethernet/qlogic/qede/qede_ethtool.c
	"qede": {
		{"[rt]x_pfc_frames", wire.PFCPauseFrames, "", 0},
		{"[rt]x_pause_frames", wire.GlobalPauseFrames, "", 0},
		{"brb_discards", wire.Discards, Receive, 0},
		{"brb_truncates", wire.Discards, Receive, 0},
		{"no_buff_discards", wire.OutOfBuffer, "", 0},
		{"rx_crc_errors", wire.CRCErrors, "", 0},
	},
	// drivers/net/ethernet/emulex/benet/be_ethtool.c
	"be2net": {
		{"rx_priority_pause_frames", wire.PFCPauseFrames, Receive, 0},
		{"tx_priority_pauseframes", wire.PFCPauseFrames, Transmit, 0},
		{"rx_pause_frames", wire.GlobalPauseFrames, Receive, 0},
		{"tx_pauseframes", wire.GlobalPauseFrames, Transmit, 0},
		{"rxpp_fifo_overflow_drop", wire.Discards, Receive, 0},
		{"rx_input_fifo_overflow_drop", wire.Discards, Receive, 0},
		{"pmem_fifo_overflow_drop", wire.Discards, Receive, 0},
		{"rx_drops_no_pbuf", wire.Discards, Receive, 0},
		{"rx_drops_no_erx_descr", wire.OutOfBuffer, "", 0},
		{"rx_crc_errors", wire.CRCErrors, "", 0},
		{"rx_alignment_symbol_errors", wire.FrameErrors, "", 0},
		{"rx_in_range_errors", wire.FrameErrors, "", 0},
		{"rx_out_range_errors", wire.FrameErrors, "", 0},
		{"rx_frame_too_long", wire.FrameErrors, "", 0},
		{"rx_dropped_runt", wire.FrameErrors, "", 0},
		{"jabber_events", wire.FrameErrors, "", 0},
	},
	// Any other driver with ethtool netlink STATS_GET: IEEE 802.3 clause 30 and RFC 2819, by their names in the kernel.
	standard: {
		{"FrameCheckSequenceErrors", wire.CRCErrors, "", 0},
		{"SymbolErrorDuringCarrier", wire.FrameErrors, "", 0},
		{"AlignmentErrors", wire.FrameErrors, "", 0},
		{"InRangeLengthErrors", wire.FrameErrors, "", 0},
		{"OutOfRangeLengthField", wire.FrameErrors, "", 0},
		{"etherStatsUndersizePkts", wire.FrameErrors, "", 0},
		{"etherStatsOversizePkts", wire.FrameErrors, "", 0},
		{"etherStatsFragments", wire.FrameErrors, "", 0},
		{"etherStatsJabbers", wire.FrameErrors, "", 0},
		{"FramesLostDueToIntMACRcvError", wire.Discards, Receive, 0},
		{"FramesLostDueToIntMACXmitError", wire.Discards, Transmit, 0},
	},
}

// standard is the table of drivers without a table of their own.
const standard = ""

// listsEnabledOnly are drivers with pause statistics only for priorities with PFC enabled.
var listsEnabledOnly = map[string]bool{"mlx5_core": true}

// Priorities is the number of priorities: three bits of the VLAN tag.
const Priorities = 8

// NetdevEntry is a statistic with its priority, lane or queue; -1 for none.
type NetdevEntry struct {
	netdevStatName
	index int
}

// NetdevTables returns the names of each driver, with {} expanded.
func NetdevTables() map[string]map[string]NetdevEntry {
	tables := map[string]map[string]NetdevEntry{}
	for driver, names := range netdevStatNames {
		t := map[string]NetdevEntry{}
		for _, row := range names {
			for _, n := range row.directions() {
				if !strings.Contains(n.name, "{}") {
					t[n.name] = NetdevEntry{n, -1}
					continue
				}
				for i := range Priorities {
					t[strings.Replace(n.name, "{}", strconv.Itoa(i), 1)] = NetdevEntry{n, i}
				}
			}
		}
		tables[driver] = t
	}
	return tables
}

// directions returns the rows for which a row stands.
func (n netdevStatName) directions() []netdevStatName {
	const both = "[rt]x"
	if !strings.Contains(n.name, both) {
		return []netdevStatName{n}
	}
	return []netdevStatName{
		{strings.ReplaceAll(n.name, both, "rx"), n.what, Receive, n.per},
		{strings.ReplaceAll(n.name, both, "tx"), n.what, Transmit, n.per},
	}
}
