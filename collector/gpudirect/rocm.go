package gpudirect

import (
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"strings"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot/accel"
)

const peerUnknown = "unknown"

// peerDirs are the places of ib_core's list of peer memory clients: MLNX_OFED, and two of ib_peer_mem of other vendors.
var peerDirs = []string{"sys/kernel/mm/memory_peers", "sys/kernel/memory_peers", "sys/memory_peers"}

// applyKFD applies the topology of amdkfd to an AMD GPU.
func (g *gdrGPU) applyKFD(nodes []sysfs.KFDNode, product string) {
	g.minor, g.Model = -1, product
	i := slices.IndexFunc(nodes, func(n sysfs.KFDNode) bool { return n.Address == g.Address })
	if i < 0 {
		return
	}
	n := &nodes[i]
	g.UUID = n.Uuid()
	if g.Model == "" && n.Gfx != "" {
		g.Model = "AMD " + n.Gfx
	}
	g.SmallBAR = n.SmallBAR
}

// hasAMD reports whether GPUs of AMD are among them.
func hasAMD(gpus []gdrGPU) bool {
	return slices.ContainsFunc(gpus, func(g gdrGPU) bool { return g.Vendor == sysfs.VendorAMD })
}

// readROCm reads the mechanisms of AMD GPUs. client: amdgpu can register as a peer memory client by the kernel's
// symbols; nil: unknown.
func readROCm(r reading.Reads, kernel string, client *bool) gdr.ROCm {
	out := gdr.ROCm{Peer: client}
	for _, dir := range peerDirs {
		if sysfs.ReadPermitted(r, dir+"/amdkfd/version") != "" {
			out.Peer = new(true)
		}
	}
	out.P2P = readKernelOptions(r, kernel, "CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY")
	return out
}

// readKernelOptions reports whether the kernel was built with all of these options. Nil: its configuration cannot be
// read.
func readKernelOptions(r reading.Reads, kernel string, options ...string) *bool {
	r.Ask(1)
	text, err := r.Host.Files.Lines("boot/config-"+kernel, options)
	if err != nil {
		if text = unzipped(sysfs.ReadPermitted(r, "proc/config.gz")); text == nil {
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

// unzipped returns the content of a gzip file; nil if the file is not compressed.
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

// amdDriver returns the driver of AMD GPUs: amdgpu with the version of the out-of-tree one. Empty if it is not loaded.
func amdDriver(r reading.Reads) string {
	if r.Optional("sys/module/amdgpu/initstate") != "live" {
		return ""
	}
	return strings.TrimSpace("amdgpu " + r.Optional("sys/module/amdgpu/version"))
}

// describeROCm replaces the driver and the peer memory module of NVIDIA GPUs.
func (f *gdrHost) describeROCm(d *accel.GDR) {
	d.Driver, d.Flavour, d.Peermem = f.amdgpu, "", ""
	switch peer := f.facts.ROCm.Peer; {
	case peer == nil:
		d.PeerClient = peerUnknown
	case *peer:
		d.PeerClient = "amdkfd"
	}
}
