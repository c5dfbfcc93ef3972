package counters

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot/wire"
)

// TestNetdevStatNames: one statistic of each kind of each driver, by the driver's name, and its metric.
func TestNetdevStatNames(t *testing.T) {
	tables := NetdevTables()
	for _, c := range []struct {
		driver string
		stats  []host.Stat
		want   []wire.NetdevCount
	}{
		{
			"mlx5_core",
			[]host.Stat{
				{Name: "rx_packets", Value: 99},
				{Name: "rx_prio3_pause", Value: 5},
				{Name: "rx_prio3_pause_duration", Value: 2_500_000},
				{Name: "rx_prio3_pause_transition", Value: 4},
				{Name: "tx_pause_storm_error_events", Value: 1},
				{Name: "outbound_pci_stalled_wr", Value: 37},
				{Name: "outbound_pci_stalled_rd", Value: 120},
				{Name: "rx_err_lane_2_phy", Value: 8},
				{Name: "rx_prio8_pause", Value: 1},
				{Name: "rx3_packets", Value: 1},
				{Name: "rx_jabbers_phy", Value: 2},
				{Name: "rx_symbol_err_phy", Value: 3},
				{Name: "module_bad_shorted", Value: 6},
			},
			[]wire.NetdevCount{
				{What: wire.PFCPauseFrames, Label: Receive, Index: 3, Value: 5},
				{What: wire.PFCPauseSeconds, Label: Receive, Index: 3, Value: 2.5},
				{What: wire.PFCPauseTransitions, Label: Receive, Index: 3, Value: 4},
				{What: wire.PauseStormEvents, Label: "error", Index: -1, Value: 1},
				{What: wire.PCIeStallRatio, Label: Receive, Index: -1, Value: 0.37},
				{What: wire.PCIeStallRatio, Label: Transmit, Index: -1, Value: 1},
				{What: wire.LaneErrors, Index: 2, Value: 8},
				{What: wire.FrameErrors, Index: -1, Value: 5},
				{What: wire.ModuleEvents, Label: "shorted", Index: -1, Value: 6},
			},
		},
		{
			"mlx4_core",
			[]host.Stat{{Name: "rx_pause_prio_5", Value: 5}, {Name: "tx_pause_duration_prio_5", Value: 1e6}, {Name: "tx_pause_transition_prio_5", Value: 3}, {Name: "rx_pause_duration", Value: 5e5}},
			[]wire.NetdevCount{
				{What: wire.PFCPauseFrames, Label: Receive, Index: 5, Value: 5},
				{What: wire.PFCPauseSeconds, Label: Transmit, Index: 5, Value: 1},
				{What: wire.PFCPauseTransitions, Label: Transmit, Index: 5, Value: 3},
				{What: wire.GlobalPauseSeconds, Label: Receive, Index: -1, Value: 0.5},
			},
		},
		{
			"bnxt_en",
			[]host.Stat{{Name: "tx_pfc_ena_frames_pri3", Value: 5}, {Name: "pfc_pri3_tx_duration_us", Value: 3e6}, {Name: "continuous_pause_events", Value: 1}, {Name: "continuous_roce_pause_events", Value: 2}, {Name: "rx_fec_uncorrectable_blocks", Value: 7}},
			[]wire.NetdevCount{
				{What: wire.PFCPauseFrames, Label: Transmit, Index: 3, Value: 5},
				{What: wire.PFCPauseSeconds, Label: Transmit, Index: 3, Value: 3},
				{What: wire.PauseStormEvents, Label: "warning", Index: -1, Value: 3},
				{What: wire.FECUncorrectableBlocks, Index: -1, Value: 7},
			},
		},
		{
			"ice",
			[]host.Stat{{Name: "rx_priority_4_xon.nic", Value: 5}, {Name: "rx_priority_4_xoff.nic", Value: 6}, {Name: "link_xoff_tx.nic", Value: 2}, {Name: "rx_crc_errors.nic", Value: 1}, {Name: "rx_crc_errors", Value: 50}},
			[]wire.NetdevCount{
				{What: wire.PFCPauseFrames, Label: Receive, Index: 4, Value: 11},
				{What: wire.GlobalPauseFrames, Label: Transmit, Index: -1, Value: 2},
				{What: wire.CRCErrors, Index: -1, Value: 1},
			},
		},
		{
			"i40e",
			[]host.Stat{{Name: "port.tx_priority_0_xoff_tx", Value: 5}, {Name: "port.rx_priority_0_xon_2_xoff", Value: 2}, {Name: "port.rx_discards", Value: 9}},
			[]wire.NetdevCount{
				{What: wire.PFCPauseFrames, Label: Transmit, Index: 0, Value: 5},
				{What: wire.PFCPauseTransitions, Label: Receive, Index: 0, Value: 2},
				{What: wire.Discards, Label: Receive, Index: -1, Value: 9},
			},
		},
		{
			"i40e",
			[]host.Stat{{Name: "rx_dropped", Value: 40}, {Name: "port.rx_dropped", Value: 9}, {Name: "port.tx_priority_3_xon", Value: 5}, {Name: "port.tx_priority_3_xoff", Value: 6}, {Name: "port.rx_priority_3_xon", Value: 1}, {Name: "port.rx_priority_3_xoff", Value: 2}},
			[]wire.NetdevCount{
				{What: wire.Discards, Label: Receive, Index: -1, Value: 9},
				{What: wire.PFCPauseFrames, Label: Transmit, Index: 3, Value: 11},
				{What: wire.PFCPauseFrames, Label: Receive, Index: 3, Value: 3},
			},
		},
		{
			"mlx5_core",
			[]host.Stat{{Name: "dev_internal_queue_oob", Value: 1}, {Name: "rx_steer_missed_packets", Value: 2}, {Name: "tx_errors_phy", Value: 3}, {Name: "link_down_events_phy", Value: 4}, {Name: "total_success_recovery_phy", Value: 5}, {Name: "rx_pci_signal_integrity", Value: 6}, {Name: "tx_pci_signal_integrity", Value: 7}},
			[]wire.NetdevCount{
				{What: wire.DeviceQueueExhausted, Index: -1, Value: 1},
				{What: wire.SteeringMisses, Index: -1, Value: 2},
				{What: wire.TransmitErrors, Index: -1, Value: 3},
				{What: wire.LinkDowns, Index: -1, Value: 4},
				{What: wire.LinkRecoveries, Index: -1, Value: 5},
				{What: wire.PCIeRecoveries, Label: Receive, Index: -1, Value: 6},
				{What: wire.PCIeRecoveries, Label: Transmit, Index: -1, Value: 7},
			},
		},
		{
			"bnxt_en",
			[]host.Stat{{Name: "rx_discard_packets_cos4", Value: 5}, {Name: "rx_discard_bytes_cos4", Value: 500}, {Name: "rx_total_ring_discards", Value: 2}, {Name: "link_down_events", Value: 3}},
			[]wire.NetdevCount{{What: wire.QueueDiscards, Index: 4, Value: 5}, {What: wire.OutOfBuffer, Index: -1, Value: 2}, {What: wire.LinkDowns, Index: -1, Value: 3}},
		},
		{
			"be2net",
			[]host.Stat{{Name: "rx_priority_pause_frames", Value: 5}, {Name: "rx_drops_no_pbuf", Value: 1}, {Name: "pmem_fifo_overflow_drop", Value: 2}, {Name: "rx_address_filtered", Value: 9}},
			[]wire.NetdevCount{{What: wire.PFCPauseFrames, Label: Receive, Index: -1, Value: 5}, {What: wire.Discards, Label: Receive, Index: -1, Value: 3}},
		},
		{
			"hns3",
			[]host.Stat{{Name: "mac_tx_pfc_pri7_pkt_num", Value: 5}, {Name: "mac_tx_pfc_pri7_xoff_time", Value: 5}, {Name: "mac_rx_mac_pause_num", Value: 1}},
			[]wire.NetdevCount{{What: wire.PFCPauseFrames, Label: Transmit, Index: 7, Value: 5}, {What: wire.GlobalPauseFrames, Label: Receive, Index: -1, Value: 1}},
		},
		{
			"mana",
			[]host.Stat{{Name: "hc_tc1_rx_pause_phy", Value: 5}, {Name: "hc_rx_discards_no_wqe", Value: 1}},
			[]wire.NetdevCount{{What: wire.PFCPauseFrames, Label: Receive, Index: 1, Value: 5}, {What: wire.OutOfBuffer, Index: -1, Value: 1}},
		},
		{
			"ionic",
			[]host.Stat{{Name: "frames_rx_pripause", Value: 5}, {Name: "rx_pripause_3_1us_count", Value: 4e6}, {Name: "frames_tx_pri_3", Value: 6}},
			[]wire.NetdevCount{
				{What: wire.PFCPauseFrames, Label: Receive, Index: -1, Value: 5},
				{What: wire.PFCPauseSeconds, Label: Receive, Index: 3, Value: 4},
				{What: wire.PriorityPackets, Label: Transmit, Index: 3, Value: 6},
			},
		},
		{
			"cxgb4",
			[]host.Stat{{Name: "tx_ppp2_frames", Value: 5}, {Name: "rx_bg0_frames_dropped", Value: 1}, {Name: "rx_bg3_frames_dropped", Value: 2}},
			[]wire.NetdevCount{{What: wire.PFCPauseFrames, Label: Transmit, Index: 2, Value: 5}, {What: wire.Discards, Label: Receive, Index: -1, Value: 3}},
		},
		{
			"qede",
			[]host.Stat{{Name: "rx_pfc_frames", Value: 5}, {Name: "brb_discards", Value: 1}, {Name: "no_buff_discards", Value: 2}},
			[]wire.NetdevCount{
				{What: wire.PFCPauseFrames, Label: Receive, Index: -1, Value: 5},
				{What: wire.Discards, Label: Receive, Index: -1, Value: 1},
				{What: wire.OutOfBuffer, Index: -1, Value: 2},
			},
		},
	} {
		t.Run(c.driver, func(t *testing.T) {
			if got := NetdevCounts(tables[c.driver], c.stats); !slices.Equal(got, c.want) {
				t.Errorf("%v, want\n%v", got, c.want)
			}
		})
	}
	for driver := range netdevStatNames {
		seen := map[string]bool{}
		for _, n := range slices.Concat(directionsOf(netdevStatNames[driver])...) {
			m := NetdevMetrics[n.what]
			if n.what == wire.LinkDowns {
				m.Desc = &metric.Desc{Labels: []string{"device", "port", "netdev"}} // of infiniband
			}
			values := wire.NetdevCount{Label: "label", Index: 7}
			var given []string // values of the labels beside the netdev
			for _, name := range m.Desc.Labels[3:] {
				given = append(given, LabelOf(&values, name))
			}
			if seen[n.name] || slices.Contains(given, "label") != (n.label != "") ||
				strings.Contains(n.name, "{}") && !slices.Contains(given, "7") {
				t.Errorf("%s %s: there twice, or not what %s needs", driver, n.name, m.Desc.Name)
			}
			seen[n.name] = true
			for _, rx := range []string{"rx_", "_rx", ".rx"} {
				if tx := strings.ReplaceAll(rx, "r", "t"); n.label == Transmit && strings.Contains(n.name, rx) ||
					n.label == Receive && strings.Contains(n.name, tx) {
					t.Errorf("%s %s: is it %s?", driver, n.name, n.label)
				}
			}
			want := map[string]float64{
				"rdma_port_pfc_pause_seconds_total": micro, "rdma_port_global_pause_seconds_total": micro,
				"rdma_port_pcie_stall_ratio": percent,
			}[m.Desc.Name]
			if n.per != want {
				t.Errorf("%s %s: %v make the unit of %s, want %v", driver, n.name, n.per, m.Desc.Name, want)
			}
		}
	}
}

// directionsOf returns the rows for which each row stands.
func directionsOf(rows []netdevStatName) (out [][]netdevStatName) {
	for _, n := range rows {
		out = append(out, n.directions())
	}
	return out
}
