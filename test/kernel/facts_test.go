//go:build e2e

package kernel

import (
	"fmt"
	"testing"
)

// testBridging configures the port by the dcb tool, through the kernel's own code: bandwidths and maps of traffic
// classes, DSCPs of priorities, and trust. 6.1 has no trust: the DSCP is trusted once one has a priority.
func testBridging(t *testing.T, g *guest) {
	labels := func(more string) string { return `{device="mlx5_1",` + more + `}` }
	info := func(trust string) string {
		return `rdma_port_qos_info{dcbx="host,ieee",device="mlx5_1",netdev="ens0f0np0",port="1",trust="` + trust + `"}`
	}
	g.dcb(t, "app add dev ens0f0np0 dscp-prio 26:3 24:3 46:6")
	g.dcb(t, "ets set dev ens0f0np0 tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets tc-bw 0:10 1:10 2:10 3:40 4:10 5:10 6:0 7:10 prio-tc 0:0 1:1 2:2 3:4 4:4 5:5 6:6 7:7")
	g.dcb(t, "pfc set dev ens0f0np0 prio-pfc 3:on 4:on")
	g.set(t, "mlx5_1", map[string]int{"trust": 5}) // IEEE_8021QAZ_APP_SEL_DSCP
	g.flap(t)
	g.expect(t, samples{
		info("dscp"): 1,
		"rdma_port_pfc_enabled_priorities" + labels(`netdev="ens0f0np0",port="1"`):                                                      2,
		"rdma_port_priority_info{" + `device="mlx5_1",dscps="24,26",netdev="ens0f0np0",port="1",priority="3"` + "}":                     1,
		"rdma_port_priority_info{" + `device="mlx5_1",dscps="46",netdev="ens0f0np0",port="1",priority="6"` + "}":                        1,
		"rdma_port_priority_traffic_class" + labels(`netdev="ens0f0np0",port="1",priority="3"`):                                         4,
		"rdma_port_traffic_class_bandwidth_ratio" + labels(`netdev="ens0f0np0",port="1",traffic_class="4"`):                             0.1,
		"rdma_port_traffic_class_selection_info" + `{algorithm="strict",device="mlx5_1",netdev="ens0f0np0",port="1",traffic_class="6"}`: 1,
	})
	g.dcb(t, "app flush dev ens0f0np0")
	g.dcb(t, "ets set dev ens0f0np0 tc-tsa all:ets tc-bw 0:13 1:13 2:13 3:13 4:12 5:12 6:12 7:12 prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7")
	g.dcb(t, "pfc set dev ens0f0np0 prio-pfc 4:off")
	g.set(t, "mlx5_1", map[string]int{"trust": 255}) // DCB_APP_SEL_PCP
	g.flap(t)
	g.expect(t, samples{
		info("pcp"): 1,
		"rdma_port_traffic_class_bandwidth_ratio" + labels(`netdev="ens0f0np0",port="1",traffic_class="3"`): 0.13,
	})
}

// dcb retries once: the tool numbers its requests by the second, and fails ("Protocol error") if a new second begins
// between its read and its write.
func (g *guest) dcb(t *testing.T, args string) {
	t.Helper()
	g.must(t, "dcb "+args+" || dcb "+args)
}

// flap sets the carrier down and up, so that everything that depends on the link is read again.
func (g *guest) flap(t *testing.T) {
	t.Helper()
	g.set(t, "mlx5_1", map[string]int{"carrier": 0})
	g.set(t, "mlx5_1", map[string]int{"carrier": 1})
}

// testPCIe: QEMU's root ports support 16 lanes at 16 GT/s, its endpoint one lane at 2.5 GT/s. That is not a fault of
// the link, and less than the port requires.
func testPCIe(t *testing.T, g *guest) {
	for attribute, want := range map[string]string{
		"max_link_width": "16", "current_link_width": "1", "max_link_speed": "16.0 GT/s PCIe",
		"current_link_speed": "2.5 GT/s PCIe",
	} {
		if got := g.must(t, "cat /sys/bus/pci/devices/0000:00:03.0/"+attribute); got != want {
			t.Errorf("%s of the root port is %s, want %s", attribute, got, want)
		}
	}
	want := samples{
		`rdma_device_pcie_link_info{device="mlx5_0",pci_address="0000:01:00.0",upstream="0000:00:03.0"}`: 1,
		`rdma_device_pcie_available_bytes_per_second{device="mlx5_0"}`:                                   2000e6 / 8,
		`rdma_device_pcie_capable_bytes_per_second{device="mlx5_0"}`:                                     2000e6 / 8,
	}
	for metric, value := range map[string]float64{
		"speed_transfers_per_second": 2.5e9, "max_speed_transfers_per_second": 2.5e9, "width_lanes": 1, "max_width_lanes": 1,
	} {
		want["rdma_pcie_link_"+metric+`{pci_address="0000:01:00.0"}`] = value
	}
	for _, severity := range []string{"correctable", "nonfatal", "fatal"} {
		for _, address := range []string{"0000:01:00.0", "0000:00:03.0"} {
			want[fmt.Sprintf("rdma_pcie_aer_errors_total{pci_address=%q,severity=%q}", address, severity)] = 0
		}
	}
	g.expect(t, want)
}

// testDownReason sets the driver's reason for a missing link: bad signal integrity, unsupported rate.
func testDownReason(t *testing.T, g *guest) {
	const reason = `rdma_port_link_down_reason_info{detail="unsupported rate",device="mlx5_1",netdev="ens0f0np0",port="1",reason="bad signal integrity"}`
	g.set(t, "mlx5_1", map[string]int{"ext_state": 1 + 3, "ext_substate": 2})
	g.set(t, "mlx5_1", map[string]int{"carrier": 0})
	g.expect(t, samples{reason: 1})
	g.set(t, "mlx5_1", map[string]int{"ext_state": 0, "carrier": 1})
	g.expectGone(t, reason)
}
