package gpu

import (
	"errors"
	"fmt"
	"testing"

	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/snapshot/accel"
)

// TestLostGPUs: NVML lists GPU 0 in each case; the other one is at 0000:2b:00.0.
func TestLostGPUs(t *testing.T) {
	const a, b = "0000:1b:00.0", "0000:2b:00.0"
	here := accel.GPUFunction{PCIAddress: a, Driver: "nvidia", Visible: true, OfDriver: true}
	other := func(driver string, ofDriver bool) []accel.GPUFunction {
		return []accel.GPUFunction{here, {PCIAddress: b, Driver: driver, OfDriver: ofDriver}}
	}
	before := []expect.GPURecord{{Index: 1, UUID: "GPU-b", PCIAddress: b}}
	for name, c := range map[string]struct {
		known     []expect.GPURecord
		count     uint64
		functions []accel.GPUFunction
		errs      []error
		want      string
	}{
		"all listed":                          {nil, 1, []accel.GPUFunction{here}, nil, "[]"},
		"listed before, off the bus":          {before, 1, []accel.GPUFunction{here}, nil, "[{{1 GPU-b} 0000:2b:00.0 off_bus}]"},
		"listed before, hidden":               {before, 1, other("nvidia", true), nil, "[{{1 GPU-b} 0000:2b:00.0 hidden}]"},
		"listed before, given to a guest":     {before, 1, other("vfio-pci", false), nil, "[]"},
		"listed before, in another container": {before, 1, other("nvidia", false), nil, "[]"},
		"listed by its driver":                {nil, 1, other("nvidia", true), nil, "[{{ } 0000:2b:00.0 hidden}]"},
		"bound, maybe not of this container":  {nil, 1, other("nvidia", false), nil, "[]"},
		"counted by NVML, not opened":         {nil, 2, other("nvidia", false), nil, "[{{ } 0000:2b:00.0 no_handle}]"},
		"without a driver":                    {nil, 1, other("", false), nil, "[{{ } 0000:2b:00.0 no_driver}]"},
		"the PCI tree is not readable":        {before, 1, nil, nil, "[{{1 GPU-b} 0000:2b:00.0 hidden}]"},
	} {
		r := &shared.GPUReading{NVML: accel.NVML{Count: &c.count, GPUs: []accel.GPU{{PCIAddress: a}}}, Errs: c.errs}
		var got []string
		for _, l := range lostNVIDIA(c.known, r, c.functions) {
			got = append(got, fmt.Sprint(l))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// TestLostAMD: GPU a has its driver in each case.
func TestLostAMD(t *testing.T) {
	const a, b = "0000:05:00.0", "0000:26:00.0"
	here := accel.AMDGPU{PCIAddress: a, Driver: "amdgpu", UUID: "a"}
	before := []expect.GPURecord{
		{UUID: "a", PCIAddress: a, Driver: "amdgpu"},
		{UUID: "b", PCIAddress: b, Driver: "amdgpu"},
		{UUID: "GPU-c", PCIAddress: "0000:2b:00.0"},
	}
	for name, c := range map[string]struct {
		known []expect.GPURecord
		amd   []accel.AMDGPU
		want  string
	}{
		"both":                        {before, []accel.AMDGPU{here, {PCIAddress: b, Driver: "amdgpu", UUID: "b"}}, "[]"},
		"off the bus":                 {before, []accel.AMDGPU{here}, "[{{ b} 0000:26:00.0 off_bus}]"},
		"all off the bus":             {before, []accel.AMDGPU{}, "[{{ a} 0000:05:00.0 off_bus} {{ b} 0000:26:00.0 off_bus}]"},
		"the PCI tree was not read":   {before, nil, "[]"},
		"without a driver":            {nil, []accel.AMDGPU{here, {PCIAddress: b}}, "[{{ } 0000:26:00.0 no_driver}]"},
		"without a driver, as before": {before, []accel.AMDGPU{here, {PCIAddress: b}}, "[{{ b} 0000:26:00.0 no_driver}]"},
		"none has a driver":           {nil, []accel.AMDGPU{{PCIAddress: b}}, "[]"},
		"none has a driver any more":  {before[:1], []accel.AMDGPU{{PCIAddress: a}}, "[{{ a} 0000:05:00.0 no_driver}]"},
		"given to a guest":            {before, []accel.AMDGPU{here, {PCIAddress: b, Driver: "vfio-pci"}}, "[]"},
		"at another address":          {before, []accel.AMDGPU{here, {PCIAddress: "0000:27:00.0", Driver: "amdgpu", UUID: "b"}}, "[]"},
	} {
		if got := fmt.Sprint(lostAMD(c.known, c.amd)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestGPUsAreKnown: what NVML lists is remembered, and stays while NVML does not answer; nothing is forgotten then.
func TestGPUsAreKnown(t *testing.T) {
	memory := expect.NewMemory(expect.Data{})
	c := &gpu{memory: memory, amd: []accel.AMDGPU{
		{PCIAddress: "0000:05:00.0", Driver: "amdgpu", UUID: "a"}, {PCIAddress: "0000:06:00.0", UUID: "b"},
	}}
	nvml := accel.NVML{GPUs: []accel.GPU{{Index: 3, UUID: "GPU-c", PCIAddress: "0000:1b:00.0"}}}
	const want = "[{3 GPU-c 0000:1b:00.0 } {0 a 0000:05:00.0 amdgpu}]"
	if got := fmt.Sprint(c.see(&shared.GPUReading{NVML: nvml})); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.amd = nil
	if got := fmt.Sprint(c.see(&shared.GPUReading{Err: errors.New("no answer")})); got != want {
		t.Errorf("without an answer: %s, want %s", got, want)
	}
	gone, _, err := memory.Accept([]string{"0000:1b:00.0"}, false)
	if err != nil || len(gone.GPUs) > 0 {
		t.Errorf("accepted without a reading: %v, %v", gone.GPUs, err)
	}
	c.see(&shared.GPUReading{})
	if gone, _, err = memory.Accept([]string{"0000:1b:00.0"}, false); err != nil || len(gone.GPUs) != 1 {
		t.Errorf("accepted: %v, %v", gone.GPUs, err)
	}
}
