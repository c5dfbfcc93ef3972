package sysfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/reading"
)

// KFDNode is a GPU in the topology of amdkfd.
type KFDNode struct {
	Address  string
	uniqueID uint64
	Gfx      string // gfx942
	SmallBAR *bool  // a part of its memory is a private heap; nil: unknown
}

// ReadKFDNodes reads the GPUs. What is absent or denied is left out.
func ReadKFDNodes(r reading.Reads) (out []KFDNode) {
	names, err := r.Host.Files.List(KFDNodesDir)
	if err != nil {
		return nil
	}
	for _, name := range names {
		dir := KFDNodesDir + "/" + name
		n, ok := ParseKFDNode(ReadPermitted(r, dir+"/properties"))
		if !ok {
			continue
		}
		n.SmallBAR = smallBAR(readKFDHeaps(r, dir+"/mem_banks"))
		out = append(out, n)
	}
	return out
}

const (
	VendorAMD = 0x1002
	// KFDNodesDir has a node for each processor and GPU (drivers/gpu/drm/amd/amdkfd/kfd_topology.c). Files of a GPU return
	// EPERM to a process that its device cgroup denies the GPU.
	KFDNodesDir = "sys/class/kfd/kfd/topology/nodes"
	// PeerSymbol is the registration of amdgpu as peer memory client: kfd_peerdirect.c of ROCm's driver, not in-tree.
	PeerSymbol = "kfd_init_peer_direct"
)

// ParseKFDNode parses lines "name value" of a node's properties; ok is false for a processor.
func ParseKFDNode(text string) (n KFDNode, ok bool) {
	p := properties(text)
	if p["vendor_id"] != VendorAMD || p["simd_count"] == 0 {
		return n, false
	}
	// location_id is bus, device and function. gfx_target_version is decimal: 90402 is gfx942 (stepping in hexadecimal).
	at, gfx := p["location_id"], p["gfx_target_version"]
	n.Address = fmt.Sprintf("%04x:%02x:%02x.%d", p["domain"], at>>8&0xff, at>>3&0x1f, at&7)
	n.uniqueID = p["unique_id"]
	if gfx != 0 {
		n.Gfx = fmt.Sprintf("gfx%d%d%x", gfx/10000, gfx/100%100, gfx%100)
	}
	return n, true
}

func properties(text string) map[string]uint64 {
	out := map[string]uint64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			out[name] = n
		}
	}
	return out
}

// readKFDHeaps returns the types of a node's memory banks.
func readKFDHeaps(r reading.Reads, dir string) (heaps []uint64) {
	banks, err := r.Host.Files.List(dir)
	if err != nil {
		return nil
	}
	for _, bank := range banks {
		if heap, ok := properties(ReadPermitted(r, dir+"/"+bank+"/properties"))["heap_type"]; ok {
			heaps = append(heaps, heap)
		}
	}
	return heaps
}

// smallBAR reports whether memory of a GPU is out of reach of the BAR: a heap of type private (2) instead of public
// (1), as kfd_create_vcrat_image_gpu reports it.
func smallBAR(heaps []uint64) *bool {
	const public, private = 1, 2
	if !slices.Contains(heaps, public) && !slices.Contains(heaps, private) {
		return nil
	}
	return new(slices.Contains(heaps, private))
}

// Uuid returns the unique ID as amdgpu writes it; empty if unknown.
func (n *KFDNode) Uuid() string {
	if n.uniqueID == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", n.uniqueID)
}

// ReadPermitted reads a file. It is no issue if the file is absent or permission is denied.
func ReadPermitted(r reading.Reads, file string) string {
	r.Ask(1)
	b, err := r.Host.Files.Read(file, nil)
	if err != nil {
		r.IssueUnless(err, access.Absent, access.Permission)
		return ""
	}
	return string(b)
}
