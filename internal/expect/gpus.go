package expect

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// GPURecord is a GPU that NVML has listed, or that had the driver amdgpu.
type GPURecord struct {
	Index      int    `json:"index"` // of NVML, when last listed
	UUID       string `json:"uuid"`  // of NVML, or unique_id of amdgpu
	PCIAddress string `json:"pci_address"`
	Driver     string `json:"driver,omitempty"` // amdgpu; empty: nvidia
}

// SeeGPUs records the GPUs that the driver lists. A new GPU at the address of an earlier one replaces it.
func (m *Memory) SeeGPUs(listed []GPURecord) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed = map[string]bool{}
	for _, g := range listed {
		m.listed[g.UUID] = true
		maps.DeleteFunc(m.data.GPUs, func(uuid string, was GPURecord) bool {
			gone := uuid != g.UUID && was.PCIAddress == g.PCIAddress
			if gone {
				m.forgetPlaces(GPUID(uuid))
			}
			return gone
		})
		if m.data.GPUs[g.UUID] != g {
			m.data.GPUs[g.UUID] = g
			m.touch()
		}
	}
}

// GPUs returns the GPUs that were ever listed, by UUID, without the accepted ones.
func (m *Memory) GPUs() []GPURecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return sortedGPUs(slices.Collect(maps.Values(m.data.GPUs)))
}

// acceptGPUs discards GPUs that are no longer listed. m.mu is held.
func (m *Memory) acceptGPUs(which func(GPURecord) bool) []GPURecord {
	if m.listed == nil { // nothing was read
		return nil
	}
	out := sortedGPUs(forget(m, m.data.GPUs, func(uuid string, g GPURecord) bool { return which(g) && !m.listed[uuid] }))
	for _, g := range out {
		m.forgetPlaces(GPUID(g.UUID))
	}
	return out
}

func sortedGPUs(out []GPURecord) []GPURecord {
	slices.SortFunc(out, func(a, b GPURecord) int {
		return cmp.Or(strings.Compare(a.UUID, b.UUID), strings.Compare(a.PCIAddress, b.PCIAddress))
	})
	return out
}
