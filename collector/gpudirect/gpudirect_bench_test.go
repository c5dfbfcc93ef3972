package gpudirect

import (
	"testing"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/pci"
)

// eightPlanes returns eight GPUs and ten NICs.
func eightPlanes() (*gdrHost, []gdrGPU, []gdrNIC) {
	open := true
	machine := &gdrHost{facts: gdr.Machine{Kernel: "6.12.48", Driver: gdr.Driver{Version: "570.133.20", Open: &open}}}
	var gpus []gdrGPU
	var nics []gdrNIC
	for i := range 10 {
		bus := string("0123456789"[i])
		up := "sys/devices/pci0000:" + bus + "0/0000:" + bus + "0:01.0/0000:" + bus + "1:00.0/"
		nic := pci.PlaceOf(up+"0000:"+bus+"2:01.0/0000:"+bus+"4:00.0", i/5)
		nics = append(nics,
			gdrNIC{NIC: gdr.NIC{Device: "mlx5_" + bus, Driver: "mlx5_core", Place: nic}, PCIAddress: nic.Chain[3]})
		if i < 8 {
			gpu := pci.PlaceOf(up+"0000:"+bus+"2:00.0/0000:"+bus+"3:00.0", i/5)
			gpus = append(gpus,
				gdrGPU{GPU: gdr.GPU{Index: bus, Address: gpu.Chain[3], Vendor: 0x10de, Device: 0x2330, Place: gpu, Compute: 90}})
		}
	}
	return machine, gpus, nics
}

// BenchmarkEvaluateGDR decides, as after a change.
func BenchmarkEvaluateGDR(b *testing.B) {
	machine, gpus, nics := eightPlanes()
	b.ReportAllocs()
	for b.Loop() {
		evaluateGDR(machine, gpus, nics, nil, gdr.Job{})
	}
}

// BenchmarkEvaluateGDRAgain finds no change, as in most rounds.
func BenchmarkEvaluateGDRAgain(b *testing.B) {
	machine, gpus, nics := eightPlanes()
	c := &gpuDirect{}
	b.ReportAllocs()
	for b.Loop() {
		c.evaluate(machine, gpus, nics, nil)
	}
}
