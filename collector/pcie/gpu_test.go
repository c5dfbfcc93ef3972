package pcie

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/played"
)

// pcieFunction returns a function of the PCI tree with a given width and one correctable error.
func pcieFunction(dir string, width int) string {
	address := dir[strings.LastIndexByte(dir, '/')+1:]
	return fmt.Sprintf("-- sys/bus/pci/devices/%s -> ../../../devices/%s --\n",
		address, strings.TrimPrefix(dir, "sys/devices/")) +
		fmt.Sprintf("-- %[1]s/current_link_speed --\n2.5 GT/s PCIe\n-- %[1]s/max_link_speed --\n32.0 GT/s PCIe\n", dir) +
		fmt.Sprintf("-- %[1]s/current_link_width --\n%[2]d\n-- %[1]s/max_link_width --\n16\n", dir, width) +
		fmt.Sprintf("-- %s/aer_dev_correctable --\nTOTAL_ERR_COR 1\n", dir)
}

// TestLinksOfGPUs: a GPU and a device behind one switch, a single GPU, and one coupled to its CPU by NVLink-C2C.
func TestLinksOfGPUs(t *testing.T) {
	const (
		beside  = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0"
		alone   = "sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0"
		coupled = "sys/devices/pci0009:00/0009:00:00.0/0009:01:00.0"
	)
	entries := collectortest.PCIeTree("")
	for _, g := range []string{beside, alone, coupled} {
		up := g[:strings.LastIndexByte(g, '/')]
		entries += pcieFunction(up, 8) + pcieFunction(g, 8) + "-- " + g + "/vendor --\n0x10de\n"
	}
	entries += "-- sys/devices/pci0009:00/0009:00:00.0/vendor --\n0x10de\n"
	entries += "-- proc/driver/nvidia/gpus/0000:21:00.0/information --\nModel: \t\t NVIDIA H200\nGPU UUID: \t GPU-b\n"
	h := played.Machine(t, entries)
	h.GPUs = &collectortest.FakeGPUs{
		NVML: accel.NVML{GPUs: []accel.GPU{{Index: 7, UUID: "GPU-a", PCIAddress: "0000:19:00.0"}}},
	}
	last := &shared.LastRound{}
	last.Begin()
	last.Publish(time.Time{}, nil, []string{coupled, alone, beside})
	c := New(&shared.State{Devices: shared.NewRoster(shared.Options{}), Last: last, GPUs: &shared.GPUReadings{}})
	n, samples := collectortest.Collect(t, h, c.Descs, c.Read, c.Emit)
	if len(n.Issues) > 0 {
		t.Error(n.Issues)
	}
	var got []string
	for _, s := range samples {
		if strings.Contains(s, "gpu=") || strings.Contains(s, "width") || strings.Contains(s, "aer") ||
			strings.Contains(s, "speed") {
			got = append(got, s)
		}
	}
	want := []string{
		`rdma_gpu_pcie_link_info{UUID="GPU-a",gpu="7",pci_address="0000:19:00.0",upstream="0000:17:01.0"} 1`,
		`rdma_gpu_pcie_link_info{UUID="GPU-b",gpu="1",pci_address="0000:21:00.0",upstream="0000:20:01.0"} 1`,
	}
	for _, address := range []string{"0000:17:01.0", "0000:19:00.0", "0000:20:01.0", "0000:21:00.0"} {
		want = append(want, `rdma_pcie_aer_errors_total{pci_address="`+address+`",severity="correctable"} 1`)
	}
	for _, c := range []struct {
		lower string
		width int
	}{{"0000:16:00.0", 16}, {"0000:18:00.0", 16}, {"0000:19:00.0", 8}, {"0000:21:00.0", 8}} {
		want = append(want, fmt.Sprintf(`rdma_pcie_link_width_lanes{pci_address=%q} %d`, c.lower, c.width),
			fmt.Sprintf(`rdma_pcie_link_max_width_lanes{pci_address=%q} 16`, c.lower))
	}
	for _, lower := range []string{"0000:16:00.0", "0000:18:00.0"} {
		for _, name := range []string{"link_speed", "link_max_speed"} {
			want = append(want, `rdma_pcie_`+name+`_transfers_per_second{pci_address="`+lower+`"} 3.2e+10`)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestStuckGPU: a hung NVML costs no device its links.
func TestStuckGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := played.Machine(t, collectortest.PCIeTree(""))
		h.GPUs, h.Now = collectortest.SlowGPUs(time.Minute), time.Now
		last := &shared.LastRound{}
		last.Begin()
		last.Publish(time.Time{}, nil, []string{"sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0"})
		c := New(&shared.State{Devices: shared.NewRoster(shared.Options{}), Last: last, GPUs: &shared.GPUReadings{}})
		n, samples := collectortest.Collect(t, h, c.Descs, c.Read, c.Emit)
		if !slices.Contains(samples, `rdma_pcie_link_width_lanes{pci_address="0000:18:00.0"} 16`) ||
			slices.ContainsFunc(n.Devices, func(d snapshot.DeviceRead) bool { return d.Stuck }) {
			t.Errorf("%+v %q", n.Devices, samples)
		}
		time.Sleep(2 * time.Minute)
	})
}

// TestPanicOfGPUPaths: without LastRound there is no source of GPUs.
func TestPanicOfGPUPaths(t *testing.T) {
	c := New(&shared.State{Devices: shared.NewRoster(shared.Options{})})
	n, _ := collectortest.Collect(t, played.Machine(t, collectortest.PCIeTree("")), c.Descs, c.Read, c.Emit)
	if len(n.Issues) != 1 || n.Issues[0].Reason != string(access.Panic) || len(n.PCIe.Devices) == 0 {
		t.Errorf("%v", n.Issues)
	}
}
