package hwcounters

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

// drivers are the names of a device's driver: that of its PCI function, or its own.
var drivers = map[string][]string{
	"mlx5": {"mlx5_core"}, "mlx4": {"mlx4_core"}, "bnxt": {"bnxt_en"}, "irdma": {"ice", "i40e", "idpf"}, "hns": {"hns3"},
	"mana": {"mana"}, "ionic": {"ionic"}, "rxe": {"rxe"}, "efa": {"efa"}, "erdma": {"erdma"},
}

// emittedBy returns the metrics of a driver's port counters.
func emittedBy(driver string, traffic bool, stats ...wire.Stat) []string {
	c := New(shared.NewState(shared.Options{}))
	return collectortest.Samples(c.Descs, func(s metric.Sink) {
		c.Emit(&snapshot.Node{HWCounters: &snapshot.HWCounters{Devices: []snapshot.DeviceCounters{{
			Name: "d", Driver: driver, Ports: []snapshot.PortCounters{{Number: 1, Traffic: traffic, Stats: stats}},
		}}}}, s)
	})
}

// Driver names of the common counters; "|" separates old and new names.
func TestCanonicalNamesOfEveryDriver(t *testing.T) {
	for series, columns := range map[string]map[string]string{
		"rdma_port_ack_timeouts_total": {
			"mlx5": "local_ack_timeout_err", "bnxt": "local_ack_timeout_err|to_retransmits", "irdma": "RTO",
			"mana":  "requester_timeout",
			"ionic": "tx_rdma_ack_timeout", "rxe": "completer_retry_err", "mlx4": "sq_num_to", "efa": "retrans_timeout_events",
		},
		"rdma_port_packet_sequence_errors_total": {
			"mlx5": "packet_seq_err", "bnxt": "packet_seq_err|seq_err_naks_rcvd", "irdma": "Nak Sequence Error",
			"mana": "requester_oos_nak", "ionic": "req_rx_pkt_seq_err", "rxe": "rcvd_seq_err", "mlx4": "sq_num_oos",
		},
		"rdma_port_implied_nak_errors_total": {
			"mlx5": "implied_nak_seq_err", "bnxt": "implied_nak_seq_err|missing_resp", "irdma": "Nak Sequence Error Implied",
			"mana": "requester_implicit_nak", "ionic": "req_rx_impl_nak_seq_err",
		},
		"rdma_port_out_of_sequence_total": {
			"mlx5": "out_of_sequence", "bnxt": "out_of_sequence|oos_drop_count", "irdma": "Rcvd Out of order packets",
			"mana": "responder_oos", "ionic": "resp_rx_outouf_seq", "rxe": "out_of_seq_request", "mlx4": "rq_num_oos",
		},
		"rdma_port_rnr_naks_received_total": {
			"mlx5": "rnr_nak_retry_err", "bnxt": "rnr_nak_retry_err|rnr_naks_rcvd", "irdma": "RNR received",
			"mana": "requester_rnr_nak", "ionic": "req_rx_rnr_retry_err", "rxe": "rcvd_rnr_err", "mlx4": "sq_num_rnr",
		},
		"rdma_port_transport_retries_exceeded_total": {
			"mlx5": "req_transport_retries_exceeded", "bnxt": "max_retry_exceeded", "mana": "requester_retries_exceeded",
			"ionic": "req_tx_retry_excd_err", "rxe": "retry_exceeded_err", "mlx4": "sq_num_tree",
		},
		"rdma_port_rnr_retries_exceeded_total": {
			"mlx5": "req_rnr_retries_exceeded", "mana": "requester_rnr_nak_retries_exceeded", "rxe": "retry_rnr_exceeded_err",
			"mlx4": "sq_num_rree",
		},
		"rdma_port_duplicate_requests_total": {
			"mlx5": "duplicate_request", "bnxt": "duplicate_request|dup_req", "mana": "responder_dup_request",
			"ionic": "resp_rx_dup_request", "rxe": "duplicate_request", "mlx4": "rq_num_dup",
		},
		"rdma_port_receive_buffer_exhausted_total": {
			"mlx5": "out_of_buffer", "bnxt": "out_of_buffer|rx_out_of_buffer", "ionic": "resp_rx_outof_buf", "efa": "rx_drops",
		},
		"rdma_port_ecn_marked_packets_total": {
			"mlx5": "np_ecn_marked_roce_packets", "bnxt": "np_ecn_marked_roce_packets|rx_ecn_marked_pkts", "irdma": "RxECNMrkd",
			"ionic": "rx_rdma_ecn_pkts",
		},
		"rdma_port_cnp_sent_total": {
			"mlx5": "np_cnp_sent", "bnxt": "np_cnp_pkts|tx_cnp_pkts|np_cnp_sent", "irdma": "cnpSent", "hns": "tx_cnp_pkt",
			"ionic": "tx_rdma_cnp_pkts",
		},
		"rdma_port_cnp_handled_total": {
			"mlx5": "rp_cnp_handled", "bnxt": "rp_cnp_handled|rx_cnp_pkts", "irdma": "cnpHandled", "hns": "rx_cnp_pkt",
			"mana": "received_cnps", "ionic": "rx_rdma_cnp_pkts",
		},
		"rdma_port_cnp_ignored_total":                      {"mlx5": "rp_cnp_ignored", "irdma": "cnpIgnored"},
		"rdma_port_adaptive_retransmissions_total":         {"mlx5": "roce_adp_retrans"},
		"rdma_port_adaptive_retransmission_timeouts_total": {"mlx5": "roce_adp_retrans_to"},
		"rdma_port_slow_restarts_total":                    {"mlx5": "roce_slow_restart"},
		"rdma_port_slow_restart_cnps_total":                {"mlx5": "roce_slow_restart_cnps"},
		"rdma_port_slow_restart_transitions_total":         {"mlx5": "roce_slow_restart_trans"},
		"rdma_port_icrc_errors_total":                      {"mlx5": "rx_icrc_encapsulated", "irdma": "CRC errors"},
		"rdma_port_dct_connects_received_total":            {"mlx5": "rx_dct_connect"},
		"rdma_port_retransmitted_packets_total":            {"irdma": "RetransSegs|tcpRetransSegs", "efa": "retrans_pkts", "ionic": "tx_rdma_retx_pkts"},
		"rdma_port_retransmitted_bytes_total":              {"efa": "retrans_bytes", "ionic": "tx_rdma_retx_bytes"},
		"rdma_port_read_requests_received_total":           {"mlx5": "rx_read_requests", "bnxt": "rx_read_requests|rx_read_req", "mana": "rx_read_requests"},
		"rdma_port_write_requests_received_total":          {"mlx5": "rx_write_requests", "bnxt": "rx_write_requests|rx_write_req", "mana": "rx_write_requests"},
		"rdma_port_atomic_requests_received_total":         {"mlx5": "rx_atomic_requests", "bnxt": "rx_atomic_requests|rx_atomic_req"},
		"rdma_port_requester_cqe_errors_total":             {"mlx5": "req_cqe_error", "bnxt": "req_cqe_error", "ionic": "req_rx_cqe_err"},
		"rdma_port_requester_cqe_flush_errors_total":       {"mlx5": "req_cqe_flush_error", "ionic": "req_rx_cqe_flush", "mlx4": "sq_num_wrfe"},
		"rdma_port_requester_remote_access_errors_total": {
			"mlx5": "req_remote_access_errors", "bnxt": "req_remote_access_errors|remote_access_err",
			"ionic": "req_rx_rmt_acc_err", "mlx4": "sq_num_rae",
		},
		"rdma_port_requester_remote_invalid_requests_total": {
			"mlx5": "req_remote_invalid_request", "bnxt": "req_remote_invalid_request|remote_invalid_req_err",
			"ionic": "req_rx_rmt_req_err", "mlx4": "sq_num_rire",
		},
		"rdma_port_responder_cqe_errors_total":       {"mlx5": "resp_cqe_error", "bnxt": "resp_cqe_error", "ionic": "resp_rx_cqe_err"},
		"rdma_port_responder_cqe_flush_errors_total": {"mlx5": "resp_cqe_flush_error", "ionic": "resp_rx_cqe_flush", "mlx4": "rq_num_wrfe"},
		"rdma_port_responder_local_length_errors_total": {
			"mlx5": "resp_local_length_error", "bnxt": "resp_local_length_error|res_length_mismatch",
			"mana": "responder_local_len_error", "ionic": "resp_rx_loc_len_err", "mlx4": "rq_num_lle",
		},
		"rdma_port_responder_remote_access_errors_total": {
			"mlx5": "resp_remote_access_errors", "bnxt": "resp_remote_access_errors", "mana": "responder_rem_access_error",
			"mlx4": "rq_num_rae",
		},
		"rdma_port_transmit_bytes_total": {
			"bnxt": "tx_bytes", "efa": "tx_bytes", "mana": "tx_bytes", "erdma": "tx_bytes_cnt",
			"ionic": "tx_rdma_ucast_bytes", "rxe": "sent_bytes",
		},
		"rdma_port_receive_bytes_total": {
			"bnxt": "rx_bytes", "efa": "rx_bytes", "mana": "rx_bytes", "erdma": "rx_bytes_cnt",
			"ionic": "rx_rdma_ucast_bytes", "rxe": "rcvd_bytes",
		},
		"rdma_port_transmit_packets_total": {
			"bnxt": "tx_pkts", "efa": "tx_pkts", "mana": "tx_packets", "erdma": "tx_packets_cnt", "ionic": "tx_rdma_ucast_pkts",
			"rxe": "sent_pkts", "hns": "tx_pkt",
		},
		"rdma_port_receive_packets_total": {
			"bnxt": "rx_pkts", "efa": "rx_pkts", "mana": "rx_packets", "erdma": "rx_packets_cnt", "ionic": "rx_rdma_ucast_pkts",
			"rxe": "rcvd_pkts", "hns": "rx_pkt",
		},
		"rdma_port_link_downed_total": {"rxe": "link_downed"},
	} {
		t.Run(series, func(t *testing.T) {
			for column, names := range columns {
				for _, driver := range drivers[column] {
					for name := range strings.SplitSeq(names, "|") {
						want := []string{series + `{device="d",port="1"} 7`}
						if got := emittedBy(driver, false, wire.Stat{Name: name, Value: 7}); !slices.Equal(got, want) {
							t.Errorf("%s %q: %q, want %q", driver, name, got, want)
						}
					}
				}
			}
		})
	}
}

