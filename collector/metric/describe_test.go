package metric

import (
	"testing"

	"rdma_exporter/internal/exposition"
)

func TestTypeAndUnitOfName(t *testing.T) {
	for name, want := range map[string]*Desc{
		"rdma_port_info":                                {Type: exposition.Gauge},
		"rdma_port_errors_total":                        {Type: exposition.Counter},
		"rdma_port_transmit_bytes_total":                {Type: exposition.Counter, Unit: "bytes"},
		"rdma_port_rate_bytes_per_second":               {Type: exposition.Gauge, Unit: "bytes per second"},
		"rdma_pcie_link_speed_transfers_per_second":     {Type: exposition.Gauge, Unit: "transfers per second"},
		"rdma_host_gpu_release_start_timestamp_seconds": {Type: exposition.Gauge, Unit: "seconds"},
		"rdma_port_transmit_wait_ticks_total":           {Type: exposition.Counter, Unit: "ticks"},
		"rdma_transceiver_receive_power_baseline_dbm":   {Type: exposition.Gauge, Unit: "dbm"},
		"rdma_port_fec_lane_corrected_bit_errors_total": {Type: exposition.Counter},
		"rdma_port_pcie_stall_ratio":                    {Type: exposition.Gauge, Unit: "ratio"},
	} {
		if d := Host(name, "", ""); d.Type != want.Type || d.Unit != want.Unit {
			t.Errorf("%s: %s, unit %q", name, d.Type, d.Unit)
		}
	}
}
