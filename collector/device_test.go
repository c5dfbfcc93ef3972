package collector

import (
	"testing"

	"rdma_exporter/internal/pci"
)

// TestRoleInVirtualMachines: ports that a hypervisor made put a NIC beside a GPU, and never away from one.
func TestRoleInVirtualMachines(t *testing.T) {
	const nic, beside, apart = "sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0", "sys/devices/pci0000:00/0000:00:02.0/0000:01:00.1", "sys/devices/pci0000:00/0000:00:03.0/0000:02:00.0"
	for _, c := range []struct {
		name, vendor, gpu string
		want              pci.Role
	}{
		{"Intel port, GPU apart", "0x8086", apart, pci.Other},
		{"QEMU port, GPU apart", "0x1b36", apart, pci.Unknown},
		{"QEMU port, GPU beside", "0x1b36", beside, pci.Compute},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := readerOf(t, "-- sys/bus/pci/devices/0000:00:02.0/vendor --\n"+c.vendor+"\n")
			if got := r.role(nic, []string{c.gpu}); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
