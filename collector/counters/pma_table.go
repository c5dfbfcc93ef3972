package counters

import (
	"fmt"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/host/source"
)

// pmaCounter is a file of ports/N/counters: an attribute of the InfiniBand performance management agent (IBA 16.1).
type pmaCounter struct {
	File  string
	Desc  *metric.Desc
	Scale float64 // to the unit of the metric
	Bits  uint    // width in the MAD; the counter saturates at all ones
}

func pma(file, name, help string, scale float64, bits uint) pmaCounter {
	return pmaCounter{
		file,
		metric.Asks(source.PMA, metric.Function(name, help, "ports/N/counters/"+file)),
		scale,
		bits,
	}
}

// ofInfiniBand is for counters that rules use on InfiniBand ports only. Some drivers have them on Ethernet as well.
func ofInfiniBand(c pmaCounter) pmaCounter {
	c.Desc.Of = metric.InfinibandPorts
	return c
}

// unknownWhenSaturated is for counters whose rate is used by rules: the rate of a saturated counter is 0, but unknown.
func unknownWhenSaturated(c pmaCounter) pmaCounter {
	c.Desc.Unknown = map[string][]string{"": {fmt.Sprintf("rdma_port_counter_saturated{counter=%q}", c.File)}}
	return c
}

// PMACounters are the counters of the performance management agent.
var PMACounters = []pmaCounter{
	pma("port_xmit_data", "rdma_port_transmit_bytes_total", "RDMA bytes sent, from the port counters or, where the driver has none, from hw_counters. On RoCE, other traffic of the link is not included.", WordBytes, 64),
	pma("port_rcv_data", "rdma_port_receive_bytes_total", "RDMA bytes received, from the port counters or, where the driver has none, from hw_counters. On RoCE, other traffic of the link is not included.", WordBytes, 64),
	pma("port_xmit_packets", "rdma_port_transmit_packets_total", "RDMA packets sent, from the port counters or, where the driver has none, from hw_counters.", 1, 64),
	pma("port_rcv_packets", "rdma_port_receive_packets_total", "RDMA packets received, from the port counters or, where the driver has none, from hw_counters.", 1, 64),
	pma("unicast_xmit_packets", "rdma_port_transmit_unicast_packets_total", "Unicast packets sent. Absent on InfiniBand (all packets less multicast).", 1, 64),
	pma("unicast_rcv_packets", "rdma_port_receive_unicast_packets_total", "Unicast packets received. Absent on InfiniBand (all packets less multicast).", 1, 64),
	pma("multicast_xmit_packets", "rdma_port_transmit_multicast_packets_total", "Multicast packets sent.", 1, 64),
	pma("multicast_rcv_packets", "rdma_port_receive_multicast_packets_total", "Multicast packets received.", 1, 64),
	pma("symbol_error", "rdma_port_symbol_errors_total", "Minor link errors on one or more lanes.", 1, 16),
	pma("link_error_recovery", "rdma_port_link_error_recoveries_total", "Times the link recovered from an error by retraining.", 1, 8),
	pma("link_downed", "rdma_port_link_downed_total", "Times the link failed to recover and went down.", 1, 8),
	pma("port_rcv_errors", "rdma_port_receive_errors_total", "Packets received with an error.", 1, 16),
	pma("port_rcv_remote_physical_errors", "rdma_port_receive_remote_physical_errors_total", "Packets received marked bad (EBP): the fault is beyond the neighbour.", 1, 16),
	pma("port_rcv_switch_relay_errors", "rdma_port_receive_switch_relay_errors_total", "Packets received that the switch relay could not forward. Absent on InfiniBand (not counted by adapters).", 1, 16),
	ofInfiniBand(pma("port_xmit_discards", "rdma_port_transmit_discards_total", "Outbound packets discarded because the port was down or congested.", 1, 16)),
	pma("port_xmit_constraint_errors", "rdma_port_transmit_constraint_errors_total", "Packets not sent because of P_Key or raw packet filters; on bnxt_re: transmit errors.", 1, 8),
	pma("port_rcv_constraint_errors", "rdma_port_receive_constraint_errors_total", "Packets received and discarded because of P_Key or raw packet filters; on bnxt_re: receive discards.", 1, 8),
	ofInfiniBand(pma("local_link_integrity_errors", "rdma_port_local_link_integrity_errors_total", "Times the count of local physical errors exceeded its threshold.", 1, 4)),
	ofInfiniBand(pma("excessive_buffer_overrun_errors", "rdma_port_excessive_buffer_overrun_errors_total", "Times buffer overruns persisted over several flow control update periods.", 1, 4)),
	pma("VL15_dropped", "rdma_port_vl15_dropped_total", "Subnet management packets (VL15) dropped for lack of buffers.", 1, 16),
	unknownWhenSaturated(ofInfiniBand(pma("port_xmit_wait", "rdma_port_transmit_wait_ticks_total", "Ticks with data to send but no credits. The length of a tick is device-specific. The counter has 32 bits and saturates.", 1, 32))),
}

func pmaByFile() map[string]*pmaCounter {
	m := make(map[string]*pmaCounter, len(PMACounters))
	for i := range PMACounters {
		m[PMACounters[i].File] = &PMACounters[i]
	}
	return m
}

// PMAIndex finds a counter by its file.
var PMAIndex = pmaByFile()

// UnusedOnInfiniBand have no information on InfiniBand: packets include unicast and multicast (IBA 16.1.4.5), and only
// switches relay.
var UnusedOnInfiniBand = []string{"unicast_xmit_packets", "unicast_rcv_packets", "port_rcv_switch_relay_errors"}
