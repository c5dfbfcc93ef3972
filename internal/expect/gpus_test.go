package expect

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestGPUs: a GPU that NVML listed is remembered after a restart, until it is accepted or another GPU is at its place.
func TestGPUs(t *testing.T) {
	a := GPURecord{UUID: "GPU-a", PCIAddress: "0000:1b:00.0"}
	b := GPURecord{Index: 1, UUID: "GPU-b", PCIAddress: "0000:2b:00.0"}
	c := GPURecord{Index: 1, UUID: "GPU-c", PCIAddress: b.PCIAddress}
	m := NewMemory(Data{})
	m.SeeGPUs([]GPURecord{a, b})
	kept, err := json.Marshal(m.Data())
	if err != nil {
		t.Fatal(err)
	}
	restarted := func() *Memory {
		var d Data
		if err := json.Unmarshal(kept, &d); err != nil {
			t.Fatal(err)
		}
		return NewMemory(d)
	}
	for name, k := range map[string]struct {
		do   func(m *Memory)
		want []GPURecord
	}{
		"one is gone":                        {func(m *Memory) { m.SeeGPUs([]GPURecord{a}) }, []GPURecord{a, b}},
		"another one is at its place":        {func(m *Memory) { m.SeeGPUs([]GPURecord{a, c}) }, []GPURecord{a, c}},
		"accepted":                           {func(m *Memory) { m.SeeGPUs([]GPURecord{a}); accept(t, m, "GPU-b") }, []GPURecord{a}},
		"accepted by address":                {func(m *Memory) { m.SeeGPUs([]GPURecord{a}); accept(t, m, b.PCIAddress) }, []GPURecord{a}},
		"one that is there is not discarded": {func(m *Memory) { m.SeeGPUs([]GPURecord{a, b}); accept(t, m, "GPU-b") }, []GPURecord{a, b}},
	} {
		m := restarted()
		k.do(m)
		if got := m.GPUs(); fmt.Sprint(got) != fmt.Sprint(k.want) {
			t.Errorf("%s: %v, want %v", name, got, k.want)
		}
	}
}

func accept(t *testing.T, m *Memory, name string) {
	t.Helper()
	if _, unknown, err := m.Accept([]string{name}, false); err != nil || len(unknown) > 0 {
		t.Errorf("accept %s: unknown %q, %v", name, unknown, err)
	}
}
