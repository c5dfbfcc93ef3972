package collector

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

const (
	vendorAMD = 0x1002
	// kfdNodesDir has a node for each processor and GPU (drivers/gpu/drm/amd/amdkfd/kfd_topology.c). Files of a GPU return
	// EPERM to a process that its device cgroup denies the GPU.
	kfdNodesDir = "sys/class/kfd/kfd/topology/nodes"
	// peerSymbol is the registration of amdgpu as peer memory client: kfd_peerdirect.c of ROCm's driver, not in-tree.
	peerSymbol = "kfd_init_peer_direct"
)

const peerUnknown = "unknown"

// peerDirs are the places of ib_core's list of peer memory clients: MLNX_OFED, and two of ib_peer_mem of other vendors.
var peerDirs = []string{"sys/kernel/mm/memory_peers", "sys/kernel/memory_peers", "sys/memory_peers"}

// kfdNode is a GPU in the topology of amdkfd.
type kfdNode struct {
	address  string
	uniqueID uint64
	gfx      string // gfx942
	smallBAR *bool  // a part of its memory is a private heap; nil: unknown
}

// readKFDNodes reads the GPUs. What is absent or denied is left out.
func readKFDNodes(r *reading.Reader) (out []kfdNode) {
	names, err := r.Host.Files.List(kfdNodesDir)
	if err != nil {
		return nil
	}
	for _, name := range names {
		dir := kfdNodesDir + "/" + name
		n, ok := parseKFDNode(readPermitted(r, dir+"/properties"))
		if !ok {
			continue
		}
		n.smallBAR = smallBAR(readKFDHeaps(r, dir+"/mem_banks"))
		out = append(out, n)
	}
	return out
}

// readPermitted reads a file. It is no issue if the file is absent or permission is denied.
func readPermitted(r *reading.Reader, file string) string {
	r.Ask(1)
	b, err := r.Host.Files.Read(file, nil)
	if err != nil {
		r.IssueUnless(err, host.Absent, host.Permission)
		return ""
	}
	return string(b)
}

// parseKFDNode parses lines "name value" of a node's properties; ok is false for a processor.
func parseKFDNode(text string) (n kfdNode, ok bool) {
	p := properties(text)
	if p["vendor_id"] != vendorAMD || p["simd_count"] == 0 {
		return n, false
	}
	// location_id is bus, device and function. gfx_target_version is decimal: 90402 is gfx942 (stepping in hexadecimal).
	at, gfx := p["location_id"], p["gfx_target_version"]
	n.address = fmt.Sprintf("%04x:%02x:%02x.%d", p["domain"], at>>8&0xff, at>>3&0x1f, at&7)
	n.uniqueID = p["unique_id"]
	if gfx != 0 {
		n.gfx = fmt.Sprintf("gfx%d%d%x", gfx/10000, gfx/100%100, gfx%100)
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

// readKFDHeaps are the types of a node's memory banks.
func readKFDHeaps(r *reading.Reader, dir string) (heaps []uint64) {
	banks, err := r.Host.Files.List(dir)
	if err != nil {
		return nil
	}
	for _, bank := range banks {
		if heap, ok := properties(readPermitted(r, dir+"/"+bank+"/properties"))["heap_type"]; ok {
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

// uuid is the unique ID as amdgpu writes it; empty if unknown.
func (n *kfdNode) uuid() string {
	if n.uniqueID == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", n.uniqueID)
}

// applyKFD applies the topology of amdkfd to an AMD GPU.
func (g *gdrGPU) applyKFD(nodes []kfdNode, product string) {
	g.minor, g.Model = -1, product
	i := slices.IndexFunc(nodes, func(n kfdNode) bool { return n.address == g.Address })
	if i < 0 {
		return
	}
	n := &nodes[i]
	g.UUID = n.uuid()
	if g.Model == "" && n.gfx != "" {
		g.Model = "AMD " + n.gfx
	}
	g.SmallBAR = n.smallBAR
}

// hasAMD reports whether GPUs of AMD are among them.
func hasAMD(gpus []gdrGPU) bool {
	return slices.ContainsFunc(gpus, func(g gdrGPU) bool { return g.Vendor == vendorAMD })
}

// readROCm reads the mechanisms of AMD GPUs. client: amdgpu can register as a peer memory client by the kernel's
// symbols; nil: unknown.
func readROCm(r *reading.Reader, kernel string, client *bool) gdr.ROCm {
	out := gdr.ROCm{Peer: client}
	for _, dir := range peerDirs {
		if readPermitted(r, dir+"/amdkfd/version") != "" {
			out.Peer = new(true)
		}
	}
	out.P2P = readKernelOptions(r, kernel, "CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY")
	return out
}

// readKernelOptions reports whether the kernel was built with all of these options. Nil: its configuration cannot be
// read.
func readKernelOptions(r *reading.Reader, kernel string, options ...string) *bool {
	r.Ask(1)
	text, err := r.Host.Files.Lines("boot/config-"+kernel, options)
	if err != nil {
		if text = unzipped(readPermitted(r, "proc/config.gz")); text == nil {
			return nil
		}
	}
	all := true
	for _, o := range options {
		all = all && slices.Contains(strings.Split(string(text), "\n"), o+"=y")
	}
	return &all
}

// configLength limits the unpacked configuration: that of a distribution has 300 kB.
const configLength = 4 << 20

// unzipped is the content of a compressed file; nil if it is none.
func unzipped(text string) []byte {
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		return nil
	}
	var out bytes.Buffer
	if _, err := io.Copy(&out, io.LimitReader(z, configLength)); err != nil {
		return nil
	}
	return out.Bytes()
}

// amdDriver is the driver of AMD GPUs: amdgpu with the version of the out-of-tree one. Empty if it is not loaded.
func amdDriver(r *reading.Reader) string {
	if r.Optional("sys/module/amdgpu/initstate") != "live" {
		return ""
	}
	return strings.TrimSpace("amdgpu " + r.Optional("sys/module/amdgpu/version"))
}

// describeROCm replaces the driver and the peer memory module of NVIDIA GPUs.
func (f *gdrHost) describeROCm(d *snapshot.GDR) {
	d.Driver, d.Flavour, d.Peermem = f.amdgpu, "", ""
	switch peer := f.facts.ROCm.Peer; {
	case peer == nil:
		d.PeerClient = peerUnknown
	case *peer:
		d.PeerClient = "amdkfd"
	}
}
