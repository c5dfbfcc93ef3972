package collector

import (
	"slices"
	"strings"

	"rdma_exporter/internal/host"
)

func transport(name, unit, help string) *Desc {
	return &Desc{Name: name, Type: counter, Unit: unit, Scope: scopeFunction, Help: help, Labels: []string{"device", "port"}, Source: "RDMA netlink STAT_GET, ports/N/hw_counters", Asks: host.SourceHWCounters.Name()}
}

// bondWide is for what the RoCE ports of a bond count together.
func bondWide(d *Desc) *Desc {
	d.Scope, d.Of = scopeBond, ethernetPorts
	return d
}

const absentWhileZero = " Absent on InfiniBand while it is 0."

// seldom is a counter that is left out on InfiniBand while it is 0. Those of RoCE mlx5 names there as well, by what its firmware can
// (mlx5_ib_alloc_counters, drivers/infiniband/hw/mlx5/counters.c); of the others few programs make the requests.
func seldom(d *Desc) *Desc {
	d.Help += absentWhileZero
	return d
}

// The transport counters that several drivers have, under one name.
var (
	ecnMarked          = seldom(bondWide(transport("rdma_port_ecn_marked_packets_total", "", "RoCE packets received with the congestion experienced mark (notification point).")))
	cnpSent            = seldom(bondWide(transport("rdma_port_cnp_sent_total", "", "Congestion notification packets sent (notification point).")))
	cnpHandled         = seldom(bondWide(transport("rdma_port_cnp_handled_total", "", "Congestion notification packets received that slowed a flow (reaction point).")))
	cnpIgnored         = seldom(bondWide(transport("rdma_port_cnp_ignored_total", "", "Congestion notification packets received and not acted upon (reaction point): control off on that priority, or the queue pair gone.")))
	outOfSequence      = transport("rdma_port_out_of_sequence_total", "", "Packets received out of order: loss, or adaptive routing at work.")
	packetSequence     = transport("rdma_port_packet_sequence_errors_total", "", "NAKs for a sequence error received: the peer missed a packet.")
	impliedNAK         = transport("rdma_port_implied_nak_errors_total", "", "Responses or ACKs with a later sequence number than expected: a loss on the way back.")
	ackTimeouts        = transport("rdma_port_ack_timeouts_total", "", "ACK timers that expired and started a retransmission.")
	rnrNAKs            = transport("rdma_port_rnr_naks_received_total", "", "Receiver-not-ready NAKs received; the request goes on after a pause.")
	receiveExhausted   = transport("rdma_port_receive_buffer_exhausted_total", "", "Packets dropped because no receive work request was posted.")
	retriesExceeded    = transport("rdma_port_transport_retries_exceeded_total", "", "Requests whose retries ran out: the queue pair goes to error, and the job with it.")
	rnrRetriesExceeded = transport("rdma_port_rnr_retries_exceeded_total", "", "Requests whose receiver-not-ready retries ran out: the queue pair goes to error.")
	adaptiveRetrans    = seldom(transport("rdma_port_adaptive_retransmissions_total", "", "Adaptive retransmissions (RoCE accelerations)."))
	adaptiveTimeouts   = seldom(transport("rdma_port_adaptive_retransmission_timeouts_total", "", "Adaptive retransmissions started by a time-out."))
	retransmittedPkts  = transport("rdma_port_retransmitted_packets_total", "", "Packets sent again.")
	retransmittedBytes = transport("rdma_port_retransmitted_bytes_total", "bytes", "Bytes sent again.")
	slowRestarts       = seldom(transport("rdma_port_slow_restarts_total", "", "Times a flow restarted slowly after being idle."))
	slowRestartCNPs    = seldom(transport("rdma_port_slow_restart_cnps_total", "", "Congestion notification packets made by slow restart."))
	slowRestartTrans   = seldom(transport("rdma_port_slow_restart_transitions_total", "", "Changes of state of slow restart."))
	duplicateRequests  = transport("rdma_port_duplicate_requests_total", "", "Requests received twice: the peer retransmitted.")
	icrcErrors         = seldom(transport("rdma_port_icrc_errors_total", "", "RoCE packets received with a wrong invariant CRC. Counted for the whole port."))
	readRequests       = transport("rdma_port_read_requests_received_total", "", "RDMA READ requests received.")
	writeRequests      = transport("rdma_port_write_requests_received_total", "", "RDMA WRITE requests received.")
	atomicRequests     = seldom(transport("rdma_port_atomic_requests_received_total", "", "Atomic requests received."))
	dctConnects        = seldom(transport("rdma_port_dct_connects_received_total", "", "Connect requests of dynamically connected transport received."))
	reqCQEErrors       = transport("rdma_port_requester_cqe_errors_total", "", "Completions with an error at the requester.")
	reqCQEFlush        = transport("rdma_port_requester_cqe_flush_errors_total", "", "Work requests flushed at the requester; normal at teardown.")
	reqRemoteAccess    = transport("rdma_port_requester_remote_access_errors_total", "", "Requests that the peer refused for want of access rights.")
	reqRemoteInvalid   = transport("rdma_port_requester_remote_invalid_requests_total", "", "Requests that the peer found invalid.")
	respCQEErrors      = transport("rdma_port_responder_cqe_errors_total", "", "Completions with an error at the responder.")
	respCQEFlush       = transport("rdma_port_responder_cqe_flush_errors_total", "", "Work requests flushed at the responder; normal at teardown.")
	respLocalLength    = transport("rdma_port_responder_local_length_errors_total", "", "Messages longer than the receive buffer.")
	respRemoteAccess   = transport("rdma_port_responder_remote_access_errors_total", "", "Requests refused here for want of access rights.")
	transmitBytesHW    = pmaIndex["port_xmit_data"].desc
	receiveBytesHW     = pmaIndex["port_rcv_data"].desc
	transmitPacketsHW  = pmaIndex["port_xmit_packets"].desc
	receivePacketsHW   = pmaIndex["port_rcv_packets"].desc
	linkDownedHW       = pmaIndex["link_downed"].desc
	trafficDescs       = []*Desc{transmitBytesHW, receiveBytesHW, transmitPacketsHW, receivePacketsHW, linkDownedHW}
	transportDescs     = []*Desc{
		ecnMarked, cnpSent, cnpHandled, cnpIgnored, outOfSequence, packetSequence, impliedNAK, ackTimeouts, rnrNAKs, receiveExhausted,
		retriesExceeded, rnrRetriesExceeded, adaptiveRetrans, adaptiveTimeouts, retransmittedPkts, retransmittedBytes,
		slowRestarts, slowRestartCNPs, slowRestartTrans, duplicateRequests, icrcErrors, readRequests, writeRequests, atomicRequests, dctConnects,
		reqCQEErrors, reqCQEFlush, reqRemoteAccess, reqRemoteInvalid, respCQEErrors, respCQEFlush, respLocalLength, respRemoteAccess,
	}
)

