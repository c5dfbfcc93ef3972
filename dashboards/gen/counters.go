package main

import (
	"strings"
)

// counter is one of a driver, with the words of a legend.
type counter struct{ metric, text string }

// Counters that do not move on a healthy port, by what they are about.
var (
	linkCounters = []counter{
		{"rdma_port_symbol_errors_total", "symbol errors"},
		{"rdma_port_link_error_recoveries_total", "link error recoveries"},
		{"rdma_port_link_downed_total", "link downed"},
		{"rdma_port_receive_errors_total", "receive errors"},
		{"rdma_port_receive_remote_physical_errors_total", "remote physical errors"},
		{"rdma_port_local_link_integrity_errors_total", "local link integrity"},
		{"rdma_port_link_transitions_total", "link transitions"},
	}
	netdevCounters = []counter{
		{"rdma_port_fec_uncorrectable_blocks_total", "FEC uncorrectable blocks"},
		{"rdma_port_crc_errors_total", "CRC errors"},
		{"rdma_port_pcs_symbol_errors_total", "PCS symbol errors"},
		{"rdma_port_frame_errors_total", "frame errors"},
		{"rdma_port_mac_faults_total", "MAC faults"},
		{"rdma_port_physical_recoveries_total", "physical recoveries"},
		{"rdma_port_link_down_events_total", "link down events"},
	}
	dropCounters = []counter{
		{"rdma_port_discards_total", "discards"},
		{"rdma_port_transmit_discards_total", "transmit discards"},
		{"rdma_port_excessive_buffer_overrun_errors_total", "excessive buffer overruns"},
		{"rdma_port_vl15_dropped_total", "VL15 dropped"},
		{"rdma_port_out_of_buffer_total", "out of receive buffer"},
		{"rdma_port_transmit_constraint_errors_total", "transmit constraint errors (P_Key)"},
		{"rdma_port_receive_constraint_errors_total", "receive constraint errors (P_Key)"},
	}
	requestCounters = []counter{
		{"rdma_port_transport_retries_exceeded_total", "transport retries exceeded"},
		{"rdma_port_rnr_retries_exceeded_total", "RNR retries exceeded"},
		{"rdma_port_requester_cqe_errors_total", "requester completion errors"},
		{"rdma_port_responder_cqe_errors_total", "responder completion errors"},
		{"rdma_port_requester_remote_access_errors_total", "requester remote access errors"},
		{"rdma_port_requester_remote_invalid_requests_total", "requester remote invalid requests"},
		{"rdma_port_responder_remote_access_errors_total", "responder remote access errors"},
	}
	// moreCounters have no graph.
	moreCounters = []counter{
		{"rdma_port_receive_switch_relay_errors_total", "switch relay errors"},
		{"rdma_port_receive_buffer_exhausted_total", "receive buffer exhausted"},
		{"rdma_port_adaptive_retransmission_timeouts_total", "adaptive retransmission timeouts"},
		{"rdma_port_slow_restarts_total", "slow restarts"},
		{"rdma_port_duplicate_requests_total", "duplicate requests"},
		{"rdma_port_icrc_errors_total", "ICRC errors"},
		{"rdma_port_responder_local_length_errors_total", "responder local length errors"},
		{"rdma_port_transmit_frame_errors_total", "transmit frame errors"},
		{"rdma_port_device_queue_exhausted_total", "device queue exhausted"},
		{"rdma_port_queue_discards_total", "queue discards"},
		{"rdma_port_priority_discards_total", "priority discards"},
		{"rdma_port_pcie_buffer_overflow_packets_total", "PCIe buffer overflow"},
		{"rdma_port_pcie_recoveries_total", "PCIe link recoveries"},
		{"rdma_port_pause_storm_events_total", "pause storm events"},
		{"rdma_port_carrier_changes_total", "carrier changes"},
		{"rdma_port_neighbour_errors_total", "errors at the other end"},
		{"rdma_module_events_total", "transceiver events"},
	}
	deviceCounters = []counter{
		{"rdma_device_health_errors_total", "firmware health errors"},
		{"rdma_device_health_recoveries_total", "firmware health recoveries"},
		{"rdma_device_registrations_total", "device registrations"},
	}
	ofGPUs = []counter{
		{"rdma_gpu_nvlink_errors_total", "NVLink errors"},
		{"rdma_gpu_xid_events_total", "XID events"},
		{"rdma_gpu_pcie_replays_total", "PCIe replays"},
	}
)

// increases returns queries for counters that do not increase on a healthy port: only those that increased are drawn.
func increases(s scope, labels, legend string, counters ...counter) (out []query) {
	for _, c := range counters {
		out = append(out, line(sumBy(labels, s.Increase(c.metric))+" > 0", c.text+" "+legend))
	}
	return out
}

// rates returns counters that run.
func rates(s scope, labels, legend string, counters ...counter) (out []query) {
	for _, c := range counters {
		out = append(out, line(sumBy(labels, s.Rate(c.metric))+" > 0", c.text+" "+legend))
	}
	return out
}

// rose lists the counters that rose in the time range, by their text.
func rose(s scope, labels string, groups ...[]counter) string {
	var parts []string
	for _, g := range groups {
		for _, c := range g {
			parts = append(parts, labelled("counter", c.text, sumBy(labels, "increase("+s.Of(c.metric)+"[$__range])")))
		}
	}
	return "round(" + strings.Join(parts, " or ") + ") > 0" // increase extrapolates
}
