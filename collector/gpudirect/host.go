package gpudirect

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot/accel"
)

// gdrHost is the state of the host for GPUDirect RDMA. It is read each minute, because modules are loaded and removed.
type gdrHost struct {
	read          reading.Last // of all but the symbols
	symbolsRead   reading.Last
	facts         gdr.Machine
	conf          nccl.Env      // /etc/nccl.conf
	dmabuf, peers *bool         // kernel symbols; nil where unknown
	amdPeer       *bool         // of ib_core and amdgpu together
	uptime        time.Duration // at the last read; 0: unknown
	amdgpu        string        // the driver of AMD GPUs
	registrations []accel.GDRRegistrations
	peerMapping   *bool // PeerMappingOverride; nil: unknown
}

// Symbols of /proc/kallsyms: features of ib_core or ib_uverbs.
const (
	symbolDMABUF  = "ib_umem_dmabuf_get"
	symbolPeermem = "ib_register_peer_memory_client"
)

func (f *gdrHost) update(r reading.Reads, job gdr.Job, amd bool) {
	if f.symbolsRead.Due(r.Now(), treeInterval) {
		f.dmabuf, f.peers, f.amdPeer = readSymbols(r)
		f.symbolsRead.Read(r.Now())
	}
	if !f.read.Due(r.Now(), shared.SlowInterval) {
		return
	}
	f.read.Read(r.Now())
	f.conf, f.uptime = sysfs.ReadNCCLConf(r), 0
	if seconds, ok := sysfs.ReadUptime(r.Host); ok {
		f.uptime = time.Duration(seconds * float64(time.Second))
	}
	f.facts = gdr.Machine{
		Virtual:  pci.Virtual(r.Optional("sys/class/dmi/id/sys_vendor"), r.Optional("sys/class/dmi/id/product_name")),
		Kernel:   r.Optional("proc/sys/kernel/osrelease"),
		Driver:   readGPUDriver(r),
		Peermem:  readPeermem(r, f.peers),
		DMABUF:   f.dmabuf,
		Topology: sysfs.ReadTopology(r, cmp.Or(job.Env["NCCL_TOPO_FILE"], f.conf["NCCL_TOPO_FILE"])),
	}
	if amd {
		f.facts.ROCm, f.amdgpu = readROCm(r, f.facts.Kernel, f.amdPeer), amdDriver(r)
	}
	f.registrations = readRegistrations(r, f.facts.Peermem)
	f.peerMapping = readPeerMapping(r)
}

// readSymbols searches the kernel's symbol list, which takes 50 ms of CPU time. Names are visible without permission to
// see addresses.
func readSymbols(r reading.Reads) (dmabuf, peers, amdPeer *bool) {
	r.Ask(1)
	b, err := r.Host.Files.Lines("proc/kallsyms", []string{symbolDMABUF, symbolPeermem, sysfs.PeerSymbol})
	if err != nil {
		// Not permitted in a hardened unit: the kernel version is used instead.
		r.IssueUnless(err, access.Absent, access.Permission)
		return nil, nil, nil
	}
	words := bytes.Fields(b)
	has := func(symbol string) *bool {
		return new(slices.ContainsFunc(words, func(w []byte) bool { return string(w) == symbol }))
	}
	dmabuf, peers, amdPeer = has(symbolDMABUF), has(symbolPeermem), has(sysfs.PeerSymbol)
	*amdPeer = *amdPeer && *peers
	return dmabuf, peers, amdPeer
}

// readGPUDriver reads the first line of /proc/driver/nvidia/version, "NVRM version: NVIDIA UNIX Open Kernel Module for
// x86_64  570.133.20 Release Build", or the files of the module: the proprietary one taints the kernel with P.
func readGPUDriver(r reading.Reads) gdr.Driver {
	line, _, _ := strings.Cut(r.Optional("proc/driver/nvidia/version"), "\n")
	if version, open, ok := parseNVRM(line); ok {
		return gdr.Driver{Version: version, Open: &open}
	}
	d := gdr.Driver{Version: r.Optional("sys/module/nvidia/version")}
	if d.Version != "" {
		d.Open = new(!strings.Contains(r.Optional("sys/module/nvidia/taint"), "P"))
	}
	return d
}

func parseNVRM(line string) (version string, open, ok bool) {
	text, ok := strings.CutPrefix(line, "NVRM version:")
	if !ok {
		return "", false, false
	}
	for word := range strings.FieldsSeq(text) {
		if major, _, dotted := strings.Cut(word, "."); dotted && strings.Trim(major, "0123456789") == "" {
			return word, strings.Contains(text, "Open Kernel Module"), true
		}
	}
	return "", false, false
}

// readPeermem finds the peer memory module, and the clients listed by MLNX_OFED up to 23.10. All versions of MLNX_OFED
// have the symbol.
func readPeermem(r reading.Reads, supported *bool) (p gdr.Peermem) {
	p.Supported = supported
	for _, module := range []string{"nvidia_peermem", "nv_peer_mem"} {
		if p.Module == "" && r.Optional("sys/module/"+module+"/initstate") == "live" {
			p.Module = module
		}
	}
	p.Clients, _ = r.Host.Files.List("sys/kernel/mm/memory_peers") // absent on most machines
	if supported == nil && r.Optional("sys/module/mlx_compat/initstate") != "" {
		p.Supported = new(true)
	}
	return p
}