// seldomDescs are the counters that are left out on InfiniBand while they are 0.
var seldomDescs = slices.DeleteFunc(slices.Clone(transportDescs), func(d *Desc) bool { return !strings.HasSuffix(d.Help, absentWhileZero) })

// isTraffic tells the counters that counters/ has as well, with more of the truth.
func isTraffic(d *Desc) bool { return slices.Contains(trafficDescs, d) }

// family is the driver whose names a device uses. The PCI driver's name is not always the RDMA driver's.
func family(driver string) string {
	switch driver {
	case "mlx5_core":
		return "mlx5"
	case "mlx4_core":
		return "mlx4"
	case "bnxt_en":
		return "bnxt_re"
	case "ice", "i40e", "idpf":
		return "irdma"
	case "hns3":
		return "hns_roce"
	}
	return driver
}

// common are the names of mlx5, which later drivers took over: of each driver those that its own table has not.
var common = map[string]*Desc{
	"local_ack_timeout_err":          ackTimeouts,
	"packet_seq_err":                 packetSequence,
	"implied_nak_seq_err":            impliedNAK,
	"out_of_sequence":                outOfSequence,
	"rnr_nak_retry_err":              rnrNAKs,
	"duplicate_request":              duplicateRequests,
	"out_of_buffer":                  receiveExhausted,
	"rx_read_requests":               readRequests,
	"rx_write_requests":              writeRequests,
	"rx_atomic_requests":             atomicRequests,
	"rx_dct_connect":                 dctConnects,
	"req_cqe_error":                  reqCQEErrors,
	"req_cqe_flush_error":            reqCQEFlush,
	"req_remote_access_errors":       reqRemoteAccess,
	"req_remote_invalid_request":     reqRemoteInvalid,
	"req_transport_retries_exceeded": retriesExceeded,
	"req_rnr_retries_exceeded":       rnrRetriesExceeded,
	"resp_cqe_error":                 respCQEErrors,
	"resp_cqe_flush_error":           respCQEFlush,
	"resp_local_length_error":        respLocalLength,
	"resp_remote_access_errors":      respRemoteAccess,
	"np_cnp_sent":                    cnpSent,
	"np_ecn_marked_roce_packets":     ecnMarked,
	"rp_cnp_handled":                 cnpHandled,
	"rp_cnp_ignored":                 cnpIgnored,
	"roce_adp_retrans":               adaptiveRetrans,
	"roce_adp_retrans_to":            adaptiveTimeouts,
	"roce_slow_restart":              slowRestarts,
	"roce_slow_restart_cnps":         slowRestartCNPs,
	"roce_slow_restart_trans":        slowRestartTrans,
	"rx_icrc_encapsulated":           icrcErrors,
}