// The names of mlx5 have the same meaning in Broadcom's own bnxt_re and in unknown drivers.
func TestCommonNames(t *testing.T) {
	for _, driver := range []string{"bnxt_en", "efa", "unheardof", ""} {
		for name, desc := range Common {
			if names := transportNames[familyOf(driver)]; names[name] != nil {
				continue
			}
			want := []string{desc.Name + `{device="d",port="1"} 7`}
			if got := emittedBy(driver, false, wire.Stat{Name: name, Value: 7}); !slices.Equal(got, want) {
				t.Errorf("%s %q: %q, want %q", driver, name, got, want)
			}
		}
	}
}

// A driver with an old and a new name counts once; the second is passed through.
func TestTwoNamesOfOneCounter(t *testing.T) {
	got := emittedBy("bnxt_en", false, wire.Stat{Name: "tx_cnp_pkts", Value: 7},
		wire.Stat{Name: "np_cnp_sent", Value: 8})
	want := []string{
		`rdma_port_cnp_sent_total{device="d",port="1"} 7`, `rdma_port_hw_stat{device="d",port="1",stat="np_cnp_sent"} 8`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Similar names with another meaning.
func TestNamesThatAreNotCanonical(t *testing.T) {
	for driver, names := range map[string][]string{
		"bnxt_en":   {"recoverable_errors", "active_qps", "db_fifo_register", "tx_roce_errors", "rx_roce_discards", "tx_read_req"},
		"mlx5_core": {"cc_rx_ce_pkts", "rdma_tx_packets", "to_retransmits"},
		"ice":       {"RNR sent", "cnp_sent", "InOptErrors", "ip4InDiscards"},
		"efa":       {"send_bytes", "recv_wrs", "rdma_read_bytes"},
		"mana":      {"num_qps_congested", "current_rate", "responder_rnr_nak", "qp_congested_events"},
		"rxe":       {"send_rnr_err", "ack_deferred", "rdma_sends"},
		"hns3":      {"rx_rc_pkt", "rx_err_pkt"},
		"ionic":     {"resp_tx_rnr_retry_err", "tx_rdma_mcast_bytes"},
		"mlx4_core": {"rq_num_rnr", "sq_num_roe"},
		"unheardof": {"tx_bytes", "to_retransmits"},
	} {
		t.Run(driver, func(t *testing.T) {
			for _, name := range names {
				want := []string{`rdma_port_hw_stat{device="d",port="1",stat="` + strings.ReplaceAll(name, " ", "_") + `"} 7`}
				if got := emittedBy(driver, false, wire.Stat{Name: name, Value: 7}); !slices.Equal(got, want) {
					t.Errorf("%s %q: %q, want %q", driver, name, got, want)
				}
			}
		})
	}
}

// Device counters of a driver belong to its port, where there is exactly one.
func TestCountersOfTheDevice(t *testing.T) {
	cnps := wire.Stat{Name: "np_cnp_sent", Value: 3}
	for _, c := range []struct {
		name   string
		driver string
		device wire.Stat
		ports  []snapshot.PortCounters
		want   string
	}{
		{"mana has those of congestion there", "mana", wire.Stat{Name: "sent_cnps", Value: 3}, []snapshot.PortCounters{{Number: 1}}, `rdma_port_cnp_sent_total{device="d",port="1"} 3`},
		{"mlx5 in switchdev mode has all", "mlx5_core", cnps, []snapshot.PortCounters{{Number: 1}}, `rdma_port_cnp_sent_total{device="d",port="1"} 3`},
		{"by the names of a representor", "mlx5_core", wire.Stat{Name: "vport_np_cnp_sent", Value: 3}, []snapshot.PortCounters{{Number: 1}}, `rdma_port_cnp_sent_total{device="d",port="1"} 3`},
		{"nobody knows of which of two", "mlx4_core", wire.Stat{Name: "sq_num_to", Value: 3}, []snapshot.PortCounters{{Number: 1}, {Number: 2}}, `rdma_device_hw_stat{device="d",stat="sq_num_to"} 3`},
		{"no name of its own", "mana", wire.Stat{Name: "qp_congested_events", Value: 3}, []snapshot.PortCounters{{Number: 1}}, `rdma_device_hw_stat{device="d",stat="qp_congested_events"} 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			col := New(shared.NewState(shared.Options{}))
			got := collectortest.Samples(col.Descs, func(s metric.Sink) {
				col.Emit(&snapshot.Node{HWCounters: &snapshot.HWCounters{Devices: []snapshot.DeviceCounters{
					{Name: "d", Driver: c.driver, Stats: []wire.Stat{c.device}, Ports: c.ports},
				}}}, s)
			})
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("%q", got)
			}
		})
	}
	col := New(shared.NewState(shared.Options{}))
	got := collectortest.Samples(col.Descs, func(s metric.Sink) {
		col.Emit(&snapshot.Node{HWCounters: &snapshot.HWCounters{Devices: []snapshot.DeviceCounters{{
			Name: "d", Driver: "mlx5_core", Stats: []wire.Stat{{Name: "np_cnp_sent", Value: 9}},
			Ports: []snapshot.PortCounters{{Number: 1, Stats: []wire.Stat{cnps}}},
		}}}}, s)
	})
	if want := []string{
		`rdma_port_cnp_sent_total{device="d",port="1"} 3`, `rdma_device_hw_stat{device="d",stat="np_cnp_sent"} 9`,
	}; !slices.Equal(got, want) {
		t.Errorf("a port that has its own: %q", got)
	}
}

// If counters/ has the traffic, that of hw_counters is passed through.
func TestTrafficIsExportedOnce(t *testing.T) {
	stats := []wire.Stat{{Name: "tx_bytes", Value: 1}, {Name: "out_of_buffer", Value: 2}}
	if got, want := emittedBy("bnxt_en", true, stats...), []string{
		`rdma_port_receive_buffer_exhausted_total{device="d",port="1"} 2`,
		`rdma_port_hw_stat{device="d",port="1",stat="tx_bytes"} 1`,
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestSeldomCountersOnInfiniBand: left out while 0; other counters, and all on Ethernet, are served as 0.
func TestSeldomCountersOnInfiniBand(t *testing.T) {
	marks := func(v uint64) wire.Stat { return wire.Stat{Name: "np_ecn_marked_roce_packets", Value: v} }
	retries := wire.Stat{Name: "req_transport_retries_exceeded"}
	for _, c := range []struct {
		name       string
		infiniBand bool
		stats      []wire.Stat
		want       []string
	}{
		{"InfiniBand, zero", true, []wire.Stat{marks(0), retries}, []string{`rdma_port_transport_retries_exceeded_total{device="d",port="1"} 0`}},
		{"InfiniBand, nonzero", true, []wire.Stat{marks(7)}, []string{`rdma_port_ecn_marked_packets_total{device="d",port="1"} 7`}},
		{"Ethernet, zero", false, []wire.Stat{marks(0)}, []string{`rdma_port_ecn_marked_packets_total{device="d",port="1"} 0`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			col := New(shared.NewState(shared.Options{}))
			port := snapshot.PortCounters{Number: 1, InfiniBand: c.infiniBand, Stats: c.stats}
			got := collectortest.Samples(col.Descs, func(s metric.Sink) {
				col.Emit(&snapshot.Node{HWCounters: &snapshot.HWCounters{
					Devices: []snapshot.DeviceCounters{{Name: "d", Driver: "mlx5_core", Ports: []snapshot.PortCounters{port}}},
				}}, s)
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("InfiniBand %v: %q, want %q", c.infiniBand, got, c.want)
			}
		})
	}
}

func TestCountersThatCouldNotBeDecodedAreNotExported(t *testing.T) {
	got := emittedBy("ionic", false, wire.Stat{Name: "tx_rdma_ack_timeout", Value: 1<<64 - 1},
		wire.Stat{Name: "other", Value: 1<<64 - 1}, wire.Stat{Name: "req_rx_cqe_err", Value: 1})
	if !slices.Equal(got, []string{`rdma_port_requester_cqe_errors_total{device="d",port="1"} 1`}) {
		t.Errorf("%q", got)
	}
}

func TestEveryMappedDescIsDeclared(t *testing.T) {
	declared := New(shared.NewState(shared.Options{})).Descs
	used := map[*metric.Desc]bool{}
	for family, names := range transportNames {
		for name, d := range names {
			used[d] = true
			if !slices.Contains(declared, d) {
				t.Errorf("%s %s: %s is not declared", family, name, d.Name)
			}
		}
	}
	for _, d := range declared {
		if !used[d] && d != portHWStat && d != deviceHWStat {
			t.Errorf("no driver has %s", d.Name)
		}
	}
}
