package pma

import (
	"fmt"
	"slices"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

// Bits in the MAD, and the unit.
func TestPMACounters(t *testing.T) {
	bits := map[string]uint{
		"symbol_error": 16, "link_error_recovery": 8, "link_downed": 8, "port_rcv_errors": 16,
		"port_rcv_remote_physical_errors": 16, "port_rcv_switch_relay_errors": 16, "port_xmit_discards": 16,
		"port_xmit_constraint_errors": 8, "port_rcv_constraint_errors": 8, "local_link_integrity_errors": 4,
		"excessive_buffer_overrun_errors": 4, "VL15_dropped": 16, "port_xmit_wait": 32, "port_xmit_data": 64,
		"port_rcv_data": 64, "port_xmit_packets": 64, "port_rcv_packets": 64, "unicast_xmit_packets": 64,
		"unicast_rcv_packets": 64, "multicast_xmit_packets": 64, "multicast_rcv_packets": 64,
	}
	for _, c := range counters.PMACounters {
		if c.Bits != bits[c.File] {
			t.Errorf("%s: %d bits, want %d", c.File, c.Bits, bits[c.File])
		}
		words := c.File == "port_xmit_data" || c.File == "port_rcv_data"
		if want := map[bool]float64{true: 4, false: 1}[words]; c.Scale != want || words != (c.Desc.Unit == "bytes") {
			t.Errorf("%s: scale %v, unit %q", c.File, c.Scale, c.Desc.Unit)
		}
		delete(bits, c.File)
	}
	for file := range bits {
		t.Errorf("%s is not read", file)
	}
}

func TestSaturation(t *testing.T) {
	d := func(driver string) *snapshot.Device { return &snapshot.Device{Name: "d", Driver: driver} }
	for _, c := range []struct {
		driver string
		stat   wire.Stat
		want   []string
	}{
		{"mlx5_core", wire.Stat{Name: "symbol_error", Value: 65535}, []string{`rdma_port_counter_saturated{counter="symbol_error",device="d",port="1"} 1`, `rdma_port_symbol_errors_total{device="d",port="1"} 65535`}},
		{"mlx5_core", wire.Stat{Name: "symbol_error", Value: 65534}, []string{`rdma_port_symbol_errors_total{device="d",port="1"} 65534`}},
		{"mlx5_core", wire.Stat{Name: "link_downed", Value: 255}, []string{`rdma_port_counter_saturated{counter="link_downed",device="d",port="1"} 1`, `rdma_port_link_downed_total{device="d",port="1"} 255`}},
		{"mlx5_core", wire.Stat{Name: "local_link_integrity_errors", Value: 15}, []string{`rdma_port_counter_saturated{counter="local_link_integrity_errors",device="d",port="1"} 1`, `rdma_port_local_link_integrity_errors_total{device="d",port="1"} 15`}},
		{"mlx5_core", wire.Stat{Name: "local_link_integrity_errors", Value: 14}, []string{`rdma_port_local_link_integrity_errors_total{device="d",port="1"} 14`}},
		{"mlx5_core", wire.Stat{Name: "port_xmit_wait", Value: 1<<32 - 1}, []string{`rdma_port_counter_saturated{counter="port_xmit_wait",device="d",port="1"} 1`, `rdma_port_transmit_wait_ticks_total{device="d",port="1"} 4.294967295e+09`}},
		{"mlx5_core", wire.Stat{Name: "port_xmit_wait", Value: 1<<32 - 2}, []string{`rdma_port_transmit_wait_ticks_total{device="d",port="1"} 4.294967294e+09`}},
		{"mlx5_core", wire.Stat{Name: "port_rcv_data", Value: 250}, []string{`rdma_port_receive_bytes_total{device="d",port="1"} 1000`}},
		{"mlx5_core", wire.Stat{Name: "port_rcv_packets", Value: 250}, []string{`rdma_port_receive_packets_total{device="d",port="1"} 250`}},
		{"bnxt_en", wire.Stat{Name: "port_rcv_errors", Value: 65535}, []string{`rdma_port_receive_errors_total{device="d",port="1"} 65535`}}, // wraps
		{"mlx5_core", wire.Stat{Name: "a_file_to_come", Value: 1}, nil},
	} {
		t.Run(fmt.Sprintf("%s %s %v", c.driver, c.stat.Name, c.stat.Value), func(t *testing.T) {
			got := collectortest.Samples(Descs(),
				func(s metric.Sink) { Emit(s, d(c.driver), &snapshot.Port{Counters: []wire.Stat{c.stat}}, "1") })
			if !slices.Equal(got, c.want) {
				t.Errorf("%s %+v:\n%q\nwant\n%q", c.driver, c.stat, got, c.want)
			}
		})
	}
}

// TestIdleOnInfiniBand: unicast packets are redundant, and adapters relay nothing.
func TestIdleOnInfiniBand(t *testing.T) {
	for layer, want := range map[string][]string{
		"InfiniBand": {`rdma_port_transmit_packets_total{device="d",port="1"} 9`, `rdma_port_transmit_multicast_packets_total{device="d",port="1"} 2`},
		"Ethernet": {
			`rdma_port_transmit_packets_total{device="d",port="1"} 9`,
			`rdma_port_transmit_unicast_packets_total{device="d",port="1"} 7`,
			`rdma_port_transmit_multicast_packets_total{device="d",port="1"} 2`,
			`rdma_port_receive_switch_relay_errors_total{device="d",port="1"} 0`,
		},
	} {
		t.Run(layer, func(t *testing.T) {
			p := &snapshot.Port{LinkLayer: layer, Counters: []wire.Stat{
				{Name: "port_xmit_packets", Value: 9},
				{Name: "unicast_xmit_packets", Value: 7},
				{Name: "multicast_xmit_packets", Value: 2},
				{Name: "port_rcv_switch_relay_errors"},
			}}
			if got := collectortest.Samples(Descs(), func(s metric.Sink) {
				Emit(s, &snapshot.Device{Name: "d"}, p, "1")
			}); !slices.Equal(got, want) {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestUnusedFiles: the files of counters that are not exposed are read on Ethernet only.
func TestUnusedFiles(t *testing.T) {
	const dir = "sys/class/infiniband/mlx5_0/ports/1/counters"
	r := collectortest.ReaderOf(t, collectortest.Files(
		dir+"/port_xmit_packets", "9", dir+"/unicast_xmit_packets", "7", dir+"/unicast_rcv_packets", "6",
		dir+"/port_rcv_switch_relay_errors", "0",
	))
	d := Files{Path: dir}
	for _, c := range []struct {
		layer string
		want  int
	}{{"InfiniBand", 1}, {"InfiniBand", 1}, {"Ethernet", 4}, {"", 4}, {"InfiniBand", 1}} {
		if got := d.stats(r, c.layer); len(got) != c.want {
			t.Errorf("%q: %v", c.layer, got)
		}
	}
}

// TestCounterOfAllOnes: a 64-bit counter of all ones is invalid; the other counters of the port are valid.
func TestCounterOfAllOnes(t *testing.T) {
	r := collectortest.ReaderOf(t, "-- sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data --\n18446744073709551615\n-- sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data --\n18446744073709551614\n")
	d := Files{Path: "sys/class/infiniband/mlx5_0/ports/1/counters"}
	got := d.stats(r, "Ethernet")
	if fmt.Sprint(got) != "[{port_xmit_data 18446744073709551614}]" || len(r.Issues) != 1 ||
		r.Issues[0].Reason != "malformed" {
		t.Errorf("%v, issues %v", got, r.Issues)
	}
}