// transportNames maps a driver's names, old and new, to the common ones, beside those in common. Other names are passed through.
var transportNames = map[string]map[string]*Desc{
	"mlx5": common,
	"mlx4": {
		"sq_num_to":   ackTimeouts,
		"sq_num_oos":  packetSequence,
		"rq_num_oos":  outOfSequence,
		"rq_num_dup":  duplicateRequests,
		"sq_num_rnr":  rnrNAKs,
		"sq_num_tree": retriesExceeded,
		"sq_num_rree": rnrRetriesExceeded,
		"sq_num_rae":  reqRemoteAccess,
		"sq_num_rire": reqRemoteInvalid,
		"sq_num_wrfe": reqCQEFlush,
		"rq_num_wrfe": respCQEFlush,
		"rq_num_lle":  respLocalLength,
		"rq_num_rae":  respRemoteAccess,
	},
	"bnxt_re": { // Linux 6.1 and 6.12, then 7.3; Broadcom's own driver has those of mlx5
		"to_retransmits":         ackTimeouts,
		"seq_err_naks_rcvd":      packetSequence,
		"rnr_naks_rcvd":          rnrNAKs,
		"missing_resp":           impliedNAK,
		"remote_invalid_req_err": reqRemoteInvalid,
		"remote_access_err":      reqRemoteAccess,
		"dup_req":                duplicateRequests,
		"res_length_mismatch":    respLocalLength,
		"oos_drop_count":         outOfSequence,
		"rx_atomic_req":          atomicRequests,
		"rx_read_req":            readRequests,
		"rx_write_req":           writeRequests,
		"rx_out_of_buffer":       receiveExhausted,
		"tx_cnp_pkts":            cnpSent,
		"rx_cnp_pkts":            cnpHandled,
		"rx_ecn_marked_pkts":     ecnMarked,
		"np_cnp_pkts":            cnpSent,
		"max_retry_exceeded":     retriesExceeded,
		"tx_bytes":               transmitBytesHW,
		"rx_bytes":               receiveBytesHW,
		"tx_pkts":                transmitPacketsHW,
		"rx_pkts":                receivePacketsHW,
	},
	"irdma": {
		"cnpSent":                    cnpSent,
		"cnpHandled":                 cnpHandled,
		"cnpIgnored":                 cnpIgnored,
		"RxECNMrkd":                  ecnMarked,
		"RetransSegs":                retransmittedPkts,
		"tcpRetransSegs":             retransmittedPkts, // Linux 6.1
		"RTO":                        ackTimeouts,       // this and the following: third generation
		"Nak Sequence Error":         packetSequence,
		"Nak Sequence Error Implied": impliedNAK,
		"Rcvd Out of order packets":  outOfSequence,
		"RNR received":               rnrNAKs,
		"CRC errors":                 icrcErrors,
	},
	"efa": {
		"tx_bytes":               transmitBytesHW,
		"rx_bytes":               receiveBytesHW,
		"tx_pkts":                transmitPacketsHW,
		"rx_pkts":                receivePacketsHW,
		"retrans_bytes":          retransmittedBytes,
		"retrans_pkts":           retransmittedPkts,
		"rx_drops":               receiveExhausted,
		"retrans_timeout_events": ackTimeouts,
	},
	"hns_roce": {
		"tx_cnp_pkt": cnpSent,
		"rx_cnp_pkt": cnpHandled,
		"tx_pkt":     transmitPacketsHW,
		"rx_pkt":     receivePacketsHW,
	},
	"erdma": {
		"tx_bytes_cnt":   transmitBytesHW,
		"rx_bytes_cnt":   receiveBytesHW,
		"tx_packets_cnt": transmitPacketsHW,
		"rx_packets_cnt": receivePacketsHW,
	},
	"mana": {
		"requester_timeout":                  ackTimeouts,
		"requester_oos_nak":                  packetSequence,
		"requester_implicit_nak":             impliedNAK,
		"requester_rnr_nak":                  rnrNAKs,
		"requester_retries_exceeded":         retriesExceeded,
		"requester_rnr_nak_retries_exceeded": rnrRetriesExceeded,
		"responder_oos":                      outOfSequence,
		"responder_dup_request":              duplicateRequests,
		"responder_local_len_error":          respLocalLength,
		"responder_rem_access_error":         respRemoteAccess,
		"received_cnps":                      cnpHandled,
		"sent_cnps":                          cnpSent, // this and the next: of the device
		"received_ecns":                      ecnMarked,
		"rx_read_requests":                   readRequests,
		"rx_write_requests":                  writeRequests,
		"tx_bytes":                           transmitBytesHW,
		"rx_bytes":                           receiveBytesHW,
		"tx_packets":                         transmitPacketsHW,
		"rx_packets":                         receivePacketsHW,
	},
	"ionic": {
		"tx_rdma_ack_timeout":     ackTimeouts,
		"req_rx_pkt_seq_err":      packetSequence,
		"req_rx_impl_nak_seq_err": impliedNAK,
		"req_rx_rnr_retry_err":    rnrNAKs,
		"req_rx_rmt_acc_err":      reqRemoteAccess,
		"req_rx_rmt_req_err":      reqRemoteInvalid,
		"req_rx_cqe_err":          reqCQEErrors,
		"req_rx_cqe_flush":        reqCQEFlush,
		"req_tx_retry_excd_err":   retriesExceeded,
		"resp_rx_outouf_seq":      outOfSequence,
		"resp_rx_dup_request":     duplicateRequests,
		"resp_rx_outof_buf":       receiveExhausted,
		"resp_rx_cqe_err":         respCQEErrors,
		"resp_rx_cqe_flush":       respCQEFlush,
		"resp_rx_loc_len_err":     respLocalLength,
		"rx_rdma_ecn_pkts":        ecnMarked,
		"tx_rdma_cnp_pkts":        cnpSent,
		"rx_rdma_cnp_pkts":        cnpHandled,
		"tx_rdma_retx_pkts":       retransmittedPkts,
		"tx_rdma_retx_bytes":      retransmittedBytes,
		"tx_rdma_ucast_bytes":     transmitBytesHW,
		"rx_rdma_ucast_bytes":     receiveBytesHW,
		"tx_rdma_ucast_pkts":      transmitPacketsHW,
		"rx_rdma_ucast_pkts":      receivePacketsHW,
	},
	"rxe": {
		"completer_retry_err":    ackTimeouts,
		"rcvd_seq_err":           packetSequence,
		"out_of_seq_request":     outOfSequence,
		"rcvd_rnr_err":           rnrNAKs,
		"retry_exceeded_err":     retriesExceeded,
		"retry_rnr_exceeded_err": rnrRetriesExceeded,
		"duplicate_request":      duplicateRequests,
		"link_downed":            linkDownedHW,
		"sent_pkts":              transmitPacketsHW,
		"rcvd_pkts":              receivePacketsHW,
		"sent_bytes":             transmitBytesHW,
		"rcvd_bytes":             receiveBytesHW,
	},
}
