package collector

import (
	"fmt"
	"testing"

	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

// TestLostGPUs: NVML lists GPU 0 in each case; the other one is at 0000:2b:00.0.
func TestLostGPUs(t *testing.T) {
	const a, b = "0000:1b:00.0", "0000:2b:00.0"
	here := snapshot.GPUFunction{PCIAddress: a, Driver: "nvidia", Visible: true, OfDriver: true}
	other := func(driver string, ofDriver bool) []snapshot.GPUFunction {
		return []snapshot.GPUFunction{here, {PCIAddress: b, Driver: driver, OfDriver: ofDriver}}
	}
	before := map[string]site.GPU{"GPU-b": {Index: "1", UUID: "GPU-b", PCIAddress: b}}
	for name, c := range map[string]struct {
		known     map[string]site.GPU
		count     uint64
		functions []snapshot.GPUFunction
		errs      []error
		want      string
	}{
		"all listed":                          {nil, 1, []snapshot.GPUFunction{here}, nil, "[]"},
		"listed before, off the bus":          {before, 1, []snapshot.GPUFunction{here}, nil, "[{{1 GPU-b} 0000:2b:00.0 off_bus}]"},
		"listed before, hidden":               {before, 1, other("nvidia", true), nil, "[{{1 GPU-b} 0000:2b:00.0 hidden}]"},
		"listed before, given to a guest":     {before, 1, other("vfio-pci", false), nil, "[]"},
		"listed before, in another container": {before, 1, other("nvidia", false), nil, "[]"},
		"listed by its driver":                {nil, 1, other("nvidia", true), nil, "[{{ } 0000:2b:00.0 hidden}]"},
		"bound, maybe not of this container":  {nil, 1, other("nvidia", false), nil, "[]"},
		"counted by NVML, not opened":         {nil, 2, other("nvidia", false), nil, "[{{ } 0000:2b:00.0 no_handle}]"},
		"without a driver":                    {nil, 1, other("", false), nil, "[{{ } 0000:2b:00.0 no_driver}]"},
		"the PCI tree is not readable":        {before, 1, nil, nil, "[{{1 GPU-b} 0000:2b:00.0 hidden}]"},
	} {
		col := &gpu{known: c.known}
		r := &gpuReading{nvml: snapshot.NVML{Count: &c.count, GPUs: []snapshot.GPU{{PCIAddress: a}}}, errs: c.errs}
		var got []string
		for _, l := range col.lost(r, c.functions) {
			got = append(got, fmt.Sprint(l))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
