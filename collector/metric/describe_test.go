package metric

import "testing"

func TestTypeAndUnitOfName(t *testing.T) {
	for name, want := range map[string]*Desc{
		"rdma_port_info":                                {Type: gauge},
		"rdma_port_errors_total":                        {Type: Counter},
		"rdma_port_transmit_bytes_total":                {Type: Counter, Unit: "bytes"},
		"rdma_port_rate_bytes_per_second":               {Type: gauge, Unit: "bytes per second"},
		"rdma_pcie_link_speed_transfers_per_second":     {Type: gauge, Unit: "transfers per second"},
		"rdma_host_gpu_release_start_timestamp_seconds": {Type: gauge, Unit: "seconds"},
		"rdma_port_transmit_wait_ticks_total":           {Type: Counter, Unit: "ticks"},
		"rdma_transceiver_receive_power_baseline_dbm":   {Type: gauge, Unit: "dbm"},
		"rdma_port_fec_lane_corrected_bits_total":       {Type: Counter},
		"rdma_port_pcie_stall_ratio":                    {Type: gauge, Unit: "ratio"},
	} {
		if d := Host(name, "", ""); d.Type != want.Type || d.Unit != want.Unit {
			t.Errorf("%s: %s, unit %q", name, d.Type, d.Unit)
		}
	}
}
